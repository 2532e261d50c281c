"""Boxes of the mean of a cluster, and the bound of a box under constraints of any kind.

``a_s(y) = lam_s - w_s |x_s - y|^2``. The *value* of an admissible set I with mean m is
``sum over I of a_s(m)`` plus the bonuses of the pairs inside. A box holds the means of the sets
that still matter there: those that contain the groups already *in*, and beyond them undecided
groups only.

**Bound.** With middle c and half sides h of a box, ``R^2 = sum h_j^2``: for a set I of weight W
whose mean m lies in the box, ``sum a_s(m) = sum a_s(c) + W |m - c|^2 <= sum (a_s(c) + w_s R^2)``.
So its value is at most that of the best admissible set for the values ``a_s(c) + w_s R^2``, which
prices bound (`check_prices`). It is a problem at one point: the constraints need not be understood
in a box.

**Decisions.** Let that bound be ``b`` and the reduced value of an undecided group
``d = v - p``. Sets without a group of ``d > 0`` have value at most ``b - d``, sets with a group
of ``-d > 0`` at most ``b + d``. Where that does not exceed the cutoff, the group is in every
set that does, or in none, here and in every part of the box. A group that goes in excludes its
partners and adds its bonuses to the values of the others (their *shift*).

**Dominance.** Where no face of the region was cut and no demand is required, the best set of all
keeps its value or loses if a group leaves it: so a group with ``a_s`` below 0 in all of the box,
bonuses included, is not in it, and the box that holds its mean may forget the group.

**Rounding.** Values at the middle are rounded up, entry by entry, and so is every shift. Sums of
the groups that are in are those of `check_boxes`, with the same bound on their error, in which the
bonuses are added to the magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, sum_by, total
from certikmeans.certificate.check_boxes import CenterRegion
from certikmeans.certificate.check_constraints import PricedConstraints
from certikmeans.certificate.check_prices import PriceProblem, price_bound

Mask = NDArray[np.bool_]

# A group is put in and out where so little of the excess is due to the size of the box; before
# that, prices are improved while that lowers the excess by at least this share.
CURVATURE_SHARE, LEAST_IMPROVEMENT = 0.5, 0.1
MAX_REFINEMENTS, REFINING_SWEEPS = 10, 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricedGroups:
    """Groups with multipliers, and the constraints on sets of them.

    ``lower`` and ``upper`` limit the demand of a set; without demands they are not used.
    """

    points: Floats
    weights: Floats
    multipliers: Floats
    constraints: PricedConstraints
    lower: float = 0.0
    upper: float = math.inf

    @property
    def may_be_empty(self) -> bool:
        """Whether the empty set is admissible."""
        return self.constraints.demand is None or self.lower <= 0.0


@final
@dataclass(slots=True, eq=False)
class MeanBoxes:
    """Boxes, each with the sums of the groups that are in, undecided groups, and their pairs."""

    low: Floats  # (b, r)
    high: Floats
    sums: Floats  # (b, r + 3): constant, mass, weighted coordinates, demand
    theta: Floats  # (b,): price of demand to begin with
    depth: Ints  # (b,): evaluations so far
    sizes: Ints  # (b,): undecided groups
    pair_sizes: Ints  # (b,)
    ids: NDArray[np.int32]  # groups, box after box
    shift: Floats  # their bonuses with groups that are in
    pairs: NDArray[np.int32]  # pairs of undecided groups, box after box
    prices: Floats  # of the pairs, to begin with

    @property
    def count(self) -> int:
        """Number of boxes."""
        return len(self.sizes)

    @property
    def members(self) -> Ints:
        """Undecided groups and pairs of every box."""
        return self.sizes + self.pair_sizes

    @property
    def entries(self) -> int:
        """Approximate number of numbers held."""
        per_box = 3 * int(self.low.shape[1]) + 7
        return 2 * len(self.ids) + 2 * len(self.pairs) + self.count * per_box

    def take(self, chosen: Mask) -> MeanBoxes:
        """Return the chosen boxes."""
        ids, pairs = np.repeat(chosen, self.sizes), np.repeat(chosen, self.pair_sizes)
        return MeanBoxes(
            self.low[chosen], self.high[chosen], self.sums[chosen], self.theta[chosen],
            self.depth[chosen], self.sizes[chosen], self.pair_sizes[chosen],
            self.ids[ids], self.shift[ids], self.pairs[pairs], self.prices[pairs],
        )  # fmt: skip

    @classmethod
    def concatenated(cls, parts: list[MeanBoxes]) -> MeanBoxes:
        """Return all boxes of the parts."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in cls.__slots__))


