"""The worker of the tree on pairs: a part is the problem with more must-links and cannot-links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import assigner_for
from certikmeans.bounds.base import AbstractBound, BoundResult, Setting
from certikmeans.bounds.doubt import Pair
from certikmeans.presolve.must_link import must_link_groups
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem.rules import refuse
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Leaf, PairSplit
from certikmeans.search.node import AbstractWorker, Answer, Split, Task
from certikmeans.search.pair_splits import pair_to_decide, undecided_pair
from certikmeans.search.upper import LLOYD_STEPS, labellings, stated_leaf, useful
from certikmeans.stop import StopSignal

COLOURING_SECONDS = 5.0


@final
@dataclass(frozen=True, slots=True)
class PairPart:
    """All labellings that also respect these pairs of original points."""

    together: tuple[Pair, ...] = ()
    apart: tuple[Pair, ...] = ()

    def of(self, presolved: Presolved) -> Presolved | None:
        """The problem with these pairs; None: they contradict each other."""
        return presolved.merged(_rows(self.together), _rows(self.apart))


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairRestart:
    """What a part of ``part`` starts from: in terms of the groups of ``part``."""

    part: PairPart
    inner: Any


@final
class PairWorker(AbstractWorker[PairPart]):
    """Adds the pairs to the reduced problem and bounds it as any other problem.

    Parameters
    ----------
    presolved : Presolved
        The whole.
    bound : AbstractBound
    setting : Setting
        Of the whole; every part has its own.
    """

    def __init__(self, presolved: Presolved, bound: AbstractBound[Any], setting: Setting) -> None:
        if not presolved.reduced.rules.only_apart:
            refuse(presolved.reduced.rules, "branching on pairs")
        self.name = bound.name
        self._presolved = presolved
        self._bound = bound
        self._setting = setting

    def root(self, found: BoundResult, stop: StopSignal) -> Answer[PairPart]:
        """Answer for the problem without further pairs."""
        presolved, setting = self._presolved, self._setting
        return Answer(
            bound=presolved.restore_bound(found.value),
            leaf=stated_leaf(presolved, found.leaf, setting.keep_proof),
            restart=PairRestart(PairPart(), found.restart),
            split=_chosen(presolved, found),
            labels=labellings(presolved, setting.assigner, found.centers, stop),
            part=PairPart(),
        )

    def evaluate(self, task: Task[PairPart]) -> Answer[PairPart]:
        """Bound a part, suggest labellings, choose how to split it."""
        part = task.part
        merged = part.of(self._presolved)
        presolved = None if merged is None else merged.coloured(task.stop, COLOURING_SECONDS)
        if presolved is None:
            return Answer(np.inf, Leaf("infeasible"), None, None, (), part)
        if presolved.witness is None:  # time is up, or colouring is too hard: nothing is known
            split = _restated(presolved, undecided_pair(presolved.reduced))
            return Answer(0.0, Leaf("trivial"), None, split, (), part)
        assigner = assigner_for(presolved.reduced, presolved.witness)
        run = assigner.lloyd(
            self._means(presolved, task.labels),
            np.full(presolved.reduced.n_groups, -1, dtype=np.int64),
            LLOYD_STEPS,
            stop=task.stop,
        )
        setting = replace(self._setting, problem=presolved.reduced, assigner=assigner)
        found = self._bounded(presolved, setting, task, run.centers)
        bound = presolved.restore_bound(found.value)
        return Answer(
            bound=bound,
            leaf=stated_leaf(presolved, found.leaf, setting.keep_proof),
            restart=PairRestart(part, found.restart),
            split=_chosen(presolved, found) if bound < task.target else None,
            labels=(
                *useful(presolved, [run], task.cost),
                *labellings(presolved, assigner, found.centers, task.stop, task.cost),
            ),
            part=part,
        )

    def needed(self, labels: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
        """Labels of the groups of the whole, in as few bytes as hold them."""
        small = np.min_scalar_type(self._presolved.reduced.n_clusters)
        return self._presolved.reduce_labels(labels).astype(small)

    def _means(self, presolved: Presolved, labels: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Means of a labelling of the groups of the whole that may break the added pairs."""
        own = labels.astype(np.int64)
        for step in presolved.steps[len(self._presolved.steps) :]:
            own = step.reduced_labels(own)
        sums, masses = presolved.reduced.cluster_sums(own)
        return sums / np.maximum(masses, 1e-300)[:, None]

    def parts(self, part: PairPart, split: Split) -> tuple[PairPart, PairPart]:
        """Add the pair as a must-link, or as a cannot-link."""
        assert isinstance(split, PairSplit)
        pair = (split.first, split.second)
        return (
            PairPart((*part.together, pair), part.apart),
            PairPart(part.together, (*part.apart, pair)),
        )

    def stated(self, part: PairPart) -> PairPart:
        """The same: pairs are of original points."""
        return part

    def inherited(self, leaf: Leaf, part: PairPart, child: PairPart) -> Leaf:
        """What proved the bound of a part, in terms of the groups of one of its parts."""
        if leaf.evidence is None or part.together == child.together:
            return leaf
        before, after = self._groups(part), self._groups(child)
        first = np.unique(before, return_index=True)[1]
        joined, n_joined = after[first], int(after.max()) + 1
        inside = self._within(after, n_joined)
        inside -= np.bincount(joined, self._within(before, len(first)), n_joined)
        return Leaf(leaf.kind, leaf.evidence.joined(joined, n_joined, inside))

    def _groups(self, part: PairPart) -> NDArray[np.int64]:
        """Group of the part for every group of the whole, both in the order of first points."""
        rows = np.empty(self._presolved.reduced.n_groups, dtype=np.int64)
        rows[np.argsort(self._presolved.first_points)] = np.arange(len(rows))
        pairs = rows[self._presolved.row_of_point[_rows(part.together)]]
        return must_link_groups(len(rows), pairs)

    def _within(self, groups: NDArray[np.int64], count: int) -> NDArray[np.float64]:
        """Sum of squares that every group of a part has between its groups of the whole."""
        order = np.argsort(self._presolved.first_points)
        reduced = self._presolved.reduced
        weights = reduced.weights[order]
        masses = np.bincount(groups, weights, count)
        total = np.zeros(count)
        for column in reduced.points[order].T:
            means = np.bincount(groups, weights * column, count) / masses
            total += np.bincount(groups, weights * (column - means[groups]) ** 2, count)
        return total

    def _bounded(
        self,
        presolved: Presolved,
        setting: Setting,
        task: Task[PairPart],
        centers: NDArray[np.float64],
    ) -> BoundResult:
        """The bound asked for."""
        reduced, bound = presolved.reduced, self._bound
        cutoff = presolved.reduce_bound(task.target)
        if cutoff <= 0.0:  # what groups cost inside is enough
            return BoundResult(0.0, Leaf("trivial"))
        inner = self._carried_over(task.restart, presolved, centers)
        whole = Subproblem.root(reduced)
        found = bound.evaluate(bound.prepare(setting), whole, cutoff, task.stop, inner)
        # The witness is in the part: an infinite bound can only mean "nothing below the cutoff".
        return replace(found, value=cutoff) if np.isposinf(found.value) else found

    def _carried_over(
        self, restart: PairRestart | None, after: Presolved, centers: NDArray[np.float64]
    ) -> Any:
        """What the larger part left, in terms of the groups of this one."""
        if restart is None or restart.inner is None:
            return None
        before = restart.part.of(self._presolved)
        assert before is not None  # it has been bounded
        joined = np.empty(before.reduced.n_groups, dtype=np.int64)
        kept = self._presolved.row_of_point < self._presolved.reduced.n_groups
        joined[before.row_of_point[kept]] = after.row_of_point[kept]
        return self._bound.carried_over(
            restart.inner, before.reduced, after.reduced, joined, centers
        )


def _rows(pairs: tuple[Pair, ...]) -> NDArray[np.int64]:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _chosen(presolved: Presolved, found: BoundResult) -> PairSplit | None:
    """Choose a pair of points; None if all are decided."""
    return _restated(presolved, pair_to_decide(presolved.reduced, found))


def _restated(presolved: Presolved, pair: Pair | None) -> PairSplit | None:
    """A pair of groups as a pair of original points, the first of each."""
    if pair is None:
        return None
    first, second = np.sort(presolved.first_points[list(pair)]).tolist()
    return PairSplit(first, second)
