"""Parts that are small copies of the whole: anticlusters of an incumbent labelling.

What a partition loses is, for every part and cluster, the weight of the part's share times the
squared distance of its mean from the cluster's (Huygens), and what the part gains by other
labels. Both are small if the shares of a cluster have the same weight and the same mean: rows are
dealt out cluster by cluster, then swapped between parts until the sums agree.

Components of cannot-links stay whole where they are small beside a part: a pair across two
parts is lost. Whatever the parts are, the bound is valid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.anticlusters import even_out
from certikmeans.problem import ReducedProblem
from certikmeans.problem.distances import squared_distances
from certikmeans.streams import generator

# Components above this part of a part are cut up.
LARGEST_COMPONENT = 0.25
# Products of candidates, sweeps, rows and axes; about a second.
WORK = 1e9
CANDIDATES = 30
MOST_SWEEPS = 8


def anticlusters(
    problem: ReducedProblem,
    labels: NDArray[np.int64],
    n_parts: int,
    shared: NDArray[np.bool_],
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return the part of every group, -1 for those that are shared by all.

    Parameters
    ----------
    problem : ReducedProblem
        Any groups and cannot-links.
    labels : ndarray of shape (n_groups,)
        An incumbent; the better it is, the better the parts.
    n_parts : int
        At least 1.
    shared : ndarray of bool, shape (n_groups,)
        Groups to leave out.
    seed : int
        The same seed gives the same parts.
    """
    part_of = np.full(problem.n_groups, -1, dtype=np.int64)
    random = generator(seed, "bounds.partition.anticlusters")
    loads = np.zeros((n_parts, problem.n_clusters))
    linked = np.zeros(problem.n_groups, dtype=np.bool_)
    for members in _pieces(problem, shared, n_parts):
        linked[members] = True
        part_of[members] = _least_loaded(loads, labels[members])
        np.add.at(loads, (part_of[members], labels[members]), 1.0)
    _deal(part_of, np.flatnonzero(~linked & ~shared), labels, loads, random)
    if n_parts > 1:
        _swap(problem, labels, part_of, ~linked & ~shared, n_parts, seed)
    return part_of


def _pieces(
    problem: ReducedProblem, shared: NDArray[np.bool_], n_parts: int
) -> list[NDArray[np.int64]]:
    """Components without their shared groups, large ones cut up; the largest first.

    Rows of a component are in breadth-first order, so a slice of them has many of its pairs.
    """
    longest = max(2, int(LARGEST_COMPONENT * (problem.n_groups - int(shared.sum())) / n_parts))
    pieces = []
    starts = problem.graph.starts
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        members = np.arange(first, end)[~shared[first:end]]
        pieces += [members[i : i + longest] for i in range(0, len(members), longest)]
    return sorted(pieces, key=len, reverse=True)


def _least_loaded(loads: NDArray[np.float64], labels: NDArray[np.int64]) -> int:
    """The part that has least of the clusters concerned, and least of all among equals."""
    scores = loads[:, labels].sum(axis=1) + 1e-3 * loads.sum(axis=1)
    return int(np.argmin(scores))


def _deal(
    part_of: NDArray[np.int64],
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    loads: NDArray[np.float64],
    random: np.random.Generator,
) -> None:
    """Deal out the rest so that every part has as many rows of every cluster, give or take one."""
    n_parts = len(loads)
    order = random.permutation(rows)
    for k in range(loads.shape[1]):
        mine = order[labels[order] == k]
        if len(mine) == 0:
            continue
        level = (loads[:, k].sum() + len(mine)) / n_parts
        quotas = np.maximum(np.floor(level - loads[:, k]), 0.0).astype(np.int64)
        while quotas.sum() > len(mine):  # some parts have more than their level already
            quotas[np.argmax(np.where(quotas > 0, quotas + loads[:, k], -1.0))] -= 1
        left = len(mine) - int(quotas.sum())
        # The rest goes where there is least: of the cluster, then of all.
        hungry = np.lexsort((loads.sum(axis=1), quotas + loads[:, k]))
        quotas += np.bincount(hungry[np.arange(left) % n_parts], minlength=n_parts)
        part_of[mine] = np.repeat(np.arange(n_parts), quotas)
        loads[:, k] += quotas


def _swap(
    problem: ReducedProblem,
    labels: NDArray[np.int64],
    part_of: NDArray[np.int64],
    movable: NDArray[np.bool_],
    n_parts: int,
    seed: int,
) -> None:
    looks = WORK / (problem.n_groups * problem.n_axes)
    sweeps = int(np.clip(looks / CANDIDATES, 1, MOST_SWEEPS))
    candidates = int(np.clip(looks / sweeps, 5, CANDIDATES))
    for k in range(problem.n_clusters):
        members = np.flatnonzero((labels == k) & (part_of >= 0))
        if len(members) < 2:
            continue
        mine = part_of[members]
        even_out(
            _vectors(problem, members), movable[members], n_parts, candidates, sweeps,
            np.uint64(2 * (seed * 1_000_003 + k) + 1), mine,
        )  # fmt: skip
        part_of[members] = mine


def _vectors(problem: ReducedProblem, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weighted deviations from the cluster's mean, weights, and shares of the cost."""
    points, weights = problem.points[members], problem.weights[members]
    mean = np.average(points, axis=0, weights=weights)
    spread = squared_distances(points, mean[None, :])[:, 0]
    unit = float(np.sqrt(np.average(spread, weights=weights)))
    pulls = weights[:, None] * (points - mean)
    masses = unit * (weights - weights.mean())
    costs = weights * spread
    if unit > 0.0:
        costs = (costs - costs.mean()) / unit
    return np.ascontiguousarray(np.column_stack([pulls, masses, costs]))
