"""ADMM for the SDP relaxation.

The feasible set is the intersection of two sets that are easy to project on:

* spectral: ``M v = v``, eigenvalues in [0, 1], trace at most K. With v split off, the projection
  is part of an eigendecomposition and a projection of the eigenvalues on a capped simplex;
* entrywise: ``M >= 0``, zeros at cannot-links, limits by cluster sizes, cuts. Without cuts it is a
  clipping; with cuts, coordinate ascent on their multipliers, warm-started from the last iteration.

With two blocks ADMM converges for every penalty; an iteration costs a few products of a matrix of
order n with a tall one (`SpectralProjector`). Accuracy is low, but the bound of `dual_bound` is
valid for any multipliers.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats
from certikmeans.bounds.sdp.model import (
    NO_CUTS,
    MatrixMultipliers,
    SdpModel,
    append_cuts,
    cut_table,
    find_violated_cuts,
)
from certikmeans.bounds.sdp.size_cuts import (
    DEFAULT_SIZE_CUT_PARAMS,
    SizeCutParams,
    candidate_orderings,
    find_size_cuts,
    right_sides,
)
from certikmeans.kernels.sdp import (
    EntryLimits,
    clip_entries,
    project_on_cuts,
    project_on_size_cuts,
    shift_entries,
)
from certikmeans.random_streams import generator
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True)
class SpectralProjectorParams:
    """Settings of the spectral projection."""

    # Below this order, or above this fraction of it, a full decomposition is as fast.
    min_iterative_order: int = 100
    max_rank_fraction: float = 0.5
    # Degree of the Chebyshev filter: in the first steps, while eigenvectors change much, and later.
    first_steps: int = 8
    first_degree: int = 6
    filter_degree: int = 4
    interval_damping: float = 0.9  # of the estimate of the smallest eigenvalue
    min_interval_ratio: float = 0.01  # of the filter interval, relative to the largest eigenvalue
    # Vectors beyond those used, relative and absolute: they sharpen the filter.
    oversampling: float = 0.3
    min_oversampling: int = 16

    def __post_init__(self) -> None:
        if min(self.first_degree, self.filter_degree) < 1:
            raise ValueError("degrees have to be positive")
        if not 0.0 < self.interval_damping <= 1.0 or self.min_interval_ratio <= 0.0:
            raise ValueError("interval_damping has to be in (0, 1], min_interval_ratio positive")


@final
@dataclass(frozen=True, slots=True)
class AdmmParams:
    """Settings of the iteration and of cut separation."""

    over_relaxation: float = 1.6
    projection_sweeps: int = 3  # of the coordinate ascent on cut multipliers, per iteration
    initial_penalty: float = 0.15
    # The penalty is adapted to the ratio of the residuals, rarely, not to disturb convergence.
    penalty_interval: int = 20
    max_residual_ratio: float = 4.0
    penalty_factor: float = 1.6
    cut_interval: int = 10  # iterations; early cuts are cheap, and later ones build on them
    cuts_per_group: int = 25  # in one round; with 10, up to a third more iterations
    min_violation: float = 1e-4
    double_precision_residual: float = 1e-4  # below it, products are in double precision
    size_cut_interval: int = 20  # iterations
    projector: SpectralProjectorParams = SpectralProjectorParams()
    size_cuts: SizeCutParams = DEFAULT_SIZE_CUT_PARAMS

    def __post_init__(self) -> None:
        if not 0.0 < self.over_relaxation < 2.0:
            raise ValueError("over_relaxation has to be in (0, 2)")
        if self.initial_penalty <= 0.0 or self.penalty_factor <= 1.0:
            raise ValueError("initial_penalty has to be positive, penalty_factor above 1")
        if min(self.penalty_interval, self.cut_interval, self.projection_sweeps) < 1:
            raise ValueError("intervals and projection_sweeps have to be positive")


DEFAULT_PARAMS = AdmmParams()

# State of the iteration for snapshots; everything else follows from the model and the cuts.
STATE_FIELDS = (
    "cuts",
    "entrywise",
    "iterations",
    "n_cuts_added",
    "size_sets",
    "_size_multipliers",
    "_cut_multipliers",
    "_cut_sum",
    "_dual",
    "_penalty",
    "_projector",
    "_residual",
)


# Units of work of an iteration with 240 groups, and its growth with their number: measured from
# 200 to 1,000 groups; products of matrices gain speed with their order.
ITERATION_WORK, ITERATION_WORK_ORDER, ITERATION_WORK_EXPONENT = 5e6, 240, 2.1


def iteration_work(n_groups: int) -> float:
    """Units of work of one iteration.

    >>> iteration_work(480) / iteration_work(240) > 4.0
    True
    """
    return float(ITERATION_WORK * (n_groups / ITERATION_WORK_ORDER) ** ITERATION_WORK_EXPONENT)


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdmmState:
    """Warm start of the iteration."""

    multipliers: MatrixMultipliers
    z: Floats  # (n, n)
    penalty: float = DEFAULT_PARAMS.initial_penalty


@final
class Admm:
    """ADMM iteration; its spectral and entrywise iterates agree in the limit.

    Everything is in units of ``model.total``, and of ``M = D^(1/2) Z D^(1/2)``.
    """

    def __init__(
        self,
        model: SdpModel,
        start: AdmmState | None = None,
        params: AdmmParams = DEFAULT_PARAMS,
    ) -> None:
        self._params = params
        self._model = model
        self._scale = np.outer(model.sqrt_weights, model.sqrt_weights)
        self._costs = model.costs / self._scale / model.total
        self._penalty = params.initial_penalty if start is None else start.penalty
        self._projector = SpectralProjector(model.sqrt_weights, model.n_clusters, params.projector)
        n = model.n_groups
        self.cuts = NO_CUTS
        self._cut_multipliers: Floats = np.empty(0)
        self.size_sets = np.zeros((0, n), dtype=np.bool_)
        self._size_multipliers: Floats = np.empty(0)
        self._limits = _entry_limits(model)
        self._cut_sum = np.zeros((n, n))  # upper triangle
        self._dual = np.zeros((n, n))
        self.entrywise = self._scale * (1.0 / model.mass if start is None else start.z)
        self._buffer = np.empty((n, n))
        self._unclipped = np.empty((n, n))
        self._residual = np.inf
        self.iterations = 0
        self.n_cuts_added = 0  # by the last `run`
        if start is not None:
            self._load_multipliers(start.multipliers)
        self._scale_cuts()

    def snapshot(self) -> dict[str, Any]:
        """State to continue from, between two calls of `run`; valid until the next call."""
        return {name: getattr(self, name) for name in STATE_FIELDS}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from the snapshot of another instance for the same model."""
        state = copy.deepcopy(snapshot)  # arrays are updated in place
        for name in STATE_FIELDS:
            setattr(self, name, state[name])
        self._scale_cuts()
        self._cut_sum = state["_cut_sum"]  # not that of the multipliers, up to rounding

    @property
    def multipliers(self) -> MatrixMultipliers:
        """Multipliers for Z, in units of the cost."""
        unit = self._penalty * self._model.total
        sums = self._sum_cuts()
        entries = unit * self._scale * (sums + np.triu(sums, 1).T - self._dual)
        return MatrixMultipliers(
            entries,
            self.cuts,
            unit * self._model.mass * self._cut_multipliers,
            self.size_sets,
            unit * self._size_multipliers,
        )

    @property
    def state(self) -> AdmmState:
        """Warm start of another instance."""
        return AdmmState(self.multipliers, self.z, self._penalty)

    @property
    def objective(self) -> float:
        """Cost of the entrywise iterate: near the optimum of the relaxation, but not a bound."""
        value = float(np.vdot(self._costs, self.entrywise)) * self._model.total
        return value + self._model.constant

    @property
    def z(self) -> Floats:
        """The entrywise iterate as Z."""
        return self.entrywise / self._scale

    @property
    def rank(self) -> int:
        """Rank of the spectral iterate without its component along v."""
        return self._projector.rank

    def iterate(self, iterations: int, stop: StopSignal) -> float:
        """Iterate, at most until ``stop``; return the larger of the two relative residuals."""
        for _ in range(iterations):
            if stop.reason() is not None:
                break
            difference, change, size, weight = np.sqrt(self._step()).tolist()
            primal, dual = difference / max(size, 1e-12), change / max(weight, 1e-12)
            self._residual = max(primal, dual)
            self.iterations += 1
            if self.iterations % self._params.penalty_interval == 0:
                self._rebalance(primal, dual)
        return self._residual

    def run(self, iterations: int, stop: StopSignal, *, cuts: bool = True) -> float:
        """Iterate with rounds of cuts in between; return the residual of `iterate`."""
        params = self._params
        residual, end = self._residual, self.iterations + iterations
        self.n_cuts_added = 0
        while self.iterations < end and stop.reason() is None:
            residual = self.iterate(min(params.cut_interval, end - self.iterations), stop)
            if cuts and stop.reason() is None:
                max_cuts = params.cuts_per_group * self._model.n_groups
                self.n_cuts_added += self.add_cuts(params.min_violation, max_cuts)
                if self.iterations % params.size_cut_interval == 0:
                    self.n_cuts_added += self.add_size_cuts()
        return residual

    def add_cuts(self, min_violation: float, count: int) -> int:
        """Drop inactive cuts and add violated ones; return the number added."""
        used = self._cut_multipliers > 0.0
        before = int(used.sum())
        new_cuts = find_violated_cuts(self.z, min_violation, count)
        self.cuts, self._cut_multipliers = append_cuts(
            self.cuts[used], self._cut_multipliers[used], new_cuts, self._model.n_groups
        )
        self._scale_cuts()
        return len(self.cuts) - before

    def add_size_cuts(self) -> int:
        """Drop inactive size cuts and add violated ones; return the number added."""
        rule, params = self._model.size_rule, self._params.size_cuts
        if rule is None:
            return 0
        used = self._size_multipliers > 0.0
        sets, multipliers = self.size_sets[used], self._size_multipliers[used]
        problem, v = self._model.problem, self._model.sqrt_weights
        scaled_z = self._scale * self.entrywise
        vectors = self._projector.vectors(self._model.n_clusters - 1) / v[:, None]
        rng = generator(self.iterations, "bounds.sdp.size_cuts")
        orderings = candidate_orderings(scaled_z, vectors, problem.points, rng, params.n_directions)
        found = find_size_cuts(rule, problem.weights, scaled_z, orderings, sets, params)
        found = found[: max(0, params.max_cuts - len(sets))]
        self.size_sets = np.concatenate([sets, found])
        self._size_multipliers = np.concatenate([multipliers, np.zeros(len(found))])
        self._scale_cuts()
        return len(found)

    def _step(self) -> Floats:
        target, spectral = self._buffer, self._buffer
        np.subtract(self.entrywise, self._dual, out=target)
        np.multiply(self._costs, 1.0 / self._penalty, out=self._unclipped)
        target -= self._unclipped
        single = self._residual > self._params.double_precision_residual
        factor = self._projector.project(target, single=single)
        np.multiply(self._scale, 1.0 / self._model.mass, out=spectral)
        spectral += factor @ factor.T
        shift_entries(
            spectral,
            self.entrywise,
            self._dual,
            self._cut_sum,
            self._params.over_relaxation,
            self._unclipped,
        )
        if len(self.cuts):
            project_on_cuts(
                self._unclipped.ravel(),
                self._limits,
                self._entry_indices,
                self._factors,
                self._steps,
                self._curvatures,
                self._cut_multipliers,
                self._params.projection_sweeps,
            )
        if len(self.size_sets):
            project_on_size_cuts(
                self._unclipped,
                self._limits,
                self._size_members,
                self._model.sqrt_weights,
                self._size_right_sides,
                self._size_multipliers,
                self._params.projection_sweeps,
            )
        squares: Floats = clip_entries(
            spectral,
            self._unclipped,
            self._limits,
            self.entrywise,
            self._dual,
            self._cut_sum,
        )
        return squares

    def _rebalance(self, primal: float, dual: float) -> None:
        params = self._params
        if primal > params.max_residual_ratio * dual:
            factor = params.penalty_factor
        elif dual > params.max_residual_ratio * primal:
            factor = 1.0 / params.penalty_factor
        else:
            return
        self._penalty *= factor
        self._dual /= factor
        self._cut_multipliers = self._cut_multipliers / factor
        self._size_multipliers = self._size_multipliers / factor
        self._cut_sum /= factor

    def _scale_cuts(self) -> None:
        """Scale the cuts to M, multiplied by the mass, so that factors are of order 1."""
        table = cut_table(self.cuts, self._model.n_groups)
        scales = self._model.mass / self._scale.ravel()[table.entry_indices]
        self._entry_indices = table.entry_indices
        self._factors = table.factors * scales
        self._steps = table.symmetric_factors * scales
        self._curvatures = np.einsum("cj,cj->c", self._factors, self._steps)
        self._size_members = np.full(self.size_sets.shape, -1, dtype=np.int64)
        for members, inside in zip(self._size_members, self.size_sets, strict=True):
            members[: int(inside.sum())] = np.flatnonzero(inside)
        rule = self._model.size_rule
        if rule is not None:
            weights = self._model.problem.weights
            self._size_right_sides = right_sides(rule, weights, self.size_sets)
        self._cut_sum = self._sum_cuts()

    def _sum_cuts(self) -> Floats:
        """Sum of the cut matrices with their multipliers, upper triangle."""
        n, v = self._model.n_groups, self._model.sqrt_weights
        terms = (self._cut_multipliers[:, None] * self._steps).ravel()
        sums = np.bincount(self._entry_indices.ravel(), terms, n * n).astype(np.float64)
        sums = sums.reshape(n, n)
        for inside, multiplier in zip(self.size_sets, self._size_multipliers, strict=True):
            a = np.where(inside, v, 0.0)
            sums += np.triu(multiplier * np.outer(a, a))
        return sums

    def _load_multipliers(self, start: MatrixMultipliers) -> None:
        unit = self._penalty * self._model.total
        self.cuts = start.cuts
        self._cut_multipliers = start.cut_multipliers / (unit * self._model.mass)
        if self._model.size_rule is not None:
            self.size_sets, size_multipliers = start.size_cuts
            self._size_multipliers = np.maximum(size_multipliers, 0.0) / unit
        self._scale_cuts()
        sums = self._cut_sum
        self._dual = sums + np.triu(sums, 1).T - start.entries / self._scale / unit


