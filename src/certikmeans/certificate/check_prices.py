"""Prices of constraints in boxes: an upper bound on the best admissible set for given values.

A vector of prices ``p``, one number per group, with a constant ``c`` is *valid* if for every
admissible set I and all values ``v``

    sum over I of v_s + sum of the bonuses of pairs inside I  <=  c + sum over I of (v_s - p_s),

so the value of the best admissible set is at most ``c + sum_s max(v_s - p_s, 0)``. Prices of
different constraints add up. They are valid for any

* ``pi`` from 0 to P for a pair that must not, or at penalty P should not, share a cluster (P is
  infinite where it must not): both ends pay ``pi``, ``c += pi``, because
  ``-P x_u x_v <= pi (1 - x_u - x_v)`` for x in {0, 1};
* ``tau`` from 0 to r for a pair with bonus r > 0: one end receives ``tau``, the other one
  ``r - tau``, because ``r x_u x_v <= tau x_u + (r - tau) x_v``;
* ``q >= 0`` for a set with at most one member in I: every member pays q, ``c += q``;
* ``theta`` for demands ``L <= sum a_s <= U``: a group pays ``theta a_s``,
  ``c += theta U`` if ``theta >= 0``, else ``theta L``.

So nothing below has to find good prices for the bound to hold; good ones are found by minimising
the bound over one price at a time. It is convex and piecewise linear, and minimal where the price
is between two breakpoints; for pairs alone this converges to the linear relaxation
``x_u + x_v <= 1``, because that has one binary variable per group. Pairs are divided into classes
without common ends, sets into layers without common members, and a class is updated at once, in
all boxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, sum_by
from certikmeans.certificate.check_constraints import PricedConstraints

# Where a price is put between its breakpoints, sweep after sweep: near the lower one, which uses
# up the smaller value, and half-way, which spreads what is left.
_POSITIONS = (0.05, 0.5)
_SWEEPS = 4


@final
@dataclass(slots=True, eq=False)
class PriceProblem:
    """Values of undecided groups in many boxes: entries box after box, pairs likewise."""

    constraints: PricedConstraints
    count: int  # boxes
    box: Ints  # of an entry
    ids: Ints  # group of an entry
    values: Floats  # of an entry
    pair: Ints  # number of a pair whose groups are both undecided
    pair_box: Ints
    tail: Ints  # entry of its first group
    head: Ints
    lower: Floats  # (count,): limits on the demand of the undecided groups that are chosen
    upper: Floats

    def subset(self, chosen: NDArray[np.bool_]) -> PriceProblem:
        """Return the problem of the chosen boxes."""
        entries, pairs = chosen[self.box], chosen[self.pair_box]
        number, position = np.cumsum(chosen) - 1, np.cumsum(entries) - 1
        return PriceProblem(
            self.constraints, int(chosen.sum()), number[self.box[entries]], self.ids[entries],
            self.values[entries], self.pair[pairs], number[self.pair_box[pairs]],
            position[self.tail[pairs]], position[self.head[pairs]],
            self.lower[chosen], self.upper[chosen],
        )  # fmt: skip


@final
@dataclass(slots=True, eq=False)
class Prices:
    """Valid prices: of pairs, and for every entry the sum of what it pays.

    ``constant`` and ``paid`` err by rounding; see `PriceBound`.
    """

    pair: Floats
    theta: Floats  # (count,)
    paid: Floats  # (entries,)
    size: Floats  # (entries,): sum of the absolute prices of the entry
    constant: Floats  # (count,)
    constant_size: Floats  # (count,): sum of the absolute terms of the constant


def find_prices(
    problem: PriceProblem, start: Floats, theta: Floats, sweeps: int = _SWEEPS
) -> Prices:
    """Return good prices, found by descent from the given ones."""
    pair, theta, set_prices = _descend(problem, start, theta, sweeps)
    return _summed(problem, pair, theta, set_prices)


def _descend(
    problem: PriceProblem, start: Floats, theta: Floats, most_sweeps: int
) -> tuple[Floats, Floats, list[Floats]]:
    c = problem.constraints
    bonus = c.bonus[problem.pair]
    pair = start.copy()
    rest = problem.values - _pair_payments(problem, bonus, pair)
    classes = _classes(problem, bonus)
    layers = [_Layer.of(problem, layer) for layer in c.layers]
    set_prices = [np.zeros(len(layer.starts)) for layer in layers]
    demand = None if c.demand is None else c.demand[problem.ids]
    if demand is not None:
        if layers:  # only the largest of a set can be chosen
            values = rest.copy()
            for layer in layers:
                layer.drop_others(rest, values)
            theta = _theta(problem, values, demand, np.zeros(problem.count))
        rest -= theta[problem.box] * demand
    several = bool(classes) + len(layers) + (demand is not None) > 1
    sweeps = most_sweeps if classes or several else 1
    for sweep in range(sweeps):
        position = _POSITIONS[sweep % len(_POSITIONS)]
        for step in classes if sweep % 2 == 0 else classes[::-1]:
            step.update(rest, pair, position)
        last = sweep == sweeps - 1
        for layer, prices in zip(layers, set_prices, strict=True):
            layer.update(rest, prices, 0.5 if last or not several else 0.05)
        if demand is not None:
            found = _theta(problem, rest, demand, theta)
            rest -= (found - theta)[problem.box] * demand
            theta = found
    return pair, theta, set_prices


def _pair_payments(problem: PriceProblem, bonus: Floats, pair: Floats) -> Floats:
    """What every entry pays for its pairs."""
    gains = bonus > 0.0
    # What is not `tau` is rounded up: together they are at least the bonus.
    other = np.nextafter(bonus - pair, np.inf)
    size = len(problem.values)
    paid = sum_by(problem.tail, np.where(gains, -pair, pair), size)
    paid += sum_by(problem.head, np.where(gains, -other, pair), size)
    return paid


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PairClass:
    """Pairs without common ends in any box."""

    at: Ints
    tail: Ints
    head: Ints
    limit: Floats  # largest price
    gains: bool  # whether their bonuses are positive

    def update(self, rest: Floats, pair: Floats, position: float) -> None:
        """Put every price between its breakpoints."""
        old = pair[self.at]
        if self.gains:
            above = old - rest[self.tail]  # -(value of the tail without this pair)
            below = rest[self.head] + old  # value of the head with the whole bonus
        else:
            above, below = rest[self.tail] + old, rest[self.head] + old
        low, high = np.minimum(above, below), np.maximum(above, below)
        low = np.minimum(np.maximum(low, 0.0), self.limit)
        high = np.minimum(np.maximum(high, 0.0), self.limit)
        new = np.minimum(low + position * (high - low), self.limit)
        change = new - old
        pair[self.at] = new
        rest[self.tail] += change if self.gains else -change
        rest[self.head] -= change


def _classes(problem: PriceProblem, bonus: Floats) -> list[_PairClass]:
    c = problem.constraints
    if len(problem.pair) == 0:
        return []
    number = c.pair_class[problem.pair].astype(np.int16)  # sorted in linear time
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(-1, c.class_ends[1]), side="right")
    found = []
    for k, (start, stop) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        at = order[start:stop]
        if len(at):
            gains = k >= c.class_ends[0]
            found.append(
                _PairClass(at, problem.tail[at], problem.head[at], np.abs(bonus[at]), gains)
            )
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """Entries in sets of one layer, ordered by box and set."""

    at: Ints  # entries
    starts: Ints  # first of every (box, set)
    segment: Ints  # of every one of them
    box: Ints  # of every segment

    @classmethod
    def of(cls, problem: PriceProblem, layer: Ints) -> _Layer:
        number = layer[problem.ids]
        at = np.flatnonzero(number >= 0)
        key = problem.box[at] * problem.constraints.n_sets + number[at]
        at = at[np.argsort(key, kind="stable")]
        key = problem.box[at] * problem.constraints.n_sets + number[at]
        first = np.concatenate([np.ones(min(1, len(key)), dtype=bool), key[1:] != key[:-1]])
        starts = np.flatnonzero(first)
        return cls(at, starts, np.cumsum(first) - 1, problem.box[at[starts]])

    def _two_largest(self, values: Floats) -> tuple[Floats, Floats]:
        top = np.maximum.reduceat(values, self.starts)
        is_top = values == top[self.segment]
        several = np.add.reduceat(is_top.astype(np.int64), self.starts) > 1
        second = np.maximum.reduceat(np.where(is_top, -np.inf, values), self.starts)
        return top, np.where(several, top, second)

    def update(self, rest: Floats, prices: Floats, position: float) -> None:
        """Put every price between the second largest and the largest value."""
        if len(self.at) == 0:
            return
        values = rest[self.at] + prices[self.segment]
        top, second = self._two_largest(values)
        low, high = np.maximum(second, 0.0), np.maximum(top, 0.0)
        prices[:] = np.where(low > 0.0, low + position * (high - low), 0.0)
        rest[self.at] = values - prices[self.segment]

    def drop_others(self, values: Floats, kept: Floats) -> None:
        """Set ``kept`` of all but the largest of every set to minus infinity."""
        if len(self.at):
            top = np.maximum.reduceat(values[self.at], self.starts)
            kept[self.at[values[self.at] < top[self.segment]]] = -np.inf


def _theta(problem: PriceProblem, rest: Floats, demand: Floats, old: Floats) -> Floats:
    """Price per unit of demand: between the last group that is taken and the next one.

    With the groups by value per unit, descending: where the upper limit is exceeded, if that value
    is positive; else where the lower limit is reached, if that is negative; else 0.
    """
    heavy = np.flatnonzero(demand > 0.0)
    ratio = rest[heavy] / demand[heavy] + old[problem.box[heavy]]
    order = np.lexsort((-ratio, problem.box[heavy]))
    box, ratio, units = problem.box[heavy][order], ratio[order], demand[heavy][order]
    sizes = np.bincount(box, minlength=problem.count)
    starts = np.cumsum(sizes) - sizes
    before = np.concatenate([[0.0], np.cumsum(units)])
    taken = before[1:] - before[starts[box]]

    def at(reached: NDArray[np.bool_]) -> Floats:
        """Value of the first group of every box from which on this holds; -inf if nowhere."""
        position = starts + sizes - np.bincount(box[reached], minlength=problem.count)
        found = np.full(problem.count, -np.inf)
        some = position < starts + sizes
        found[some] = ratio[position[some]]
        return found

    next_up, last_up = at(taken > problem.upper[box]), at(taken >= problem.upper[box])
    next_low, last_low = at(taken > problem.lower[box]), at(taken >= problem.lower[box])
    theta = np.zeros(problem.count)
    over = next_up > 0.0
    last_up = np.where(np.isfinite(last_up), np.maximum(last_up, next_up), next_up)
    theta[over] = 0.5 * (next_up + last_up)[over]
    under = ~over & (last_low < 0.0) & np.isfinite(last_low) & (problem.lower > 0.0)
    next_low = np.where(np.isfinite(next_low), np.minimum(next_low, last_low), last_low)
    theta[under] = 0.5 * (next_low + last_low)[under]
    return theta


def _summed(problem: PriceProblem, pair: Floats, theta: Floats, set_prices: list[Floats]) -> Prices:
    """Add up valid prices; whatever the descent returned is put into its range."""
    c, box, count, m = problem.constraints, problem.box, problem.count, len(problem.values)
    bonus = c.bonus[problem.pair]
    pair = np.minimum(np.maximum(np.nan_to_num(pair), 0.0), np.abs(bonus))
    paid, size = _pair_payments(problem, bonus, pair), np.zeros(m)
    gains = bonus > 0.0
    absolute = np.where(gains, bonus + pair, pair)
    size += sum_by(problem.tail, absolute, m) + sum_by(problem.head, absolute, m)
    constant = sum_by(problem.pair_box, np.where(gains, 0.0, pair), count)
    constant_size = constant.copy()
    for layer, given in zip(c.layers, set_prices, strict=True):
        found = _Layer.of(problem, layer)
        prices = np.maximum(np.nan_to_num(given), 0.0)
        paid[found.at] += prices[found.segment]
        size[found.at] += prices[found.segment]
        total = sum_by(found.box, prices, count)
        constant += total
        constant_size += total
    if c.demand is not None:
        theta = np.nan_to_num(theta)
        demand = c.demand[problem.ids]
        paid += theta[box] * demand
        size += np.abs(theta)[box] * demand
        constant += np.where(theta >= 0.0, theta * problem.upper, theta * problem.lower)
        constant_size += np.abs(theta) * np.maximum(np.abs(problem.upper), np.abs(problem.lower))
    return Prices(pair, theta, paid, size, constant, constant_size)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PriceBound:
    """Bound on the best admissible choice of the undecided groups of every box.

    *Rounding.* A payment is a sum of as many prices as a group has pairs, sets and demands, and
    errs by at most that number of units of ``size``; the difference to the value by two more of
    both. Sums over a box, of positive numbers and of a constant, err by at most the number of
    their terms. Everything is doubled (EPS is two units).
    """

    reduced: Floats  # (entries,): value minus prices
    error: Floats  # (entries,): bounds the rounding error of it
    value: Floats  # (count,): upper bound

    @classmethod
    def of(cls, problem: PriceProblem, prices: Prices) -> PriceBound:
        """Add up values and prices."""
        c, box, count = problem.constraints, problem.box, problem.count
        m = len(problem.values)
        degree = np.bincount(problem.tail, minlength=m) + np.bincount(problem.head, minlength=m)
        reduced = problem.values - prices.paid
        error = (degree + len(c.layers) + 8) * EPS * (np.abs(problem.values) + prices.size)
        terms = np.bincount(box, minlength=count)
        terms = terms + np.bincount(problem.pair_box, minlength=count) + len(c.layers) + 16
        positive = sum_by(box, np.maximum(reduced, 0.0), count)
        total_error = sum_by(box, error, count) * (1.0 + terms * EPS)
        total_error += terms * EPS * (positive + prices.constant_size)
        return cls(reduced, error, positive + prices.constant + total_error)


def price_bound(
    problem: PriceProblem, start: Floats, theta: Floats, sweeps: int = _SWEEPS
) -> tuple[Prices, PriceBound]:
    """Return good prices and the bound that they prove."""
    prices = find_prices(problem, start, theta, sweeps)
    return prices, PriceBound.of(problem, prices)
