"""Parts of a problem: which groups, with which weights, and the pairs among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.partition.anticlusters import anticlusters
from certikmeans.bounds.partition.shares import group_costs, share_of, shared_groups
from certikmeans.graphs import build_apart_graph
from certikmeans.problem import CannotLinks, ReducedProblem


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
    graph, order = build_apart_graph(len(rows), edges[(edges >= 0).all(axis=1)])
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