def _entry_limits(model: SdpModel) -> EntryLimits:
    """Limits of the entries of M."""
    weights, n = model.problem.weights, model.n_groups
    lowest, highest = np.zeros(n), np.full((n, n), np.inf)
    if model.limits is not None:
        low, high = model.limits.diagonal(weights)
        lowest = low * weights
        highest = np.minimum.outer(high, high) * np.outer(model.sqrt_weights, model.sqrt_weights)
    highest[model.zero_mask] = 0.0
    return EntryLimits(lowest, np.maximum(highest, 0.0).ravel())


SINGLE: Any = np.float32
DOUBLE: Any = np.float64


@final
class SpectralProjector:
    """Projects on ``M v = v``, eigenvalues in [0, 1], trace at most K; keeps its eigenvectors.

    The projection of a matrix keeps the eigenvalues above some threshold, a tenth of them or fewer,
    and threshold and eigenvectors change little from one iteration to the next. So the vectors of
    the last iteration, filtered by a Chebyshev polynomial that is small on the rest of the
    spectrum and rotated by a Rayleigh-Ritz step, replace an eigendecomposition, at the price of a
    few products with a tall matrix. Components that are missed are small or found an iteration
    later. Nothing has to be exact here: the bound of `dual_bound` is valid for any multipliers, so
    products are in single precision until the iterates have nearly converged. (numpy releases the
    GIL in these routines; SciPy's wrappers of the same routines do not.)
    """

    def __init__(
        self,
        sqrt_weights: Floats,
        n_clusters: int,
        params: SpectralProjectorParams = DEFAULT_PARAMS.projector,
    ) -> None:
        self._params = params
        self._direction = sqrt_weights / np.linalg.norm(sqrt_weights)
        self._count = n_clusters - 1
        self._rng = generator(0, "bounds.sdp.vectors")
        self._basis: NDArray[Any] | None = None
        self._leading: NDArray[Any] | None = None
        self._lowest_vector: NDArray[Any] | None = None
        self._edges = (-1.0, 0.0)  # of the unused part of the spectrum
        self._largest = 1.0
        self._steps = 0
        self.rank = 0

    def vectors(self, count: int) -> Floats:
        """Leading eigenvectors of the last projection, at most ``count``."""
        n = len(self._direction)
        if self._leading is None:
            return np.empty((n, 0))
        return self._leading[:, :count].astype(np.float64)

    def project(self, target: Floats, *, single: bool) -> NDArray[Any]:
        """Projection without its component along v, as ``factor`` of ``factor factor^T``."""
        n = len(target)
        params = self._params
        small = n < params.min_iterative_order
        if small or (
            self._basis is not None and self._basis.shape[1] > params.max_rank_fraction * n
        ):
            self._basis = None
            return self._full_eigendecomposition(target, DOUBLE if small else SINGLE)
        dtype = SINGLE if single else DOUBLE
        if self._basis is None:
            return self._full_eigendecomposition(target, dtype)
        values, vectors = self._rayleigh_ritz(
            target.astype(dtype, copy=False), self._basis.astype(dtype)
        )
        return self._truncate(values, vectors)

    def _truncate(self, values: Floats, vectors: NDArray[Any]) -> NDArray[Any]:
        """Project the eigenvalues, given in descending order, and keep the vectors in use."""
        weights = project_capped_simplex(values, self._count)
        rank = int(np.count_nonzero(weights))
        self.rank = rank
        self._largest = float(values[0])
        threshold = float(values[rank]) if rank < len(values) else float(values[-1])
        self._edges = (self._edges[0], max(threshold, 0.0))
        self._basis = self._resize_basis(vectors, rank)
        self._leading = vectors[:, : max(rank, 1)]
        factor: NDArray[Any] = vectors[:, :rank] * np.sqrt(weights[:rank]).astype(vectors.dtype)
        return factor

    def _full_eigendecomposition(self, target: Floats, dtype: Any) -> NDArray[Any]:
        v = self._direction
        pull = target @ v
        inner = target - np.outer(pull, v) - np.outer(v, pull - float(v @ pull) * v)
        values, vectors = np.linalg.eigh(inner.astype(dtype))
        self._edges = (float(values[0]), self._edges[1])
        self._lowest_vector = vectors[:, 0]
        return self._truncate(values[::-1].astype(np.float64), vectors[:, ::-1])

    def _resize_basis(self, vectors: NDArray[Any], rank: int) -> NDArray[Any]:
        """Basis of the next projection: somewhat more vectors than the rank."""
        n, given = vectors.shape
        params = self._params
        fraction = params.oversampling if rank < given else 1.0
        oversampling = max(params.min_oversampling, int(fraction * rank))
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
    ) -> tuple[Floats, NDArray[Any]]:
        params = self._params
        v = self._direction.astype(target.dtype)
        low, high = self._interval(target, basis, v)
        # Not too narrow: powers of the ratio to the largest value must not overflow.
        middle = 0.5 * (low + high)
        half = max(0.5 * (high - low), params.min_interval_ratio * max(self._largest, -low))
        previous = basis
        current = (self._apply(target, basis, v) - middle * basis) / half
        self._steps += 1
        early = self._steps <= params.first_steps
        for _ in range((params.first_degree if early else params.filter_degree) - 1):
            shifted = self._apply(target, current, v) - middle * current
            previous, current = current, (2.0 / half) * shifted - previous
        current -= np.outer(v, v @ current)
        filtered = _orthonormal(current)
        small = filtered.T @ (target @ filtered)
        values, rotation = np.linalg.eigh(0.5 * (small + small.T))
        vectors: NDArray[Any] = filtered @ rotation[:, ::-1]
        return values[::-1].astype(np.float64), vectors

    def _interval(
        self, target: NDArray[Any], basis: NDArray[Any], v: NDArray[Any]
    ) -> tuple[float, float]:
        """Estimated range of the unused eigenvalues; one power step at its lower end."""
        low, high = self._edges
        if self._lowest_vector is not None:
            x = self._lowest_vector.astype(target.dtype)
            x = x - basis @ (basis.T @ x)
            product = self._apply(target, x[:, None], v)[:, 0]
            size = float(x @ x)
            if size > 0.0:
                # The vector may be out of date: the estimate increases slowly.
                damped = self._params.interval_damping * min(low, 0.0)
                low = min(float(x @ product) / size, damped, high)
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
    """Orthonormal basis of columns that usually are nearly orthogonal."""
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


def project_capped_simplex(values: Floats, total: int) -> Floats:
    """Nearest point with coordinates in [0, 1] and a sum of at most ``total``.

    >>> project_capped_simplex(np.array([3.0, 0.75, 0.5]), 2)
    array([1.   , 0.625, 0.375])
    """
    clipped: Floats = np.clip(values, 0.0, 1.0)
    if clipped.sum() <= total:
        return clipped
    # The sum decreases piecewise linearly with the shift; kinks are at values and values - 1.
    kinks = np.unique(np.concatenate([values, values - 1.0]))
    low, high = 0, len(kinks) - 1  # at the first kink the sum is too large, at the last it is 0
    while high - low > 1:
        middle = (low + high) // 2
        too_large = np.clip(values - kinks[middle], 0.0, 1.0).sum() > total
        low, high = (middle, high) if too_large else (low, middle)
    above, below = (np.clip(values - kinks[i], 0.0, 1.0).sum() for i in (low, high))
    share = (above - total) / (above - below)
    shifted: Floats = np.clip(values - kinks[low] - share * (kinks[high] - kinks[low]), 0.0, 1.0)
    return shifted
