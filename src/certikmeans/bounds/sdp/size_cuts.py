"""Size cuts: a set of groups cannot be spread over clusters of limited size without mixing.

For a set A of groups and a labelling, let ``m_k`` be the weight of A in cluster k of weight
``W_k``. Then

    sum over s, t in A of w_s w_t Z_st = sum_k m_k^2 / W_k = w(A) - sum_k m_k (W_k - m_k) / W_k,

which is ``w(A)`` less a loss that is 0 only if A is a union of clusters. Without these cuts the
relaxation may put one and a half clusters on one site.

**The least loss** for whole weights: ``L <= W_k <= U`` and ``sum W_k = W`` are whole numbers. For
given sizes the sum of ``m_k^2 / W_k`` is convex, so it is largest at a vertex of
``0 <= m_k <= W_k``, ``sum m_k = w(A)``: all but one cluster are inside A or outside. If q are
inside, with f weight in all, the last one has the size N' and ``r = w(A) - f`` of A, where

    q L <= f <= q U,   (K-1-q) L <= W - N' - f <= (K-1-q) U,   0 <= r <= N',

and the loss ``r (N' - r) / N'`` is concave in r: least at an end of the range of r. For equal sizes
N and ``w(A) = q N + r`` it is ``r (N - r) / N``. The enumeration over q and N' is exact.

The cut is ``<a a^T, Z> <= right_side(A)`` with ``a_s = w_s`` in A and 0 outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.bounds.sdp.limits import WeightLimits
from certikmeans.kernels.sdp import leading_sums

Sets = Mask

MAX_MASS = 2.0**26  # products of sizes are exact in float64
MAX_SIZES = 20_000  # different sizes of a cluster


@final
@dataclass(frozen=True, slots=True)
class SizeRule:
    """Sizes of the clusters as whole numbers: the right sides of size cuts."""

    n_clusters: int
    mass: int
    low: int
    high: int

    @classmethod
    def of(cls, n_clusters: int, mass: float, limits: WeightLimits | None) -> SizeRule | None:
        """Rule of a problem; None if sizes are not whole or clusters may be empty."""
        if limits is None or not limits.whole or limits.min_clusters < n_clusters:
            return None
        if limits.high - limits.low > MAX_SIZES or mass > MAX_MASS or limits.low < 1.0:
            return None
        return cls(n_clusters, int(mass), int(limits.low), int(limits.high))

    def least_loss(self, weight: int) -> tuple[int, int]:
        """Least loss of a set of this weight, as numerator and denominator.

        >>> SizeRule(4, 2000, 500, 500).least_loss(750)  # 250 * 250 / 500
        (62500, 500)
        """
        rest = self.n_clusters - 1
        inside = np.arange(rest + 1)[:, None]
        size = np.arange(self.low, self.high + 1)[None, :]
        outside, left = rest - inside, self.mass - size
        lowest = np.maximum(inside * self.low, left - outside * self.high)
        highest = np.minimum(inside * self.high, left - outside * self.low)
        # Range of r = weight - f, within [0, N'].
        least = np.maximum(weight - highest, 0)
        most = np.minimum(weight - lowest, size)
        possible = (lowest <= highest) & (least <= most)
        if not possible.any():
            return 0, 1
        size = np.broadcast_to(size, least.shape)
        loss = np.minimum(least * (size - least), most * (size - most))
        quotient = np.where(possible, loss / size, np.inf)
        at = np.unravel_index(int(np.argmin(quotient)), quotient.shape)
        return int(loss[at]), int(size[at])

    def right_side(self, weight: int) -> float:
        """Largest possible left side of the cut of a set of this weight, rounded up."""
        numerator, denominator = self.least_loss(weight)
        # The least of the rounded quotients is at most the rounded least quotient, and a quotient
        # errs by half a unit in the last place; the difference is rounded once more.
        loss = math.nextafter(math.nextafter(numerator / denominator, 0.0), 0.0)
        return math.nextafter(weight - loss, math.inf) if loss > 0.0 else float(weight)


@final
@dataclass(frozen=True, slots=True)
class SizeCutParams:
    """Settings of the separation of size cuts."""

    max_cuts: int = 24  # in use at a time
    cuts_per_round: int = 4
    min_violation: float = 1e-3  # in units of the weight of a cluster
    n_directions: int = 24  # eigenvectors of Z and mixtures of them

    def __post_init__(self) -> None:
        if min(self.max_cuts, self.cuts_per_round, self.n_directions) < 1:
            raise ValueError("numbers of cuts and directions have to be positive")


DEFAULT_SIZE_CUT_PARAMS = SizeCutParams()


def right_sides(rule: SizeRule, weights: Floats, sets: Sets) -> Floats:
    """Right side of the cut of every set."""
    return np.array([rule.right_side(int(weights[one].sum())) for one in sets])


def find_size_cuts(
    rule: SizeRule,
    weights: Floats,
    scaled_z: Floats,
    orderings: Ints,
    known: Sets,
    params: SizeCutParams,
) -> Sets:
    """Sets whose cuts are violated most, at most ``cuts_per_round``, not in ``known``.

    Parameters
    ----------
    rule : SizeRule
    weights : ndarray of shape (n,)
    scaled_z : ndarray of shape (n, n)
        ``w_s w_t Z_st``.
    orderings : ndarray of shape (m, n)
        Permutations of the groups; the candidates are their leading segments.
    known : ndarray of bool, shape (c, n)
        Cuts in use.
    params : SizeCutParams
    """
    n = len(weights)
    table = np.full(rule.mass + 1, np.nan)
    unit = 0.5 * (rule.low + rule.high)
    candidates: list[tuple[float, Mask]] = []
    sums = np.empty(orderings.shape)
    leading_sums(scaled_z, orderings, sums)
    for order, left in zip(orderings, sums, strict=True):
        mass = np.rint(np.cumsum(weights[order])).astype(np.int64)
        for m in mass[np.isnan(table[mass])].tolist():
            table[m] = rule.right_side(m)
        violation = left - table[mass]
        best = int(np.argmax(violation))
        if violation[best] > params.min_violation * unit:
            # A set and its complement say the same where Z w = 1: take the smaller one.
            inside = np.zeros(n, dtype=np.bool_)
            inside[order[: best + 1] if 2 * (best + 1) <= n else order[best + 1 :]] = True
            candidates.append((float(violation[best]), inside))
    candidates.sort(key=lambda one: -one[0])
    found: list[Mask] = []
    taken = list(known)
    for _, inside in candidates:
        if len(found) == params.cuts_per_round:
            break
        if all(_different(inside, other) for other in taken):
            found.append(inside)
            taken.append(inside)
    return np.array(found, dtype=np.bool_).reshape(len(found), n)


def _different(one: Mask, other: Mask) -> bool:
    """Whether two sets differ, also up to the complement, by more than one percent."""
    n_changed = int((one != other).sum())
    return min(n_changed, len(one) - n_changed) > 0.01 * len(one)


def candidate_orderings(
    scaled_z: Floats, vectors: Floats, points: Floats, rng: np.random.Generator, count: int
) -> Ints:
    """Orderings along rows of Z, its eigenvectors, their mixtures, and axes of the points."""
    n = len(scaled_z)
    rows = rng.choice(n, size=min(n, count), replace=False)
    directions = [-scaled_z[rows]]
    if vectors.shape[1]:
        few = vectors[:, : min(vectors.shape[1], count)]
        mixed = rng.normal(size=(count, few.shape[1])) @ few.T
        directions += [few.T, mixed]
    directions.append(points.T[: min(points.shape[1], 4)])
    orderings: Ints = np.argsort(np.vstack(directions), axis=1, kind="stable")
    return orderings
