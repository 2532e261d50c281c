"""Where to split a box of a centre, and what the order of the centres says about the parts.

Clusters are numbered so that their means ascend along axis 0: every labelling can be numbered
so, an empty cluster being put where another one is. With ``lower[k] <= lower[k+1]`` and
``upper[k] <= upper[k+1]`` on that axis, a half that is cut off one centre is cut off all those
beyond it, too.

**The rule.** The relaxation mixes clusters. In the order of axis 0, the slice of weight from r-1
to r of a family stands for its r-th centre. A slice that is spread out along an axis is what keeps
the bound low: we split the centre whose slice has the largest variance between the two sides of a
cut, times its weight, at that cut. Without a mixture, and at every fifth level, the longest side is
halved, so that no side stays long for ever: the subdivision is exhaustive, which is what the
convergence theorem asks for.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import Mixture
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import CenterSplit
from certikmeans.rounding import EPS

# Every so many levels the longest side is halved, whatever the mixture says.
EXHAUSTIVE = 5
# A cut leaves at least this part of a side on either side.
MARGIN = 0.1
# Only axis 0 tells the clusters of a family apart; on the others a cut says less.
UNORDERED = 0.1

Vector = NDArray[np.float64]


@final
class CenterSplitter:
    """Chooses splits and makes the parts, for one reduced problem."""

    def __init__(self, problem: ReducedProblem) -> None:
        self._least = 64.0 * EPS * np.abs(problem.points).max()
        self._weights = problem.weights

    def choose(self, part: Subproblem, mixture: Mixture | None, depth: int) -> CenterSplit | None:
        """Choose a split; None if every box is too small for one."""
        widths = part.upper - part.lower
        if not (widths > self._least).any():
            return None
        if mixture is not None and depth % EXHAUSTIVE != EXHAUSTIVE - 1:
            split = self._by_mixture(part, mixture)
            if split is not None:
                return split
        cluster, axis = np.unravel_index(int(np.argmax(widths)), widths.shape)
        middle = 0.5 * (part.lower[cluster, axis] + part.upper[cluster, axis])
        return CenterSplit(int(cluster), int(axis), float(middle))

    def _by_mixture(self, part: Subproblem, mixture: Mixture) -> CenterSplit | None:
        best, chosen = 0.0, None
        masses = mixture.members @ self._weights
        for clusters in dict.fromkeys(mixture.clusters):
            mine = np.array([i for i, other in enumerate(mixture.clusters) if other == clusters])
            mine = mine[np.argsort(mixture.centers[mine, 0], kind="stable")]
            share = mixture.weights[mine] * (len(clusters) / mixture.weights[mine].sum())
            ends = np.cumsum(share)
            for rank, cluster in enumerate(clusters):
                inside = np.minimum(ends, rank + 1) - np.maximum(ends - share, rank)
                slice_ = np.maximum(inside, 0.0)
                mass = float(slice_ @ masses[mine])
                for axis in range(mixture.centers.shape[1]):
                    score, value = _best_cut(mixture.centers[mine, axis], slice_)
                    score *= mass if axis == 0 or len(clusters) == 1 else UNORDERED * mass
                    low, high = part.lower[cluster, axis], part.upper[cluster, axis]
                    if score > best and high - low > self._least:
                        room = MARGIN * (high - low)
                        value = min(max(value, low + room), high - room)
                        best, chosen = score, CenterSplit(cluster, axis, float(value))
        return chosen

    def parts(self, part: Subproblem, split: CenterSplit) -> tuple[Subproblem, Subproblem]:
        """Cut, and let the order of the centres tighten the other boxes."""
        below, above = part.upper.copy(), part.lower.copy()
        below[split.cluster, split.axis] = split.value
        above[split.cluster, split.axis] = split.value
        return (
            ordered(Subproblem(part.lower, below, part.viable)),
            ordered(Subproblem(above, part.upper, part.viable)),
        )


def ordered(part: Subproblem) -> Subproblem:
    """Tighten the boxes to ``mean_1 <= ... <= mean_K`` along axis 0.

    >>> part = Subproblem(np.array([[2.0], [0.0]]), np.array([[9.0], [5.0]]))
    >>> tight = ordered(part)
    >>> tight.lower.ravel(), tight.upper.ravel()
    (array([2., 2.]), array([5., 5.]))
    """
    lower, upper = part.lower.copy(), part.upper.copy()
    lower[:, 0] = np.maximum.accumulate(lower[:, 0])
    upper[:, 0] = np.minimum.accumulate(upper[::-1, 0])[::-1]
    return Subproblem(lower, upper, part.viable)


def is_empty(part: Subproblem) -> bool:
    """Whether a box has no inside: then no labelling is in the part."""
    return bool((part.lower > part.upper).any())


def _best_cut(places: Vector, weights: Vector) -> tuple[float, float]:
    """Cut of a weighted sample with the largest variance between the sides: ``(that, where)``."""
    used = weights > 0.0
    order = np.argsort(places[used], kind="stable")
    x, w = places[used][order], weights[used][order]
    if len(x) < 2:
        return 0.0, 0.0
    left, total = np.cumsum(w)[:-1], float(w.sum())
    first = np.cumsum(w * x)[:-1]
    right = total - left
    safe = (left > 1e-12 * total) & (right > 1e-12 * total)
    if not safe.any():
        return 0.0, 0.0
    left, right, first = left[safe], right[safe], first[safe]
    apart = (float(w @ x) - first) / right - first / left
    between = left * right * apart * apart / total**2
    i = int(np.argmax(between))
    gaps = 0.5 * (x[:-1] + x[1:])[safe]
    return float(between[i]), float(gaps[i])
