"""Parts of a problem: anticlusters of an incumbent, with weights split between parts.

**Anticlusters.** A partition loses, for every part and cluster, the weight of the part's share of
the cluster times the squared distance between its mean and the cluster's (Huygens), and what the
part gains by other labels. Both are small if the shares of a cluster have the same weight and the
same mean: rows are distributed cluster by cluster, then swapped between parts until the sums agree.
Components of cannot-links that are small relative to a part stay whole: a pair across two parts is
lost. So do cannot-link sets: a part made of full sets knows the sizes of its clusters, because
each has one member of every set; sets are swapped as wholes. The bound is valid for any parts.

Limits on sizes and soft pairs are dropped: a part's share of a cluster may have any size.

**Shared groups.** ``cost(S, w) >= sum_t cost(S, w_t)`` if ``sum_t w_t <= w``: the optimal labels
of S cost ``sum_t cost_t`` with common centres, and no part costs more with centres and labels of
its own; weight that is left over costs at least 0. So a group may be in several parts. A small
cluster, or a group far from its centre, would dominate one part and be missing in the others: it is
in all of them, with an equal share of its weight. Shares are rounded down: the float below
``w / T``, as computed, is less than the exact quotient, so T of them are at most w in exact
arithmetic.

**Size of the parts:** as large as the effort that is left allows. The loss of a partition falls
about as 1 / size. An iteration takes ``iteration_work(size)`` units of work, about size^2.1, and
the number of iterations hardly depends on the size; so all parts together take about ``n
size^1.1``. Larger parts gain more than more iterations: a part of 232 digits leaves 1.70 % after 75
iterations and 1.67 % after 100, a part of 450 leaves 1.23 % after 75.

The first parts are what a fifth of the effort affords, so that a bound is known early and no part
is larger than necessary. From what they leave, the law above gives the size of the next ones; they
have not converged then, which leaves a margin.

Effort is counted in work, not in measured seconds, so that the parts of a run repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.bounds.sdp.admm import ITERATION_WORK_EXPONENT, iteration_work
from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.kernels.anticlusters import balance_sums
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import squared_distances
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.random_streams import generator
from certikmeans.stop import UNITS_PER_SECOND


@final
@dataclass(frozen=True, slots=True)
class PartitionParams:
    """Settings of the sizes of parts, and of the tasks that bound them."""

    max_part_size: int = 1_000
    max_later_part_size: int = 2_000  # where time is left
    min_part_size: int = 250
    min_groups_per_cluster: int = 8
    # An iteration with many cuts takes longer than one with few by this factor.
    cut_slowdown: float = 1.6
    expected_iterations: int = 120
    # Fraction of the time left that the parts may take, and the first task of every part.
    time_fraction: float = 0.75
    rough_time_fraction: float = 0.4
    min_rough_iterations: int = 5
    # A second partition must be this much coarser to be computed.
    min_coarsening: float = 1.6
    # Fraction of the time left for the first partition, and the time assumed without a limit.
    first_time_fraction: float = 0.2
    default_time_limit: float = 600.0
    # Iterations of the first task of a part, a rough value, and of the later ones.
    first_iterations: int = 30
    later_iterations: int = 40
    # A part whose value is this near to its incumbent's cost is done.
    target_tolerance: float = 1e-5
    # A part is finished when a task gains less than this fraction of its value, or after so many
    # iterations.
    min_relative_gain: float = 5e-5
    max_iterations: int = 2_000
    # While coarser parts are still possible, it is also finished when a task gains less than this
    # fraction of the gap to its target: gains fall by about a third from task to task, so it would
    # hardly reach the target.
    min_gap_fraction: float = 0.3

    def __post_init__(self) -> None:
        if not 0.0 < self.time_fraction <= 1.0 or self.min_coarsening <= 1.0:
            raise ValueError("time_fraction has to be in (0, 1], min_coarsening above 1")
        if min(self.first_iterations, self.later_iterations, self.max_iterations) < 1:
            raise ValueError("numbers of iterations have to be positive")


PARTITION_PARAMS = PartitionParams()


def iteration_seconds(size: int) -> float:
    """Seconds of one iteration on a part, by its work.

    >>> iteration_seconds(240)
    0.005
    """
    return iteration_work(size) / UNITS_PER_SECOND


def rough_iterations(
    n_groups: int,
    size: int,
    seconds: float,
    n_threads: int,
    params: PartitionParams = PARTITION_PARAMS,
) -> int:
    """Iterations of the first task of a part, so that the first tasks of all parts end in time.

    >>> rough_iterations(200_000, 250, 30.0, 2)
    5
    """
    all_parts = iteration_seconds(size) * max(1.0, n_groups / size)
    affordable = params.rough_time_fraction * seconds * n_threads / max(all_parts, 1e-12)
    return int(np.clip(affordable, params.min_rough_iterations, params.first_iterations))


def part_size(
    n_groups: int,
    n_clusters: int,
    seconds: float,
    n_threads: int,
    max_size: int | None = None,
    params: PartitionParams = PARTITION_PARAMS,
) -> int:
    """Groups per part; ``n_groups`` if the whole problem can be one part.

    >>> part_size(10_000, 10, 600.0, 2) > part_size(10_000, 10, 60.0, 2)
    True
    """
    max_size = params.max_part_size if max_size is None else max_size
    iterations = params.expected_iterations * params.cut_slowdown
    # A single part runs on one thread; a second thread hardly speeds it up.
    whole = iterations * iteration_seconds(n_groups)
    min_size = max(params.min_part_size, params.min_groups_per_cluster * n_clusters)
    min_size = min(min_size, params.max_later_part_size)
    if n_groups <= min_size or (n_groups <= max_size and whole <= params.time_fraction * seconds):
        return n_groups
    # n / size parts of that many iterations, on all threads.
    affordable = params.time_fraction * seconds * n_threads / (iterations * iteration_seconds(1))
    size = (affordable / n_groups) ** (1.0 / (ITERATION_WORK_EXPONENT - 1.0))
    return int(np.clip(size, min_size, max(min_size, min(max_size, (n_groups + 1) // 2))))


def first_size(
    n_groups: int,
    n_clusters: int,
    seconds: float,
    n_threads: int,
    params: PartitionParams = PARTITION_PARAMS,
) -> int:
    """Groups per part to begin with, by a small fraction of the time.

    If even the smallest parts take most of the time, the size that all of it allows.

    >>> first_size(10_000, 10, 60.0, 2) < part_size(10_000, 10, 60.0, 2)
    True
    """
    sizes = n_groups, n_clusters
    early_seconds = params.first_time_fraction * min(seconds, params.default_time_limit)
    early = part_size(*sizes, early_seconds, n_threads, params=params)
    later = part_size(*sizes, seconds, n_threads, params.max_later_part_size, params)
    if params.min_coarsening * early <= later:
        return early
    return part_size(*sizes, seconds, n_threads, params=params)


def next_size(
    n_groups: int,
    size: int,
    missing: float,
    allowed: float,
    affordable: int,
    params: PartitionParams = PARTITION_PARAMS,
) -> int:
    """Groups per part after parts of ``size`` that leave ``missing`` where ``allowed`` is left.

    Returns 0 if parts that are larger by ``params.min_coarsening`` are not affordable.

    >>> next_size(10_000, 300, 2.0, 1.0, 1_500)
    600
    >>> next_size(10_000, 300, 2.0, 1.0, 400)
    0
    """
    if affordable < params.min_coarsening * size:
        return 0
    wanted = size * missing / allowed if allowed > 0.0 else float(affordable)
    wanted = max(wanted, params.min_coarsening * size)
    if 2.0 * wanted > n_groups:  # two parts, or all in one
        return affordable
    return int(min(wanted, affordable))


@final
@dataclass(frozen=True, slots=True)
class PartParams:
    """Settings of the partition into parts."""

    max_component_fraction: float = 0.25  # of a part; larger components are split
    # Limits of the swaps, the first one on candidates times sweeps, rows and axes: about a second.
    balance_work: float = 1e9
    max_swap_candidates: int = 30
    max_swap_sweeps: int = 8
    # A group is shared by all parts if, in one part, it would be this fraction of its cluster's
    # weight or of a mean cluster's cost; shared groups fill at most this fraction of a part.
    share_threshold: float = 0.15
    max_shared_fraction: float = 0.35

    def __post_init__(self) -> None:
        if not 0.0 <= self.max_shared_fraction < 1.0:
            raise ValueError("max_shared_fraction has to be in [0, 1)")
        if self.max_swap_candidates < 5 or self.max_swap_sweeps < 1:
            raise ValueError("max_swap_candidates has to be at least 5, max_swap_sweeps positive")


DEFAULT_PARAMS = PartParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some groups of a problem with their own weights: a problem itself.

    Points are not translated: the bound does not depend on the origin. Pairs with a group outside
    the part are dropped, which only adds labellings.
    """

    rows: Ints  # (m,) groups of the whole
    problem: ReducedProblem  # its rows in the order of ``rows``; offset 0
    upper: float  # cost of the incumbent's labels on the part: an upper bound on its value


