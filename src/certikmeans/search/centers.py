"""The worker of the tree on the centres: a part is one box per centre."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, final

import numpy as np

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import AbstractBound, BoundResult
from certikmeans.bounds.determination import SampleDetermination
from certikmeans.bounds.sample import least_costs, without_links
from certikmeans.bounds.settled import settled_bound
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import CenterSplit, Leaf
from certikmeans.search.center_splits import CenterSplitter, is_empty
from certikmeans.search.node import AbstractWorker, Answer, Split, Task
from certikmeans.search.rows import labellings, leaf_of
from certikmeans.stop import StopSignal

# Components with cycles of up to so many groups are coloured exactly by the checker.
CHECKED_CYCLES = 12


@final
class CenterWorker(AbstractWorker[Subproblem]):
    """Bounds boxes of centres: sample determination, the sample bound, then the bound asked for.

    The sample bound converges as boxes shrink, so the best of both keeps the convergence of the
    paper's Theorem 2, whatever the other one is.
    """

    def __init__(
        self,
        presolved: Presolved,
        assigner: Assigner,
        bound: AbstractBound[Any, Subproblem] | None,
        *,
        keep_proof: bool = False,
    ) -> None:
        self.name = "sample" if bound is None else bound.name
        self._presolved = presolved
        self._assigner = assigner
        self._bound = bound
        self._state = None if bound is None else bound.prepare(presolved.reduced)
        self._determination = SampleDetermination(presolved.reduced, assigner, forced=True)
        sizes = np.diff(presolved.reduced.graph.starts)
        cyclic = presolved.reduced.graph.extra_edges > 0
        self._checkable = bool((sizes[cyclic] <= CHECKED_CYCLES).all())
        self._splitter = CenterSplitter(presolved.reduced)
        self._keep_proof = keep_proof

    def using(self, bound: AbstractBound[Any, Subproblem] | None) -> CenterWorker:
        """The same worker with its bound made anew: what was prepared is shared."""
        other = copy.copy(self)
        other._bound = bound
        return other

    def evaluate(self, task: Task[Subproblem]) -> Answer[Subproblem]:
        """Bound a part, suggest labellings, choose how to split it."""
        part, presolved = task.part, self._presolved
        if is_empty(part):
            return Answer(np.inf, Leaf("infeasible"), None, None, (), part)
        cutoff = presolved.reduce_bound(task.target)
        part, sample = self._sampled(part, cutoff, task.stop)
        found = self._bounded(part, sample, cutoff, task)
        split = None
        if found.value < cutoff:
            split = self._splitter.choose(part, found.mixture, task.depth)
        bound = presolved.restore_bound(found.value)
        if not self._keep_proof:
            # Pairs of group and cluster were removed here for a labelling that costs at least the
            # target, and further up for one that costs at least a target that was no smaller.
            bound = min(bound, task.target)
        middle = 0.5 * (part.lower + part.upper)
        return Answer(
            bound=bound,
            leaf=leaf_of(presolved, found.evidence, self._keep_proof),
            restart=found.restart,
            split=split,
            labels=labellings(presolved, self._assigner, (*found.centers, middle), task.stop),
            part=part,
        )

    def _bounded(
        self, part: Subproblem, sample: float, cutoff: float, task: Task[Subproblem]
    ) -> BoundResult:
        """The better of the sample bound and the one asked for."""
        weaker = BoundResult(sample, {"bound": "sample"}, task.restart)
        if self._bound is None or sample >= cutoff:
            return weaker
        other = self._bound.evaluate(self._state, part, cutoff, task.stop, task.restart)
        # An infinite value means that no viable labelling is left: none below the cutoff.
        value = min(cutoff, other.value)
        if value > sample:
            return replace(other, value=value)
        return replace(other, value=sample, evidence=weaker.evidence)

    def parts(self, part: Subproblem, split: Split) -> tuple[Subproblem, Subproblem]:
        """Cut the box of one centre."""
        assert isinstance(split, CenterSplit)
        return self._splitter.parts(part, split)

    def _sampled(
        self, part: Subproblem, cutoff: float, stop: StopSignal
    ) -> tuple[Subproblem, float]:
        """Sample determination and the sample bound: the part with viable sets, and the value.

        Where a proof is kept, only what the checker of certificates repeats: no viable sets, and
        no cannot-links in components with cycles that are too large for it.
        """
        reduced = self._presolved.reduced
        if self._keep_proof:
            costs = least_costs(reduced, part)
            if not self._checkable:
                return part, without_links(costs)
            return part, self._assigner.assign_costs(costs, stop=stop).lower
        determined = self._determination.determine(part, cutoff, stop)
        part = Subproblem(part.lower, part.upper, determined.viable)
        sample = determined.lower
        if determined.n_fixed > 0 and sample < cutoff:
            sample = max(sample, settled_bound(reduced, self._assigner, part, stop))
        return part, min(cutoff, sample)  # labellings left out cost at least the cutoff

    def inherited(self, leaf: Leaf, part: Subproblem, child: Subproblem) -> Leaf:
        """The same: groups do not change, and boxes only shrink."""
        return leaf
