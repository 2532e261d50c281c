"""Which rows belong to which table of the paper, and how long each may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.datasets.base import Sizes
from benchmarks.datasets.paper import KINDS, SYNTHETIC, UNCONSTRAINED, Instance
from benchmarks.results import RunRequest
from benchmarks.solvers.certikmeans_solver import CLUSTER, GROUPED
from benchmarks.solvers.exact_baselines import MAX_CURVE_POINTS as LARGEST_WITH_CURVE
from benchmarks.solvers.exact_baselines import SdpSolver
from benchmarks.solvers.heuristics import Coreset
from benchmarks.solvers.registry import HEURISTICS as HEURISTIC_SOLVERS
from benchmarks.solvers.registry import SOLVERS
from benchmarks.studies.paper.printed import (
    DENSITY,
    FRACTIONS,
    GROWTH,
    HEURISTICS,
    METRIC_SETS,
    TABLES,
)

EXPERIMENTS = (*TABLES, "density", "growth", "metrics", "heuristics")

LIMITS = {
    "certikmeans/cluster": 60.0,
    "certikmeans/grouped": 30.0,
    "scip": 15.0,
    "sdp": 30.0,
    **dict.fromkeys(HEURISTIC_SOLVERS, 8.0),
}
"""Seconds per row, such that everything fits into half an hour on two cores."""

DENSITY_LIMIT = 5.0  # for the paper's bound: the study has 24 instances, most of which close

OVERHEAD_SECONDS = 3.0  # start of a process, instance, compiled code
TYPICAL_SECONDS = {
    "certikmeans/cluster": 4.0,
    "sdp": 3.0,
    "cop-kmeans": 2.0,
    "sensitivity-coreset": 4.0,
}
"""What rows that usually end before their limit take."""


def requests(
    experiment: str,
    *,
    limit: float | None = None,
    limit_of: Mapping[str, float] | None = None,
    seed: int = 0,
    only: str | None = None,
) -> list[RunRequest]:
    """The rows of a table; ``limit`` replaces every default, ``limit_of`` those of some solvers."""
    found = []
    for instance, solver, default in _pairs(experiment):
        seconds = (limit_of or {}).get(solver, limit or default)
        request = RunRequest(instance, SOLVERS[solver], seconds, seed)
        if only is None or only.lower() in request.title.lower():
            found.append(request)
    return found


def _pairs(experiment: str) -> Iterator[tuple[Instance, str, float]]:
    if experiment in TABLES:
        kind, rows = TABLES[experiment]
        for dataset in rows:
            for solver in (CLUSTER.name, GROUPED.name, "scip", SdpSolver.name):
                yield Instance(dataset, kind), solver, LIMITS[solver]
            yield from _heuristics(Instance(dataset, kind))
    elif experiment == "density":
        for dataset, kind in DENSITY:
            for fraction in FRACTIONS:
                instance = Instance(dataset, kind, fraction)
                yield instance, CLUSTER.name, LIMITS[CLUSTER.name]
                yield instance, GROUPED.name, DENSITY_LIMIT
    elif experiment == "growth":
        for dataset in GROWTH:
            for solver in (CLUSTER.name, GROUPED.name):
                yield Instance(dataset, "ML"), solver, LIMITS[solver]
    elif experiment == "metrics":
        for dataset, k in METRIC_SETS.items():
            for kind in (UNCONSTRAINED, *KINDS):
                instance = Instance(dataset, kind, n_clusters=k)
                yield instance, CLUSTER.name, LIMITS[CLUSTER.name]
    elif experiment == "heuristics":
        for kind, table in HEURISTICS.items():
            for dataset in table:
                # The solver to compare with, in case Tables 1 to 3 were not run.
                yield Instance(dataset, kind), CLUSTER.name, LIMITS[CLUSTER.name]
                yield from _heuristics(Instance(dataset, kind))
    else:
        raise ValueError(f"unknown experiment {experiment!r}")


def _heuristics(instance: Instance) -> Iterator[tuple[Instance, str, float]]:
    for solver in HEURISTIC_SOLVERS:
        if solver != Coreset.name or "CL" not in instance.kind:
            yield instance, solver, LIMITS[solver]


def estimate_minutes(pending: Sequence[RunRequest]) -> tuple[float, float]:
    """Minutes that the rows will probably take, and at most if each uses up its limit."""
    likely = most = 0.0
    for request in pending:
        if not isinstance(request.instance, Instance):
            continue  # sizes are known beforehand for the paper's alone
        solver, sizes = request.solver, nominal_sizes(request.instance)
        limit = request.limit
        if solver.skip(sizes, limit) is not None:
            continue
        if sizes.n_points <= LARGEST_WITH_CURVE:
            limit = solver.seconds_needed(limit)
        overhead = OVERHEAD_SECONDS + sizes.n_points / 3e5
        likely += overhead + min(limit, TYPICAL_SECONDS.get(solver.name, limit))
        most += overhead + limit
    return likely / 60, most / 60


def nominal_sizes(instance: Instance) -> Sizes:
    """Sizes as the paper states them, before anything is read; no pair of the drawn ones closes a
    cycle.

    >>> nominal_sizes(Instance("Syn-1200", "ML"))
    Sizes(n_points=1200, n_features=2, n_clusters=3, n_must_link=300, n_cannot_link=0, n_groups=900)
    """
    if instance.dataset.startswith(SYNTHETIC):
        n, d = int(instance.dataset.removeprefix(SYNTHETIC)), 2
    else:
        n, d = _SIZES[instance.dataset]
    share = n // instance.fraction
    must = share if "ML" in instance.kind else 0
    cannot = share if "CL" in instance.kind else 0
    return Sizes(n, d, instance.n_clusters, must, cannot, n_groups=n - must)


_SIZES = {
    "Iris": (150, 4),
    "Seeds": (210, 7),
    "Hemi": (1_955, 7),
    "PR2392": (2_392, 2),
    "RDS_CNT": (10_000, 3),
    "HTRU2": (17_898, 8),
    "SPNET3D_5": (50_000, 3),
    "Skin_8": (80_000, 3),
    "URBANGB": (360_177, 2),
    "SPNET3D": (434_874, 3),
}
"""Points and features."""
