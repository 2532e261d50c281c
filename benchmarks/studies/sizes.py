"""Limits on cluster sizes: cost, gap and time beside k-means-constrained and published costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.sizes import (
    groups_with_demand,
    normal_with_limits,
    published,
    wine,
    with_pairs,
)
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, ResultTable, RunRequest, latest
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.solvers.sizes import KMeansConstrained, SizedLloyd
from benchmarks.studies import targets
from benchmarks.study import Scope, Study

OURS = "certikmeans"
LABELS_ONLY_GAP = 0.01  # where only labels are asked for
LLOYD = SizedLloyd()
ONE_START, TEN_STARTS = KMeansConstrained(1), KMeansConstrained(10)

INTRODUCTION = """# Cluster sizes

Written by `python -m benchmarks sizes` from `sizes.jsonl`. Every row has a target: a gap, (cost - \
lower bound) / cost, to be proven within its limit; where the target is 100 %, only labels are \
asked for. `k-means-constrained` is measured here where it is installed \
(`pip install k-means-constrained`), with its default of ten starts and one thread, and its cost \
is that of its labels, recomputed. Sizes of all labels are checked by the benchmark. Instances \
that have not been run are not listed.
"""
SECTIONS = {
    "published": (
        "Balanced sets",
        "`stored` is the cost of the best labels stored by the authors of two heuristics "
        "(Martin-Santamaria et al. 2022; Costa, Aloise and Mladenovic 2017), recomputed.",
    ),
    "plane": (
        "Normal clusters in the plane",
        "Clusters of equal size, or of which the largest has 1.5 times the mean size; minimum of "
        "0.8, maximum of 1.2 mean sizes, or equal sizes.",
    ),
    "pairs": ("Pairs and sizes", "n/4 must-links and n/4 cannot-links, sizes within 10 %."),
    "demand": ("Demand", "Uniform points in the plane; total demands within 5 % of their mean."),
}
LLOYD_TEXT = """One run from the same k-means++ start: ours with moves and swaps, and that of \
k-means-constrained. Its assignments minimise unsquared distances, rounded.
"""


def _recipe(section: str, title: str, gap: float, limit: float, make: Any) -> Recipe:
    return Recipe(title, make, {"section": section, "gap": gap, "limit": limit, "published": None})


def recipes(scope: Scope) -> Iterator[Recipe]:
    """Every instance on which bounds are computed."""
    if scope.small:
        make = partial(normal_with_limits, 300, 2, 3, "equal")
        yield _recipe("plane", "300 K=3, equal", 1e-2, 10.0, make)
        yield _recipe("pairs", "iris, pairs", 1e-3, 10.0, partial(with_pairs, "iris"))
        yield _recipe("demand", "60 K=3", 5e-2, 10.0, partial(groups_with_demand, 60, 3))
        return
    if scope.directory is not None:
        yield from published(scope.directory)
    yield _recipe("published", "wine", 1e-4, 10.0, wine)
    for n in (10_000, 100_000):
        for k in (3, 10):
            yield _recipe(
                "plane", f"{n:,} K={k}, natural sizes, equal", 1e-3, 60.0,
                partial(normal_with_limits, n, 2, k, "equal", spread=0.3),
            )  # fmt: skip
            for kind in ("minimum", "maximum", "equal"):
                make = partial(normal_with_limits, n, 2, k, kind, unequal=0.5)
                yield _recipe("plane", f"{n:,} K={k}, {kind}", 1e-2, 60.0, make)
    make = partial(normal_with_limits, 1_000_000, 2, 5, "equal")
    yield _recipe("plane", "1,000,000 K=5, equal", 1e-2, 180.0, make)
    for name in ("iris", "wine", "blobs"):
        yield _recipe("pairs", f"{name}, pairs", 1e-3, 30.0, partial(with_pairs, name))
    for n, k in ((200, 4), (1_000, 8)):
        make = partial(groups_with_demand, n, k)
        yield _recipe("demand", f"{n:,} K={k}", 5e-2, 30.0, make)


def lloyd_recipes(small: bool) -> Iterator[Recipe]:
    """Instances of single Lloyd runs."""
    shapes = ((500, 2, 5),) if small else (
        (1_000, 2, 10), (1_000, 10, 5), (10_000, 2, 10), (10_000, 10, 10), (23_000, 50, 10),
    )  # fmt: skip
    for n, d, k in shapes:
        make = partial(normal_with_limits, n, d, k, "equal", unequal=0.5, spread=3.0)
        yield _recipe("lloyd", f"{n:,} x {d} K={k}", 1.0, 60.0, make)


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Ours everywhere; k-means-constrained on the balanced sets and in single runs."""
    for one in recipes(scope):
        limit = one.facts["limit"]
        gap = min(one.facts["gap"], LABELS_ONLY_GAP)
        yield RunRequest(one, CertikmeansSolver(OURS, gap), limit)
        if one.facts["section"] == "published":
            yield RunRequest(one, TEN_STARTS, limit)
    for one in lloyd_recipes(scope.small):
        for solver in (LLOYD, ONE_START):
            yield RunRequest(one, solver, one.facts["limit"])


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``sizes.md``."""
    found = latest(rows)
    shown = [row for row in found.values() if row.solver == OURS]
    parts = [INTRODUCTION, targets.measured_on(list(found.values())), targets.summary(shown)]
    for section, (title, text) in SECTIONS.items():
        members = [row for row in shown if row.facts["section"] == section]
        if members:
            header = HEADER + (PUBLISHED_HEADER if section == "published" else [])
            lines = [_cells(row, found) for row in members]
            parts += [f"## {title}\n", f"{text}\n", show(header, lines) + "\n"]
    runs = [row for row in found.values() if row.solver == LLOYD.name]
    if runs:
        lines = [_lloyd_cells(row, found.get((row.instance, ONE_START.name))) for row in runs]
        parts += ["## Single Lloyd runs\n", LLOYD_TEXT, show(LLOYD_HEADER, lines) + "\n"]
    return write_page(directory / "sizes.md", parts)


HEADER = [
    "instance", "n", "d", "K", "limit (s)", "target %", "gap %", "target after (s)", "seconds",
    "verdict", "proven by", "cost",
]  # fmt: skip
PUBLISHED_HEADER = ["stored", "above stored %", "k-means-constrained", "above ours %", "its s"]
LLOYD_HEADER = [
    "instance", "our cost", "our s", "iterations", "k-means-constrained", "its s", "above ours %",
    "times faster",
]  # fmt: skip


def _cells(row: ResultRow, found: ResultTable) -> list[object]:
    when = targets.seconds_to(row, row.facts["gap"])
    shape: list[object] = [""] * 3
    if row.sizes is not None:
        shape = [f"{row.sizes.n_points:,}", row.sizes.n_features, row.sizes.n_clusters]
    cells = [
        row.instance, *shape, targets.asked_limit(row), percent(row.facts["gap"]),
        percent(row.gap), "" if when is None else f"{when:.1f}", _seconds(row),
        targets.verdict(row), targets.proven_by(row), _cost(row),
    ]  # fmt: skip
    if row.facts["section"] != "published":
        return cells
    known, other = row.facts["published"], found.get((row.instance, TEN_STARTS.name))
    above = ""
    if known is not None and row.cost is not None:
        above = percent(row.cost / known - 1.0)
    return [*cells, "" if known is None else f"{known:.8g}", above, *_other_cells(row, other)]


def _other_cells(row: ResultRow, other: ResultRow | None) -> list[object]:
    """Cost, excess over ours and seconds of k-means-constrained, or why there are none."""
    if other is None or other.cost is None or row.cost is None:
        said = "" if other is None else (other.note or other.stop_reason)
        return [said.strip().splitlines()[-1] if said else "", "", ""]
    return [_cost(other), percent(other.cost / row.cost - 1.0), _seconds(other)]


def _lloyd_cells(row: ResultRow, other: ResultRow | None) -> list[object]:
    cost, above, seconds = _other_cells(row, other)
    faster = ""
    if other is not None and other.seconds and row.seconds and other.cost is not None:
        faster = f"{other.seconds / row.seconds:.0f}"
    return [
        row.instance, _cost(row), _seconds(row, 2), row.details.get("iterations", ""), cost,
        seconds, above, faster,
    ]  # fmt: skip


def _seconds(row: ResultRow, digits: int = 1) -> str:
    return "" if row.seconds is None else f"{row.seconds:.{digits}f}"


def _cost(row: ResultRow) -> str:
    return "" if row.cost is None else f"{row.cost:.8g}"


STUDY = Study(
    "sizes",
    "limits on cluster sizes beside k-means-constrained, written to docs/benchmarks",
    rows,
    write_report,
    small_limit=8.0,
)
