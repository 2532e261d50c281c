"""The bounds side by side: root gap, final gap, nodes and seconds on the paper's small rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets.paper import KINDS, Instance
from benchmarks.environment import about
from benchmarks.pages import percent, pyplot, show, write_page
from benchmarks.results import ResultRow, RunRequest, latest
from benchmarks.solvers.certikmeans_solver import CLUSTER, GROUPED, SAMPLE
from benchmarks.studies.paper.printed import DENSITY, FRACTIONS
from benchmarks.studies.paper.verdict import wrong_bounds
from benchmarks.study import Scope, Study, product

LIMIT = 10.0
SOLVERS = (GROUPED, CLUSTER, SAMPLE)


def instances() -> Iterator[Instance]:
    """Six rows of the paper with public pairs, hemi, and the density study."""
    for dataset in ("Iris", "Seeds", "Hemi"):
        for kind in KINDS:
            yield Instance(dataset, kind)
    for dataset, kind in DENSITY:
        for fraction in FRACTIONS:
            yield Instance(dataset, kind, fraction)


def rows(scope: Scope) -> list[RunRequest]:
    """Every bound on every instance; small, on one of them."""
    if scope.small:
        return product([Instance("Syn-1200", "ML", 2)], SOLVERS, LIMIT)
    return product(instances(), SOLVERS, LIMIT)


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``bounds.md`` and ``bounds.png`` into ``directory``; returns the page."""
    found = latest(rows)
    header = [
        "instance", "n", "ML", "CL", "bound", "cost", "root gap %", "gap %", "nodes", "seconds",
        "s/node", "ended",
    ]  # fmt: skip
    ordered = [
        found[name, solver.name]
        for name in dict.fromkeys(row.instance for row in rows)
        for solver in SOLVERS
        if (name, solver.name) in found
    ]
    here = rows[-1].about if rows else about(0)
    wrong = wrong_bounds(rows)
    parts = [
        "# The bounds side by side\n",
        "Written by `python -m benchmarks bounds` from `bounds.jsonl`. The same tree, heuristics "
        "and incumbents with three lower bounds: `grouped` is the paper's, `cluster` ours, "
        '`sample` the weakest that converges. `cluster` (`solve(..., bound="cluster")`) branches '
        "as `auto` decides, the others on centres. Root gap: before the first branching, "
        "everything the root does included. Requested gap: 0.1 %. Every cost and every pair was "
        "checked by the benchmark.\n",
        f"Measured on {here['cores']} cores, commit {here['commit']}, seed {here['seed']}, "
        f"numpy {here['numpy']}, numba {here['numba']}.\n",
        show(header, [_cells(row) for row in ordered]) + "\n",
        *_summary(ordered),
        f"Lower bounds above a cost reached on the same instance: {len(wrong)}.\n",
    ]
    if ordered:
        _plot(ordered, directory / "bounds.png")
        parts.append("![root gap and final gap](bounds.png)\n")
    return write_page(directory / "bounds.md", parts)


def _cells(row: ResultRow) -> list[object]:
    solver = row.solver.removeprefix("certikmeans/")
    if row.seconds is None or row.sizes is None:
        return [row.instance, "", "", "", solver, *[""] * 6, f"{row.stop_reason} {row.note}"]
    each = f"{row.seconds / row.nodes:.3g}" if row.nodes else ""
    return [
        row.instance, f"{row.sizes.n_points:,}", f"{row.sizes.n_must_link:,}",
        f"{row.sizes.n_cannot_link:,}", solver, "" if row.cost is None else f"{row.cost:.8g}",
        percent(row.root_gap), percent(row.gap), f"{row.nodes:,}", f"{row.seconds:.2f}", each,
        row.stop_reason,
    ]  # fmt: skip


def _summary(rows: Sequence[ResultRow]) -> list[str]:
    """How many instances each bound closes, at the root and in all."""
    lines: list[list[object]] = []
    for solver in SOLVERS:
        mine = [row for row in rows if row.solver == solver.name and row.seconds is not None]
        root = sum(row.root_gap is not None and row.root_gap <= 1e-3 for row in mine)
        closed = sum(row.gap is not None and row.gap <= 1e-3 for row in mine)
        seconds = sum(row.seconds or 0.0 for row in mine)
        lines.append([solver.bound, len(mine), root, closed, f"{seconds:.1f}"])
    header = ["bound", "instances", "closed at the root", "closed in time", "seconds in all"]
    return [show(header, lines) + "\n"]


def _plot(rows: Sequence[ResultRow], path: Path) -> None:
    plt = pyplot()
    names = list(dict.fromkeys(row.instance for row in rows))
    place = {name: i for i, name in enumerate(names)}
    figure, panels = plt.subplots(
        1, 3, figsize=(13, 1.4 + 0.21 * len(names)), layout="constrained", sharey=True
    )
    columns: tuple[tuple[Any, str, Any], ...] = (
        (panels[0], "root gap", lambda row: row.root_gap),
        (panels[1], "final gap", lambda row: row.gap),
        (panels[2], "seconds", lambda row: row.seconds),
    )
    for axes, title, value in columns:
        for solver, marker in zip(SOLVERS, "so^", strict=True):
            mine = [r for r in rows if r.solver == solver.name and value(r) is not None]
            axes.plot(
                [max(value(row), 1e-6) for row in mine],
                [place[row.instance] for row in mine],
                marker,
                label=solver.bound,
                alpha=0.8,
            )
        if "gap" in title:
            axes.axvline(1e-3, color="0.7", lw=3, zorder=0)
        axes.set(xscale="log", xlabel=title)
        axes.xaxis.set_minor_formatter("")
        axes.grid(visible=True, alpha=0.3)
    panels[0].set_yticks(range(len(names)), names, fontsize=7)
    panels[0].invert_yaxis()
    panels[0].legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


STUDY = Study(
    name="bounds",
    what="the three lower bounds side by side, written to docs/benchmarks",
    rows=rows,
    write=write_report,
    small_limit=2.0,
    per_commit=False,
)
