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
from numpy.typing import NDArray

from certikmeans.bounds.sdp.model import (
    NO_CUTS,
    Matrix,
    MatrixMultipliers,
    SdpModel,
    Vector,
    append_cuts,
    cut_table,
    find_violated_cuts,
)
from certikmeans.kernels.sdp import clip_entries, project_on_cuts, shift_entries
from certikmeans.random_streams import generator
from certikmeans.stop import StopSignal

OVER_RELAXATION = 1.6
PROJECTION_SWEEPS = 3
INITIAL_PENALTY = 0.15
# Penalties change rarely, and less and less, so that convergence is not disturbed.
PENALTY_INTERVAL = 20
MAX_RESIDUAL_RATIO = 4.0
CUT_INTERVAL = 10  # iterations; early cuts are cheap, and the next ones build on them
CUTS_PER_GROUP = 25  # in one round; with 10, up to a third more iterations
MIN_VIOLATION = 1e-4
# Residual below which products are in double precision.
DOUBLE_PRECISION_RESIDUAL = 1e-4


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdmmState:
    """Where to go on from."""

    multipliers: MatrixMultipliers
    z: Matrix  # (n, n)
    penalty: float = INITIAL_PENALTY


@final
class Admm:
    """The iterates: ``spectral`` and ``entrywise``, the same matrix in the limit.

    Everything is in units of ``model.total``, and of ``M = D^(1/2) Z D^(1/2)``.
    """

    def __init__(self, model: SdpModel, start: AdmmState | None = None) -> None:
        self._model = model
        self._scale = np.outer(model.sqrt_weights, model.sqrt_weights)
        self._costs = model.costs / self._scale / model.total
        self._penalty = INITIAL_PENALTY if start is None else start.penalty
        self._projector = SpectralProjector(model.sqrt_weights, model.n_clusters)
        n = model.n_groups
        self.cuts = NO_CUTS
        self._cut_multipliers: Vector = np.empty(0)
        self._cut_sum = np.zeros((n, n))  # upper triangle
        self._dual = np.zeros((n, n))
        self.entrywise = self._scale * (1.0 / model.mass if start is None else start.z)
        self._buffer = np.empty((n, n))
        self._unclipped = np.empty((n, n))
        self._residual = np.inf
        self.iterations = 0
        self.n_cuts_added = 0  # cuts, by the last climb
        if start is not None:
            self._load_multipliers(start.multipliers)
        self._scale_cuts()

    def snapshot(self) -> dict[str, Any]:
        """What it needs to go on, between two climbs."""
        return {name: value for name, value in vars(self).items() if name != "_model"}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on where another one for the same model was."""
        vars(self).update(snapshot)

    @property
    def multipliers(self) -> MatrixMultipliers:
        """In units of the cost, for Z."""
        unit = self._penalty * self._model.total
        sums = self._sum_cuts()
        entries = unit * self._scale * (sums + np.triu(sums, 1).T - self._dual)
        return MatrixMultipliers(
            entries, self.cuts, unit * self._model.mass * self._cut_multipliers
        )

    @property
    def state(self) -> AdmmState:
        """Where another run may go on from."""
        return AdmmState(self.multipliers, self.z, self._penalty)

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

    def iterate(self, iterations: int, stop: StopSignal) -> float:
        """Iterate, until ``stop`` at most; return the larger of the two relative residuals."""
        for _ in range(iterations):
            if stop.reason() is not None:
                break
            difference, change, size, weight = np.sqrt(self._step()).tolist()
            primal, dual = difference / max(size, 1e-12), change / max(weight, 1e-12)
            self._residual = max(primal, dual)
            self.iterations += 1
            if self.iterations % PENALTY_INTERVAL == 0:
                self._rebalance(primal, dual)
        return self._residual

    def run(self, iterations: int, stop: StopSignal, *, cuts: bool = True) -> float:
        """Iterate, with rounds of cuts in between; return the residual of `iterate`."""
        residual, end = self._residual, self.iterations + iterations
        self.n_cuts_added = 0
        while self.iterations < end and stop.reason() is None:
            residual = self.iterate(min(CUT_INTERVAL, end - self.iterations), stop)
            if cuts and stop.reason() is None:
                self.n_cuts_added += self.add_cuts(
                    MIN_VIOLATION, CUTS_PER_GROUP * self._model.n_groups
                )
        return residual

    def add_cuts(self, min_violation: float, count: int) -> int:
        """Drop idle cuts, add violated ones; return how many were added."""
        used = self._cut_multipliers > 0.0
        before = int(used.sum())
        new_cuts = find_violated_cuts(self.z, min_violation, count)
        self.cuts, self._cut_multipliers = append_cuts(
            self.cuts[used], self._cut_multipliers[used], new_cuts, self._model.n_groups
        )
        self._scale_cuts()
        return len(self.cuts) - before

    def _step(self) -> Vector:
        target, spectral = self._buffer, self._buffer
        np.subtract(self.entrywise, self._dual, out=target)
        np.multiply(self._costs, 1.0 / self._penalty, out=self._unclipped)
        target -= self._unclipped
        factor = self._projector.project(target, single=self._residual > DOUBLE_PRECISION_RESIDUAL)
        np.multiply(self._scale, 1.0 / self._model.mass, out=spectral)
        spectral += factor @ factor.T
        shift_entries(
            spectral, self.entrywise, self._dual, self._cut_sum, OVER_RELAXATION, self._unclipped
        )
        if len(self.cuts):
            project_on_cuts(
                self._unclipped.ravel(), self._model.zero_mask.ravel(), self._entry_indices, self._factors,
                self._steps, self._curvatures, self._cut_multipliers, PROJECTION_SWEEPS,
            )  # fmt: skip
        squares: Vector = clip_entries(
            spectral,
            self._unclipped,
            self._model.zero_mask,
            self.entrywise,
            self._dual,
            self._cut_sum,
        )
        return squares

    def _rebalance(self, primal: float, dual: float) -> None:
        if primal > MAX_RESIDUAL_RATIO * dual:
            factor = 1.6
        elif dual > MAX_RESIDUAL_RATIO * primal:
            factor = 1.0 / 1.6
        else:
            return
        self._penalty *= factor
        self._dual /= factor
        self._cut_multipliers = self._cut_multipliers / factor
        self._cut_sum /= factor

    def _scale_cuts(self) -> None:
        """Scale the cuts to M; multiplied by the mass, so that factors are near 1 in size."""
        table = cut_table(self.cuts, self._model.n_groups)
        scales = self._model.mass / self._scale.ravel()[table.entry_indices]
        self._entry_indices = table.entry_indices
        self._factors = table.factors * scales
        self._steps = table.symmetric_factors * scales
        self._curvatures = np.einsum("cj,cj->c", self._factors, self._steps)
        self._cut_sum = self._sum_cuts()

    def _sum_cuts(self) -> Matrix:
        """What the multipliers of cuts take off, upper triangle."""
        n = self._model.n_groups
        terms = (self._cut_multipliers[:, None] * self._steps).ravel()
        return (
            np.bincount(self._entry_indices.ravel(), terms, n * n).astype(np.float64).reshape(n, n)
        )

    def _load_multipliers(self, start: MatrixMultipliers) -> None:
        unit = self._penalty * self._model.total
        self.cuts = start.cuts
        self._cut_multipliers = start.cut_multipliers / (unit * self._model.mass)
        self._scale_cuts()
        sums = self._cut_sum
        self._dual = sums + np.triu(sums, 1).T - start.entries / self._scale / unit


# Projection on the spectral side: only the part of the spectrum that is used.
#
# The projection of a matrix keeps the eigenvalues above some level, a tenth of them or fewer, and
# that level and the vectors change little from one iteration to the next. So the vectors of the
# last iteration, sharpened by a polynomial that is small on the unwanted rest of the spectrum
# (Chebyshev) and turned by a Rayleigh-Ritz step, are as good as an eigendecomposition, at the price
# of a few products with a tall matrix. What is missed is small or found an iteration later. Nothing
# has to be exact here: bounds are made safe afterwards (`safe.py`), so products are in single
# precision until the iterates have nearly settled. (All of it by numpy, which lets other threads run
# meanwhile; scipy's wrappers of the same routines do not.)

# Below this order, or above this part of it, a full decomposition is as fast.
MIN_ITERATIVE_ORDER = 100
MAX_RANK_FRACTION = 0.5
# Of the polynomial: in the first steps, while everything moves, and later.
FIRST_STEPS = 8
FIRST_DEGREE, FILTER_DEGREE = 6, 4
INTERVAL_DAMPING = 0.9
MIN_INTERVAL_RATIO = 0.01
# Vectors beyond those used: the border of the wanted part is sharper for them.
OVERSAMPLING, MIN_OVERSAMPLING = 0.3, 16
SINGLE: Any = np.float32
DOUBLE: Any = np.float64


@final
class SpectralProjector:
    """Projects on ``M v = v``, eigenvalues in [0, 1], trace at most K; remembers its vectors."""

    def __init__(self, sqrt_weights: Vector, n_clusters: int) -> None:
        self._direction = sqrt_weights / np.linalg.norm(sqrt_weights)
        self._count = n_clusters - 1
        self._rng = generator(0, "bounds.sdp.vectors")
        self._basis: NDArray[Any] | None = None
        self._lowest_vector: NDArray[Any] | None = None
        self._edges = (-1.0, 0.0)  # of the part of the spectrum that is not used
        self._largest = 1.0
        self._steps = 0
        self.rank = 0

    def project(self, target: Matrix, *, single: bool) -> NDArray[Any]:
        """Return the projection, without its part along v, as ``factor`` of ``factor factor^T``."""
        n = len(target)
        if n < MIN_ITERATIVE_ORDER or (
            self._basis is not None and self._basis.shape[1] > MAX_RANK_FRACTION * n
        ):
            self._basis = None
            return self._full_eigendecomposition(
                target, DOUBLE if n < MIN_ITERATIVE_ORDER else SINGLE
            )
        dtype = SINGLE if single else DOUBLE
        if self._basis is None:
            return self._full_eigendecomposition(target, dtype)
        values, vectors = self._rayleigh_ritz(
            target.astype(dtype, copy=False), self._basis.astype(dtype)
        )
        return self._truncate(values, vectors)

    def _truncate(self, values: Vector, vectors: NDArray[Any]) -> NDArray[Any]:
        """Values descend."""
        weights = project_capped_simplex(values, self._count)
        rank = int(np.count_nonzero(weights))
        self.rank = rank
        self._largest = float(values[0])
        threshold = float(values[rank]) if rank < len(values) else float(values[-1])
        self._edges = (self._edges[0], max(threshold, 0.0))
        self._basis = self._resize_basis(vectors, rank)
        factor: NDArray[Any] = vectors[:, :rank] * np.sqrt(weights[:rank]).astype(vectors.dtype)
        return factor

    def _full_eigendecomposition(self, target: Matrix, dtype: Any) -> NDArray[Any]:
        v = self._direction
        pull = target @ v
        inner = target - np.outer(pull, v) - np.outer(v, pull - float(v @ pull) * v)
        values, vectors = np.linalg.eigh(inner.astype(dtype))
        self._edges = (float(values[0]), self._edges[1])
        self._lowest_vector = vectors[:, 0]
        return self._truncate(values[::-1].astype(np.float64), vectors[:, ::-1])

    def _resize_basis(self, vectors: NDArray[Any], rank: int) -> NDArray[Any]:
        """As many as will be wanted: some more than were used."""
        n, given = vectors.shape
        oversampling = max(MIN_OVERSAMPLING, int((OVERSAMPLING if rank < given else 1.0) * rank))
        wanted = min(rank + oversampling, n - 1)
        if wanted <= given:
            return vectors[:, :wanted]
        random_vectors = self._rng.normal(size=(n, wanted - given)).astype(vectors.dtype)
        v = self._direction.astype(vectors.dtype)
        random_vectors -= np.outer(v, v @ random_vectors)
        random_vectors -= vectors @ (vectors.T @ random_vectors)
        return np.hstack([vectors, np.linalg.qr(random_vectors)[0]])

    def _rayleigh_ritz(
        self, target: NDArray[Any], basis: NDArray[Any]
    ) -> tuple[Vector, NDArray[Any]]:
        v = self._direction.astype(target.dtype)
        low, high = self._interval(target, basis, v)
        # Not too narrow: powers of the ratio to the largest value must not overflow.
        middle = 0.5 * (low + high)
        half = max(0.5 * (high - low), MIN_INTERVAL_RATIO * max(self._largest, -low))
        previous = basis
        current = (self._apply(target, basis, v) - middle * basis) / half
        self._steps += 1
        for _ in range((FIRST_DEGREE if self._steps <= FIRST_STEPS else FILTER_DEGREE) - 1):
            previous, current = (
                current,
                (2.0 / half) * (self._apply(target, current, v) - middle * current) - previous,
            )
        current -= np.outer(v, v @ current)
        filtered = _orthonormal(current)
        small = filtered.T @ (target @ filtered)
        values, rotation = np.linalg.eigh(0.5 * (small + small.T))
        vectors: NDArray[Any] = filtered @ rotation[:, ::-1]
        return values[::-1].astype(np.float64), vectors

    def _interval(
        self, target: NDArray[Any], basis: NDArray[Any], v: NDArray[Any]
    ) -> tuple[float, float]:
        """About where the unwanted eigenvalues are; a step of the power method at the low end."""
        low, high = self._edges
        if self._lowest_vector is not None:
            x = self._lowest_vector.astype(target.dtype)
            x = x - basis @ (basis.T @ x)
            product = self._apply(target, x[:, None], v)[:, 0]
            size = float(x @ x)
            if size > 0.0:
                # The vector may be stale: an estimate that rises is believed slowly.
                low = min(float(x @ product) / size, INTERVAL_DAMPING * min(low, 0.0), high)
                x = high * x - product
                self._lowest_vector = x / max(float(np.linalg.norm(x)), 1e-30)
                self._edges = (low, high)
        return low - 0.2 * (high - low) - 1e-9, high

    @staticmethod
    def _apply(target: NDArray[Any], vectors: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        product: NDArray[Any] = target @ vectors
        product -= np.outer(v, v @ product)
        return product


def _orthonormal(vectors: NDArray[Any]) -> NDArray[Any]:
    """An orthonormal basis of the columns, which are nearly orthogonal as a rule."""
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-30)
    try:
        for _ in range(2):
            factor = np.linalg.cholesky(vectors.T @ vectors)
            vectors = vectors @ np.linalg.inv(factor).T
        filtered: NDArray[Any] = vectors
        return filtered
    except np.linalg.LinAlgError:
        orthonormal: NDArray[Any] = np.linalg.qr(vectors)[0]
        return orthonormal


def project_capped_simplex(values: Vector, total: int) -> Vector:
    """Nearest point with coordinates in [0, 1] and a sum of at most ``total``.

    >>> project_capped_simplex(np.array([3.0, 0.75, 0.5]), 2)
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
