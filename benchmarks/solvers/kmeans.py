"""What a careful user spends today for no guarantee: scikit-learn's KMeans, without the pairs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from benchmarks.solvers.base import AbstractSolver, Answer, tiny_problem
from certikmeans import Problem

PATIENCE_SECONDS = 1800.0  # it knows no time limit


@final
@dataclass(frozen=True)
class KMeansStarts(AbstractSolver):
    """Many starts, then swaps of a centre for a point; knows no pairs and proves nothing."""

    starts: int = 100
    swaps: int = 0

    @property
    def name(self) -> str:
        """As one calls it."""
        more = f", then {self.swaps} swaps" if self.swaps else ""
        return f"KMeans(n_init={self.starts}){more}"

    @property
    def options(self) -> dict[str, Any]:
        """The numbers of starts and swaps."""
        return {"n_init": self.starts} | ({"swaps": self.swaps} if self.swaps else {})

    def warm_up(self) -> None:
        """Load scikit-learn and start its threads."""
        self.run(tiny_problem(), 0.0, 0)

    def seconds_needed(self, limit: float) -> float:
        """As long as it takes."""
        return PATIENCE_SECONDS

    def run(self, problem: Problem, limit: float, seed: int) -> Answer:
        """Fit, then try swaps and keep those that help."""
        from sklearn.cluster import KMeans

        model = KMeans(problem.n_clusters, n_init=self.starts, random_state=seed)
        rng = np.random.default_rng(seed)
        began = time.perf_counter()
        model.fit(problem.points, sample_weight=problem.weights)
        for _ in range(self.swaps):
            centers = model.cluster_centers_.copy()
            centers[rng.integers(len(centers))] = problem.points[rng.integers(problem.n_points)]
            other = KMeans(problem.n_clusters, init=centers, n_init=1)
            other.fit(problem.points, sample_weight=problem.weights)
            model = min(model, other, key=lambda one: one.inertia_)
        seconds = time.perf_counter() - began
        labels = model.labels_.astype("int64")
        return Answer(labels, None, None, seconds, "converged")