def split_into_parts(
    problem: ReducedProblem,
    labels: Ints,
    size: int,
    seed: int = 0,
    params: PartParams = DEFAULT_PARAMS,
) -> tuple[Part, ...]:
    """Parts of about ``size`` groups; the shares of a group sum to at most its weight, exactly."""
    n = problem.n_groups
    if size >= n:
        all_groups = np.arange(n)
        return (make_part(problem, all_groups, problem.weights, labels),)
    shared = shared_groups(problem, labels, size, params)
    common = np.flatnonzero(shared)
    n_parts = max(2, -(-(n - len(common)) // max(1, size - len(common))))
    part_index = anticlusters(problem, labels, n_parts, shared, seed, params)
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
    rows: Ints,
    weights: Floats,
    labels: Ints,
) -> Part:
    """The part of ``rows`` with ``weights``, in the order required by `CannotLinkGraph`."""
    position = np.full(problem.n_groups, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    edges = position[problem.graph.edges()]
    graph, order = build_cannot_link_graph(len(rows), edges[(edges >= 0).all(axis=1)])
    rows, weights = rows[order], weights[order]
    sets = problem.label_constraints.sets
    part_problem = ReducedProblem(
        points=np.ascontiguousarray(problem.points[rows]),
        weights=weights,
        label_constraints=ConstraintModel.of(graph, None if sets is None else sets.subset(rows)),
        n_clusters=problem.n_clusters,
        offset=0.0,
    )
    upper = float(group_costs(part_problem, labels[rows]).sum())
    return Part(rows, part_problem, upper)


def anticlusters(
    problem: ReducedProblem,
    labels: Ints,
    n_parts: int,
    shared: Mask,
    seed: int = 0,
    params: PartParams = DEFAULT_PARAMS,
) -> Ints:
    """Part of every group, -1 for shared groups.

    Parameters
    ----------
    problem : ReducedProblem
        Groups and cannot-links.
    labels : ndarray of shape (n_groups,)
        The incumbent; the better it is, the better the parts.
    n_parts : int
        At least 1.
    shared : ndarray of bool, shape (n_groups,)
        Groups to leave out.
    seed : int
        The same seed gives the same parts.
    params : PartParams
    """
    part_index = np.full(problem.n_groups, -1, dtype=np.int64)
    random = generator(seed, "bounds.partition.anticlusters")
    loads = np.zeros((n_parts, problem.n_clusters))
    linked = np.zeros(problem.n_groups, dtype=np.bool_)
    pieces = _component_pieces(problem, shared, n_parts, params)
    for members in pieces:
        linked[members] = True
        part_index[members] = _least_loaded(loads, labels[members])
        np.add.at(loads, (part_index[members], labels[members]), 1.0)
    _distribute_evenly(part_index, np.flatnonzero(~linked & ~shared), labels, loads, random)
    if n_parts > 1:
        _balance_parts(problem, labels, part_index, ~linked & ~shared, n_parts, seed, params)
        _balance_full_sets(problem, labels, part_index, pieces, n_parts, seed, params)
    return part_index


def _component_pieces(
    problem: ReducedProblem, shared: Mask, n_parts: int, params: PartParams
) -> list[Ints]:
    """Components without their shared groups, large ones split; the largest first.

    Groups of a component are in breadth-first order, so a slice of them has many of its pairs.
    """
    n_own = problem.n_groups - int(shared.sum())
    max_piece = max(2, int(params.max_component_fraction * n_own / n_parts))
    pieces = []
    for component in _components(problem):
        members = component[~shared[component]]
        pieces += [members[i : i + max_piece] for i in range(0, len(members), max_piece)]
    return sorted(pieces, key=len, reverse=True)


def _components(problem: ReducedProblem) -> list[Ints]:
    """Components of cannot-links and sets, each in breadth-first order."""
    graph, sets = problem.graph, problem.label_constraints.sets
    if sets is None:
        return np.split(np.arange(graph.n_linked), graph.starts[1:-1]) if graph.n_linked else []
    from scipy.sparse import coo_array  # loaded here: slow to import
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    # A set is a vertex of its own that is linked to its members.
    n, size = problem.n_groups, problem.n_groups + sets.n_sets
    hubs = n + np.repeat(np.arange(sets.n_sets), sets.sizes)
    ends = np.concatenate([graph.edges(), np.column_stack([hubs, sets.members])])
    ones = np.ones(len(ends))
    links = coo_array((ones, (ends[:, 0], ends[:, 1])), shape=(size, size)).tocsr()
    links = links + links.T
    component = connected_components(links, directed=False)[1]
    found = []
    for members in np.split(
        np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))
    ):
        if len(members) > 1:
            order = breadth_first_order(
                links, members[0], directed=False, return_predecessors=False
            )
            found.append(order[order < n].astype(np.int64))
    return found


