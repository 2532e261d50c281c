"""Defaults without a time limit against runs with one: the gap over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import noise, standardized, standardized_file
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, relative_gap
from benchmarks.solvers.certikmeans_solver import GAP, CertikmeansSolver
from benchmarks.studies.targets import measured_on
from benchmarks.study import Scope, Study

MAX_SECONDS = 60.0
TIME_LIMITS = (3.0, 10.0, 30.0)
CHECKPOINTS = (1.0, 10.0, 60.0)
DEFAULTS = CertikmeansSolver("defaults", unlimited=True)
BUNDLED = {"iris": 3, "wine": 3, "diabetes": 3, "breast_cancer": 2, "digits": 10}
# Files of the data directory, with the number of classes where the file does not state it.
COMMON = {
    "seeds": ("seeds.npz", 3),
    "glass": ("sizes/instances/glass.csv", None),
    "thyroid": ("sizes/instances/thyroid.csv", None),
    "vertebral": ("instances/vertebral/data.txt", 3),
    "ionosphere": ("sizes/instances/ionosphere.csv", None),
    "vehicle": ("sizes/instances/vehicle.csv", None),
    "segment": ("highdim/segment.npz", 7),
    "satimage": ("highdim/satimage.npz", 6),
    "pen digits": ("highdim/pendigits.npz", 10),
    "HTRU2": ("htru2.npz", 2),
}

INTRODUCTION = f"""# Defaults: without a time limit, and with one

What `solve(problem)` and `ConstrainedKMeans(n_clusters=K).fit(X)` do when nothing but K is given. \
Written by `python -m benchmarks defaults` from `defaults.jsonl`; every feature is standardised, \
there are no pairs. A run without a limit ends by itself, and is interrupted by the harness after \
{MAX_SECONDS:g} s. Other programs ran on the same two cores during these measurements (load \
average 4 to 7), so the times are long: breast cancer takes 1.7 s on a quiet machine \
([many features](highdim.md)). Rows of one data set were measured one after the other, so they can \
be compared.
"""
OVER_TIME = f"""## Without a limit

The gap after 1, 10 and 60 s (that of the end, where the run ended before), the seconds until \
{percent(GAP)} % was proven, and the seconds of the whole run.
"""
WITH_LIMITS = f"""## Against time limits

Seconds until {percent(GAP)} % was proven, without a limit and with the limit that is best for it, \
and the gap in percent after the same time: of the run without a limit, and of the run with this \
limit.
"""


def instances() -> tuple[Recipe, ...]:
    """Standardised data sets of scikit-learn, common ones from files, noise without clusters."""
    return (
        *(
            Recipe(name.replace("_", " "), partial(standardized, name, k), {"section": "bundled"})
            for name, k in BUNDLED.items()
        ),
        *(
            Recipe(name, partial(standardized_file, file, k), {"section": "common"})
            for name, (file, k) in COMMON.items()
        ),
        Recipe("noise 1,500 x 8, K = 3", partial(noise, 1_500, 8, 3), {"section": "noise"}),
        Recipe("noise 1,500 x 8, K = 6", partial(noise, 1_500, 8, 6), {"section": "noise"}),
    )


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every instance with defaults and with time limits; common ones with the longest alone."""
    for one in instances()[: 2 if scope.small else None]:
        yield RunRequest(one, DEFAULTS, MAX_SECONDS)
        limits = (MAX_SECONDS,) if one.facts["section"] == "common" else TIME_LIMITS
        for limit in limits[: 1 if scope.small else None]:
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
    """A table of gaps over time, and one that compares with time limits."""
    header = ["data", "n x d, K", *(f"gap % after {s:g} s" for s in CHECKPOINTS)]
    over_time: list[list[object]] = []
    for row in rows:
        if row.solver == DEFAULTS.name:
            gaps = [percent(gap_at(row, seconds)) for seconds in CHECKPOINTS]
            seconds = [_seconds(seconds_to_gap(row)), _seconds(row.seconds)]
            over_time.append([row.instance, _sizes(row), *gaps, *seconds])
    parts = [INTRODUCTION, measured_on(rows), OVER_TIME]
    parts.append(show([*header, f"s to {percent(GAP)} %", "s in all"], over_time) + "\n")
    compared_limits = (*TIME_LIMITS[1:], MAX_SECONDS)
    found = {(row.instance, row.solver): row for row in rows}
    compared: list[list[object]] = []
    for name in dict.fromkeys(row.instance for row in rows if row.solver != DEFAULTS.name):
        if (name, DEFAULTS.name) not in found:
            continue
        line: list[object] = [name, _seconds(seconds_to_gap(found[name, DEFAULTS.name]))]
        limited = [row for row in rows if row.instance == name and row.solver != DEFAULTS.name]
        reached = [when for row in limited if (when := seconds_to_gap(row)) is not None]
        line.append(_seconds(min(reached, default=None)))
        for limit in compared_limits:
            timed = found.get((name, f"limit {limit:g} s"))
            without = gap_at(found[name, DEFAULTS.name], limit)
            line += ["", ""] if timed is None else [percent(without), percent(timed.gap)]
        compared.append(line)
    header = ["data", "s, no limit", "s, best limit"]
    for limit in compared_limits:
        header += [f"after {limit:g} s", f"limit {limit:g} s"]
    parts += [WITH_LIMITS, show(header, compared) + "\n"]
    return write_page(directory / "defaults.md", parts)


def _sizes(row: ResultRow) -> str:
    sizes = row.sizes
    return "" if sizes is None else f"{sizes.n_points:,} x {sizes.n_features}, {sizes.n_clusters}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


STUDY = Study(
    name="defaults",
    what="no time limit against time limits: the gap over time",
    rows=rows,
    write=write_report,
    small_limit=20.0,
    isolated=False,  # most rows take less time than warming up a process
)