@final
class MeanData:
    """What the bounds of all boxes need."""

    def __init__(self, groups: PricedGroups, region: CenterRegion) -> None:
        points, weights, lam = groups.points, groups.weights, groups.multipliers
        c = groups.constraints
        self.groups, self.constraints, self.region = groups, c, region
        self.n, self.r = points.shape
        self.x = np.ascontiguousarray(points.T)
        self.w, self.lam = weights, lam
        self.base = lam - weights * np.einsum("ij,ij->i", points, points)
        self.size = np.abs(self.x).max(axis=1)
        farthest = math.sqrt(float(np.sum(self.size**2))) * (1.0 + 8.0 * EPS)
        norms = np.sqrt(np.einsum("ij,ij->i", points, points)) * (1.0 + (self.r + 4) * EPS)
        finite = c.bonus[np.isfinite(c.bonus)]
        self.magnitude = 1.001 * (
            total(np.abs(lam))
            + total(weights * (norms + farthest) ** 2)
            + 2.0 * total(np.abs(finite))
        )
        self.demand = np.zeros(self.n) if c.demand is None else c.demand
        gains = c.bonus > 0.0
        self.has_bonus = bool(np.isfinite(c.bonus).any())
        gain = sum_by(c.first[gains], c.bonus[gains], self.n)
        gain += sum_by(c.second[gains], c.bonus[gains], self.n)
        self.gain = gain * (1.0 + self.n * EPS)  # most that pairs can add to a group
        self.dominance = groups.may_be_empty and not (region.cut_low.any() or region.cut_high.any())
        linked = np.zeros(self.n, dtype=bool)
        linked[c.first] = linked[c.second] = True
        self.linked_index = np.where(linked, np.cumsum(linked) - 1, -1)
        self.n_linked = int(linked.sum())

    def error(self, depth: Ints) -> Floats:
        """Upper bound on the rounding error of the sums of a box after so many evaluations."""
        terms = self.n + self.constraints.n_pairs + 4 * self.r + 64
        error: Floats = 3.0 * EPS * self.magnitude * (terms + depth) + 1e-150
        return error

    def start(self, allowed: Mask | None) -> MeanBoxes:
        """Return the whole region as one box."""
        chosen = np.ones(self.n, dtype=bool) if allowed is None else allowed.copy()
        if self.dominance:
            chosen &= (self.lam > 0.0) | (self.gain > 0.0)
        ids = np.flatnonzero(chosen).astype(np.int32)
        c = self.constraints
        pairs = np.flatnonzero(chosen[c.first] & chosen[c.second]).astype(np.int32)
        low, high = self.region.low[None].copy(), self.region.high[None].copy()
        one = np.zeros(1, dtype=np.int64)
        return MeanBoxes(
            low, high, np.zeros((1, self.r + 3)), np.zeros(1), one, one + len(ids),
            one + len(pairs), ids, np.zeros(len(ids)), pairs, c.start_prices()[pairs],
        )  # fmt: skip


