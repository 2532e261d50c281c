"""Heuristics without a bound: those of the paper, and scikit-learn's KMeans."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from benchmarks.datasets.base import Sizes
from benchmarks.solvers.base import AbstractSolver, SolverOutcome, tiny_problem
from certikmeans import Problem

if TYPE_CHECKING:
    from certikmeans.baselines import (
        BLPKMCC,
        COPKMeans,
        EncodeKMeansPost,
        PCKMeans,
        SensitivityCoreset,
    )

    Baseline = COPKMeans | EncodeKMeansPost | BLPKMCC | PCKMeans | SensitivityCoreset


RESTARTS = 100


class Heuristic(AbstractSolver):
    """A baseline with restarts. Proves nothing."""

    takes_cannot_links: ClassVar[bool] = True

    def __init__(self, restarts: int = RESTARTS) -> None:
        self.restarts = restarts

    @property
    def options(self) -> dict[str, Any]:
        """The number of restarts, where it is not the usual one."""
        return {} if self.restarts == RESTARTS else {"n_init": self.restarts}

    @abstractmethod
    def make(self, n_clusters: int, limit: float, seed: int) -> Baseline:
        """The estimator."""

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """Only what the method does not take."""
        if sizes.n_cannot_link and not self.takes_cannot_links:
            return "takes must-links only"
        return None

    def warm_up(self) -> None:
        """Compile."""
        problem = tiny_problem(cannot=self.takes_cannot_links)
        self._fitted(self.make(problem.n_clusters, 20.0, 0), problem)

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Fit."""
        began = time.perf_counter()
        model = self._fitted(self.make(problem.n_clusters, limit, seed), problem)
        seconds = time.perf_counter() - began
        found = bool(np.isfinite(model.inertia_))
        runs = int(getattr(model, "n_runs_", 1))
        failed = int(getattr(model, "n_failed_", 0))
        return SolverOutcome(
            labels=model.labels_ if found else None,
            lower_bound=None,
            nodes=None,
            seconds=seconds,
            stop_reason=str(model.status_),
            details={"runs": runs, "failed": failed},
        )

    def _fitted(self, model: Baseline, problem: Problem) -> Baseline:
        return model.fit(
            problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link
        )


@final
class CopKMeans(Heuristic):
    """COP-k-means, each restart in a random order: in the given order it fails more often."""

    name: ClassVar[str] = "cop-kmeans"

    def make(self, n_clusters: int, limit: float, seed: int) -> Baseline:
        """With restarts."""
        from certikmeans.baselines import COPKMeans

        return COPKMeans(
            n_clusters, n_init=self.restarts, shuffle=True, time_limit=limit, random_state=seed
        )


@final
class EncodePost(Heuristic):
    """encode-kmeans-post with centre updates, as its authors' script has it."""

    name: ClassVar[str] = "encode-kmeans-post"

    def make(self, n_clusters: int, limit: float, seed: int) -> Baseline:
        """With restarts."""
        from certikmeans.baselines import EncodeKMeansPost

        return EncodeKMeansPost(
            n_clusters,
            n_init=self.restarts,
            update_centers=True,
            time_limit=limit,
            random_state=seed,
        )


@final
class Blpkm(Heuristic):
    """BLPKM-CC as published."""

    name: ClassVar[str] = "blpkm-cc"

    def make(self, n_clusters: int, limit: float, seed: int) -> Baseline:
        """With restarts."""
        from certikmeans.baselines import BLPKMCC

        return BLPKMCC(n_clusters, n_init=self.restarts, time_limit=limit, random_state=seed)


@final
class Coreset(Heuristic):
    """Sensitivity sampling with the paper's c = 2, eps = 0.1, delta = 0.1."""

    name: ClassVar[str] = "sensitivity-coreset"
    takes_cannot_links: ClassVar[bool] = False

    def make(self, n_clusters: int, limit: float, seed: int) -> Baseline:
        """With restarts."""
        from certikmeans.baselines import SensitivityCoreset

        return SensitivityCoreset(
            n_clusters, n_init=self.restarts, time_limit=limit, random_state=seed
        )


@final
class PairsAtAPrice(Heuristic):
    """PCKMeans, which may break pairs; ten restarts, and a pair costs a hundred."""

    name: ClassVar[str] = "PCKMeans"

    def make(self, n_clusters: int, limit: float, seed: int) -> Baseline:
        """With restarts."""
        from certikmeans.baselines import PCKMeans

        return PCKMeans(n_clusters, w=100.0, n_init=10, time_limit=limit, random_state=seed)


# What a careful user spends today for no guarantee: scikit-learn's KMeans, without the pairs.

MAX_SECONDS = 1800.0  # it knows no time limit


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
        return MAX_SECONDS

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
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
        return SolverOutcome(labels, None, None, seconds, "converged")
