"""One Lloyd run with sizes from given centres, ours and that of k-means-constrained."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from benchmarks.datasets.base import Sizes
from benchmarks.solvers.base import AbstractSolver, SolverOutcome
from certikmeans import Problem, StopSignal
from certikmeans.assignment import make_assigner
from certikmeans.presolve.pipeline import PresolvedProblem, presolve

MAX_SECONDS = 1800.0  # k-means-constrained knows no time limit


def start_rows(problem: Problem, seed: int) -> np.ndarray:
    """Rows of a k-means++ start, the same for both."""
    from sklearn.cluster import kmeans_plusplus

    _, rows = kmeans_plusplus(problem.points, problem.n_clusters, random_state=seed)
    return np.asarray(rows)


@final
@dataclass(frozen=True)
class SizedLloyd(AbstractSolver):
    """Our Lloyd run with moves and swaps, presolve included."""

    @property
    def name(self) -> str:
        """Short."""
        return "our Lloyd"

    def warm_up(self) -> None:
        """Compile."""
        points = np.random.default_rng(0).normal(size=(30, 2))
        self.run(Problem.from_data(points, 3, size_min=10), 10.0, 0)

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Descend once."""
        rows = start_rows(problem, seed)
        began = time.perf_counter()
        done = presolve(problem, StopSignal(limit))
        if not isinstance(done, PresolvedProblem):
            return SolverOutcome(None, None, None, time.perf_counter() - began, "infeasible")
        assert done.feasible_labels is not None
        assigner = make_assigner(done.reduced, done.feasible_labels)
        centers = done.presolve_centers(problem.points[rows])
        found = assigner.lloyd(centers, done.feasible_labels.copy())
        labels = done.postsolve_labels(found.labels)
        seconds = time.perf_counter() - began
        details = {"iterations": found.iterations}
        return SolverOutcome(labels, None, None, seconds, "converged", details=details)


@final
@dataclass(frozen=True)
class KMeansConstrained(AbstractSolver):
    """k-means-constrained as installed; from the same start, or with its own ten starts."""

    starts: int = 1

    @property
    def name(self) -> str:
        """With the number of starts."""
        return f"k-means-constrained, {self.starts}"

    @property
    def options(self) -> dict[str, Any]:
        """The number of starts."""
        return {"n_init": self.starts}

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """Where it is not installed, and pairs."""
        if importlib.util.find_spec("k_means_constrained") is None:
            return "k-means-constrained is not installed"
        if sizes.n_must_link or sizes.n_cannot_link:
            return "takes no pairs"
        return None

    def seconds_needed(self, limit: float) -> float:
        """As long as it takes."""
        return MAX_SECONDS

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Fit."""
        from k_means_constrained import (  # type: ignore[import-not-found]
            KMeansConstrained as Estimator,
        )

        start: Any = "k-means++"
        if self.starts == 1:
            start = problem.points[start_rows(problem, seed)].copy()
        limits = {
            name: None if value is None else int(value[0])
            for name, value in (("size_min", problem.size_min), ("size_max", problem.size_max))
        }
        began = time.perf_counter()
        model = Estimator(
            problem.n_clusters, **limits, init=start, n_init=self.starts, random_state=seed
        )
        try:
            labels = model.fit_predict(problem.points.copy())
        except Exception as error:  # "There was an issue with the min cost flow input"
            seconds = time.perf_counter() - began
            return SolverOutcome(None, None, None, seconds, f"{type(error).__name__}: {error}")
        return SolverOutcome(
            np.asarray(labels, dtype=np.int64), None, None, time.perf_counter() - began, "converged"
        )
