"""The cutting-plane model of the bound: every cluster found is a cut that caps it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.cuts import Cuts, Matrix, Reached, Rows
from certikmeans.bounds.cluster.families import Family
from certikmeans.bounds.cluster.multipliers import MultiplierSpace
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.bounds.cluster.projection import project

# Cuts that are kept where few are active at once, and a limit to what their columns take of memory.
MOST_CUTS = 180
FEWEST_CUTS = 24
CUT_BYTES = 4e8
# Where many are, those go that had no weight for so long, when they are this part of all; and the
# longest idle first when rows have more entries than this.
LONG_IDLE, PART_IDLE = 8, 0.25
MOST_ENTRIES = 3e7
# A projection begins with the cuts that had weight in one of the last few, and with new ones.
RECENT = 2
# Weights below this part of the largest one are none.
LEAST_WEIGHT = 1e-3
# Times that a projection is done again with the cuts that it was found to violate.
AGAIN = 5
# All cuts take part at once if their full rows have no more entries than this.
SMALL = 1_000_000
# With several families, moving the worth of one is this much cheaper than moving multipliers to
# the same effect.
FREEDOM = 10.0

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Where a projection leads, and the best value that the cuts themselves allow."""

    position: Vector
    ceiling: float  # no multipliers in the box give the model more than this

    def infeasible(self, level: float) -> bool:
        """Whether the cuts prove that the level cannot be reached."""
        return self.ceiling < level