def _balance_full_sets(
    problem: ReducedProblem,
    labels: Ints,
    part_index: Ints,
    pieces: list[Ints],
    n_parts: int,
    seed: int,
    params: PartParams,
) -> None:
    """Swap pieces with one group of every cluster between parts, as `_balance_parts` swaps rows."""
    k, n_dims = problem.n_clusters, problem.n_dims
    full = [one for one in pieces if len(one) == k and len(np.unique(labels[one])) == k]
    if len(full) < 2:
        return
    members = np.array([one[np.argsort(labels[one])] for one in full])
    vectors = np.concatenate(
        [_balance_vectors(problem, column)[:, :n_dims] for column in members.T], axis=1
    )
    mine = part_index[members[:, 0]]
    candidates = params.max_swap_candidates
    work = max(vectors.size * candidates, 1)
    sweeps = int(np.clip(params.balance_work / work, 1, params.max_swap_sweeps))
    balance_sums(
        np.ascontiguousarray(vectors),
        np.ones(len(full), dtype=np.bool_),
        n_parts,
        candidates,
        sweeps,
        np.uint64(2 * (seed * 1_000_003 + k) + 1),
        mine,
    )
    part_index[members] = mine[:, None]


def _least_loaded(loads: Floats, labels: Ints) -> int:
    """Part with the fewest groups of these clusters, among equals with the fewest in all."""
    scores = loads[:, labels].sum(axis=1) + 1e-3 * loads.sum(axis=1)
    return int(np.argmin(scores))


