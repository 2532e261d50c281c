"""The cutting-plane model of the bound: every cluster found is a cut that caps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.multipliers import MultiplierSpace
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.bounds.cluster.projection import Projection, project

MOST_CUTS = 160
LEAST_CUTS = 24
CUT_BYTES = 4e8  # rows of the model may take about this much memory

Vector = NDArray[np.float64]


@final
class CutModel:
    """``min over columns I of  sum lam - K (sum_I lam - cost_I)``, at least ``L(lam)`` everywhere.

    A column stays a valid cut for every ``lam``. Positions are handed in and out as variables
    ``t`` of the space; inside, they are divided by the metric's scale.
    """

    def __init__(self, space: MultiplierSpace, n_clusters: int) -> None:
        self._space = space
        self._n_clusters = n_clusters
        n_variables = len(space.high)
        self._inverse = np.divide(
            1.0, space.scale, out=np.zeros(n_variables), where=space.scale > 0.0
        )
        self._total = space.gather(np.ones(len(space.low)))
        self._low_total = float(space.low.sum())
        self._most = int(np.clip(CUT_BYTES / (8 * n_variables), LEAST_CUTS, MOST_CUTS))
        self._rows = np.empty((0, n_variables))
        self._constants = np.empty(0)
        self.columns: list[Column] = []
        self._known: set[bytes] = set()

    def add(self, columns: Iterable[Column]) -> int:
        """Add the columns that are new; returns how many."""
        rows, constants = [self._rows], [self._constants]
        before = len(self.columns)
        for column in columns:
            key = np.packbits(column.members).tobytes()
            if key in self._known or not column.members.any():
                continue
            self._known.add(key)
            self.columns.append(column)
            inside = column.members.astype(np.float64)
            row = self._total - self._n_clusters * self._space.gather(inside)
            worth = float(inside @ self._space.low) - column.cost
            rows.append((row * self._space.scale)[None, :])
            constants.append(np.array([self._low_total - self._n_clusters * worth]))
        self._rows, self._constants = np.concatenate(rows), np.concatenate(constants)
        return len(self.columns) - before

    def cuts_at(self, t: Vector) -> Vector:
        """Value of every cut at ``t``."""
        values: Vector = self._constants + self._rows @ (t * self._inverse)
        return values

    def value(self, t: Vector) -> float:
        """The model at ``t``: at least the bound there."""
        return float(self.cuts_at(t).min())

    def project(self, t: Vector, level: float, tolerance: float) -> tuple[Vector, Projection]:
        """Nearest position to ``t`` where every cut reaches ``level``."""
        found = project(
            self._rows,
            level - self._constants,
            t * self._inverse,
            np.zeros(len(t)),
            self._space.high * self._inverse,
            tolerance,
        )
        return np.clip(found.point * self._space.scale, 0.0, self._space.high), found

    def forget(self, t: Vector, useful: Vector) -> None:
        """Drop the cuts that matter least at ``t`` when there are too many, not the useful."""
        if len(self.columns) <= self._most:
            return
        rank = self.cuts_at(t)
        rank[: len(useful)][useful > 0.0] = -np.inf
        keep = np.sort(np.argsort(rank, kind="stable")[: 2 * self._most // 3])
        self._rows, self._constants = self._rows[keep], self._constants[keep]
        self.columns = [self.columns[i] for i in keep]
        self._known = {np.packbits(column.members).tobytes() for column in self.columns}