@final
class CutModel:
    """``sum lam - sum over families of count * (largest worth of a known column)``.

    At least ``L(lam)`` everywhere, since a column stays a valid cut for every ``lam``. Positions
    are handed in and out as variables ``t`` of the space; inside, they are divided by the
    metric's scale. A column of family f is worth ``e_i + g_i.t`` there, and ``g_i`` has entries
    at its members alone.
    """

    def __init__(self, space: MultiplierSpace, families: Sequence[Family]) -> None:
        self._space = space
        self._families = families
        counts = np.array([family.count for family in families], dtype=np.float64)
        n_variables = len(space.high)
        self._inverse = np.divide(
            1.0, space.scale, out=np.zeros(n_variables), where=space.scale > 0.0
        )
        self._most = int(max(min(CUT_BYTES / len(space.low), MOST_CUTS), FEWEST_CUTS))
        self._cuts = Cuts(
            rows=Rows.of(np.empty((0, n_variables))),
            constants=np.empty(0),
            family=np.empty(0, dtype=np.int64),
            counts=counts,
            total=space.gather(np.ones(len(space.low))) * space.scale,
            base=float(space.low.sum()),
            high=space.high * self._inverse,
        )
        self._keys: list[tuple[int, int]] = []  # of the columns
        self._known: set[tuple[int, int]] = set()
        self._idle = np.empty(0, dtype=np.int64)  # projections since a cut had weight
        self._lasting = 0  # so many columns are never forgotten
        self.columns: list[Column] = []
        self.weights = np.empty(0)  # of the columns, in the mixture that gives the ceiling

    def add(self, columns: Iterable[Column], family: int = 0) -> int:
        """Add the columns that are new to the family; returns how many."""
        constants, variables, values = [], [], []
        region, space = self._families[family].region, self._space
        for column in columns:
            key = (family, _fingerprint(column))
            if key in self._known or column.mass <= 0.0:
                continue
            members = np.flatnonzero(column.members)
            self._known.add(key)
            self._keys.append(key)
            self.columns.append(column)
            touched, entries = space.gather_sparse(members)
            variables.append(touched)
            values.append(entries * space.scale[touched])
            within = column.cost_within(region)
            constants.append(float(space.low[members].sum()) - within)
        added = len(constants)
        if added:
            self._cuts = self._cuts.extended(variables, values, constants, family)
            self._idle = np.append(self._idle, np.zeros(added, dtype=np.int64))
            self.weights = np.append(self.weights, np.zeros(added))
        return added

    def follow(self, before: CutModel) -> None:
        """Take over, for the columns known to both, which of them matter."""
        place = {key: i for i, key in enumerate(before._keys)}
        for i, key in enumerate(self._keys):
            if key in place:
                self._idle[i] = before._idle[place[key]]

    def worth_at(self, t: Vector) -> Vector:
        """Worth of every column at ``t``."""
        return self._cuts.worth_at(t * self._inverse)

    def family_worth(self, t: Vector) -> Vector:
        """Largest known worth of a cluster of each family at ``t``; at least 0, the empty one."""
        return self._cuts.family_worth(t * self._inverse)

    def family_of(self, column: int) -> int:
        """Family that a column belongs to."""
        return int(self._cuts.family[column])

    def columns_of(self, family: int) -> list[int]:
        """Numbers of the columns of a family."""
        return [int(i) for i in np.flatnonzero(self._cuts.family == family)]

    def value(self, t: Vector) -> float:
        """The model at ``t``: at least the bound there."""
        return self._cuts.value(t * self._inverse)

    @property
    def cuts(self) -> Cuts:
        """The cuts themselves, in variables divided by the metric's scale."""
        return self._cuts

    def scaled(self, t: Vector) -> Vector:
        """Variables as the cuts see them."""
        return t * self._inverse

    def unscaled(self, t: Vector) -> Vector:
        """The way back."""
        return t * self._space.scale

    def project(self, t: Vector, level: float, tolerance: float) -> Moved:
        """Nearest position to ``t`` where the model reaches ``level``, or proof of none.

        Only the cuts that matter take part: a projection that violates others is done again.
        """
        cuts, reference = self._cuts, t * self._inverse
        chosen = self._idle < RECENT
        chosen[np.argsort(-cuts.worth_at(reference), kind="stable")[: len(cuts.counts)]] = True
        if len(chosen) * len(t) <= SMALL:
            chosen[:] = True
        for _ in range(AGAIN):
            working = np.flatnonzero(chosen)
            part = cuts.chosen(working)
            found = _reach_by_newton(part, reference, level, tolerance)
            if found.infeasible(level):
                break
            if cuts.value(found.point) >= level - 2.0 * tolerance:
                break
            known = part.family_worth(found.point)
            chosen |= cuts.worth_at(found.point) > known[cuts.family]
        mu = np.zeros(len(self.columns))
        mu[working] = found.mu
        self._idle = np.where(mu > LEAST_WEIGHT * mu.max(initial=0.0), 0, self._idle + 1)
        weights = np.zeros(len(self.columns))
        weights[working] = found.weights
        self.weights = np.where(weights > 1e-6 * weights.max(initial=0.0), weights, 0.0)
        position = np.clip(found.point * self._space.scale, 0.0, self._space.high)
        return Moved(position, found.ceiling)

    def weigh(self, weights: Vector, at_work: NDArray[np.bool_]) -> None:
        """Take note of the mixture, and of the cuts that matter; the others are idle."""
        self.weights = weights
        self._idle = np.where(at_work, 0, self._idle + 1)

    def keep_for_good(self) -> None:
        """Never forget the columns of now."""
        self._lasting = len(self.columns)

    def forget_oldest(self) -> None:
        """Drop columns when there are too many: those that have been idle for longest."""
        if len(self.columns) > self._lasting + self._most:
            idle = self._idle.copy()
            idle[: self._lasting] = -1
            kept = self._lasting + 2 * self._most // 3
            self._keep(np.sort(np.argsort(idle, kind="stable")[:kept]))

    def forget_idle(self) -> None:
        """Drop columns that have long been idle, when they are many."""
        idle = self._idle.copy()
        idle[: self._lasting] = 0
        keep = idle <= LONG_IDLE
        entries = len(self._cuts.rows.values)
        if entries > MOST_ENTRIES:
            order = np.argsort(idle, kind="stable")
            sizes = np.cumsum(np.diff(self._cuts.rows.starts)[order])
            keep[order[sizes > 0.75 * MOST_ENTRIES]] = False
            keep[: self._lasting] = True
        elif np.count_nonzero(~keep) < PART_IDLE * len(keep):
            return
        self._keep(np.flatnonzero(keep))

    def _keep(self, keep: NDArray[np.int64]) -> None:
        self._cuts = self._cuts.chosen(keep)
        self._idle, self.weights = self._idle[keep], self.weights[keep]
        self.columns = [self.columns[i] for i in keep]
        self._keys = [self._keys[i] for i in keep]
        self._known = set(self._keys)


