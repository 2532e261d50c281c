"""Sets, sizes and soft pairs: of the points, as stated, and of the groups of a domain.

**Sizes.** The demand of a cluster, an exact sum, lies within the limits of some numbering of the
clusters. Where demands are not whole numbers, limits are widened by ``8 n u`` times their sum for
this comparison and for the bound alike: a solver adds up in floating point.

**Soft pairs.** Between two groups let M and C be the penalties of the must-links and cannot-links,
rounded down. Every labelling pays ``min(M, C)`` there, and M where the groups are separated by a
hard constraint; C inside a group. That is the *fixed* penalty. What is left is paid by labellings
that separate (``r = M - C > 0``) or do not separate (``r < 0``) the groups: ``|r|``, rounded down.

**Penalties and coordinates.** The sum of squares of a labelling is mapped to working coordinates by
``s -> ((sqrt((sqrt s + a)^2 - b) + c) f + d)^2`` with ``a, b, c, d >= 0`` (`check_domains`), whose
slope is at least ``f^2``. So it suffices to show, in working coordinates, that the sum of squares
plus ``f^2`` times the penalty left reaches the image of the claim less the fixed penalty: where the
sum of squares of the points is below claim minus penalty, its image is below that by more than
``f^2`` times the penalty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import (
    EPS,
    Floats,
    Ints,
    connected_components,
    distinct,
    sum_by,
)
from certikmeans.certificate.format import Reason, Rejection, StatedConstraints

MAX_DEMAND, MAX_PENALTY = 1e12, 1e60


@final
@dataclass(frozen=True, slots=True, eq=False)
class GroupConstraints:
    """Constraints between the groups of a domain, beside cannot-links.

    Attributes
    ----------
    sets : list of ndarray
        Groups of which a cluster has at most one.
    demand : ndarray of shape (n_groups,) or None
    lower, upper : ndarray of shape (n_clusters,)
        Limits on the demand of the clusters in some order, widened by rounding.
    pairs : ndarray of shape (m, 2)
    bonus : ndarray of shape (m,)
        Penalty of separating the groups if positive, of not separating them if negative.
    fixed_penalty : float
        At most what every labelling pays for soft pairs.
    """

    sets: list[Ints]
    demand: Floats | None
    lower: Floats
    upper: Floats
    pairs: Ints
    bonus: Floats
    fixed_penalty: float
    contradictory: bool  # two members of a set are in one group

    def scaled(self, factor: float) -> GroupConstraints:
        """Multiply the bonuses by a number, rounded down."""
        bonus = self.bonus * factor * (1.0 - 4.0 * EPS)
        return GroupConstraints(
            self.sets, self.demand, self.lower, self.upper, self.pairs, bonus,
            self.fixed_penalty, self.contradictory,
        )  # fmt: skip


def validate_constraints(stated: StatedConstraints, n_points: int, n_clusters: int) -> None:
    """Reject numbers that are out of range."""
    for pairs, penalties in (
        (stated.soft_must_link, stated.must_penalties),
        (stated.soft_cannot_link, stated.cannot_penalties),
    ):
        if not np.all((pairs >= 0) & (pairs < n_points)):
            raise Rejection(Reason.PAIRS, "a soft pair does not name two points")
        if not np.all((penalties >= 0.0) & (penalties <= MAX_PENALTY)):
            raise Rejection(Reason.FIELD, "a penalty is out of range")
    if not np.all((stated.set_columns >= -1) & (stated.set_columns < n_points)):
        raise Rejection(Reason.FIELD, "the number of a set is out of range")
    if stated.demand is not None and not np.all(
        (stated.demand >= 0.0) & (stated.demand <= MAX_DEMAND)
    ):
        raise Rejection(Reason.FIELD, "a demand is out of range")
    for limits in (stated.size_min, stated.size_max):
        if limits is not None and not np.all((limits >= 0.0) & (limits <= 1e30)):
            raise Rejection(Reason.FIELD, "a limit on sizes is out of range")


def size_limits(stated: StatedConstraints, n_points: int, n_clusters: int) -> tuple[Floats, Floats]:
    """Limits of the clusters, widened by the rounding of sums of demands."""
    demand = np.ones(n_points) if stated.demand is None else stated.demand
    total = math.fsum(demand.tolist())
    widened = 0.0
    if not (np.all(demand == np.floor(demand)) and total < 2.0**52):
        widened = 4.0 * n_points * EPS * total
    lower = np.zeros(n_clusters) if stated.size_min is None else stated.size_min
    upper = np.full(n_clusters, np.inf) if stated.size_max is None else stated.size_max
    return lower - widened, np.minimum(upper, 1.001 * total + 1.0) + widened


def penalty_above(stated: StatedConstraints, labels: Ints) -> float:
    """Upper bound on the sum of the penalties of the violated soft pairs."""
    apart = labels[stated.soft_must_link[:, 0]] != labels[stated.soft_must_link[:, 1]]
    together = labels[stated.soft_cannot_link[:, 0]] == labels[stated.soft_cannot_link[:, 1]]
    paid = [*stated.must_penalties[apart].tolist(), *stated.cannot_penalties[together].tolist()]
    value = math.fsum(paid)  # rounded once
    return math.nextafter(value, math.inf) if value > 0.0 else 0.0


def check_labels(stated: StatedConstraints, labels: Ints, n_clusters: int) -> None:
    """Reject labels that violate a set or a limit on sizes."""
    for column in stated.set_columns:
        rows = np.flatnonzero(column >= 0)
        key = column[rows] * n_clusters + labels[rows]
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(np.diff(key[order]) == 0)
        if len(same):
            i, j = rows[order[same[0]]], rows[order[same[0] + 1]]
            raise Rejection(Reason.LABELS, f"points {i} and {j} of one set share a cluster")
    if not stated.has_sizes:
        return
    demand = np.ones(len(labels)) if stated.demand is None else stated.demand
    sizes = _exact_sizes(demand, labels, n_clusters)
    lower, upper = size_limits(stated, len(labels), n_clusters)
    if not _can_be_matched(sizes, lower, upper):
        listed = ", ".join(f"{float(size):g}" for size in sizes[:20])
        raise Rejection(Reason.LABELS, f"the sizes {listed} are not within the limits")


def _exact_sizes(demand: Floats, labels: Ints, n_clusters: int) -> list[Fraction]:
    if np.all(demand == np.floor(demand)) and math.fsum(demand.tolist()) < 2.0**52:
        return [Fraction(size) for size in sum_by(labels, demand, n_clusters).tolist()]
    sizes = [Fraction(0)] * n_clusters
    for label, amount in zip(labels.tolist(), demand.tolist(), strict=True):
        sizes[label] += Fraction(amount)
    return sizes


def _can_be_matched(sizes: list[Fraction], lower: Floats, upper: Floats) -> bool:
    """Whether clusters can be numbered so that each is within its own limits.

    Ascending, each takes of the limits that it reaches those that end first.
    """
    limits = sorted(zip(lower.tolist(), upper.tolist(), strict=True))
    reached: list[float] = []  # upper limits
    position = 0
    for size in sorted(sizes):
        while position < len(limits) and Fraction(limits[position][0]) <= size:
            reached.append(limits[position][1])
            position += 1
        if not reached:
            return False
        end = min(reached)
        if size > Fraction(end):
            return False
        reached.remove(end)
    return True


def group_constraints(
    stated: StatedConstraints, group: Ints, n_groups: int, edges: Ints, n_clusters: int
) -> GroupConstraints:
    """Constraints between groups; ``edges`` are the cannot-links, rows ``first < second``."""
    sets, contradictory = _group_sets(stated, group)
    demand, lower, upper = None, np.zeros(n_clusters), np.full(n_clusters, np.inf)
    if stated.has_sizes:
        points = np.ones(len(group)) if stated.demand is None else stated.demand
        demand = sum_by(group, points, n_groups)
        lower, upper = size_limits(stated, len(group), n_clusters)
        if not (np.all(demand == np.floor(demand)) and demand.sum() < 2.0**52):
            # Sums of a group, and sums over groups in a proof.
            more = 8.0 * (len(group) + 64) * EPS * float(demand.sum())
            lower, upper = lower - more, upper + more
    pairs, bonus, fixed = _group_pairs(stated, group, n_groups, edges, sets, n_clusters)
    return GroupConstraints(sets, demand, lower, upper, pairs, bonus, fixed, contradictory)


def _group_sets(stated: StatedConstraints, group: Ints) -> tuple[list[Ints], bool]:
    sets: list[Ints] = []
    contradictory = False
    for column in stated.set_columns:
        rows = np.flatnonzero(column >= 0)
        order = rows[np.argsort(column[rows], kind="stable")]
        ends = np.cumsum(np.bincount(column[rows]))[:-1]
        for members in np.split(group[order], ends):
            contradictory |= len(distinct(members)) < len(members)
            sets.append(members)
    return distinct_sets(sets), contradictory


def _group_pairs(
    stated: StatedConstraints,
    group: Ints,
    n_groups: int,
    edges: Ints,
    sets: list[Ints],
    n_clusters: int,
) -> tuple[Ints, Floats, float]:
    """Pairs of groups with a bonus, and the fixed penalty."""
    ends = np.sort(group[np.concatenate([stated.soft_must_link, stated.soft_cannot_link])], axis=1)
    is_must = np.arange(len(ends)) < len(stated.soft_must_link)
    penalties = np.concatenate([stated.must_penalties, stated.cannot_penalties])
    inside = (ends[:, 0] == ends[:, 1]) | (n_clusters == 1)
    fixed = penalties[inside & ~is_must].tolist()
    ends, is_must, penalties = ends[~inside], is_must[~inside], penalties[~inside]
    if len(ends) == 0:
        return np.empty((0, 2), dtype=np.int64), np.empty(0), _below(fixed)
    all_keys = ends[:, 0] * n_groups + ends[:, 1]
    keys = distinct(all_keys)
    index = np.searchsorted(keys, all_keys)
    sums = []
    for chosen in (is_must, ~is_must):
        terms = np.bincount(index[chosen], minlength=len(keys))
        found = sum_by(index[chosen], penalties[chosen], len(keys))
        sums.append(np.where(terms > 1, found * (1.0 - terms * EPS), found))
    must, cannot = sums
    first, second = keys // n_groups, keys % n_groups
    separated = np.isin(keys, edges[:, 0] * n_groups + edges[:, 1])
    separated |= _share_a_set(first, second, n_groups, sets)
    fixed += np.where(separated, must, np.minimum(must, cannot)).tolist()
    bonus = must - cannot
    both = (must > 0.0) & (cannot > 0.0)
    bonus = np.where(both, bonus - np.sign(bonus) * 2.0 * EPS * np.abs(bonus), bonus)
    kept = ~separated & (np.abs(bonus) > 0.0)
    return np.column_stack([first[kept], second[kept]]), bonus[kept], _below(fixed)


def _share_a_set(first: Ints, second: Ints, n_groups: int, sets: list[Ints]) -> NDArray[np.bool_]:
    number = np.zeros(n_groups, dtype=object)
    for k, members in enumerate(sets):
        number[members] |= 1 << k
    if not sets:
        return np.zeros(len(first), dtype=bool)
    pairs = zip(number[first].tolist(), number[second].tolist(), strict=True)
    return np.array([bool(a & b) for a, b in pairs], dtype=bool)


def _below(values: list[float]) -> float:
    """Lower bound on a sum of numbers that are not negative."""
    return max(0.0, math.nextafter(math.fsum(values), -math.inf)) if values else 0.0


_MAX_CLASSES = 500


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricedConstraints:
    """Constraints on sets of groups, arranged for updates of many prices at once.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
        Groups of the pairs.
    bonus : ndarray of shape (n_pairs,)
        What a pair adds if both groups are in the set: minus infinity if that is forbidden.
    pair_class : ndarray of shape (n_pairs,)
        Pairs of one class have no group in common, except those of the last class, which are never
        updated. Bonuses above 0 have classes of their own, which come last but one.
    n_hard_classes : int
        The classes of pairs with a bonus below 0.
    layers : tuple of ndarray of shape (n_groups,)
        In each layer the set of every group, or -1.
    n_sets : int
    demand : ndarray of shape (n_groups,) or None
    """

    n_groups: int
    first: Ints
    second: Ints
    bonus: Floats
    pair_class: Ints
    class_ends: tuple[int, int]  # classes of negative and of positive bonuses end here
    layers: tuple[Ints, ...]
    n_sets: int
    demand: Floats | None

    @classmethod
    def of(
        cls,
        n_groups: int,
        edges: Ints,
        soft: Ints,
        soft_bonus: Floats,
        sets: list[Ints],
        demand: Floats | None,
    ) -> PricedConstraints:
        """Arrange cannot-links, soft pairs, and sets of at least two distinct groups."""
        edges, cliques = _split_cliques(n_groups, edges)
        ends = np.concatenate([edges, soft])
        bonus = np.concatenate([np.full(len(edges), -np.inf), soft_bonus])
        numbers = np.full(len(ends), -1)
        class_ends = [0, 0]
        for kind, chosen in enumerate((bonus < 0.0, bonus > 0.0)):
            at = np.flatnonzero(chosen)
            colors = _edge_colors(n_groups, ends[at]) if len(at) else np.empty(0, dtype=np.int64)
            start = class_ends[0] if kind else 0
            numbers[at] = np.where(colors < _MAX_CLASSES, start + colors, -1)
            class_ends[kind] = start + min(_MAX_CLASSES, int(colors.max(initial=-1)) + 1)
        all_sets = [*sets, *cliques]
        return cls(
            n_groups, ends[:, 0], ends[:, 1], bonus, numbers, (class_ends[0], class_ends[1]),
            _set_layers(n_groups, all_sets), len(all_sets), demand,
        )  # fmt: skip

    @property
    def n_pairs(self) -> int:
        """Number of pairs, without those inside cliques."""
        return len(self.bonus)

    def start_prices(self) -> Floats:
        """Prices of the pairs to begin with: 0, and half of a positive bonus."""
        return np.where(self.bonus > 0.0, 0.5 * self.bonus, 0.0)


def _split_cliques(n_groups: int, edges: Ints) -> tuple[Ints, list[Ints]]:
    """Separate the components of three or more groups in which every two are linked."""
    label = connected_components(n_groups, edges)
    sizes = np.bincount(label, minlength=n_groups)
    n_edges = np.bincount(label[edges[:, 0]], minlength=n_groups)
    complete = (sizes >= 3) & (n_edges == sizes * (sizes - 1) // 2)
    if not complete.any():
        return edges, []
    members = np.flatnonzero(complete[label])
    members = members[np.argsort(label[members], kind="stable")]
    cliques = np.split(members, np.cumsum(sizes[complete])[:-1])
    return edges[~complete[label[edges[:, 0]]]], cliques


def _edge_colors(n_groups: int, ends: Ints) -> Ints:
    """Number for every edge such that edges with a common end differ, greedily."""
    used = [0] * n_groups
    colors = []
    for a, b in ends.tolist():
        taken = used[a] | used[b]
        bit = ~taken & (taken + 1)
        colors.append(bit.bit_length() - 1)
        used[a] |= bit
        used[b] |= bit
    return np.array(colors, dtype=np.int64)


def _set_layers(n_groups: int, sets: list[Ints]) -> tuple[Ints, ...]:
    """Distribute sets among layers in which no group is in two of them, greedily."""
    layers: list[Ints] = []
    used = np.zeros(n_groups, dtype=object)
    for number, members in enumerate(sets):
        taken = 0
        for mask in used[members]:
            taken |= int(mask)
        layer = (~taken & (taken + 1)).bit_length() - 1
        if layer == len(layers):
            layers.append(np.full(n_groups, -1))
        layers[layer][members] = number
        used[members] |= 1 << layer
    return tuple(layers)


def distinct_sets(sets: list[Ints]) -> list[Ints]:
    """Sets of two or more groups, each once."""
    found = {one.tobytes(): one for one in map(distinct, sets) if len(one) > 1}
    return list(found.values())