def _distribute_evenly(
    part_index: Ints,
    rows: Ints,
    labels: Ints,
    loads: Floats,
    random: np.random.Generator,
) -> None:
    """Distribute the other rows: parts differ by at most one row of every cluster if possible."""
    n_parts = len(loads)
    order = random.permutation(rows)
    for k in range(loads.shape[1]):
        mine = order[labels[order] == k]
        if len(mine) == 0:
            continue
        quota = (loads[:, k].sum() + len(mine)) / n_parts
        quotas = np.maximum(np.floor(quota - loads[:, k]), 0.0).astype(np.int64)
        while quotas.sum() > len(mine):  # some parts exceed their quota already
            quotas[np.argmax(np.where(quotas > 0, quotas + loads[:, k], -1.0))] -= 1
        n_left = len(mine) - int(quotas.sum())
        # The remainder goes to the parts with the fewest rows: of the cluster, then in all.
        by_load = np.lexsort((loads.sum(axis=1), quotas + loads[:, k]))
        quotas += np.bincount(by_load[np.arange(n_left) % n_parts], minlength=n_parts)
        part_index[mine] = np.repeat(np.arange(n_parts), quotas)
        loads[:, k] += quotas


def _balance_parts(
    problem: ReducedProblem,
    labels: Ints,
    part_index: Ints,
    movable: Mask,
    n_parts: int,
    seed: int,
    params: PartParams,
) -> None:
    """Swap rows between parts until the sums of each cluster agree."""
    swaps_affordable = params.balance_work / (problem.n_groups * problem.n_dims)
    max_candidates = params.max_swap_candidates
    sweeps = int(np.clip(swaps_affordable / max_candidates, 1, params.max_swap_sweeps))
    candidates = int(np.clip(swaps_affordable / sweeps, 5, max_candidates))
    for k in range(problem.n_clusters):
        members = np.flatnonzero((labels == k) & (part_index >= 0))
        if len(members) < 2:
            continue
        mine = part_index[members]
        balance_sums(
            _balance_vectors(problem, members),
            movable[members],
            n_parts,
            candidates,
            sweeps,
            np.uint64(2 * (seed * 1_000_003 + k) + 1),
            mine,
        )
        part_index[members] = mine