def _reach_by_newton(cuts: Cuts, reference: Vector, level: float, tolerance: float) -> Reached:
    """Project on the level with few cuts.

    With one family the row of a cut is ``total - K g_i``. With several the worth of a family is a
    variable of its own: rows are ``-g_i``, and one more row says that the whole reaches the level.
    """
    ceiling, weights = np.inf, np.zeros(len(cuts.constants))

    def excess(mu: Vector) -> float:
        nonlocal ceiling, weights
        shares = np.maximum(mu[: len(weights)], 0.0)
        mass = np.zeros(len(cuts.counts))
        np.add.at(mass, cuts.family, shares)
        scale = np.divide(cuts.counts, mass, out=np.zeros_like(mass), where=mass > 0.0)
        here = cuts.ceiling(shares * scale[cuts.family])
        if here < ceiling:
            ceiling, weights = here, shares * scale[cuts.family]
        return ceiling - level

    if len(cuts.counts) > 1:
        found = project(*_augmented(cuts, reference, level), tolerance, excess)
        point = np.clip(found.point[: len(reference)], 0.0, cuts.high)
        return Reached(point, found.mu[: len(weights)], weights, ceiling, found.steps)
    rows = cuts.rows.full()
    rows *= -cuts.counts[0]
    rows += cuts.total
    needed = level - cuts.base + cuts.counts[0] * cuts.constants
    low = np.zeros(len(reference))
    found = project(rows, needed, reference, low, cuts.high, tolerance)
    weights = found.mu * (cuts.counts[0] / max(float(found.mu.sum()), 1e-300))
    return Reached(found.point, found.mu, weights, level + found.excess, found.steps)


def _augmented(
    cuts: Cuts, reference: Vector, level: float
) -> tuple[Matrix, Vector, Vector, Vector, Vector]:
    """Rows, needs, reference and box with the worth of each family as a variable."""
    n_cuts, n_variables, n_families = len(cuts.constants), len(reference), len(cuts.counts)
    worth = cuts.family_worth(reference)
    square = float(cuts.total @ cuts.total)
    if n_cuts:
        square = float(cuts.rows.values @ cuts.rows.values) / n_cuts
    scale = FREEDOM * math.sqrt(max(square, 1e-300))
    rows = np.zeros((n_cuts + 1, n_variables + n_families))
    rows[:-1, :n_variables] = -cuts.rows.full()
    rows[np.arange(n_cuts), n_variables + cuts.family] = scale
    rows[-1, :n_variables] = cuts.total
    rows[-1, n_variables:] = -scale * cuts.counts
    needed = np.append(cuts.constants - worth[cuts.family], 0.0)
    needed[-1] = level - cuts.base + float(cuts.counts @ worth)
    most = (abs(cuts.base) + float(np.abs(cuts.total) @ cuts.high) + abs(level)) / scale
    low = np.append(np.zeros(n_variables), -worth / scale)
    high = np.append(cuts.high, np.full(n_families, most))
    return rows, needed, np.append(reference, np.zeros(n_families)), low, high


def _fingerprint(column: Column) -> int:
    """Of a set of groups; the same in every process, unlike `hash`."""
    return int.from_bytes(blake2b(column.bits.tobytes(), digest_size=8).digest(), "little")
