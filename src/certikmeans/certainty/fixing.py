"""Number of centers in each region, and the assignments that a budget of deficits allows.

For a labelling within the slack, with ``budget`` for all deficits together:

* an empty cluster has the deficit ``sigma``, so with ``sigma > budget``, without which there are no
  regions (`center_regions.enclose`), none is empty;
* ``m`` centers in a region have disjoint clusters, of total value at most ``sum_s max(a_s, 0)``
  over the region, and at least ``m sigma - budget``;
* without a center in region j, the value of every group is at most its largest value in the other
  regions; a group with a negative value there costs its cluster as much, cannot-links or not (a
  cluster without some of its groups is a cluster), so
  ``sum_s max(0, -max_(i != j) a_s) <= budget``;
* all counts add up to K.

``R`` may have components without a center of the incumbent: other clusters of the same quality.
Each is counted with the nearest region that has one, as one *cell*; all of the above holds for
cells as well. Where the lower and upper bound on the count of a cell agree, its clusters
correspond to those of the incumbent there, which is one of the labellings considered. Where they
do not, the two nearest such cells are merged, until the count of the union is known. All cells
that remain are merged: they hold the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.certainty.center_regions import CenterRegion, ValueRanges
from certikmeans.certainty.dual_ascent import DualLevel
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.kernels.concave_hull import concave_hull_steps
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import SMALL_BLOCK, iter_row_blocks
from certikmeans.rounding import EPS

# Merges of two cells, at most.
MAX_MERGES = 40


@final
@dataclass(frozen=True, slots=True)
class ClusterFamily:
    """Clusters of the incumbent, and regions that hold as many centers of any good labelling."""

    clusters: tuple[int, ...]
    regions: tuple[int, ...]


def match_families(
    level: DualLevel,
    ranges: ValueRanges,
    regions: tuple[CenterRegion, ...],
    centers: Floats,
    tolerance: Floats,
) -> tuple[ClusterFamily, ...] | None:
    """Match regions with clusters. ``centers`` are those of the incumbent, up to ``tolerance``.

    None if rounding leaves open in which region a center lies.
    """
    region_of_center = [_region_containing(center, regions, tolerance) for center in centers]
    if None in region_of_center:
        return None
    ours = np.bincount(np.array(region_of_center, dtype=np.int64), minlength=len(regions))
    cells = _cells(regions, ours)
    exact = _has_exact_count(level, ranges, cells, ours)
    for _ in range(MAX_MERGES):
        pair = _nearest_pair(
            regions, [j for j, is_exact in enumerate(exact) if not is_exact], cells
        )
        if pair is None:
            break
        # Two cells that exchange a center hold a known number together.
        cells[pair[0]] += cells.pop(pair[1])
        exact = _has_exact_count(level, ranges, cells, ours)
    unresolved = [
        j for cell, is_exact in zip(cells, exact, strict=True) if not is_exact for j in cell
    ]
    known = [cell for cell, is_exact in zip(cells, exact, strict=True) if is_exact]
    return tuple(
        ClusterFamily(
            tuple(k for k, where in enumerate(region_of_center) if where in cell), tuple(cell)
        )
        for cell in (*known, *([unresolved] if unresolved else []))
    )


def has_one_center_each(level: DualLevel, high: Floats) -> bool:
    """Whether every set holds one center, given upper bounds on the group values there."""
    columns = [high[:, k] for k in range(high.shape[1])]
    least, most = _center_counts(level, columns, len(columns))
    return bool(np.all(least == 1) and np.all(most == 1))


def _region_containing(
    center: Floats, regions: tuple[CenterRegion, ...], tolerance: Floats
) -> int | None:
    """Index of the only region that holds a center; None if there are none or several."""
    containing = [
        j
        for j, region in enumerate(regions)
        if np.all(region.low - tolerance <= center) and np.all(center <= region.high + tolerance)
    ]
    return containing[0] if len(containing) == 1 else None


def _cells(regions: tuple[CenterRegion, ...], ours: Ints) -> list[list[int]]:
    """Regions with a center of the incumbent, each with the other regions nearest to it."""
    held = np.flatnonzero(ours > 0)
    cells = [[int(j)] for j in held]
    middles = np.stack([0.5 * (region.low + region.high) for region in regions])
    for j in np.flatnonzero(ours == 0):
        away = np.sum((middles[held] - middles[j]) ** 2, axis=1)
        cells[int(np.argmin(away))].append(int(j))
    return cells


def _has_exact_count(
    level: DualLevel,
    ranges: ValueRanges,
    cells: list[list[int]],
    ours: Ints,
) -> list[bool]:
    """Whether a cell provably holds as many centers as of the incumbent."""
    high = [ranges.union(cell)[1] for cell in cells]
    least, most = _center_counts(level, high, int(ours.sum()))
    held = [int(ours[cell].sum()) for cell in cells]
    return [bool(least[j] == most[j] == held[j]) for j in range(len(cells))]


def _nearest_pair(
    regions: tuple[CenterRegion, ...], unresolved: list[int], cells: list[list[int]]
) -> tuple[int, int] | None:
    """The two unresolved cells nearest to each other, in ascending order."""
    if len(unresolved) < 2:
        return None
    first = [regions[cells[j][0]] for j in unresolved]
    middles = np.stack([0.5 * (region.low + region.high) for region in first])
    away = np.sum((middles[:, None] - middles[None]) ** 2, axis=2)
    np.fill_diagonal(away, np.inf)
    i, j = divmod(int(np.argmin(away)), len(unresolved))
    return unresolved[min(i, j)], unresolved[max(i, j)]


def _center_counts(level: DualLevel, high: list[Floats], n_clusters: int) -> tuple[Ints, Ints]:
    """Lower and upper bounds on the number of centers of every cell."""
    n_groups, n_cells = len(high[0]), len(high)
    least, most = np.zeros(n_cells, dtype=np.int64), np.full(n_cells, n_clusters)
    tolerance = (n_groups + 8) * EPS
    total_values, losses = _value_sums(high)
    for j in range(n_cells):
        held = total_values[j] * (1.0 + tolerance)
        while most[j] > 0 and most[j] * level.sigma * (1.0 - 4.0 * EPS) - level.budget > held:
            most[j] -= 1
        if losses[j] * (1.0 - tolerance) > level.budget:
            least[j] = 1
    for _ in range(n_cells + 1):  # every round fixes a count or changes nothing
        most = np.minimum(most, n_clusters - (least.sum() - least))
        least = np.maximum(least, n_clusters - (most.sum() - most))
    return least, most


def _value_sums(
    high: list[Floats],
) -> tuple[Floats, Floats]:
    """For every cell, the sum of positive values, and the loss of all groups without it."""
    n_cells = len(high)
    totals, losses = np.zeros(n_cells), np.zeros(n_cells)
    for rows in iter_row_blocks(high[0], SMALL_BLOCK):
        here = [column[rows] for column in high]
        first, second = np.full(len(here[0]), -np.inf), np.full(len(here[0]), -np.inf)
        for column in here:
            np.maximum(second, np.minimum(first, column), out=second)
            np.maximum(first, column, out=first)
        for j, column in enumerate(here):
            totals[j] += np.maximum(column, 0.0).sum()
            # Largest value in the other cells: the second largest where this cell has the largest.
            others = np.where(column == first, second, first)
            losses[j] += np.maximum(0.0, -others).sum()
    return totals, losses


# Assignments that the budget allows, and the number of points that can be reassigned at once.
#
# Fix a labelling within the slack. For a cluster ``C`` with center ``mu``, any other set ``I``
# without a cannot-link has ``value(I, mu) <= sigma``, so the deficit of ``C`` is at least
# ``value(I, mu) - value(C, mu)``. Sets that differ from ``C`` in one group give the cost of that
# group:
#
# * removing ``s`` from its own cluster: at least ``-a_s`` there;
# * adding ``s`` to another cluster, without its neighbors in the cannot-link graph: at least
#   ``a_s``
#   there, less the values of the neighbors that can be in that cluster.
#
# The clusters are different ones, so these costs add up; with all deficits at most ``budget``, a
# group cannot be where they exceed it. Neighbors that cannot be in a cluster do not count there, so
# this is repeated while something changes; and where a group is fixed, its neighbors cannot be.
#
# **Many groups at once.** Groups without cannot-links add up: ``I`` may differ from ``C`` in any
# number of them. So reassigned groups cost at most ``budget`` together, a knapsack. Of one
# component of cannot-links any single group can be chosen, so the most expensive one: reassigning
# several of them costs what it costs for that one. The largest number of points for a cost is a
# step function for each component, and the knapsack takes the least concave function above it.
#
# Clusters that cannot be separated form a family of ``q``. Of the points that stay in it, some
# numbering of its clusters agrees on the q-th part: the average over all numberings does.
#
# **Rounding.** Sums of ``m`` numbers that are not negative err by less than ``m EPS`` of
# themselves; costs are lowered, and values of neighbors are raised, by twice that. A step of the
# knapsack is such a sum, of differences that are rounded once.

MAX_ROUNDS = 20
INITIAL_SORT_SIZE = 4096  # cheapest items sorted first; usually enough


@final
@dataclass(frozen=True, slots=True, eq=False)
class AllowedAssignments:
    """Families that each group can be in, and lower bounds on the cost of being there."""

    possible: Mask  # (n_groups, n_families)
    move_cost: Floats  # (n_groups, n_families)


def family_value_ranges(ranges: ValueRanges, families: tuple[ClusterFamily, ...]) -> ValueRanges:
    """Bounds over all regions of a family."""
    shape = (len(ranges.low), len(families))
    low, high = np.empty(shape, order="F"), np.empty(shape, order="F")
    for f, family in enumerate(families):
        low[:, f], high[:, f] = ranges.union(family.regions)
    return ValueRanges(low, high)


def allowed_assignments(
    reduced: ReducedProblem,
    ranges: ValueRanges,
    families: tuple[ClusterFamily, ...],
    budget: float,
    rounds: int = MAX_ROUNDS,
) -> AllowedAssignments:
    """Exclude assignments that cost more than ``budget``, in at most ``rounds`` rounds."""
    counts = np.array([len(family.clusters) for family in families], dtype=np.float64)
    # Without cannot-links, the cost of a group does not depend on other groups.
    move_cost = np.empty(ranges.high.shape)
    for rows in iter_row_blocks(move_cost, SMALL_BLOCK):
        leave_cost = np.maximum(0.0, -ranges.high[rows])
        move_cost[rows] = _move_costs(leave_cost, np.maximum(0.0, ranges.low[rows]), counts)
    possible = move_cost <= budget
    linked = reduced.graph.n_linked
    possible[:linked] = True
    pending = np.arange(linked)
    for _ in range(rounds):
        if len(pending) == 0:
            break
        found = possible[:linked].copy()
        gain = _gains(reduced.graph, ranges, possible, pending)
        move_cost[pending] = _move_costs(np.maximum(0.0, -ranges.high[pending]), gain, counts)
        found[pending] &= move_cost[pending] <= budget
        if rounds > 1:
            _propagate_cannot_links(found, counts == 1.0, reduced.graph)
        # Excluding a neighbor from a cluster may raise the cost of a group.
        changed = count_true(found != possible[:linked]) > 0
        possible[:linked] = found
        pending = np.unique(_incident_cannot_links(reduced.graph, np.flatnonzero(changed))[1])
    return AllowedAssignments(possible, move_cost)


def count_true(table: Mask) -> Ints:
    """Number of True entries of every row; numpy sums short rows slowly.

    >>> count_true(np.array([[True, False], [True, True]]))
    array([1, 2])
    """
    total = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        total += column
    return total


def _incident_cannot_links(graph: CannotLinkGraph, groups: Ints) -> tuple[Ints, Ints]:
    """Cannot-links of some groups: index of the group in ``groups``, and the neighbor."""
    starts, degrees = graph.indptr[groups], graph.indptr[groups + 1] - graph.indptr[groups]
    row = np.repeat(np.arange(len(groups)), degrees)
    first = np.cumsum(degrees) - degrees
    entries = np.arange(len(row)) - first[row] + starts[row]
    return row, graph.neighbors[entries]


def _gains(
    graph: CannotLinkGraph,
    ranges: ValueRanges,
    possible: Mask,
    groups: Ints,
) -> Floats:
    """Lower bounds on the value that groups add to each family, less that of their neighbors."""
    row, neighbors = _incident_cannot_links(graph, groups)
    rounding_factor = 1.0 + 2.0 * (int(np.diff(graph.indptr).max(initial=0)) + 4) * EPS
    gain = np.empty((len(groups), ranges.high.shape[1]))
    for f in range(gain.shape[1]):
        join = np.maximum(0.0, ranges.high[neighbors, f]) * possible[neighbors, f]
        held = np.bincount(row, join, len(groups))
        low = ranges.low[groups, f]
        margin = low - held * rounding_factor
        margin -= 4.0 * EPS * (np.abs(low) + held)
        gain[:, f] = np.maximum(0.0, margin)
    return gain


def _move_costs(leave_cost: Floats, gain: Floats, counts: Floats) -> Floats:
    """Lower bounds on the cost of being in each family: of including it there and nowhere else."""
    n_families = len(counts)
    rounding_factor = 1.0 - 2.0 * (n_families + 8) * EPS
    everywhere = gain @ counts
    # All clusters but its own. Differences of sums may cancel: the error is that of the sum.
    others = everywhere[:, None] - gain
    others -= 2.0 * (n_families + 8) * EPS * everywhere[:, None]
    move_cost: Floats = (
        np.maximum(0.0, leave_cost * rounding_factor + np.maximum(0.0, others)) * rounding_factor
    )
    return move_cost


def _propagate_cannot_links(possible: Mask, single: Mask, graph: CannotLinkGraph) -> None:
    """Exclude the neighbors of a fixed group from its cluster."""
    in_single = count_true(possible[:, single]) == 1
    fixed = np.flatnonzero(in_single & (count_true(possible) == 1))
    row, neighbors = _incident_cannot_links(graph, fixed)
    fixed_cluster = possible[fixed].argmax(axis=1)
    possible[neighbors, fixed_cluster[row]] = False


def max_reassigned(
    reduced: ReducedProblem,
    assignments: AllowedAssignments,
    families: tuple[ClusterFamily, ...],
    family_of_group: Ints,
    sizes: Ints,
    budget: float,
) -> float:
    """Upper bound on the number of points that one labelling can reassign.

    ``family_of_group`` is the family of every group in the incumbent, ``sizes`` its points.
    """
    move_cost = np.empty(reduced.n_groups)
    for rows in iter_row_blocks(assignments.move_cost, SMALL_BLOCK):
        away = np.where(assignments.possible[rows], assignments.move_cost[rows], np.inf)
        away[np.arange(len(away)), family_of_group[rows]] = np.inf
        move_cost[rows] = np.min([*away.T], axis=0)
    can = np.isfinite(move_cost)
    share = 1.0 / np.array([len(family.clusters) for family in families], dtype=np.float64)
    stay = (1.0 - share)[family_of_group] * sizes
    gain = share[family_of_group] * sizes
    graph = reduced.graph
    component = np.repeat(np.arange(graph.n_components), np.diff(graph.starts))
    linked, free = can[: graph.n_linked], can.copy()
    free[: graph.n_linked] = False
    steps = knapsack_steps(
        component[linked], gain[: graph.n_linked][linked], move_cost[: graph.n_linked][linked]
    )
    most = max_knapsack_gain(
        np.append(steps[0], gain[free]), np.append(steps[1], move_cost[free]), budget
    )
    return math.fsum(stay.tolist()) * (1.0 + 4.0 * EPS) + most


def knapsack_steps(component: Ints, gain: Floats, move_cost: Floats) -> tuple[Floats, Floats]:
    """Gains and costs of the knapsack items; a component costs as much as its dearest group."""
    order = np.lexsort((move_cost, component))
    component, gain, move_cost = component[order], gain[order], move_cost[order]
    starts = np.append(np.flatnonzero(np.diff(component, prepend=-1)), len(component))
    step_gain, step_cost = np.empty_like(gain), np.empty_like(move_cost)
    count = concave_hull_steps(starts, gain, move_cost, step_gain, step_cost)
    return step_gain[:count], step_cost[:count]


def max_knapsack_gain(gain: Floats, move_cost: Floats, budget: float) -> float:
    """Upper bound on the gain within a budget: the last item may be fractional."""
    order = _cheapest(move_cost / gain, move_cost, budget)
    gain, move_cost = gain[order], move_cost[order]
    spent = np.cumsum(move_cost) * (1.0 - 4.0 * (len(move_cost) + 8) * EPS)
    whole = int(np.searchsorted(spent, budget, side="right"))
    total = math.fsum(gain[:whole].tolist())
    if whole < len(gain):
        left = budget - (spent[whole - 1] if whole else 0.0)
        total += float(gain[whole]) * min(1.0, max(0.0, left) / float(move_cost[whole]))
    return total * (1.0 + 8.0 * EPS)


def _cheapest(ratio: Floats, move_cost: Floats, budget: float) -> Ints:
    """Items by cost per gain, at least as many as the budget allows."""
    size = INITIAL_SORT_SIZE
    while size < len(ratio):
        chosen = np.argpartition(ratio, size)[:size]
        if move_cost[chosen].sum() > 1.01 * budget:
            return chosen[np.argsort(ratio[chosen], kind="stable")]
        size *= 8
    return np.argsort(ratio, kind="stable")
