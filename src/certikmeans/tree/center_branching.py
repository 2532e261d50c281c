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

from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import (
    BoundContext,
    BoundInput,
    BoundResult,
    FractionalSolution,
    LowerBound,
)
from certikmeans.bounds.sample import BoxBound
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import ReducedProblem
from certikmeans.problem.domain import Domain
from certikmeans.proof import CenterSplit, LeafProof
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal
from certikmeans.tree.node import BranchingScheme, NodeResult, NodeTask, Split
from certikmeans.tree.primal import certificate_leaf, round_centers

# Every so many levels the longest side is halved, whatever the mixture says.
LONGEST_SIDE_PERIOD = 5
# A cut leaves at least this part of a side on either side.
MIN_SIDE_FRACTION = 0.1
# Only axis 0 tells the clusters of a family apart; on the others a cut says less.
UNORDERED_AXIS_WEIGHT = 0.1

Vector = NDArray[np.float64]


@final
class CenterSplitter:
    """Chooses splits and makes the parts, for one reduced problem."""

    def __init__(self, problem: ReducedProblem) -> None:
        self._min_width = 64.0 * EPS * np.abs(problem.points).max()
        self._weights = problem.weights

    def choose(
        self, domain: Domain, fractional: FractionalSolution | None, depth: int
    ) -> CenterSplit | None:
        """Choose a split; None if every box is too small for one."""
        widths = domain.upper - domain.lower
        if not (widths > self._min_width).any():
            return None
        if fractional is not None and depth % LONGEST_SIDE_PERIOD != LONGEST_SIDE_PERIOD - 1:
            split = self._split_by_fractional(domain, fractional)
            if split is not None:
                return split
        cluster, axis = np.unravel_index(int(np.argmax(widths)), widths.shape)
        middle = 0.5 * (domain.lower[cluster, axis] + domain.upper[cluster, axis])
        return CenterSplit(int(cluster), int(axis), float(middle))

    def _split_by_fractional(
        self, domain: Domain, fractional: FractionalSolution
    ) -> CenterSplit | None:
        best, chosen = 0.0, None
        masses = fractional.members @ self._weights
        for clusters in dict.fromkeys(fractional.clusters):
            columns = np.array(
                [i for i, other in enumerate(fractional.clusters) if other == clusters]
            )
            columns = columns[np.argsort(fractional.centers[columns, 0], kind="stable")]
            column_weights = fractional.weights[columns] * (
                len(clusters) / fractional.weights[columns].sum()
            )
            ends = np.cumsum(column_weights)
            for rank, cluster in enumerate(clusters):
                inside = np.minimum(ends, rank + 1) - np.maximum(ends - column_weights, rank)
                slice_ = np.maximum(inside, 0.0)
                mass = float(slice_ @ masses[columns])
                for axis in range(fractional.centers.shape[1]):
                    score, value = _best_cut(fractional.centers[columns, axis], slice_)
                    score *= (
                        mass if axis == 0 or len(clusters) == 1 else UNORDERED_AXIS_WEIGHT * mass
                    )
                    low, high = domain.lower[cluster, axis], domain.upper[cluster, axis]
                    if score > best and high - low > self._min_width:
                        margin = MIN_SIDE_FRACTION * (high - low)
                        value = min(max(value, low + margin), high - margin)
                        best, chosen = score, CenterSplit(cluster, axis, float(value))
        return chosen

    def children(self, domain: Domain, split: CenterSplit) -> tuple[Domain, Domain]:
        """Cut, and let the order of the centres tighten the other boxes."""
        below, above = domain.upper.copy(), domain.lower.copy()
        below[split.cluster, split.axis] = split.value
        above[split.cluster, split.axis] = split.value
        return (
            tighten_by_order(Domain(domain.lower, below, domain.allowed)),
            tighten_by_order(Domain(above, domain.upper, domain.allowed)),
        )


def tighten_by_order(domain: Domain) -> Domain:
    """Tighten the boxes to ``mean_1 <= ... <= mean_K`` along axis 0.

    >>> domain = Domain(np.array([[2.0], [0.0]]), np.array([[9.0], [5.0]]))
    >>> tight = tighten_by_order(domain)
    >>> tight.lower.ravel(), tight.upper.ravel()
    (array([2., 2.]), array([5., 5.]))
    """
    lower, upper = domain.lower.copy(), domain.upper.copy()
    lower[:, 0] = np.maximum.accumulate(lower[:, 0])
    upper[:, 0] = np.minimum.accumulate(upper[::-1, 0])[::-1]
    return Domain(lower, upper, domain.allowed)


def is_empty(domain: Domain) -> bool:
    """Whether a box has no inside: then no labelling is in the part."""
    return bool((domain.lower > domain.upper).any())


