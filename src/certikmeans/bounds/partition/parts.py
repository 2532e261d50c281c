"""Parts of a problem: which groups, with which weights, and the pairs among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.anticlusters import balance_sums
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.arrays import squared_distances
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.random_streams import generator


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


def split_into_parts(
    problem: ReducedProblem, labels: NDArray[np.int64], size: int, seed: int = 0
) -> tuple[Part, ...]:
    """Parts of about ``size`` groups; weights of a group add up to at most its own, exactly."""
    n = problem.n_groups
    if size >= n:
        all_groups = np.arange(n)
        return (make_part(problem, all_groups, problem.weights, labels),)
    shared = shared_groups(problem, labels, size)
    common = np.flatnonzero(shared)
    n_parts = max(2, -(-(n - len(common)) // max(1, size - len(common))))
    part_index = anticlusters(problem, labels, n_parts, shared, seed)
    shares = equal_share(problem.weights[common], n_parts)
    parts = []
    for t in range(n_parts):
        own = np.flatnonzero(part_index == t)
        rows = np.concatenate([own, common])
        weights = np.concatenate([problem.weights[own], shares])
        if len(rows):
            parts.append(make_part(problem, rows, weights, labels))
    return tuple(parts)


def make_part(
    problem: ReducedProblem,
    rows: NDArray[np.int64],
    weights: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> Part:
    """The part of ``rows`` with ``weights``, in the order that `CannotLinkGraph` wants."""
    position = np.full(problem.n_groups, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    edges = position[problem.graph.edges()]
    graph, order = build_cannot_link_graph(len(rows), edges[(edges >= 0).all(axis=1)])
    rows, weights = rows[order], weights[order]
    part_problem = ReducedProblem(
        points=np.ascontiguousarray(problem.points[rows]),
        weights=weights,
        label_constraints=CannotLinks(graph),
        n_clusters=problem.n_clusters,
        offset=0.0,
    )
    upper = float(group_costs(part_problem, labels[rows]).sum())
    return Part(rows, part_problem, upper)


# Parts that are small copies of the whole: anticlusters of an incumbent labelling.
#
# What a partition loses is, for every part and cluster, the weight of the part's share times the
# squared distance of its mean from the cluster's (Huygens), and what the part gains by other
# labels. Both are small if the shares of a cluster have the same weight and the same mean: rows are
# dealt out cluster by cluster, then swapped between parts until the sums agree.
#
# Components of cannot-links stay whole where they are small beside a part: a pair across two
# parts is lost. Whatever the parts are, the bound is valid.

# Components above this part of a part are cut up.
MAX_COMPONENT_FRACTION = 0.25
# Products of candidates, sweeps, rows and axes; about a second.
BALANCE_WORK_BUDGET = 1e9
MAX_SWAP_CANDIDATES = 30
MAX_SWAP_SWEEPS = 8


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
    part_index = np.full(problem.n_groups, -1, dtype=np.int64)
    random = generator(seed, "bounds.partition.anticlusters")
    loads = np.zeros((n_parts, problem.n_clusters))
    linked = np.zeros(problem.n_groups, dtype=np.bool_)
    for members in _component_pieces(problem, shared, n_parts):
        linked[members] = True
        part_index[members] = _least_loaded(loads, labels[members])
        np.add.at(loads, (part_index[members], labels[members]), 1.0)
    _distribute_evenly(part_index, np.flatnonzero(~linked & ~shared), labels, loads, random)
    if n_parts > 1:
        _balance_parts(problem, labels, part_index, ~linked & ~shared, n_parts, seed)
    return part_index


def _component_pieces(
    problem: ReducedProblem, shared: NDArray[np.bool_], n_parts: int
) -> list[NDArray[np.int64]]:
    """Components without their shared groups, large ones cut up; the largest first.

    Rows of a component are in breadth-first order, so a slice of them has many of its pairs.
    """
    max_piece = max(
        2, int(MAX_COMPONENT_FRACTION * (problem.n_groups - int(shared.sum())) / n_parts)
    )
    pieces = []
    starts = problem.graph.starts
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        members = np.arange(first, end)[~shared[first:end]]
        pieces += [members[i : i + max_piece] for i in range(0, len(members), max_piece)]
    return sorted(pieces, key=len, reverse=True)


def _least_loaded(loads: NDArray[np.float64], labels: NDArray[np.int64]) -> int:
    """The part that has least of the clusters concerned, and least of all among equals."""
    scores = loads[:, labels].sum(axis=1) + 1e-3 * loads.sum(axis=1)
    return int(np.argmin(scores))


def _distribute_evenly(
    part_index: NDArray[np.int64],
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
        quota = (loads[:, k].sum() + len(mine)) / n_parts
        quotas = np.maximum(np.floor(quota - loads[:, k]), 0.0).astype(np.int64)
        while quotas.sum() > len(mine):  # some parts have more than their level already
            quotas[np.argmax(np.where(quotas > 0, quotas + loads[:, k], -1.0))] -= 1
        n_left = len(mine) - int(quotas.sum())
        # The rest goes where there is least: of the cluster, then of all.
        by_load = np.lexsort((loads.sum(axis=1), quotas + loads[:, k]))
        quotas += np.bincount(by_load[np.arange(n_left) % n_parts], minlength=n_parts)
        part_index[mine] = np.repeat(np.arange(n_parts), quotas)
        loads[:, k] += quotas


def _balance_parts(
    problem: ReducedProblem,
    labels: NDArray[np.int64],
    part_index: NDArray[np.int64],
    movable: NDArray[np.bool_],
    n_parts: int,
    seed: int,
) -> None:
    swaps_affordable = BALANCE_WORK_BUDGET / (problem.n_groups * problem.n_dims)
    sweeps = int(np.clip(swaps_affordable / MAX_SWAP_CANDIDATES, 1, MAX_SWAP_SWEEPS))
    candidates = int(np.clip(swaps_affordable / sweeps, 5, MAX_SWAP_CANDIDATES))
    for k in range(problem.n_clusters):
        members = np.flatnonzero((labels == k) & (part_index >= 0))
        if len(members) < 2:
            continue
        mine = part_index[members]
        balance_sums(
            _balance_vectors(problem, members), movable[members], n_parts, candidates, sweeps,
            np.uint64(2 * (seed * 1_000_003 + k) + 1), mine,
        )  # fmt: skip
        part_index[members] = mine


def _balance_vectors(problem: ReducedProblem, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weighted deviations from the cluster's mean, weights, and shares of the cost."""
    points, weights = problem.points[members], problem.weights[members]
    mean = np.average(points, axis=0, weights=weights)
    spread = squared_distances(points, mean[None, :])[:, 0]
    unit = float(np.sqrt(np.average(spread, weights=weights)))
    moments = weights[:, None] * (points - mean)
    masses = unit * (weights - weights.mean())
    costs = weights * spread
    if unit > 0.0:
        costs = (costs - costs.mean()) / unit
    return np.ascontiguousarray(np.column_stack([moments, masses, costs]))


