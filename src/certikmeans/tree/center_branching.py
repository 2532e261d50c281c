"""Branching on boxes of the centers.

Clusters are numbered so that their means ascend along axis 0: every labelling can be numbered
so, an empty cluster coinciding with another one. With ``lower[k] <= lower[k+1]`` and
``upper[k] <= upper[k+1]`` on that axis, a half that is removed from one center is removed from all
those beyond it, too.

**Split rule.** A fractional solution has weighted clusters. In the order of axis 0, the slice of
weight from r-1 to r of a symmetry class stands for its r-th center. A slice with a large spread
along an axis weakens the bound: the center whose slice has the largest variance between the two
sides of a split, times its weight, is split there. Without a fractional solution, and at every
fifth level, the longest side is halved, so that the subdivision is exhaustive, as the convergence
theorem requires.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints
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
from certikmeans.problem.data import Domain
from certikmeans.proof import CenterSplit, LeafProof
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal
from certikmeans.tree.node import BranchingScheme, NodeResult, NodeTask, Split, node_overhead
from certikmeans.tree.primal import certificate_leaf, round_centers

# Number of levels after which the longest side is halved, whatever the fractional solution.
LONGEST_SIDE_PERIOD = 5
# A split leaves at least this fraction of the side on either side.
MIN_SIDE_FRACTION = 0.1
# Clusters of a symmetry class are ordered along axis 0 only; splits on others exclude less.
UNORDERED_AXIS_WEIGHT = 0.1


@final
class CenterSplitter:
    """Chooses splits and makes the child domains, for one reduced problem."""

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
        """Split, and tighten the other boxes by the order of the centers."""
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
    """Whether a box is empty: then the domain contains no labelling."""
    return bool((domain.lower > domain.upper).any())


def _best_cut(coordinates: Floats, weights: Floats) -> tuple[float, float]:
    """Return the largest variance between the sides of a split, and the split point."""
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


@final
class CenterBranching(BranchingScheme[Domain]):
    """Branching scheme whose domains are one box per center.

    A node computes the sample bound, then the selected bound. The sample bound converges as boxes
    shrink, so the maximum of both keeps the convergence of the paper's Theorem 2 for any selected
    bound. It also determines the allowed clusters of every group, which the other one starts from.

    Parameters
    ----------
    presolved : PresolvedProblem
    bound : LowerBound
        May be the sample bound itself.
    inputs : BoundInput
        Input of the bound for the reduced problem.
    """

    def __init__(
        self, presolved: PresolvedProblem, bound: LowerBound[Any], inputs: BoundInput
    ) -> None:
        self.name = bound.name
        self.overhead = node_overhead(presolved.reduced)
        self._presolved = presolved
        self._inputs = inputs
        self._sample = BoxBound()
        self._sample_state = self._sample.setup(inputs)
        self._bound = None if isinstance(bound, BoxBound) else bound
        self._state = None if self._bound is None else self._bound.setup(inputs)
        self._splitter = CenterSplitter(presolved.reduced)

    def root(self, found: BoundResult, stop: StopSignal) -> NodeResult[Domain]:
        """Return the result for the root domain."""
        presolved, whole = self._presolved, Domain.root(self._presolved.reduced)
        return NodeResult(
            bound=presolved.postsolve_bound(found.value),
            leaf=certificate_leaf(presolved, found.leaf, self._inputs.keep_proof),
            warm_start=found.warm_start,
            split=self._splitter.choose(whole, found.fractional, 0),
            labels=round_centers(presolved, self._inputs.assigner, found.centers, stop),
            domain=whole,
        )

    def compute(self, task: NodeTask[Domain]) -> NodeResult[Domain]:
        """Bound a domain, propose labels, choose a split."""
        domain, presolved, inputs = task.domain, self._presolved, self._inputs
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
            # Assignments were excluded here for labellings that cost at least the cutoff, and in
            # ancestors for a cutoff that was no smaller.
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
        """Return the better of the sample bound and the selected one."""
        if self._bound is None or sample.value >= cutoff:
            return replace(sample, warm_start=task.warm_start)
        ctx = BoundContext(task.stop)
        other = self._bound.compute(self._state, domain, cutoff, ctx, task.warm_start)
        # An infinite value means that no allowed labelling is left: none below the cutoff.
        value = min(cutoff, other.value)
        centers = (*other.centers, *sample.centers)
        if value > sample.value:
            return replace(other, value=value, centers=centers)
        return replace(other, value=sample.value, leaf=sample.leaf, centers=centers)

    def incumbent_payload(self, labels: Ints) -> NDArray[np.integer[Any]]:
        """Return no labels: nodes round the centers of their bounds."""
        return labels[:0]

    def children(self, domain: Domain, split: Split) -> tuple[Domain, Domain]:
        """Split the box of one center."""
        assert isinstance(split, CenterSplit)
        return self._splitter.children(domain, split)

    def to_original(self, domain: Domain) -> Domain:
        """Return the boxes alone: allowed clusters are in terms of groups."""
        return Domain(domain.lower, domain.upper)

    def restrict_proof(self, leaf: LeafProof, domain: Domain, child: Domain) -> LeafProof:
        """Return the same leaf: groups do not change, and boxes only shrink."""
        return leaf
