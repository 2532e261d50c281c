"""The cutting-plane model of the bound: every cluster found is a cut that caps it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.families import Family
from certikmeans.bounds.cluster.multipliers import MultiplierSpace
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.bounds.cluster.projection import project

MOST_CUTS = 160
LEAST_CUTS = 24
CUT_BYTES = 4e8  # rows of the model may take about this much memory
# Moving the worth of a family is this much cheaper than moving multipliers to the same effect.
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
    metric's scale. A column of family f is worth ``e_i + g_i.t`` there. With one family its row
    is ``total - K g_i``, the cut itself. With several the worth of a family is a variable of its
    own: rows are ``-g_i``, and one more row says that the whole reaches the level.
    """

    def __init__(self, space: MultiplierSpace, families: Sequence[Family]) -> None:
        self._space = space
        self._families = families
        self._counts = np.array([family.count for family in families], dtype=np.float64)
        n_variables = len(space.high)
        self._inverse = np.divide(
            1.0, space.scale, out=np.zeros(n_variables), where=space.scale > 0.0
        )
        self._total = space.gather(np.ones(len(space.low))) * space.scale
        self._low_total = float(space.low.sum())
        self._most = int(np.clip(CUT_BYTES / (8 * n_variables), LEAST_CUTS, MOST_CUTS))
        self._rows = np.empty((0, n_variables))
        self._constants = np.empty(0)
        self._family = np.empty(0, dtype=np.int64)
        self.columns: list[Column] = []
        self.weights = np.empty(0)  # of the columns, in the mixture that gives the ceiling
        self._known: set[tuple[int, bytes]] = set()

    @property
    def _single(self) -> bool:
        return len(self._families) == 1

    def add(self, columns: Iterable[Column], family: int = 0) -> int:
        """Add the columns that are new to the family; returns how many."""
        rows, constants = [self._rows], [self._constants]
        before = len(self.columns)
        region = self._families[family].region
        for column in columns:
            key = (family, np.packbits(column.members).tobytes())
            if key in self._known or not column.members.any():
                continue
            self._known.add(key)
            self.columns.append(column)
            inside = column.members.astype(np.float64)
            row = -self._space.gather(inside) * self._space.scale
            constant = column.cost_within(region) - float(inside @ self._space.low)
            if self._single:
                row = self._total + self._counts[0] * row
                constant = self._low_total + self._counts[0] * constant
            rows.append(row[None, :])
            constants.append(np.array([constant]))
        self._rows, self._constants = np.concatenate(rows), np.concatenate(constants)
        added = len(self.columns) - before
        self._family = np.append(self._family, np.full(added, family))
        self.weights = np.append(self.weights, np.zeros(added))
        return added

    def worth_at(self, t: Vector) -> Vector:
        """Worth of every column at ``t``."""
        u = t * self._inverse
        values: Vector = self._constants + self._rows @ u
        if self._single:
            total = self._low_total + float(self._total @ u)
            values = (values - total) / self._counts[0]
        return -values

    def family_worth(self, t: Vector) -> Vector:
        """Largest known worth of a cluster of each family at ``t``; at least 0, the empty one."""
        best = np.zeros(len(self._families))
        np.maximum.at(best, self._family, self.worth_at(t))
        return best

    def family_of(self, column: int) -> int:
        """Family that a column belongs to."""
        return int(self._family[column])

    def columns_of(self, family: int) -> list[int]:
        """Numbers of the columns of a family."""
        return [int(i) for i in np.flatnonzero(self._family == family)]

    def value(self, t: Vector) -> float:
        """The model at ``t``: at least the bound there."""
        total = self._low_total + float(self._total @ (t * self._inverse))
        return total - float(self._counts @ self.family_worth(t))

    def project(self, t: Vector, level: float, tolerance: float) -> Moved:
        """Nearest position to ``t`` where the model reaches ``level``, or proof of none."""
        if self._single:
            high = self._space.high * self._inverse
            needed = level - self._constants
            found = project(
                self._rows, needed, t * self._inverse, np.zeros(len(t)), high, tolerance
            )
            ceiling = level + found.excess
            if found.mu.any():
                self.weights = found.mu * (self._counts[0] / found.mu.sum())
        else:
            ceiling = np.inf

            def excess(mu: Vector) -> float:
                nonlocal ceiling
                here, weights = self._ceiling(mu)
                if here < ceiling:
                    ceiling, self.weights = here, weights
                return ceiling - level

            found = project(*self._augmented(t, level), tolerance, excess)
        point = found.point[: len(t)] * self._space.scale
        return Moved(np.clip(point, 0.0, self._space.high), ceiling)

    def _augmented(self, t: Vector, level: float) -> tuple[Vector, Vector, Vector, Vector, Vector]:
        """Rows, needs, reference and box with the worth of each family as a variable."""
        n_cuts, n_variables = self._rows.shape
        n_families = len(self._families)
        worth = self.family_worth(t)
        square = float(self._total @ self._total)
        if n_cuts:
            square = float(np.einsum("ij,ij->", self._rows, self._rows)) / n_cuts
        scale = FREEDOM * math.sqrt(max(square, 1e-300))
        rows = np.zeros((n_cuts + 1, n_variables + n_families))
        rows[:-1, :n_variables] = self._rows
        rows[np.arange(n_cuts), n_variables + self._family] = scale
        rows[-1, :n_variables] = self._total
        rows[-1, n_variables:] = -scale * self._counts
        needed = np.append(-self._constants - worth[self._family], 0.0)
        needed[-1] = level - self._low_total + float(self._counts @ worth)
        here = np.append(t * self._inverse, np.zeros(n_families))
        high = self._space.high * self._inverse
        most = (abs(self._low_total) + float(np.abs(self._total) @ high) + abs(level)) / scale
        low = np.append(np.zeros(n_variables), -worth / scale)
        return rows, needed, here, low, np.append(high, np.full(n_families, most))

    def _ceiling(self, mu: Vector) -> tuple[float, Vector]:
        """Largest value over the box of a mixture of cuts: no position gives the model more.

        In each family the columns are mixed in proportion to ``mu``; a family without weight is
        worth at least 0.
        """
        shares = np.maximum(mu[: len(self._rows)], 0.0)
        mass = np.zeros(len(self._families))
        np.add.at(mass, self._family, shares)
        scale = np.divide(self._counts, mass, out=np.zeros_like(mass), where=mass > 0.0)
        weights = shares * scale[self._family]
        slope = self._total + weights @ self._rows
        constant = self._low_total + float(weights @ self._constants)
        high = self._space.high * self._inverse
        return constant + float(np.maximum(slope, 0.0) @ high), weights

    def forget(self, t: Vector) -> None:
        """Drop the columns that matter least at ``t`` when there are too many, not the useful."""
        if len(self.columns) <= self._most:
            return
        rank = self.worth_at(t) - self.family_worth(t)[self._family]
        rank[self.weights > 0.0] = np.inf
        keep = np.sort(np.argsort(-rank, kind="stable")[: 2 * self._most // 3])
        self._rows, self._constants = self._rows[keep], self._constants[keep]
        self._family, self.weights = self._family[keep], self.weights[keep]
        self.columns = [self.columns[i] for i in keep]
        self._known = {
            (int(f), np.packbits(column.members).tobytes())
            for f, column in zip(self._family, self.columns, strict=True)
        }
