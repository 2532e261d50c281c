"""The worker of the tree on pairs: a part is the problem with more must-links and cannot-links."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import BoundResult, Mixture
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.must_link import must_link_groups
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.problem.numbering import number_by_appearance
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Leaf, PairSplit
from certikmeans.search.bounding import BoundMaker
from certikmeans.search.node import AbstractWorker, Answer, Split, Task
from certikmeans.search.pair_splits import Pair, doubtful_pair, undecided_pair
from certikmeans.search.rows import LLOYD_STEPS, first_points, labellings, leaf_of

COLOURING_SECONDS = 5.0


@final
@dataclass(frozen=True, slots=True)
class PairPart:
    """All labellings that also respect these pairs of original points."""

    together: tuple[Pair, ...] = ()
    apart: tuple[Pair, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairRestart:
    """What a part of the part starts from: in terms of the groups of the larger one."""

    presolved: Presolved
    inner: Any


@final
class PairWorker(AbstractWorker[PairPart]):
    """Presolves the problem with the added pairs and bounds it as any other problem.

    Parameters
    ----------
    problem : Problem
        As stated.
    maker : BoundMaker
        Makes the bound for a presolved part.
    executor : concurrent.futures.Executor, optional
        For what the bound does inside; only where the worker itself is not a task of it.
    on_bound : callable, optional
        Told what is proven of the part on the way, as stated. Likewise.
    """

    def __init__(
        self,
        problem: Problem,
        maker: BoundMaker,
        executor: Executor | None = None,
        on_bound: Callable[[float], None] | None = None,
        *,
        keep_proof: bool = False,
    ) -> None:
        self.name = maker.name
        self._problem = problem
        self._maker = maker
        self._executor = executor
        self._on_bound = on_bound
        self._keep_proof = keep_proof

    def evaluate(self, task: Task[PairPart]) -> Answer[PairPart]:
        """Bound a part, suggest labellings, choose how to split it."""
        part = task.part
        stated = self._stated(part)
        presolved = presolve(
            stated, task.stop, feasibility_seconds=COLOURING_SECONDS, explanation_seconds=0.0
        )
        if isinstance(presolved, InfeasibilityProof):
            return Answer(np.inf, Leaf("infeasible"), None, None, (), part)
        if presolved.witness is None:  # time is up, or colouring is too hard: nothing is known
            split = _restated(presolved, undecided_pair(presolved.reduced))
            return Answer(0.0, Leaf("trivial"), None, split, (), part)
        assigner = Assigner(presolved.reduced, presolved.witness)
        run = assigner.lloyd(
            _means(presolved, task.labels),
            np.full(presolved.reduced.n_groups, -1, dtype=np.int64),
            LLOYD_STEPS,
            stop=task.stop,
        )
        found = self._bounded(presolved, assigner, task, run.centers)
        split = None
        if presolved.restore_bound(found.value) < task.target:
            split = self.choose(presolved, found.mixture)
        return Answer(
            bound=presolved.restore_bound(found.value),
            leaf=leaf_of(presolved, found.evidence, self._keep_proof),
            restart=PairRestart(presolved, found.restart),
            split=split,
            labels=(
                presolved.restore_labels(run.labels),
                *labellings(presolved, assigner, found.centers, task.stop),
            ),
            part=part,
        )

    def choose(self, presolved: Presolved, mixture: Mixture | None) -> PairSplit | None:
        """Choose a pair of points; None if all are decided."""
        pair = doubtful_pair(presolved.reduced, mixture)
        pair = undecided_pair(presolved.reduced) if pair is None else pair
        return _restated(presolved, pair)

    def parts(self, part: PairPart, split: Split) -> tuple[PairPart, PairPart]:
        """Add the pair as a must-link, or as a cannot-link."""
        assert isinstance(split, PairSplit)
        pair = (split.first, split.second)
        return (
            PairPart((*part.together, pair), part.apart),
            PairPart(part.together, (*part.apart, pair)),
        )

    def inherited(self, leaf: Leaf, part: PairPart, child: PairPart) -> Leaf:
        """Multipliers of groups that have become one add up, less what it costs inside.

        Then the joined group is worth to every centre what its parts were worth together. Those
        of a matrix add up as they are: what it costs inside is taken out by the proof itself.
        """
        known = leaf.multipliers is not None or leaf.matrix is not None
        if not known or part.together == child.together:
            return leaf
        before, after = (self._groups(one) for one in (part, child))
        first = first_points(before)
        joined = after[first]
        n_joined = int(after.max()) + 1
        if leaf.matrix is not None:
            from certikmeans.bounds.sdp.safe import joined_multipliers

            return Leaf(leaf.bound, matrix=joined_multipliers(leaf.matrix, joined, n_joined))
        inside = self._within(after, n_joined)
        inside -= np.bincount(joined, self._within(before, len(first)), n_joined)
        lam = np.bincount(joined, leaf.multipliers, n_joined).astype(np.float64)
        return Leaf(leaf.bound, lam - np.maximum(inside, 0.0))

    def _groups(self, part: PairPart) -> NDArray[np.int64]:
        """Group of every point, numbered by the smallest point of each."""
        pairs = np.array(part.together, dtype=np.int64).reshape(-1, 2)
        groups = must_link_groups(
            self._problem.n_points, np.concatenate([self._problem.must_link, pairs])
        )
        return number_by_appearance(groups)

    def _within(self, groups: NDArray[np.int64], count: int) -> NDArray[np.float64]:
        """Sum of squares inside every group."""
        points, weights = self._problem.points, self._problem.weights
        masses = np.bincount(groups, weights, count)
        total = np.zeros(count)
        for column in points.T:
            means = np.bincount(groups, weights * column, count) / masses
            total += np.bincount(groups, weights * (column - means[groups]) ** 2, count)
        return total

    def _stated(self, part: PairPart) -> Problem:
        problem = self._problem
        must = np.concatenate([problem.must_link, np.array(part.together).reshape(-1, 2)])
        cannot = np.concatenate([problem.cannot_link, np.array(part.apart).reshape(-1, 2)])
        return Problem.from_data(
            problem.points,
            problem.n_clusters,
            must_link=must.astype(np.int64),
            cannot_link=cannot.astype(np.int64),
            weights=problem.weights,
        )

    def _bounded(
        self,
        presolved: Presolved,
        assigner: Assigner,
        task: Task[PairPart],
        centers: NDArray[np.float64],
    ) -> BoundResult:
        """The bound asked for. Without boxes, the sample bound is what groups cost inside."""
        reduced = presolved.reduced
        cutoff = presolved.reduce_bound(task.target)
        bound = self._maker.make(assigner, self._executor, self._reporter(presolved))
        if bound is None or cutoff <= 0.0:
            return BoundResult(0.0, {"bound": "trivial"})
        before: PairRestart | None = task.restart
        inner = None
        if before is not None and before.inner is not None:
            inner = self._maker.translate(before.inner, before.presolved, presolved, centers)
        root = Subproblem.root(reduced)
        found = bound.evaluate(bound.prepare(reduced), root, cutoff, task.stop, inner)
        # The witness is in the part: an infinite bound can only mean "nothing below the cutoff".
        return replace(found, value=cutoff) if np.isposinf(found.value) else found

    def _reporter(self, presolved: Presolved) -> Callable[[float], None] | None:
        tell = self._on_bound
        return None if tell is None else lambda value: tell(presolved.restore_bound(value))


def _restated(presolved: Presolved, pair: Pair | None) -> PairSplit | None:
    """A pair of groups as a pair of original points, the first of each."""
    if pair is None:
        return None
    first, second = np.sort(first_points(presolved.row_of_point)[list(pair)]).tolist()
    return PairSplit(first, second)


def _means(presolved: Presolved, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Means of a labelling of the points that may break the added pairs."""
    sums, masses = presolved.reduced.cluster_sums(presolved.reduce_labels(labels))
    return sums / np.maximum(masses, 1e-300)[:, None]
