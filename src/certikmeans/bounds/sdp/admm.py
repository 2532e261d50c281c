"""A first-order solver of the relaxation: alternating projections with multipliers (ADMM).

The relaxation is the meeting of two sets that are easy to project on:

* spectral: ``M v = v``, eigenvalues in [0, 1], trace at most K. With v split off, the projection
  is part of an eigendecomposition and a projection of the eigenvalues on a capped simplex;
* entrywise: ``M >= 0``, zeros at cannot-links, cuts. Without cuts it is a clipping; with cuts,
  coordinate ascent on their multipliers, started where the last iteration left them.

Two blocks, so ADMM converges for every penalty; an iteration costs a few products of a matrix of
order n with a tall one (`SpectralProjector`). The limit is approached slowly, which does no harm:
the bound is made safe afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from certikmeans.bounds.sdp.cuts import NO_CUTS, cut_table, merged, most_violated
from certikmeans.bounds.sdp.model import Matrix, SdpModel, Vector
from certikmeans.bounds.sdp.multipliers import MatrixMultipliers
from certikmeans.bounds.sdp.spectral import SpectralProjector
from certikmeans.kernels.sdp.cuts import project_on_cuts
from certikmeans.kernels.sdp.step import clip_entries, shift_entries
from certikmeans.stop import StopSignal

RELAXATION = 1.6
SWEEPS = 3
FIRST_PENALTY = 0.15
# Penalties change rarely, and less and less, so that convergence is not disturbed.
PENALTY_EVERY = 20
BALANCE = 4.0
CUTS_EVERY = 10  # iterations; early cuts are cheap, and the next ones build on them
CUTS_PER_GROUP = 25  # in one round; with 10, up to a third more iterations
LEAST_VIOLATION = 1e-4
# Residual below which products are in double precision.
SETTLED = 1e-4


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
        self._scale = np.outer(model.roots, model.roots)
        self._costs = model.costs / self._scale / model.total
        self._penalty = FIRST_PENALTY if start is None else start.penalty
        self._projector = SpectralProjector(model.roots, model.n_clusters)
        n = model.n_groups
        self.cuts = NO_CUTS
        self._amounts: Vector = np.empty(0)
        self._cut_sum = np.zeros((n, n))  # upper triangle
        self._dual = np.zeros((n, n))
        self.entrywise = self._scale * (1.0 / model.mass if start is None else start.z)
        self._buffer = np.empty((n, n))
        self._unclipped = np.empty((n, n))
        self._residual = np.inf
        self.iterations = 0
        self.added = 0  # cuts, by the last climb
        if start is not None:
            self._resume(start.multipliers)
        self._lay_out()

    def kept(self) -> dict[str, Any]:
        """What it needs to go on, between two climbs."""
        return {name: value for name, value in vars(self).items() if name != "_model"}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on where another one for the same model was."""
        vars(self).update(kept)

    @property
    def multipliers(self) -> MatrixMultipliers:
        """In units of the cost, for Z."""
        unit = self._penalty * self._model.total
        sums = self._summed_cuts()
        entries = unit * self._scale * (sums + np.triu(sums, 1).T - self._dual)
        return MatrixMultipliers(entries, self.cuts, unit * self._model.mass * self._amounts)

    @property
    def state(self) -> Start:
        """Where another run may go on from."""
        return Start(self.multipliers, self.z, self._penalty)

    @property
    def objective(self) -> float:
        """Cost of the entrywise iterate: near the optimum of the relaxation, but not a bound."""
        return float(np.vdot(self._costs, self.entrywise)) * self._model.total

    @property
    def z(self) -> Matrix:
        """The entrywise iterate as Z."""
        return self.entrywise / self._scale

    @property
    def rank(self) -> int:
        """Of the spectral iterate, its part along v not counted."""
        return self._projector.rank

    def run(self, iterations: int, stop: StopSignal) -> float:
        """Iterate, until ``stop`` at most; return the larger of the two relative residuals."""
        for _ in range(iterations):
            if stop.cause() is not None:
                break
            apart, moved, size, weight = np.sqrt(self._step()).tolist()
            primal, dual = apart / max(size, 1e-12), moved / max(weight, 1e-12)
            self._residual = max(primal, dual)
            self.iterations += 1
            if self.iterations % PENALTY_EVERY == 0:
                self._rebalance(primal, dual)
        return self._residual

    def climb(self, iterations: int, stop: StopSignal, *, cuts: bool = True) -> float:
        """Iterate, with rounds of cuts in between; return the residual of `run`."""
        residual, end = self._residual, self.iterations + iterations
        self.added = 0
        while self.iterations < end and stop.cause() is None:
            residual = self.run(min(CUTS_EVERY, end - self.iterations), stop)
            if cuts and stop.cause() is None:
                self.added += self.add_cuts(LEAST_VIOLATION, CUTS_PER_GROUP * self._model.n_groups)
        return residual

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

    def _step(self) -> Vector:
        target, spectral = self._buffer, self._buffer
        np.subtract(self.entrywise, self._dual, out=target)
        np.multiply(self._costs, 1.0 / self._penalty, out=self._unclipped)
        target -= self._unclipped
        part = self._projector.project(target, single=self._residual > SETTLED)
        np.multiply(self._scale, 1.0 / self._model.mass, out=spectral)
        spectral += part @ part.T
        shift_entries(
            spectral, self.entrywise, self._dual, self._cut_sum, RELAXATION, self._unclipped
        )
        if len(self.cuts):
            project_on_cuts(
                self._unclipped.ravel(), self._model.fixed.ravel(), self._places, self._factors,
                self._steps, self._curvatures, self._amounts, SWEEPS,
            )  # fmt: skip
        squares: Vector = clip_entries(
            spectral, self._unclipped, self._model.fixed, self.entrywise, self._dual, self._cut_sum
        )
        return squares

    def _rebalance(self, primal: float, dual: float) -> None:
        if primal > BALANCE * dual:
            factor = 1.6
        elif dual > BALANCE * primal:
            factor = 1.0 / 1.6
        else:
            return
        self._penalty *= factor
        self._dual /= factor
        self._amounts = self._amounts / factor
        self._cut_sum /= factor

    def _lay_out(self) -> None:
        """Scale the cuts to M; multiplied by the mass, so that factors are near 1 in size."""
        table = cut_table(self.cuts, self._model.n_groups)
        scales = self._model.mass / self._scale.ravel()[table.places]
        self._places = table.places
        self._factors = table.factors * scales
        self._steps = table.shares * scales
        self._curvatures = np.einsum("cj,cj->c", self._factors, self._steps)
        self._cut_sum = self._summed_cuts()

    def _summed_cuts(self) -> Matrix:
        """What the multipliers of cuts take off, upper triangle."""
        n = self._model.n_groups
        terms = (self._amounts[:, None] * self._steps).ravel()
        return np.bincount(self._places.ravel(), terms, n * n).astype(np.float64).reshape(n, n)

    def _resume(self, start: MatrixMultipliers) -> None:
        unit = self._penalty * self._model.total
        self.cuts = start.cuts
        self._amounts = start.amounts / (unit * self._model.mass)
        self._lay_out()
        sums = self._cut_sum
        self._dual = sums + np.triu(sums, 1).T - start.entries / self._scale / unit
