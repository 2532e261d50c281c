"""Soft pairs of which some are wrong: objective, gap, time and agreement, beside PCKMeans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import BuiltInstance, Recipe
from benchmarks.datasets.soft import PCCC_LEVELS, PCCC_SIZES, blobs, pccc_noisy, small
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, ResultTable, RunRequest, latest
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.solvers.soft_pairs import HardWithoutConflicts, SoftPCKMeans
from benchmarks.studies import targets
from benchmarks.study import Scope, Study

OURS, PCK, HARD = "certikmeans", "PCKMeans", "hard pairs"
WRONG = (0.0, 0.1, 0.2)

INTRODUCTION = """# Soft pairs

Written by `python -m benchmarks soft` from `soft.jsonl`. A quarter of the points as must-links \
and as many cannot-links, drawn from the classes; a share of them has the wrong kind. Every pair \
may be violated at a price, `factor` times the total sum of squares divided by the number of \
points. The cost is the sum of squares and the prices paid, and the gap, (cost - lower bound) / \
cost, is about it. Every row has a target: a gap to be proven within its limit. The rows were \
measured beside other programs on the same two cores, so that times are longer than on a quiet \
machine.
"""
SECTIONS = {
    "small": "Tables of scikit-learn",
    "blobs": "Normal clusters that overlap (plane, standard deviation 1.2)",
    "pccc": "Noisy pairs of PCCC (appendicitis, 106 points)",
}
BESIDE = """The same instances by PCKMeans (20 restarts; a price of its own objective, which is \
half the sum of squares) and with hard pairs (a smallest set of pairs without which no conflict is \
left is removed first; then `solve`). `above` is the cost, prices included, relative to ours; ARI \
is the adjusted Rand index with the classes. The price is a modelling choice: a lower cost need \
not mean a higher ARI.
"""


def _recipe(
    section: str, title: str, gap: float, limit: float, make: Callable[..., BuiltInstance]
) -> Recipe:
    return Recipe(title, make, {"section": section, "gap": gap, "limit": limit})


def recipes(is_small: bool = False) -> Iterator[Recipe]:
    """Every instance."""
    if is_small:
        yield _recipe("small", "iris, 10 % wrong", 1e-3, 10.0, partial(small, "iris", 0.1))
        make = partial(blobs, 300, 3, 0.1)
        yield _recipe("blobs", "300 K=3, 10 % wrong", 1e-3, 10.0, make)
        return
    for name, gap, limit in (
        ("iris", 1e-3, 0.5), ("wine", 0.03, 60.0), ("breast cancer", 0.03, 60.0),
        ("digits", 0.2, 60.0),
    ):  # fmt: skip
        for wrong in WRONG:
            make = partial(small, name, wrong)
            yield _recipe("small", f"{name}, {100 * wrong:.0f} % wrong", gap, limit, make)
    for wrong in WRONG:
        for factor, gap, limit in ((0.25, 1e-3, 0.5), (10.0, 2e-3, 1.5)):
            make = partial(small, "iris", wrong, factor)
            title = f"iris, {100 * wrong:.0f} % wrong, factor {factor:g}"
            yield _recipe("small", title, gap, limit, make)
    for n, k, limit in ((2_000, 5, 2.0), (10_000, 5, 6.0), (100_000, 5, 45.0), (2_000, 10, 8.0)):
        for wrong in WRONG:
            make = partial(blobs, n, k, wrong)
            yield _recipe("blobs", f"{n:,} K={k}, {100 * wrong:.0f} % wrong", 1e-3, limit, make)
        if k == 5:
            make = partial(blobs, n, k, 0.1, 10.0)
            title = f"{n:,} K={k}, 10 % wrong, factor 10"
            yield _recipe("blobs", title, 2e-3, 3.0 * limit, make)
    for level in PCCC_LEVELS:
        for size in PCCC_SIZES:
            make = partial(pccc_noisy, level, size)
            yield _recipe("pccc", f"confidence {level}, {size} of the points", 1e-3, 30.0, make)


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Return every instance by all three methods, the published ones by ours alone."""
    for one in recipes(scope.small):
        limit = one.facts["limit"]
        published = one.facts["section"] == "pccc"
        if published and scope.directory is None:
            continue
        yield RunRequest(one, CertikmeansSolver(OURS, one.facts["gap"]), limit)
        if not published:
            others = max(limit, 5.0)
            yield RunRequest(one, SoftPCKMeans(), others)
            yield RunRequest(one, HardWithoutConflicts(), others)


HEADER = ["instance", "limit (s)", "target %", "gap %", "seconds", "verdict", "cost", "ARI", "by"]


def _cells(row: ResultRow) -> list[object]:
    return [
        row.instance, targets.asked_limit(row), percent(row.facts["gap"]), percent(row.gap),
        "" if row.seconds is None else f"{row.seconds:.1f}", targets.verdict(row),
        "" if row.cost is None else f"{row.cost:.7g}", _agreement(row), targets.proven_by(row),
    ]  # fmt: skip


def _agreement(row: ResultRow | None) -> str:
    return "" if row is None or "ARI" not in row.scores else f"{row.scores['ARI']:.2f}"


def _beside(found: ResultTable, ours: Sequence[ResultRow]) -> str:
    """The three methods side by side."""
    lines = []
    for mine in ours:
        line: list[object] = [mine.instance, _agreement(mine)]
        for name in (PCK, HARD):
            other = found.get((mine.instance, name))
            above = ""
            if other is not None and other.cost is not None and mine.cost:
                above = percent(other.cost / mine.cost - 1.0)
            line += [above, _agreement(other)]
            if other is not None and other.cost is None:
                line[-2] = other.note or other.stop_reason
        removed = found.get((mine.instance, HARD))
        line.append("" if removed is None else removed.details.get("removed", ""))
        if any((mine.instance, name) in found for name in (PCK, HARD)):
            lines.append(line)
    header = [
        "instance", "ARI", "PCKMeans above %", "ARI", "hard above %", "ARI", "pairs removed",
    ]  # fmt: skip
    return show(header, lines) + "\n"


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``soft.md``."""
    found = latest(rows)
    shown = [row for row in found.values() if row.solver == OURS]
    parts = [INTRODUCTION, targets.measured_on(shown), targets.summary(shown)]
    for section, title in SECTIONS.items():
        members = [row for row in shown if row.facts["section"] == section]
        if members:
            parts += [f"## {title}\n", show(HEADER, [_cells(row) for row in members]) + "\n"]
    parts += ["## Beside PCKMeans and hard pairs\n", BESIDE, _beside(found, shown)]
    return write_page(directory / "soft.md", parts)


STUDY = Study(
    "soft",
    "soft pairs of which some are wrong: cost, gap, time and agreement",
    rows,
    write_report,
    small_limit=10.0,
)
