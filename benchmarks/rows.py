"""One measured row: solve in a fresh process, check the answer, time scikit-learn beside it."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.environment import about
from benchmarks.objective import recomputed_cost, violated_pairs
from certikmeans import Problem, solve
from certikmeans.events import BoundStatistics, Event

TIME_LIMIT = 300.0


@dataclass(frozen=True)
class Row:
    """What was asked, what came out, what it took."""

    group: str
    name: str
    kind: str
    n: int
    d: int
    K: int
    n_must_link: int
    n_cannot_link: int
    cost: float
    lower_bound: float
    gap: float
    status: str
    stop_reason: str
    seconds: dict[str, float]
    kmeans_seconds: float | None
    statistics: dict[str, float]
    peak_gigabytes: float
    pairs_broken: int
    best_known: float | None = None
    requested_gap: float = 1e-3
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Total time over that of scikit-learn's KMeans with 100 starts; it proves nothing."""
        if self.kmeans_seconds is None:
            return None
        return self.seconds["total"] / self.kmeans_seconds


@dataclass(frozen=True)
class Request:
    """An instance by recipe, so that it can be made in another process."""

    group: str
    name: str
    kind: str
    make: Callable[[], Problem | None]
    best_known: float | None = None
    gap: float = 1e-3
    with_kmeans: bool = True


def measure(request: Request, seed: int) -> Row | None:
    """Run ``request`` in a fresh process; None if its data are absent."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure_here, request, seed).result()


def _warm_up(problem: Problem, seed: int) -> None:
    """Load compiled code and start threads, outside the clock, on every kind of pairs."""
    points = problem.points[:60]
    for cannot in ([(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0), (2, 3)]):
        small = Problem.from_data(points, 3, must_link=[(4, 5)], cannot_link=cannot)
        solve(small, seed=seed, time_limit=60)


def _measure_here(request: Request, seed: int) -> Row | None:
    problem = request.make()
    if problem is None:
        return None
    _warm_up(problem, seed)
    statistics: dict[str, float] = {}

    def listen(event: Event) -> None:
        if isinstance(event, BoundStatistics):
            for key, value in event.numbers.items():
                statistics[key] = statistics.get(key, 0.0) + value

    result = solve(problem, gap=request.gap, seed=seed, time_limit=TIME_LIMIT, callbacks=[listen])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    assert result.labels is not None
    cost = recomputed_cost(problem, result.labels)
    assert abs(cost - result.cost) <= 1e-9 * cost, "the cost claimed is not the cost recomputed"
    return Row(
        group=request.group,
        name=request.name,
        kind=request.kind,
        n=problem.n_points,
        d=problem.n_features,
        K=problem.n_clusters,
        n_must_link=len(problem.must_link),
        n_cannot_link=len(problem.cannot_link),
        cost=cost,
        lower_bound=result.lower_bound,
        gap=result.gap,
        status=str(result.status),
        stop_reason=str(result.stop_reason),
        seconds=result.seconds,
        kmeans_seconds=_kmeans_seconds(problem, seed) if request.with_kmeans else None,
        statistics=statistics,
        peak_gigabytes=peak,
        pairs_broken=violated_pairs(problem, result.labels),
        best_known=request.best_known,
        requested_gap=request.gap,
        about=about(seed),
    )


def _kmeans_seconds(problem: Problem, seed: int) -> float:
    """What a careful user spends today for no guarantee: 100 starts, without the pairs."""
    from sklearn.cluster import KMeans

    KMeans(2, n_init=1).fit(problem.points[:100])
    began = time.perf_counter()
    KMeans(problem.n_clusters, n_init=100, random_state=seed).fit(problem.points)
    return time.perf_counter() - began


def append(path: Path, row: Row) -> None:
    """Add a row to a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(dataclasses.asdict(row)) + "\n")


def load(path: Path) -> list[Row]:
    """Rows of a results file; of rows measured twice, the last."""
    if not path.is_file():
        return []
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    latest = {(r.group, r.name, r.kind, r.d, r.K, r.requested_gap): r for r in rows}
    return list(latest.values())
