"""Solve, write, check: how large certificates are, and how long checking takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import BuiltInstance, Recipe
from benchmarks.datasets.paper import KINDS
from benchmarks.datasets.published import published_instances
from benchmarks.datasets.recipes import (
    noise,
    real_with_pairs,
    standardized,
    synthetic_with_pairs,
)
from benchmarks.pages import show, write_page
from benchmarks.results import ResultRow, RunRequest, commits, latest
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.study import Scope, Study

TIME_LIMIT = 300.0
MATRIX_LIMIT = 20.0  # where the semidefinite bound proves: it may have to branch
SOLVER = CertikmeansSolver(certify=True)


def _synthetic(n: int, kind: str) -> Recipe:
    known = {"name": f"synthetic-{n}", "kind": kind}
    return Recipe(f"synthetic-{n} {kind}", partial(synthetic_with_pairs, n, kind, 2, 3), known)


def _matrix(name: str, make: Callable[..., BuiltInstance]) -> Recipe:
    return Recipe(f"{name} none", make, {"name": name, "kind": "none"})


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every row."""
    for one in _instances(scope.directory, scope.small):
        limit = MATRIX_LIMIT if one.facts["kind"] == "none" else TIME_LIMIT
        yield RunRequest(one, SOLVER, limit)


def _instances(directory: Path | None, small: bool) -> Iterator[Recipe]:
    if directory is not None and not small:
        for one in published_instances(directory):
            yield one.recipe(f"{one.name} published", name=one.name, kind="published")
        for name in ("hemi", "pr2392", "rds_cnt", "htru2", "skin_8"):
            for kind in KINDS:
                make = partial(real_with_pairs, name, kind)
                yield Recipe(f"{name} {kind}", make, {"name": name, "kind": kind})
    for n in (1_200,) if small else (12_000, 21_000, 210_000):
        for kind in ("CL", "ML+CL"):
            yield _synthetic(n, kind)
    for n in (2_100,) if small else (210_000, 1_500_000):
        yield _synthetic(n, "ML")
    for n, d in ((20, 10),) if small else ((60, 10),):
        yield _matrix(f"normal-{n}", partial(noise, n, d, 3))
    if not small:
        yield _matrix("standardised wine", partial(standardized, "wine", 3))


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``certificates.md``; of rows measured twice, the last."""
    found = [row for row in latest(rows).values() if "certificate" in row.details]
    lost = [row for row in latest(rows).values() if row.details.get("certificate") is None]
    parts = [
        "# Certificates\n",
        f"Written by `python -m benchmarks certificates` from `certificates.jsonl`, commit "
        f"{commits(found)}. `bound` is the one that the proven value came "
        f"from. Limits: {MATRIX_LIMIT:g} s where there are no pairs, {TIME_LIMIT:g} s elsewhere. "
        "`bounds s` is the solver's own time for bounds and search, `check s` that of the checker, "
        "on the same machine, compilation excluded.\n",
        _table(found) + "\n",
        *[f"No answer: {row.instance}, {row.stop_reason} {row.note}\n" for row in lost],
    ]
    return write_page(directory / "certificates.md", parts)


def bounds_seconds(row: ResultRow) -> float:
    """The solver's own time for bounds and search."""
    stages = row.details["stages"]
    return sum(float(stages.get(stage, 0.0)) for stage in ("bounds", "search"))


def _table(rows: Sequence[ResultRow]) -> str:
    header = ["instance", "pairs", "n", "d", "K", "bound", "leaves", "gap %", "verdict", "bytes",
              "bytes per point beyond multipliers", "solve s", "bounds s", "check s",
              "check / bounds", "boxes"]  # fmt: skip
    return show(header, [_cells(row) for row in rows])


def _cells(row: ResultRow) -> list[object]:
    paper, bound, sizes = row.details["certificate"], row.details["bound"], row.sizes
    assert sizes is not None
    gap, size, proving = paper.get("gap"), paper["size"], bounds_seconds(row)
    spare = (size - 8 * paper.get("groups", 0)) / sizes.n_points
    return [
        row.facts["name"], row.facts["kind"], f"{sizes.n_points:,}", sizes.n_features,
        sizes.n_clusters, bound, paper.get("leaves", 0), "" if gap is None else f"{100 * gap:.4f}",
        "accepted" if paper["accepted"] else f"REFUSED: {paper['reason']}", f"{size:,}",
        "" if bound == "sdp" else f"{spare:.2f}", f"{row.seconds:.2f}",
        f"{proving:.3f}", f"{paper['check_seconds']:.3f}",
        f"{paper['check_seconds'] / max(proving, 1e-9):.2f}", f"{paper.get('boxes', 0):,}",
    ]  # fmt: skip


STUDY = Study(
    "certificates",
    "size of certificates and time to check them",
    rows,
    write_report,
    small_limit=20.0,
)
