"""Many cannot-links, cannot-link sets, many partial labels: cost, gap and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import BuiltInstance, Recipe
from benchmarks.datasets.constrained import (
    PCCC_COSTS,
    PCCC_SIZES,
    PCCC_SYNTHETIC,
    cannot_link_sets,
    full_sets,
    many_cannot_links,
    partly_labelled,
    pccc,
)
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, latest
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.studies import targets
from benchmarks.study import Scope, Study

OURS = "certikmeans"

INTRODUCTION = """# Dense cannot-links and sets

Written by `python -m benchmarks constraints` from `constraints.jsonl`. Every row has a target: a \
gap, (cost - lower bound) / cost, to be proven within its limit. `classes` is the cost of the \
classes from which the pairs were drawn, which is a feasible labelling, and `published` the best \
cost printed for the instance. Labels are checked by the benchmark itself.
"""
SECTIONS = {
    "links": (
        "Cannot-links per point",
        "Normal clusters that overlap (standard deviation 1.6, centres in a cube of side 10).",
    ),
    "cloud": (
        "Ten clusters in one cloud",
        "The same in the plane with K = 10: most clusters overlap several others.",
    ),
    "pccc": ("Published pairs (PCCC)", "Baumann and Hochbaum 2023, with Gurobi, up to 857 s."),
    "sets": ("Cannot-link sets", "Sets of 2 to K points, of which no two share a cluster."),
    "full": ("Full sets", "Every set has a point in every cluster; unit vectors with noise."),
    "labels": ("Partial labels", "Classes of 5 % of the points."),
}


def _recipe(
    section: str, title: str, gap: float, limit: float, make: Callable[..., BuiltInstance],
    published: float | None = None,
) -> Recipe:  # fmt: skip
    known = {"section": section, "gap": gap, "limit": limit, "published": published}
    return Recipe(title, make, known)


def recipes(small: bool = False) -> Iterator[Recipe]:
    """Every instance."""
    if small:
        make = partial(many_cannot_links, 200, 2, 3, 2.0)
        yield _recipe("links", "200 x 2 K=3, 2n", 1e-3, 10.0, make)
        yield _recipe("sets", "200 x 2 K=5", 1e-3, 10.0, partial(cannot_link_sets, 200, 2, 5, 5))
        return
    for d, k in ((2, 3), (5, 5)):
        for per_point in (1, 2, 5, 10, 20):
            make = partial(many_cannot_links, 2_000, d, k, per_point)
            yield _recipe("links", f"2,000 x {d} K={k}, {per_point}n", 1e-3, 10.0, make)
    for d, k in ((2, 3), (5, 5)):
        for per_point in (2, 5):
            make = partial(many_cannot_links, 20_000, d, k, per_point)
            yield _recipe("links", f"20,000 x {d} K={k}, {per_point}n", 1e-3, 60.0, make)
    for per_point, gap in ((1, 1e-2), (2, 0.02), (5, 0.07), (10, 0.27)):
        make = partial(many_cannot_links, 2_000, 2, 10, per_point)
        yield _recipe("cloud", f"2,000 x 2 K=10, {per_point}n", gap, 60.0, make)
    for (name, size), cost in PCCC_SYNTHETIC.items():
        gap = 0.02 if "k50" in name else (5e-3 if "n5000" in name else 1e-3)
        yield _recipe("pccc", f"{name} {size}", gap, 60.0, partial(pccc, name, size), cost)
    for name, costs in PCCC_COSTS.items():
        for size, cost in zip(PCCC_SIZES, costs, strict=True):
            make = partial(pccc, name, size)
            yield _recipe("pccc", f"{name} {size}", 1e-3, 60.0, make, cost)
    for n, d, k, limit in ((2_000, 2, 10, 5.0), (2_000, 3, 20, 5.0), (20_000, 2, 10, 60.0)):
        make = partial(cannot_link_sets, n, d, k, k)
        yield _recipe("sets", f"{n:,} x {d} K={k}", 1e-3, limit, make)
    for noise in (0.05, 0.12):
        make = partial(full_sets, 100, 64, 20, noise)
        yield _recipe("full", f"2,000 x 64 K=20, noise {noise:g}", 0.06, 60.0, make)
    make = partial(partly_labelled, 5_000, 2, 50, 0.05)
    yield _recipe("labels", "5,000 x 2 K=50", 1e-2, 30.0, make)


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Return every instance with the target gap of its row."""
    for one in recipes(scope.small):
        if one.facts["section"] == "pccc" and scope.directory is None:
            continue
        yield RunRequest(one, CertikmeansSolver(OURS, one.facts["gap"]), one.facts["limit"])


HEADER = [
    "instance", "cannot-links", "limit (s)", "target %", "gap %", "target after (s)", "seconds",
    "verdict", "cost", "classes", "published",
]  # fmt: skip


def _cells(row: ResultRow) -> list[object]:
    when = targets.seconds_to(row, row.facts["gap"])
    links = "" if row.sizes is None else f"{row.sizes.n_cannot_link:,}"
    classes, published = row.details.get("classes_cost"), row.facts["published"]
    return [
        row.instance, links, targets.asked_limit(row), percent(row.facts["gap"]), percent(row.gap),
        "" if when is None else f"{when:.1f}", "" if row.seconds is None else f"{row.seconds:.1f}",
        targets.verdict(row), "" if row.cost is None else f"{row.cost:.7g}",
        "" if classes is None else f"{classes:.7g}",
        "" if published is None else f"{published:.7g}",
    ]  # fmt: skip


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``constraints.md``."""
    found = latest(rows)
    shown = [row for row in found.values() if row.solver == OURS]
    parts = [INTRODUCTION, targets.measured_on(shown), targets.summary(shown)]
    for section, (title, text) in SECTIONS.items():
        members = [row for row in shown if row.facts["section"] == section]
        if members:
            parts += [f"## {title}\n", f"{text}\n"]
            parts += [show(HEADER, [_cells(row) for row in members]) + "\n"]
    return write_page(directory / "constraints.md", parts)


STUDY = Study(
    "constraints",
    "dense cannot-links, cannot-link sets, partial labels: cost, gap and time",
    rows,
    write_report,
    small_limit=10.0,
    isolated=False,  # most rows take less time than warming up a process
)
