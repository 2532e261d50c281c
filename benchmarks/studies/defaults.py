"""Defaults without a time limit against runs with one: the gap over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import noise, standardized
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, relative_gap
from benchmarks.solvers.certikmeans_solver import GAP, CertikmeansSolver
from benchmarks.study import Scope, Study

MAX_SECONDS = 60.0
TIME_LIMITS = (3.0, 10.0, 30.0)
CHECKPOINTS = (1.0, 10.0, 60.0)
DEFAULTS = CertikmeansSolver("defaults", unlimited=True)

INTRODUCTION = f"""# Defaults

Written by `python -m benchmarks defaults` from `defaults.jsonl`. `defaults` is `solve(problem)` \
without a time limit, interrupted by the harness after {MAX_SECONDS:g} s; the other rows have the \
time limit of their name. Columns: the gap after 1, 10 and 60 s, and the seconds until \
{percent(GAP)} was proven.
"""


def instances() -> tuple[Recipe, ...]:
    """Standardised data sets that come with scikit-learn, and noise without clusters."""
    sets = {"iris": 3, "wine": 3, "diabetes": 3, "breast_cancer": 2, "digits": 10}
    return (
        *(
            Recipe(name.replace("_", " "), partial(standardized, name, k), {"section": "bundled"})
            for name, k in sets.items()
        ),
        Recipe("noise 1,500 x 8, K = 3", partial(noise, 1_500, 8, 3), {"section": "noise"}),
        Recipe("noise 1,500 x 8, K = 6", partial(noise, 1_500, 8, 6), {"section": "noise"}),
    )


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every instance with defaults, then with each time limit."""
    for one in instances()[: 2 if scope.small else None]:
        yield RunRequest(one, DEFAULTS, MAX_SECONDS)
        for limit in TIME_LIMITS[: 1 if scope.small else None]:
            yield RunRequest(one, CertikmeansSolver(f"limit {limit:g} s"), limit)


def gap_at(row: ResultRow, seconds: float) -> float | None:
    """The gap of a row after so many seconds; its last one where the run had ended before."""
    known = [(cost, bound) for when, cost, bound in row.trace if when <= seconds]
    return relative_gap(*known[-1]) if known else None


def seconds_to_gap(row: ResultRow, gap: float = GAP) -> float | None:
    """Seconds until the gap was proven, or None."""
    for when, cost, bound in row.trace:
        reached = relative_gap(cost, bound)
        if reached is not None and reached <= gap:
            return when
    return None


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """A line per run."""
    header = ["data", "run", *(f"gap after {s:g} s" for s in CHECKPOINTS), "seconds to 0.1 %"]
    lines: list[list[object]] = []
    for row in rows:
        gaps = [gap_at(row, seconds) for seconds in CHECKPOINTS]
        closed = seconds_to_gap(row)
        lines.append(
            [
                row.instance,
                row.solver,
                *("" if gap is None else percent(gap) for gap in gaps),
                "" if closed is None else f"{closed:.2f}",
            ]
        )
    return write_page(directory / "defaults.md", [INTRODUCTION, show(header, lines) + "\n"])


STUDY = Study(
    name="defaults",
    what="no time limit against time limits: the gap over time",
    rows=rows,
    write=write_report,
    small_limit=20.0,
)
