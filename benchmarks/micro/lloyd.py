"""One Lloyd step with exact assignment, against one iteration of scikit-learn's Lloyd."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.pages import show
from certikmeans import Problem, StopSignal
from certikmeans.assignment import CannotLinkAssigner
from certikmeans.generate import gaussian_clusters, random_pairs
from certikmeans.presolve.pipeline import PresolvedProblem, presolve

N_CLUSTERS = 3
SHORT_RUN, LONG_RUN = 2, 42
STEPS = 5


@dataclass(frozen=True)
class ResultRow:
    """Milliseconds of one iteration, and how they compare."""

    n_points: int
    n_features: int
    n_pairs: int
    threads: int
    step_ms: float  # ours, with n_pairs cannot-links, from random points as centres
    crowded_ms: float  # ours, from centres so close together that nearly every pair clashes
    free_ms: float  # ours, without pairs
    sklearn_ms: float  # without pairs

    @property
    def ratio(self) -> float:
        """Our constrained step over scikit-learn's unconstrained iteration."""
        return self.step_ms / self.sklearn_ms


def _assigner(
    points: np.ndarray, pairs: Any, n_clusters: int
) -> tuple[CannotLinkAssigner, PresolvedProblem]:
    reduced = presolve(Problem.from_data(points, n_clusters, cannot_link=pairs), StopSignal())
    if not isinstance(reduced, PresolvedProblem) or reduced.feasible_labels is None:
        raise RuntimeError("the pairs come from labels, so a labelling exists")
    return CannotLinkAssigner(reduced.reduced, reduced.feasible_labels), reduced


def _milliseconds(action: Callable[[], object], repeats: int) -> float:
    action()
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        took.append(time.perf_counter() - began)
    return 1e3 * min(took)  # other processes only ever add


def _step_ms(
    points: np.ndarray, pairs: Any, start: np.ndarray, threads: int, repeats: int
) -> float:
    """One step, on average over the first steps of a Lloyd run."""
    assigner, reduced = _assigner(points, pairs, len(start))
    first = reduced.presolve_centers(start)
    labels = np.zeros(reduced.reduced.n_groups, dtype=np.int64)
    with ThreadPoolExecutor(threads) as executor:
        pool = executor if threads > 1 else None

        def steps() -> None:
            centers = first
            for _ in range(STEPS):
                step = assigner.step(centers, labels, executor=pool)
                centers = step.sums / step.masses[:, None]

        return _milliseconds(steps, repeats) / STEPS


def _sklearn_ms(points: np.ndarray, start: np.ndarray, threads: int, repeats: int) -> float:
    """One iteration: the difference of a long and a short run, so that set-up cancels."""
    with threadpool_limits(threads):
        _sklearn_run(points, start, SHORT_RUN)
        short, long = (
            min(_sklearn_run(points, start, m) for _ in range(repeats))
            for m in (SHORT_RUN, LONG_RUN)
        )
    return 1e3 * (long[0] - short[0]) / (long[1] - short[1])


def _sklearn_run(points: np.ndarray, start: np.ndarray, iterations: int) -> tuple[float, int]:
    """Seconds, and the iterations made."""
    model = KMeans(
        len(start), init=start, n_init=1, max_iter=iterations, tol=0.0, algorithm="lloyd"
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge
        model.fit(points)
    return time.perf_counter() - began, model.n_iter_


def _slow_start(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Centres close together, from which Lloyd takes long enough to be timed."""
    starts: list[tuple[int, int, np.ndarray]] = []
    for _ in range(20):
        middle = points[rng.integers(len(points))]
        start = middle + rng.normal(scale=0.01, size=(N_CLUSTERS, points.shape[1]))
        iterations = _sklearn_run(points, start, LONG_RUN)[1]
        starts.append((iterations, len(starts), start))
        if iterations == LONG_RUN:
            break
    return max(starts, key=lambda entry: entry[:2])[2]


def run(
    n_points: int = 210_000,
    n_features: int = 2,
    *,
    threads: int = 2,
    seed: int = 1,
    repeats: int = 30,
) -> ResultRow:
    """Measure steps with ``n_points / 4`` cannot-links against scikit-learn without any."""
    points, labels = gaussian_clusters(n_points, n_features, N_CLUSTERS, seed=seed)
    _, cannot = random_pairs(labels, 0, n_points // 4, seed=seed)
    rng = np.random.default_rng(seed)
    start = points[rng.choice(n_points, N_CLUSTERS, replace=False)]
    crowded = _slow_start(points, rng)
    return ResultRow(
        n_points,
        n_features,
        len(cannot),
        threads,
        _step_ms(points, cannot, start, threads, repeats),
        _step_ms(points, cannot, crowded, threads, repeats),
        _step_ms(points, None, start, threads, repeats),
        _sklearn_ms(points, crowded, threads, max(3, repeats // 3)),
    )


def main(arguments: argparse.Namespace) -> None:
    """Print the large instance with one and two threads, and the overhead on a small one."""
    n_points = 21_000 if arguments.small else 210_000
    rows = [run(n_points, threads=threads, seed=arguments.seed + 1) for threads in (1, 2)]
    header = ["n", "d", "CL", "threads", "step (ms)", "crowded", "no pairs", "sklearn", "ratio"]
    cells = [
        [
            f"{row.n_points:,}",
            row.n_features,
            f"{row.n_pairs:,}",
            row.threads,
            f"{row.step_ms:.3f}",
            f"{row.crowded_ms:.3f}",
            f"{row.free_ms:.3f}",
            f"{row.sklearn_ms:.3f}",
            f"{row.ratio:.2f}",
        ]
        for row in rows
    ]
    print(show(header, cells))
    points, labels = gaussian_clusters(150, 4, N_CLUSTERS, seed=1)
    _, cannot = random_pairs(labels, 0, 37, seed=1)
    step = 1e3 * _step_ms(points, cannot, points[:N_CLUSTERS], 1, 2000)
    assigner, reduced = _assigner(points, cannot, N_CLUSTERS)
    start = reduced.presolve_centers(points[:N_CLUSTERS])
    out = np.zeros(reduced.reduced.n_groups, dtype=np.int64)
    iterations = assigner.lloyd(start, out).iterations
    whole = 1e3 * _milliseconds(lambda: assigner.lloyd(start, out), 2000)
    print(f"\nn = 150, d = 4, 37 CL: one step {step:.0f} us,")
    print(f"a whole Lloyd run of {iterations} iterations {whole:.0f} us")