def _best_cut(coordinates: Vector, weights: Vector) -> tuple[float, float]:
    """Cut of a weighted sample with the largest variance between the sides: ``(that, where)``."""
    used = weights > 0.0
    order = np.argsort(coordinates[used], kind="stable")
    x, w = coordinates[used][order], weights[used][order]
    if len(x) < 2:
        return 0.0, 0.0
    left, total = np.cumsum(w)[:-1], float(w.sum())
    first = np.cumsum(w * x)[:-1]
    right = total - left
    safe = (left > 1e-12 * total) & (right > 1e-12 * total)
    if not safe.any():
        return 0.0, 0.0
    left, right, first = left[safe], right[safe], first[safe]
    mean_gap = (float(w @ x) - first) / right - first / left
    between = left * right * mean_gap * mean_gap / total**2
    i = int(np.argmax(between))
    midpoints = 0.5 * (x[:-1] + x[1:])[safe]
    return float(between[i]), float(midpoints[i])


# The worker of the tree on the centres: a part is one box per centre.


@final
class CenterBranching(BranchingScheme[Domain]):
    """Bounds boxes of centres: the sample bound, then the bound asked for.

    The sample bound converges as boxes shrink, so the best of both keeps the convergence of the
    paper's Theorem 2, whatever the other one is. It also says which groups can still be in which
    clusters, and the other one starts from there.

    Parameters
    ----------
    presolved : Presolved
    bound : LowerBound
        May be the sample bound itself.
    setting : Setting
        Of the reduced problem.
    """

    def __init__(
        self, presolved: PresolvedProblem, bound: LowerBound[Any], inputs: BoundInput
    ) -> None:
        self.name = bound.name
        self._presolved = presolved
        self._setting = inputs
        self._sample = BoxBound()
        self._sample_state = self._sample.setup(inputs)
        self._bound = None if isinstance(bound, BoxBound) else bound
        self._state = None if self._bound is None else self._bound.setup(inputs)
        self._splitter = CenterSplitter(presolved.reduced)

    def root(self, found: BoundResult, stop: StopSignal) -> NodeResult[Domain]:
        """Answer for all boxes at their largest."""
        presolved, whole = self._presolved, Domain.root(self._presolved.reduced)
        return NodeResult(
            bound=presolved.postsolve_bound(found.value),
            leaf=certificate_leaf(presolved, found.leaf, self._setting.keep_proof),
            warm_start=found.warm_start,
            split=self._splitter.choose(whole, found.fractional, 0),
            labels=round_centers(presolved, self._setting.assigner, found.centers, stop),
            domain=whole,
        )

    def compute(self, task: NodeTask[Domain]) -> NodeResult[Domain]:
        """Bound a part, suggest labellings, choose how to split it."""
        domain, presolved, inputs = task.domain, self._presolved, self._setting
        if is_empty(domain):
            return NodeResult(np.inf, LeafProof("infeasible"), None, None, (), domain)
        cutoff = presolved.presolve_bound(task.cutoff)
        ctx = BoundContext(task.stop)
        sample = self._sample.compute(self._sample_state, domain, cutoff, ctx)
        domain = Domain(domain.lower, domain.upper, sample.allowed)
        found = self._compute_bound(domain, sample, cutoff, task)
        split = None
        if found.value < cutoff:
            split = self._splitter.choose(domain, found.fractional, task.depth)
        bound = presolved.postsolve_bound(found.value)
        if not inputs.keep_proof:
            # Pairs of group and cluster were removed here for a labelling that costs at least the
            # target, and further up for one that costs at least a target that was no smaller.
            bound = min(bound, task.cutoff)
        return NodeResult(
            bound=bound,
            leaf=certificate_leaf(presolved, found.leaf, inputs.keep_proof),
            warm_start=found.warm_start,
            split=split,
            labels=round_centers(presolved, inputs.assigner, found.centers, task.stop, task.cost),
            domain=domain,
        )

    def _compute_bound(
        self, domain: Domain, sample: BoundResult, cutoff: float, task: NodeTask[Domain]
    ) -> BoundResult:
        """The better of the sample bound and the one asked for."""
        if self._bound is None or sample.value >= cutoff:
            return replace(sample, warm_start=task.warm_start)
        ctx = BoundContext(task.stop)
        other = self._bound.compute(self._state, domain, cutoff, ctx, task.warm_start)
        # An infinite value means that no viable labelling is left: none below the cutoff.
        value = min(cutoff, other.value)
        centers = (*other.centers, *sample.centers)
        if value > sample.value:
            return replace(other, value=value, centers=centers)
        return replace(other, value=sample.value, leaf=sample.leaf, centers=centers)

    def incumbent_payload(self, labels: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
        """Nothing: labellings come from the centres that bounds suggest."""
        return labels[:0]

    def children(self, domain: Domain, split: Split) -> tuple[Domain, Domain]:
        """Cut the box of one centre."""
        assert isinstance(split, CenterSplit)
        return self._splitter.children(domain, split)

    def to_original(self, domain: Domain) -> Domain:
        """The boxes alone: who is viable is said in numbers of groups."""
        return Domain(domain.lower, domain.upper)

    def restrict_proof(self, leaf: LeafProof, domain: Domain, child: Domain) -> LeafProof:
        """The same: groups do not change, and boxes only shrink."""
        return leaf