def _balance_vectors(problem: ReducedProblem, members: Ints) -> Floats:
    """Weighted deviations from the cluster's mean, weights, and costs, in common units."""
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


def shared_groups(
    problem: ReducedProblem,
    labels: Ints,
    size: int,
    params: PartParams = DEFAULT_PARAMS,
) -> Mask:
    """Mask of the groups shared by all parts of about ``size`` groups.

    The score of a group is ``w_s / W_cluster + K w_s d_s / cost``, its fraction of the weight of
    its cluster and of the mean cost of a cluster, times ``n / size``, as they would be in one part.
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
    sets = problem.label_constraints.sets
    if sets is not None:
        score[sets.members] = 0.0  # with a share of its weight, a set would not limit sizes
    worst = np.argsort(-score, kind="stable")[: int(params.max_shared_fraction * size)]
    chosen[worst[score[worst] >= params.share_threshold]] = True
    return chosen


def group_costs(problem: ReducedProblem, labels: Ints) -> Floats:
    """Cost of every group about the mean of its cluster."""
    sums, masses = problem.cluster_sums(labels)
    costs = np.empty(problem.n_groups)
    for k in np.unique(labels).tolist():
        members = np.flatnonzero(labels == k)
        mean = (sums[k] / masses[k])[None, :]
        costs[members] = squared_distances(problem.points[members], mean)[:, 0]
    weighted: Floats = costs * problem.weights
    return weighted


def equal_share(weights: Floats, n_parts: int) -> Floats:
    """Weight of a shared group in each of ``n_parts`` parts; their sum is at most its weight.

    >>> float(equal_share(np.array([1.0]), 3)[0]) * 3 <= 1.0
    True
    """
    if n_parts == 1:
        return weights
    return np.nextafter(weights / n_parts, 0.0)
