"""Other ways with pairs that may be wrong: PCKMeans, and hard pairs without the conflicts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from benchmarks.solvers.base import AbstractSolver, SkipError, SolverOutcome, tiny_problem
from certikmeans import Constraints, Problem, solve


@final
@dataclass(frozen=True)
class SoftPCKMeans(AbstractSolver):
    """PCKMeans with the penalties of the problem.

    It minimises half the sum of squares, and has one price for all pairs: half the mean penalty.
    """

    restarts: int = 20

    @property
    def name(self) -> str:
        """As published."""
        return "PCKMeans"

    @property
    def options(self) -> dict[str, Any]:
        """The number of restarts."""
        return {"n_init": self.restarts}

    def warm_up(self) -> None:
        """Compile."""
        self._labels(tiny_problem(), 1.0, 20.0, 0)

    def seconds_needed(self, limit: float) -> float:
        """A pass is not interrupted."""
        return 4.0 * limit + 60.0

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Fit with every soft pair."""
        soft = Problem.from_data(
            problem.points,
            problem.n_clusters,
            must_link=np.concatenate([problem.must_link, problem.soft_must_link.pairs]),
            cannot_link=np.concatenate([problem.cannot_link, problem.soft_cannot_link.pairs]),
        )
        penalties = np.concatenate(
            [problem.soft_must_link.penalties, problem.soft_cannot_link.penalties]
        )
        began = time.perf_counter()
        labels = self._labels(soft, 0.5 * float(penalties.mean()), limit, seed)
        return SolverOutcome(labels, None, None, time.perf_counter() - began, "converged")

    def _labels(self, problem: Problem, price: float, limit: float, seed: int) -> Any:
        from certikmeans.baselines import PCKMeans

        model = PCKMeans(
            problem.n_clusters,
            w=price,
            n_init=self.restarts,
            time_limit=limit,
            random_state=seed,
        )
        return model.fit(
            problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link
        ).labels_


@final
@dataclass(frozen=True)
class HardWithoutConflicts(AbstractSolver):
    """Every soft pair as a hard one, without a smallest set of pairs that removes all conflicts.

    Half of the limit is for the set, half for the clustering.
    """

    @property
    def name(self) -> str:
        """What is done."""
        return "hard pairs"

    def warm_up(self) -> None:
        """Compile."""
        solve(tiny_problem(), time_limit=1.0)

    def seconds_needed(self, limit: float) -> float:
        """The search for the set looks at its limit now and then."""
        return 2.0 * limit + 30.0

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Remove pairs, then solve; the labels are judged with the penalties of the problem."""
        began = time.perf_counter()
        pairs = Constraints(
            np.concatenate([problem.must_link, problem.soft_must_link.pairs]),
            np.concatenate([problem.cannot_link, problem.soft_cannot_link.pairs]),
            n_points=problem.n_points,
        )
        found = pairs.conflicts(problem.n_clusters, time_limit=limit / 2)
        kept = found.cleaned(pairs)
        result = solve(
            Problem.from_data(
                problem.points,
                problem.n_clusters,
                must_link=kept.must_link,
                cannot_link=kept.cannot_link,
            ),
            time_limit=limit / 2,
            seed=seed,
        )
        if result.labels is None:
            raise SkipError("no labelling without conflicts was found")
        details = {"removed": found.size}
        seconds = time.perf_counter() - began
        return SolverOutcome(result.labels, None, None, seconds, "converged", details=details)
