"""The worker of the tree on the centres: a part is one box per centre."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import AbstractBound, BoundResult, Setting
from certikmeans.bounds.sample import SampleBound
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import CenterSplit, Leaf
from certikmeans.search.center_splits import CenterSplitter, is_empty
from certikmeans.search.node import AbstractWorker, Answer, Split, Task
from certikmeans.search.upper import labellings, stated_leaf
from certikmeans.stop import StopSignal


@final
class CenterWorker(AbstractWorker[Subproblem]):
    """Bounds boxes of centres: the sample bound, then the bound asked for.

    The sample bound converges as boxes shrink, so the best of both keeps the convergence of the
    paper's Theorem 2, whatever the other one is. It also says which groups can still be in which
    clusters, and the other one starts from there.

    Parameters
    ----------
    presolved : Presolved
    bound : AbstractBound
        May be the sample bound itself.
    setting : Setting
        Of the reduced problem.
    """

    def __init__(self, presolved: Presolved, bound: AbstractBound[Any], setting: Setting) -> None:
        self.name = bound.name
        self._presolved = presolved
        self._setting = setting
        self._sample = SampleBound()
        self._sample_state = self._sample.prepare(setting)
        self._bound = None if isinstance(bound, SampleBound) else bound
        self._state = None if self._bound is None else self._bound.prepare(setting)
        self._splitter = CenterSplitter(presolved.reduced)

    def root(self, found: BoundResult, stop: StopSignal) -> Answer[Subproblem]:
        """Answer for all boxes at their largest."""
        presolved, whole = self._presolved, Subproblem.root(self._presolved.reduced)
        return Answer(
            bound=presolved.restore_bound(found.value),
            leaf=stated_leaf(presolved, found.leaf, self._setting.keep_proof),
            restart=found.restart,
            split=self._splitter.choose(whole, found.mixture, 0),
            labels=labellings(presolved, self._setting.assigner, found.centers, stop),
            part=whole,
        )

    def evaluate(self, task: Task[Subproblem]) -> Answer[Subproblem]:
        """Bound a part, suggest labellings, choose how to split it."""
        part, presolved, setting = task.part, self._presolved, self._setting
        if is_empty(part):
            return Answer(np.inf, Leaf("infeasible"), None, None, (), part)
        cutoff = presolved.reduce_bound(task.target)
        sample = self._sample.evaluate(self._sample_state, part, cutoff, task.stop)
        part = Subproblem(part.lower, part.upper, sample.viable)
        found = self._bounded(part, sample, cutoff, task)
        split = None
        if found.value < cutoff:
            split = self._splitter.choose(part, found.mixture, task.depth)
        bound = presolved.restore_bound(found.value)
        if not setting.keep_proof:
            # Pairs of group and cluster were removed here for a labelling that costs at least the
            # target, and further up for one that costs at least a target that was no smaller.
            bound = min(bound, task.target)
        return Answer(
            bound=bound,
            leaf=stated_leaf(presolved, found.leaf, setting.keep_proof),
            restart=found.restart,
            split=split,
            labels=labellings(presolved, setting.assigner, found.centers, task.stop, task.cost),
            part=part,
        )

    def _bounded(
        self, part: Subproblem, sample: BoundResult, cutoff: float, task: Task[Subproblem]
    ) -> BoundResult:
        """The better of the sample bound and the one asked for."""
        if self._bound is None or sample.value >= cutoff:
            return replace(sample, restart=task.restart)
        other = self._bound.evaluate(self._state, part, cutoff, task.stop, task.restart)
        # An infinite value means that no viable labelling is left: none below the cutoff.
        value = min(cutoff, other.value)
        centers = (*other.centers, *sample.centers)
        if value > sample.value:
            return replace(other, value=value, centers=centers)
        return replace(other, value=sample.value, leaf=sample.leaf, centers=centers)

    def needed(self, labels: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
        """Nothing: labellings come from the centres that bounds suggest."""
        return labels[:0]

    def parts(self, part: Subproblem, split: Split) -> tuple[Subproblem, Subproblem]:
        """Cut the box of one centre."""
        assert isinstance(split, CenterSplit)
        return self._splitter.parts(part, split)

    def stated(self, part: Subproblem) -> Subproblem:
        """The boxes alone: who is viable is said in numbers of groups."""
        return Subproblem(part.lower, part.upper)

    def inherited(self, leaf: Leaf, part: Subproblem, child: Subproblem) -> Leaf:
        """The same: groups do not change, and boxes only shrink."""
        return leaf
