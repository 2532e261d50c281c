"""A first-order solver of the relaxation: alternating projections with multipliers (ADMM).

The relaxation is the meeting of two sets that are easy to project on:

* spectral: ``M v = v``, eigenvalues in [0, 1], trace at most K. With v split off, the projection
  is an eigendecomposition and a projection of the eigenvalues on a capped simplex;
* entrywise: ``M >= 0``, zeros at cannot-links, cuts. Without cuts it is a clipping; with cuts,
  coordinate ascent on their multipliers, started where the last iteration left them.

Two blocks, so ADMM converges for every penalty; an iteration costs one eigendecomposition of
order n. The limit is approached slowly, which does no harm: the bound is made safe afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import eigh

from certikmeans.bounds.sdp.cuts import NO_CUTS, cut_table, merged, most_violated
from certikmeans.bounds.sdp.model import Matrix, SdpModel, Vector
from certikmeans.bounds.sdp.multipliers import MatrixMultipliers
from certikmeans.kernels.sdp.cuts import project_on_cuts
from certikmeans.stop import StopSignal

RELAXATION = 1.6
SWEEPS = 6
FIRST_PENALTY = 0.3
# Penalties change rarely, and less and less, so that convergence is not disturbed.
PENALTY_EVERY = 20
BALANCE = 4.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where to go on from."""

    multipliers: MatrixMultipliers
    z: Matrix  # (n, n)
    penalty: float = FIRST_PENALTY


