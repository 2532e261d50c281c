"""Instances that the cluster bound does not close at the root: the gap that each tree reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import crossed, noise, real_with_pairs, standardized
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, ResultTable, RunRequest, commits, latest, relative_gap
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.study import Scope, Study

LIMIT = 40.0
DEFAULT_GAP, TIGHT_GAP = 1e-3, 1e-4

Setting = tuple[str, str]
DEFAULTS: Setting = ("auto", "auto")
SETTINGS: tuple[Setting, ...] = (("cluster", "pairs"), ("cluster", "centers"), DEFAULTS)
"""Bound and branching. The first two differ in the branching alone: ``bound="auto"`` may turn to
the semidefinite bound, but not where centres are branched on."""


def solver(setting: Setting, gap: float) -> CertikmeansSolver:
    """`solve` with one bound and one way of branching."""
    return CertikmeansSolver(" and ".join(setting), gap, *setting)


def open_at_the_root(small: bool) -> Iterator[tuple[Recipe, float]]:
    """K >= 5, many axes, dense cannot-links, small n, tight gaps: instances and their gaps."""
    few = partial(crossed, 60, 3, 5, 120, 2)
    yield Recipe("uniform n=60 d=3 K=5, 120 random CL", few), TIGHT_GAP
    if small:
        return
    yield Recipe("normal n=100 d=5 K=8", partial(noise, 100, 5, 8)), DEFAULT_GAP
    yield Recipe("normal n=100 d=5 K=8, another", partial(noise, 100, 5, 8, 1)), DEFAULT_GAP
    dense = partial(crossed, 80, 2, 5, 300)
    yield Recipe("uniform n=80 d=2 K=5, 300 random CL", dense), TIGHT_GAP
    many = partial(crossed, 400, 2, 4, 400, 1)
    yield Recipe("uniform n=400 d=2 K=4, 400 random CL", many), DEFAULT_GAP
    yield Recipe("normal n=60 d=7 K=5", partial(noise, 60, 7, 5)), DEFAULT_GAP
    yield Recipe("normal n=150 d=7 K=3", partial(noise, 150, 7, 3)), DEFAULT_GAP
    yield Recipe("normal n=200 d=10 K=3", partial(noise, 200, 10, 3)), DEFAULT_GAP
    yield Recipe("standardised wine n=178 d=13 K=3", partial(standardized, "wine", 3)), DEFAULT_GAP


def closed_at_the_root() -> Iterator[tuple[Recipe, float]]:
    """Large, with a gap ten times tighter than the default; branching plays no part."""
    make = partial(real_with_pairs, "skin_8", "CL")
    yield Recipe("Skin_8 n=80,000 d=3 K=3, n/4 CL", make), TIGHT_GAP


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every setting on what is open, the defaults on the rest."""
    for instance, gap in open_at_the_root(scope.small):
        for setting in SETTINGS:
            yield RunRequest(instance, solver(setting, gap), LIMIT)
    if not scope.small:
        for instance, gap in closed_at_the_root():
            yield RunRequest(instance, solver(DEFAULTS, gap), LIMIT)


INTRODUCTION = """# The tree

Written by `python -m benchmarks tree --limit {limit:g}` from `tree.jsonl`: {limit:g} s per row, \
{cores} cores, commit {commit}, seed {seed}. A row is one call of `solve`; `asked bound` and \
`asked branching` are the settings it was given, `proven by` is the bound that its final value \
came from. `pairs` splits on a pair of points (together or apart), `centers` on the box of a \
centre. Rows with bound `cluster` differ in the branching alone. `auto` and `auto` are the \
defaults, what a user gets: pairs here, and the semidefinite bound `sdp` where `cluster` leaves \
more than 1 % at the root of a small instance.

The root gap is that before the first branching, both gaps with the row's own cost, recomputed by \
the benchmark.
"""


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``tree.md``: the last row of each kind with the last row's limit."""
    timed = [row for row in rows if row.seconds is not None]
    if not timed:
        return write_page(directory / "tree.md", ["# The tree\n", "Nothing was measured yet.\n"])
    limit, here = timed[-1].limit, timed[-1].about
    found = latest(row for row in timed if row.limit == limit)
    parts = [
        INTRODUCTION.format(limit=limit, **{**here, "commit": commits(found.values())}),
        "## Instances that `cluster` does not close at the root\n",
        _table([one for one, _ in open_at_the_root(small=False)], SETTINGS, found),
        "## Closed at the root\n",
        "Nothing is left to branch on, so only the defaults were run.\n",
        _table([one for one, _ in closed_at_the_root()], (DEFAULTS,), found),
    ]
    return write_page(directory / "tree.md", parts)


def _table(instances: Sequence[Recipe], settings: Sequence[Setting], found: ResultTable) -> str:
    header = ["instance", "asked gap", "asked bound", "asked branching", "proven by", "root gap",
              "final gap", "nodes", "seconds", "ended by"]  # fmt: skip
    keys = [(one.name, " and ".join(setting)) for one in instances for setting in settings]
    body = [_cells(found[key]) for key in keys if key in found]
    return show(header, body) + "\n"


def _cells(row: ResultRow) -> list[object]:
    asked = row.options
    root = relative_gap(row.cost, row.details["root"]["lower_bound"])
    return [
        row.instance, f"{100 * asked['gap']:g} %", asked["bound"], asked["branching"],
        row.details["bound"], percent(root, " %"), percent(row.gap, " %"), row.nodes,
        f"{row.seconds:.1f}", row.stop_reason.replace("_", " "),
    ]  # fmt: skip


STUDY = Study("tree", "what the root does not close, by bound and branching", rows, write_report)