# Which groups are in every part, and with what share of their weight.
#
# ``cost(S, w) >= sum_t cost(S, w_t)`` whenever ``sum_t w_t <= w``: the labels that are best for S
# cost ``sum_t cost_t`` with common centres, and no part pays more with centres and labels of its
# own; weights that are left over cost nothing less than 0. So a group need not be in one part.
# A small cluster, or a group far from its centre, is too much for one part and missing in the others:
# it is in all of them, with an equal share.
#
# Shares are rounded down: the float below ``w / T``, as computed, is less than the exact quotient,
# so T of them are at most w in exact arithmetic.

# A group counts as too much for one part if, in it, it were this part of its cluster or caused
# this part of a cluster's cost; and shared groups fill at most so much of a part.
SHARE_THRESHOLD = 0.15
MAX_SHARED_FRACTION = 0.35


def shared_groups(
    problem: ReducedProblem, labels: NDArray[np.int64], size: int
) -> NDArray[np.bool_]:
    """Groups to put into every part, for parts of about ``size`` groups.

    The score of a group is ``w_s / W_cluster + K w_s d_s / cost``, both as they would be in a
    part, about ``n / size`` times larger: its part of its cluster, and of the cost of a mean
    cluster.
    """
    n = problem.n_groups
    chosen = np.zeros(n, dtype=np.bool_)
    if size >= n:
        return chosen
    weights = problem.weights
    _, masses = problem.cluster_sums(labels)
    costs = group_costs(problem, labels)
    total = max(float(costs.sum()), 1e-300)
    score = n / size * (weights / masses[labels] + problem.n_clusters * costs / total)
    worst = np.argsort(-score, kind="stable")[: int(MAX_SHARED_FRACTION * size)]
    chosen[worst[score[worst] >= SHARE_THRESHOLD]] = True
    return chosen


def group_costs(problem: ReducedProblem, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weighted squared distance of every group from the mean of its cluster."""
    sums, masses = problem.cluster_sums(labels)
    costs = np.empty(problem.n_groups)
    for k in np.unique(labels).tolist():
        members = np.flatnonzero(labels == k)
        mean = (sums[k] / masses[k])[None, :]
        costs[members] = squared_distances(problem.points[members], mean)[:, 0]
    weighted: NDArray[np.float64] = costs * problem.weights
    return weighted


def equal_share(weights: NDArray[np.float64], n_parts: int) -> NDArray[np.float64]:
    """What each of ``n_parts`` parts gets; all together at most the weight, exactly.

    >>> float(equal_share(np.array([1.0]), 3)[0]) * 3 <= 1.0
    True
    """
    if n_parts == 1:
        return weights
    return np.nextafter(weights / n_parts, 0.0)
