"""What a careful user spends today for no guarantee: scikit-learn's KMeans, without the pairs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, final

from benchmarks.solvers.base import AbstractSolver, Answer, tiny_problem
from certikmeans import Problem

PATIENCE_SECONDS = 1800.0  # it knows no time limit


@final
@dataclass(frozen=True)
class KMeansStarts(AbstractSolver):
    """Many starts; knows no pairs and proves nothing."""

    starts: int = 100

    @property
    def name(self) -> str:
        """As one calls it."""
        return f"KMeans(n_init={self.starts})"

    @property
    def options(self) -> dict[str, Any]:
        """The number of starts."""
        return {"n_init": self.starts}

    def warm_up(self) -> None:
        """Load scikit-learn and start its threads."""
        self.run(tiny_problem(), 0.0, 0)

    def seconds_needed(self, limit: float) -> float:
        """As long as it takes."""
        return PATIENCE_SECONDS

    def run(self, problem: Problem, limit: float, seed: int) -> Answer:
        """Fit."""
        from sklearn.cluster import KMeans

        model = KMeans(problem.n_clusters, n_init=self.starts, random_state=seed)
        began = time.perf_counter()
        model.fit(problem.points, sample_weight=problem.weights)
        seconds = time.perf_counter() - began
        labels = model.labels_.astype("int64")
        return Answer(labels, None, None, seconds, "converged")
