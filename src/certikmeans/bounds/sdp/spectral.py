"""Projection on the spectral side: only the part of the spectrum that is used.

The projection of a matrix keeps the eigenvalues above some level, a tenth of them or fewer, and
that level and the vectors change little from one iteration to the next. So the vectors of the
last iteration, sharpened by a polynomial that is small on the unwanted rest of the spectrum
(Chebyshev) and turned by a Rayleigh-Ritz step, are as good as an eigendecomposition, at the price
of a few products with a tall matrix. What is missed is small or found an iteration later. Nothing
has to be exact here: bounds are made safe afterwards (`safe.py`), so products are in single
precision until the iterates have nearly settled. (All of it by numpy, which lets other threads run
meanwhile; scipy's wrappers of the same routines do not.)
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.sdp.model import Matrix, Vector
from certikmeans.streams import generator

# Below this order, or above this part of it, a full decomposition is as fast.
SMALL_ORDER = 100
LARGEST_PART = 0.5
# Of the polynomial: in the first steps, while everything moves, and later.
FIRST_STEPS = 8
FIRST_DEGREE, FILTER_DEGREE = 6, 4
SLOWLY = 0.9
NARROWEST = 0.01
# Vectors beyond those used: the border of the wanted part is sharper for them.
SPARE, LEAST_SPARE = 0.3, 16
SINGLE: Any = np.float32
DOUBLE: Any = np.float64


@final
class SpectralProjector:
    """Projects on ``M v = v``, eigenvalues in [0, 1], trace at most K; remembers its vectors."""

    def __init__(self, roots: Vector, n_clusters: int) -> None:
        self._direction = roots / np.linalg.norm(roots)
        self._count = n_clusters - 1
        self._random = generator(0, "bounds.sdp.vectors")
        self._basis: NDArray[Any] | None = None
        self._lowest: NDArray[Any] | None = None
        self._edges = (-1.0, 0.0)  # of the part of the spectrum that is not used
        self._largest = 1.0
        self._steps = 0
        self.rank = 0

    def project(self, target: Matrix, *, single: bool) -> NDArray[Any]:
        """Return the projection, without its part along v, as ``part`` of ``part part^T``."""
        n = len(target)
        if n < SMALL_ORDER or (self._basis is not None and self._basis.shape[1] > LARGEST_PART * n):
            self._basis = None
            return self._in_full(target, DOUBLE if n < SMALL_ORDER else SINGLE)
        kind = SINGLE if single else DOUBLE
        if self._basis is None:
            return self._in_full(target, kind)
        values, vectors = self._ritz(target.astype(kind, copy=False), self._basis.astype(kind))
        return self._used(values, vectors)

    def _used(self, values: Vector, vectors: NDArray[Any]) -> NDArray[Any]:
        """Values descend."""
        shares = capped(values, self._count)
        rank = int(np.count_nonzero(shares))
        self.rank = rank
        self._largest = float(values[0])
        level = float(values[rank]) if rank < len(values) else float(values[-1])
        self._edges = (self._edges[0], max(level, 0.0))
        self._basis = self._resized(vectors, rank)
        part: NDArray[Any] = vectors[:, :rank] * np.sqrt(shares[:rank]).astype(vectors.dtype)
        return part

    def _in_full(self, target: Matrix, kind: Any) -> NDArray[Any]:
        v = self._direction
        pull = target @ v
        inner = target - np.outer(pull, v) - np.outer(v, pull - float(v @ pull) * v)
        values, vectors = np.linalg.eigh(inner.astype(kind))
        self._edges = (float(values[0]), self._edges[1])
        self._lowest = vectors[:, 0]
        return self._used(values[::-1].astype(np.float64), vectors[:, ::-1])

    def _resized(self, vectors: NDArray[Any], rank: int) -> NDArray[Any]:
        """As many as will be wanted: some more than were used."""
        n, given = vectors.shape
        spare = max(LEAST_SPARE, int((SPARE if rank < given else 1.0) * rank))
        wanted = min(rank + spare, n - 1)
        if wanted <= given:
            return vectors[:, :wanted]
        fresh = self._random.normal(size=(n, wanted - given)).astype(vectors.dtype)
        v = self._direction.astype(vectors.dtype)
        fresh -= np.outer(v, v @ fresh)
        fresh -= vectors @ (vectors.T @ fresh)
        return np.hstack([vectors, np.linalg.qr(fresh)[0]])

    def _ritz(self, target: NDArray[Any], basis: NDArray[Any]) -> tuple[Vector, NDArray[Any]]:
        v = self._direction.astype(target.dtype)
        low, high = self._interval(target, basis, v)
        # Not too narrow: powers of the ratio to the largest value must not overflow.
        middle = 0.5 * (low + high)
        half = max(0.5 * (high - low), NARROWEST * max(self._largest, -low))
        before = basis
        now = (self._apply(target, basis, v) - middle * basis) / half
        self._steps += 1
        for _ in range((FIRST_DEGREE if self._steps <= FIRST_STEPS else FILTER_DEGREE) - 1):
            before, now = now, (2.0 / half) * (self._apply(target, now, v) - middle * now) - before
        now -= np.outer(v, v @ now)
        sharp = _orthonormal(now)
        small = sharp.T @ (target @ sharp)
        values, turn = np.linalg.eigh(0.5 * (small + small.T))
        vectors: NDArray[Any] = sharp @ turn[:, ::-1]
        return values[::-1].astype(np.float64), vectors

    def _interval(
        self, target: NDArray[Any], basis: NDArray[Any], v: NDArray[Any]
    ) -> tuple[float, float]:
        """About where the unwanted eigenvalues are; a step of the power method at the low end."""
        low, high = self._edges
        if self._lowest is not None:
            x = self._lowest.astype(target.dtype)
            x = x - basis @ (basis.T @ x)
            moved = self._apply(target, x[:, None], v)[:, 0]
            size = float(x @ x)
            if size > 0.0:
                # The vector may be stale: an estimate that rises is believed slowly.
                low = min(float(x @ moved) / size, SLOWLY * min(low, 0.0), high)
                x = high * x - moved
                self._lowest = x / max(float(np.linalg.norm(x)), 1e-30)
                self._edges = (low, high)
        return low - 0.2 * (high - low) - 1e-9, high

    @staticmethod
    def _apply(target: NDArray[Any], vectors: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        moved: NDArray[Any] = target @ vectors
        moved -= np.outer(v, v @ moved)
        return moved


def _orthonormal(vectors: NDArray[Any]) -> NDArray[Any]:
    """An orthonormal basis of the columns, which are nearly orthogonal as a rule."""
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-30)
    try:
        for _ in range(2):
            factor = np.linalg.cholesky(vectors.T @ vectors)
            vectors = vectors @ np.linalg.inv(factor).T
        sharp: NDArray[Any] = vectors
        return sharp
    except np.linalg.LinAlgError:
        turned: NDArray[Any] = np.linalg.qr(vectors)[0]
        return turned


def capped(values: Vector, total: int) -> Vector:
    """Nearest point with coordinates in [0, 1] and a sum of at most ``total``.

    >>> capped(np.array([3.0, 0.75, 0.5]), 2)
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
