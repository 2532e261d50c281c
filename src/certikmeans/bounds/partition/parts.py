"""Parts of a problem: which groups, with which weights, and the pairs among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.partition.anticlusters import anticlusters
from certikmeans.bounds.partition.shares import group_costs, share_of, shared_groups
from certikmeans.kernels.graph.traversal import breadth_first_order
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.graph import ApartGraph


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some groups of a problem with weights of their own; a problem itself.

    Points stay as they are: a bound does not mind where the origin is. Pairs with a group
    outside are dropped, which only adds labellings.
    """

    rows: NDArray[np.int64]  # (m,) groups of the whole
    problem: ReducedProblem  # its rows in the order of ``rows``; offset 0
    upper: float  # cost of the incumbent's labels on the part: its value can be no larger


def cut_into_parts(
    problem: ReducedProblem, labels: NDArray[np.int64], size: int, seed: int = 0
) -> tuple[Part, ...]:
    """Parts of about ``size`` groups; weights of a group add up to at most its own, exactly."""
    n = problem.n_groups
    if size >= n:
        everyone = np.arange(n)
        return (part_of(problem, everyone, problem.weights, labels),)
    shared = shared_groups(problem, labels, size)
    common = np.flatnonzero(shared)
    n_parts = max(2, -(-(n - len(common)) // max(1, size - len(common))))
    owner = anticlusters(problem, labels, n_parts, shared, seed)
    shares = share_of(problem.weights[common], n_parts)
    parts = []
    for t in range(n_parts):
        own = np.flatnonzero(owner == t)
        rows = np.concatenate([own, common])
        weights = np.concatenate([problem.weights[own], shares])
        if len(rows):
            parts.append(part_of(problem, rows, weights, labels))
    return tuple(parts)


def part_of(
    problem: ReducedProblem,
    rows: NDArray[np.int64],
    weights: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> Part:
    """The part of ``rows`` with ``weights``, in the order that `ApartGraph` wants."""
    place = np.full(problem.n_groups, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    edges = place[problem.graph.edges()]
    graph, order = _graph(len(rows), edges[(edges >= 0).all(axis=1)])
    rows, weights = rows[order], weights[order]
    small = ReducedProblem(
        points=np.ascontiguousarray(problem.points[rows]),
        weights=weights,
        rules=CannotLinks(graph),
        n_clusters=problem.n_clusters,
        offset=0.0,
    )
    upper = float(group_costs(small, labels[rows]).sum())
    return Part(rows, small, upper)


def _graph(n: int, edges: NDArray[np.int64]) -> tuple[ApartGraph, NDArray[np.int64]]:
    """Cannot-links of a part, components one after the other; and ``order[new] == old``."""
    order, parents = np.arange(n), np.empty(n, dtype=np.int64)
    starts = np.zeros(n // 2 + 1, dtype=np.int64)
    n_linked = n_components = 0
    if len(edges):
        indptr, neighbors = _adjacency(n, edges)
        n_linked, n_components = breadth_first_order(indptr, neighbors, order, parents, starts)
        order[n_linked:] = np.flatnonzero(np.diff(indptr) == 0)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    indptr, neighbors = _adjacency(n, place[edges])
    starts = starts[: n_components + 1].copy()
    extra = np.diff(indptr[starts] // 2) - (np.diff(starts) - 1)
    return ApartGraph(n, indptr, neighbors, starts, parents[:n_linked].copy(), extra), order


def _adjacency(n: int, edges: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    tails, heads = np.concatenate([edges, edges[:, ::-1]]).T
    keys = np.sort(tails * np.int64(n) + heads)
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys // n, minlength=n), out=indptr[1:])
    return indptr, keys % n