@final
class Admm:
    """The iterates: ``spectral`` and ``entrywise``, the same matrix in the limit.

    Everything is in units of ``model.total``, and of ``M = D^(1/2) Z D^(1/2)``.
    """

    def __init__(self, model: SdpModel, start: Start | None = None) -> None:
        self._model = model
        self._v = model.roots
        self._scale = np.outer(model.roots, model.roots)
        self._costs = model.costs / self._scale / model.total
        self._fixed = np.ascontiguousarray(model.fixed.ravel())
        self._penalty = FIRST_PENALTY if start is None else start.penalty
        n = model.n_groups
        self.cuts = NO_CUTS
        self._amounts: Vector = np.empty(0)
        self._unclipped: Matrix = np.zeros((n, n))
        self._lay_out()
        self._dual = np.zeros((n, n))
        self.entrywise = self._scale * (1.0 / model.mass if start is None else start.z)
        self.spectral = self.entrywise
        self.iterations = 0
        if start is not None:
            self._resume(start.multipliers)

    @property
    def multipliers(self) -> MatrixMultipliers:
        """In units of the cost, for Z."""
        unit = self._penalty * self._model.total
        entries = unit * self._scale * (self.entrywise - self._unclipped)
        return MatrixMultipliers(entries, self.cuts, unit * self._model.mass * self._amounts)

    @property
    def state(self) -> Start:
        """Where another run may go on from."""
        return Start(self.multipliers, self.z, self._penalty)

    @property
    def objective(self) -> float:
        """Cost of the entrywise iterate: near the optimum of the relaxation, but not a bound."""
        return float(np.sum(self._costs * self.entrywise)) * self._model.total

    @property
    def z(self) -> Matrix:
        """The entrywise iterate as Z."""
        return self.entrywise / self._scale

    def run(self, iterations: int, stop: StopSignal) -> float:
        """Iterate, until ``stop`` at most; return the larger of the two relative residuals."""
        primal = dual = np.inf
        for _ in range(iterations):
            if stop.cause() is not None:
                break
            before = self.entrywise
            self._step()
            gap = self.spectral - self.entrywise
            primal = float(np.linalg.norm(gap)) / max(float(np.linalg.norm(self.entrywise)), 1e-12)
            moved = float(np.linalg.norm(self.entrywise - before))
            dual = moved / max(float(np.linalg.norm(self._dual)), 1e-12)
            self.iterations += 1
            if self.iterations % PENALTY_EVERY == 0:
                self._rebalance(primal, dual)
        return max(primal, dual)

    def add_cuts(self, least: float, count: int) -> int:
        """Drop idle cuts, add violated ones; return how many were added."""
        used = self._amounts > 0.0
        before = int(used.sum())
        extra = most_violated(self.z, least, count)
        self.cuts, self._amounts = merged(
            self.cuts[used], self._amounts[used], extra, self._model.n_groups
        )
        self._lay_out()
        return len(self.cuts) - before

    def _step(self) -> None:
        target = self.entrywise - self._dual - self._costs / self._penalty
        self.spectral = self._project_spectral(target)
        mixed = RELAXATION * self.spectral + (1.0 - RELAXATION) * self.entrywise
        shifted = mixed + self._dual
        n = len(shifted)
        if len(self.cuts) == 0:
            self._unclipped = shifted
        else:
            flat = (shifted - self._cut_sum()).ravel()
            project_on_cuts(
                flat, self._fixed, self._places, self._factors, self._steps, self._curvatures,
                self._amounts, SWEEPS,
            )  # fmt: skip
            upper = np.triu(flat.reshape(n, n))
            self._unclipped = upper + np.triu(upper, 1).T
        clipped = np.maximum(self._unclipped, 0.0)
        clipped[self._model.fixed] = 0.0
        self.entrywise = clipped
        self._dual = shifted - clipped

    def _project_spectral(self, target: Matrix) -> Matrix:
        v, mass = self._v, self._model.mass
        pull = target @ v / mass
        inner = target - np.outer(pull, v) - np.outer(v, pull)
        inner += (float(v @ pull) / mass) * self._scale
        values, vectors = eigh(inner, overwrite_a=True, check_finite=False, driver="evd")
        shares = _capped(values, self._model.n_clusters - 1)
        used = shares > 0.0
        part = vectors[:, used] * np.sqrt(shares[used])
        projected: Matrix = part @ part.T + self._scale / mass
        return projected

    def _rebalance(self, primal: float, dual: float) -> None:
        if primal > BALANCE * dual:
            factor = 1.6
        elif dual > BALANCE * primal:
            factor = 1.0 / 1.6
        else:
            return
        self._penalty *= factor
        self._dual = self._dual / factor
        self._amounts = self._amounts / factor
        self._unclipped = self.entrywise + (self._unclipped - self.entrywise) / factor

    def _lay_out(self) -> None:
        """Scale the cuts to M; multiplied by the mass, so that factors are near 1 in size."""
        table = cut_table(self.cuts, self._model.n_groups)
        scales = self._model.mass / self._scale.ravel()[table.places]
        self._places = table.places
        self._factors = table.factors * scales
        self._steps = table.shares * scales
        self._curvatures = np.einsum("cj,cj->c", self._factors, self._steps)

    def _cut_sum(self) -> Matrix:
        n = self._model.n_groups
        terms = (self._amounts[:, None] * self._steps).ravel()
        upper = np.bincount(self._places.ravel(), terms, n * n).astype(np.float64).reshape(n, n)
        total: Matrix = upper + np.triu(upper, 1).T
        return total

    def _resume(self, start: MatrixMultipliers) -> None:
        unit = self._penalty * self._model.total
        self.cuts = start.cuts
        self._amounts = start.amounts / (unit * self._model.mass)
        self._lay_out()
        self._unclipped = self.entrywise - start.entries / self._scale / unit
        self._dual = self._cut_sum() + self._unclipped - self.entrywise


def _capped(values: Vector, total: int) -> Vector:
    """Nearest point with coordinates in [0, 1] and a sum of at most ``total``.

    >>> _capped(np.array([3.0, 0.75, 0.5]), 2)
    array([1.   , 0.625, 0.375])
    """
    clipped: Vector = np.clip(values, 0.0, 1.0)
    if clipped.sum() <= total:
        return clipped
    # The sum falls piecewise linearly with the shift; its kinks are at values and values - 1.
    kinks = np.unique(np.concatenate([values, values - 1.0]))
    low, high = 0, len(kinks) - 1  # at the first kink the sum is too large, at the last it is 0
    while high - low > 1:
        middle = (low + high) // 2
        too_large = np.clip(values - kinks[middle], 0.0, 1.0).sum() > total
        low, high = (middle, high) if too_large else (low, middle)
    above, below = (np.clip(values - kinks[i], 0.0, 1.0).sum() for i in (low, high))
    share = (above - total) / (above - below)
    shifted: Vector = np.clip(values - kinks[low] - share * (kinks[high] - kinks[low]), 0.0, 1.0)
    return shifted
