"""The worker of the tree on the centres: a part is one box per centre."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import AbstractBound, BoundResult
from certikmeans.bounds.determination import SampleDetermination
from certikmeans.bounds.settled import settled_bound
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import CenterSplit, Leaf
from certikmeans.search.center_splits import CenterSplitter, is_empty
from certikmeans.search.node import AbstractWorker, Answer, Split, Task
from certikmeans.search.rows import leaf_of

LLOYD_STEPS = 30


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
        # The checker of certificates repeats elimination, not the rule about nearest centres.
        self._determination = SampleDetermination(
            presolved.reduced, assigner, forced=not keep_proof
        )
        self._splitter = CenterSplitter(presolved.reduced)
        self._keep_proof = keep_proof

    def evaluate(self, task: Task[Subproblem]) -> Answer[Subproblem]:
        """Bound a part, suggest labellings, choose how to split it."""
        part, presolved = task.part, self._presolved
        if is_empty(part):
            return Answer(np.inf, Leaf("infeasible"), None, None, (), part)
        cutoff = presolved.reduce_bound(task.target)
        determined = self._determination.determine(part, cutoff, task.stop)
        part = Subproblem(part.lower, part.upper, determined.viable)
        sample = determined.lower
        if determined.n_fixed > 0 and sample < cutoff and not self._keep_proof:
            reduced = presolved.reduced
            sample = max(sample, settled_bound(reduced, self._assigner, part, task.stop))
        sample = min(cutoff, sample)  # labellings left out cost at least the cutoff
        found = BoundResult(sample, {"bound": "sample"}, task.restart)
        middle = 0.5 * (part.lower + part.upper)
        centers: tuple[NDArray[np.float64], ...] = (middle,)
        if self._bound is not None and sample < cutoff:
            # A leaf of a certificate carries multipliers alone, good for every set of groups.
            bare = Subproblem(part.lower, part.upper)
            asked = bare if self._keep_proof else part
            other = self._bound.evaluate(self._state, asked, cutoff, task.stop, task.restart)
            value = min(cutoff, other.value)
            centers = (*other.centers, middle)
            if value > sample:
                found = other
            found = BoundResult(
                max(sample, value), found.evidence, other.restart, mixture=other.mixture
            )
        split = None
        if found.value < cutoff:
            split = self._splitter.choose(part, found.mixture, task.depth)
        return Answer(
            bound=presolved.restore_bound(found.value),
            leaf=leaf_of(presolved, found.evidence, self._keep_proof),
            restart=found.restart,
            split=split,
            labels=self._labellings(centers, task),
            part=part,
        )

    def parts(self, part: Subproblem, split: Split) -> tuple[Subproblem, Subproblem]:
        """Cut the box of one centre."""
        assert isinstance(split, CenterSplit)
        return self._splitter.parts(part, split)

    def _labellings(
        self, centers: Sequence[NDArray[np.float64]], task: Task[Subproblem]
    ) -> tuple[NDArray[np.int64], ...]:
        """The paper's upper bound made exact: cheapest proper labels, then Lloyd from there."""
        found = []
        for places in centers:
            if task.stop.cause() is not None:
                break
            labels = np.full(self._presolved.reduced.n_groups, -1, dtype=np.int64)
            run = self._assigner.lloyd(places, labels, LLOYD_STEPS, stop=task.stop)
            found.append(self._presolved.restore_labels(run.labels))
        return tuple(found)