@final
class MeanBounds:
    """Upper bounds on the values of sets with their mean in the boxes, and decisions on groups."""

    def __init__(self, data: MeanData, boxes: MeanBoxes, cutoff: float) -> None:
        self.data, self.cutoff = data, cutoff
        self._drop_far_groups(boxes)
        boxes = self.boxes
        problem = self._price_problem()
        prices, bound = price_bound(problem, boxes.prices, boxes.theta)
        self.problem, self.reduced = problem, bound.reduced
        boxes.prices, boxes.theta = prices.pair, prices.theta
        mass, pull = boxes.sums[:, 1], boxes.sums[:, 2:-1]
        fixed = boxes.sums[:, 0] + mass * self.radius2
        fixed += np.sum(self.middle * (2.0 * pull - mass[:, None] * self.middle), axis=1)
        self.fixed, self.error, self.value = fixed, data.error(boxes.depth), bound.value
        self.upper = self.fixed + self.value + self.error
        self.curvature = self._curvature(mass)
        if len(problem.pair) or len(data.constraints.layers) > 1:
            self._refine(bound.error, mass)
        impossible = problem.upper < 0.0
        if data.constraints.demand is not None:
            units = sum_by(problem.box, data.demand[problem.ids], boxes.count)
            impossible |= units < problem.lower
        self.open = ~(self.upper <= cutoff) & ~impossible  # NaN proves nothing
        self._decide(bound.error)

    def _curvature(self, mass: Floats) -> Floats:
        """Part of the bound that is due to the size of the box."""
        chosen = np.where(self.reduced > 0.0, self.weight, 0.0)
        found: Floats = (mass + sum_by(self.box, chosen, self.boxes.count)) * self.radius2
        return found

    @property
    def settled(self) -> Mask:
        """Boxes above the cutoff that are so small that halving them cannot help."""
        excess = self.upper - self.cutoff
        found: Mask = self.curvature <= CURVATURE_SHARE * np.maximum(excess - self.error, 0.0)
        return found

    def _refine(self, error: Floats, mass: Floats) -> None:
        """Improve the prices of small boxes while that lowers their bounds noticeably."""
        boxes, problem = self.boxes, self.problem
        chosen = self.settled
        for _ in range(MAX_REFINEMENTS):
            if not chosen.any():
                return
            pairs, entries = chosen[problem.pair_box], chosen[self.box]
            prices, bound = price_bound(
                problem.subset(chosen), boxes.prices[pairs], boxes.theta[chosen], REFINING_SWEEPS
            )
            before, after = self.value[chosen], bound.value
            better = after < before
            at = np.flatnonzero(chosen)[better]
            improved = np.zeros(boxes.count, dtype=bool)
            improved[at] = True
            inner = improved[np.flatnonzero(chosen)]
            excess = self.upper[chosen] - self.cutoff
            self.value[at] = after[better]
            self.upper = self.fixed + self.value + self.error
            keep_pairs = inner[np.cumsum(chosen)[problem.pair_box[pairs]] - 1]
            keep_entries = inner[np.cumsum(chosen)[self.box[entries]] - 1]
            boxes.prices[np.flatnonzero(pairs)[keep_pairs]] = prices.pair[keep_pairs]
            boxes.theta[at] = prices.theta[better]
            self.reduced[np.flatnonzero(entries)[keep_entries]] = bound.reduced[keep_entries]
            error[np.flatnonzero(entries)[keep_entries]] = bound.error[keep_entries]
            self.curvature = self._curvature(mass)
            left = np.zeros(boxes.count, dtype=bool)
            left[np.flatnonzero(chosen)] = before - after > LEAST_IMPROVEMENT * excess
            chosen = left & self.settled

    def _drop_far_groups(self, boxes: MeanBoxes) -> None:
        """Values at the middles, rounded up; groups that dominance excludes leave."""
        data = self.data
        self.middle = 0.5 * (boxes.low + boxes.high)
        half = np.maximum(boxes.high - self.middle, self.middle - boxes.low) * (1.0 + EPS)
        self.radius2 = np.sum(half * half, axis=1) * (1.0 + (data.r + 4) * EPS) + 1e-290
        ids = boxes.ids.astype(np.intp)
        box = np.repeat(np.arange(boxes.count), boxes.sizes)
        distance = np.zeros(len(ids))
        for j in range(data.r):
            deviation = data.x[j].take(ids)
            deviation -= np.repeat(self.middle[:, j], boxes.sizes)
            deviation *= deviation
            distance += deviation
        lam, weight = data.lam.take(ids), data.w.take(ids)
        radius2 = self.radius2[box]
        shift = boxes.shift
        size = np.abs(lam) + weight * (distance + radius2) + np.abs(shift)
        error = (data.r + 12) * EPS * size + 1e-300
        values = lam - weight * (distance - radius2) + shift + error
        if data.dominance:
            near = np.maximum(np.sqrt(distance) - np.sqrt(radius2), 0.0)
            gain = data.gain.take(ids)
            most = lam + shift + gain - weight * near * near
            kept = ~(most + 4.0 * (error + (data.r + 12) * EPS * gain) < 0.0)
            if not kept.all():
                boxes = self._without(boxes, box, kept)
                box, values, weight = box[kept], values[kept], weight[kept]
        self.boxes, self.box, self.values, self.weight = boxes, box, values, weight

    def _without(self, boxes: MeanBoxes, box: Ints, kept: Mask) -> MeanBoxes:
        tail, head, pair_box = _pair_entries(self.data, boxes)
        pairs = kept[tail] & kept[head]
        return MeanBoxes(
            boxes.low, boxes.high, boxes.sums, boxes.theta, boxes.depth,
            np.bincount(box[kept], minlength=boxes.count),
            np.bincount(pair_box[pairs], minlength=boxes.count),
            boxes.ids[kept], boxes.shift[kept], boxes.pairs[pairs], boxes.prices[pairs],
        )  # fmt: skip

    def _price_problem(self) -> PriceProblem:
        data, boxes = self.data, self.boxes
        tail, head, pair_box = _pair_entries(data, boxes)
        taken = boxes.sums[:, -1]
        return PriceProblem(
            data.constraints, boxes.count, self.box, boxes.ids.astype(np.intp), self.values,
            boxes.pairs.astype(np.intp), pair_box, tail, head,
            data.groups.lower - taken, data.groups.upper - taken,
        )  # fmt: skip

    def _decide(self, error: Floats) -> None:
        """Groups that are in every set above the cutoff, and in none."""
        excess = self.upper - self.cutoff
        excess += 8.0 * EPS * (np.abs(self.upper) + abs(self.cutoff))
        decided = np.abs(self.reduced) - error >= excess[self.box] * (1.0 + 8.0 * EPS)
        decided &= self.open[self.box]
        self.included, self.excluded = (
            decided & (self.reduced > 0.0),
            decided & (self.reduced < 0.0),
        )
        if self.data.constraints.demand is not None:  # groups for which there is no room
            room = self.problem.upper[self.box]
            self.excluded |= (self.data.demand[self.boxes.ids] > room) & ~self.included

    def descend(self, chosen: Mask, included: Mask, excluded: Mask) -> MeanBoxes:
        """Return the chosen boxes after decisions, and after what follows from them.

        Boxes in which two groups are in that exclude each other hold no sets, and are left out.
        """
        data, boxes, box, problem = self.data, self.boxes, self.box, self.problem
        c, ids = data.constraints, problem.ids
        bonus = c.bonus[problem.pair]
        tail, head = problem.tail, problem.head
        excluded = excluded.copy()
        hard = np.isinf(bonus)
        excluded[head[hard & included[tail]]] = True
        excluded[tail[hard & included[head]]] = True
        chosen = chosen.copy()
        chosen[problem.pair_box[hard & included[tail] & included[head]]] = False
        for layer in c.layers:
            number = layer[ids]
            at = np.flatnonzero(number >= 0)
            key = box[at] * c.n_sets + number[at]
            taken = np.bincount(key[included[at]], minlength=boxes.count * c.n_sets)
            excluded[at[taken[key] > 0]] = True
            chosen[np.flatnonzero(taken > 1) // c.n_sets] = False
        excluded &= ~included
        left = ~(included | excluded) & chosen[box]
        sums, shift = boxes.sums.copy(), boxes.shift
        inside = np.flatnonzero(included & chosen[box])
        group, mass = ids[inside], data.w[ids[inside]]
        columns = [data.base[group] + boxes.shift[inside], mass]
        columns += [mass * x[group] for x in data.x] + [data.demand[group]]
        for j, column in enumerate(columns):
            sums[:, j] += sum_by(box[inside], column, boxes.count)
        if data.has_bonus:
            soft = np.flatnonzero(np.isfinite(bonus))
            tail, head, pair_bonus = tail[soft], head[soft], bonus[soft]
            both = included[tail] & included[head]
            sums[:, 0] += sum_by(problem.pair_box[soft][both], pair_bonus[both], boxes.count)
            shift = shift.copy()
            to_head, to_tail = included[tail] & ~included[head], included[head] & ~included[tail]
            gained = sum_by(head[to_head], pair_bonus[to_head], len(shift))
            gained += sum_by(tail[to_tail], pair_bonus[to_tail], len(shift))
            size = sum_by(head[to_head], np.abs(pair_bonus[to_head]), len(shift))
            size += sum_by(tail[to_tail], np.abs(pair_bonus[to_tail]), len(shift))
            terms = data.n * (size > 0.0)
            shift += gained + (terms + 4) * EPS * (size + np.where(size > 0.0, np.abs(shift), 0.0))
        pairs = left[problem.tail] & left[problem.head]
        moved = MeanBoxes(
            boxes.low, boxes.high, sums, boxes.theta, boxes.depth + 1,
            np.bincount(box[left], minlength=boxes.count),
            np.bincount(problem.pair_box[pairs], minlength=boxes.count),
            boxes.ids[left], shift[left], boxes.pairs[pairs], boxes.prices[pairs],
        )  # fmt: skip
        return moved.take(chosen)


def _pair_entries(data: MeanData, boxes: MeanBoxes) -> tuple[Ints, Ints, Ints]:
    """Entries of the two groups of every pair, and its box."""
    none = np.empty(0, dtype=np.int64)
    if len(boxes.pairs) == 0:
        return none, none, none
    c = data.constraints
    pair_box = np.repeat(np.arange(boxes.count), boxes.pair_sizes)
    box = np.repeat(np.arange(boxes.count), boxes.sizes)
    # Uninitialized: both groups of a pair are entries of its box.
    table = np.empty(boxes.count * data.n_linked, dtype=np.int32)
    linked = np.flatnonzero(data.linked_index[boxes.ids] >= 0)
    table[box[linked] * data.n_linked + data.linked_index[boxes.ids[linked]]] = linked
    row = pair_box * data.n_linked
    tail = table[row + data.linked_index[c.first[boxes.pairs]]].astype(np.int64)
    head = table[row + data.linked_index[c.second[boxes.pairs]]].astype(np.int64)
    return tail, head, pair_box
