"""How time and memory grow with the number of points, up to a hundred million."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import stored_synthetic
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, commits, latest
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.study import Scope, Study

SIZES = {
    "ML": (100_000, 1_000_000, 10_000_000, 100_000_000),
    "CL": (100_000, 1_000_000, 10_000_000),
}
SMALL = {"ML": (2_000,), "CL": (2_000,)}
LIMITS = {100_000_000: 1800.0}
LIMIT = 600.0
CERTIFIED_UP_TO = 10_000_000
# Targets: seconds, and gigabytes where there is a limit.
TARGETS = {
    ("ML", 10_000_000): (30.0, None),
    ("CL", 10_000_000): (120.0, None),
    ("ML", 100_000_000): (900.0, 16.0),
}


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every size, with a certificate where there is a target for it."""
    folder = scope.options.scratch or Path(tempfile.gettempdir()) / "certikmeans-scale"
    for kind, sizes in (SMALL if scope.small else SIZES).items():
        for n in sizes:
            make = partial(stored_synthetic, n, kind, folder)
            recipe = Recipe(f"synthetic-{n} {kind}", make, {"n": n, "kind": kind})
            yield RunRequest(recipe, CertikmeansSolver(), LIMITS.get(n, LIMIT))
            if kind == "ML" and (scope.small or n == CERTIFIED_UP_TO):
                yield RunRequest(recipe, CertikmeansSolver("with certificate", certify=True), LIMIT)


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--scratch", type=Path, default=None, help="where instances are kept")


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``scale.md`` and its picture."""
    found = [row for row in latest(rows).values() if row.seconds is not None]
    plain = [row for row in found if "certificate" not in row.details]
    plain.sort(key=lambda row: (row.facts["kind"], row.facts["n"]))
    sealed = [row for row in found if "certificate" in row.details]
    parts = [
        "# Scale\n",
        f"Written by `python -m benchmarks scale` from `scale.jsonl`, commit {commits(found)}. "
        "Three Gaussian clusters in the plane, a pair for every fourth point, two cores; points "
        "and pairs are NumPy files, mapped and not copied. Seconds are those of `solve`; to read "
        "and check the problem before takes about a second for every ten million points more. "
        "Memory is the largest resident size of the process, the mapped files included.\n",
        show(
            ["points", "pairs", "gap", "s", "microseconds per point", "GB", "presolve s",
             "heuristics s", "bounds s", "asked for"],
            [_line(row) for row in plain],
        ) + "\n",
        *(["![Seconds against points](scale.png)\n"] if len(plain) > 1 else []),
        *([_certificates(sealed)] if sealed else []),
        *[
            f"No answer: {row.instance}, {row.stop_reason} {row.note}\n"
            for row in latest(rows).values()
            if row.seconds is None
        ],
    ]  # fmt: skip
    if len(plain) > 1:
        _draw(plain, directory / "scale.png")
    return write_page(directory / "scale.md", parts)


def _line(row: ResultRow) -> list[object]:
    n, kind, stages = row.facts["n"], row.facts["kind"], row.details["stages"]
    seconds, gigabytes = row.seconds or 0.0, row.peak_gigabytes or 0.0
    asked = ""
    if (kind, n) in TARGETS:
        most, memory = TARGETS[kind, n]
        asked = f"{most:g} s" + ("" if memory is None else f", {memory:g} GB")
        kept = seconds <= most and (memory is None or gigabytes <= memory)
        asked += ": reached" if kept and (row.gap or 0.0) <= 1e-3 else ": missed"
    return [
        f"{n:,}",
        f"{n // 4:,} {kind}",
        percent(row.gap),
        f"{seconds:.1f}",
        f"{1e6 * seconds / n:.2f}",
        f"{gigabytes:.2f}",
        *(f"{stages.get(name, 0.0):.1f}" for name in ("presolve", "heuristics", "bounds")),
        asked,
    ]


def _certificates(sealed: Sequence[ResultRow]) -> str:
    lines = []
    for row in sealed:
        one = row.details["certificate"]
        lines.append(
            [
                f"{row.facts['n']:,}",
                row.facts["kind"],
                f"{row.seconds:.1f}",
                f"{one['size'] / 1e6:.1f}",
                f"{one.get('write_seconds', 0.0):.1f}",
                f"{one['check_seconds']:.1f}",
                "accepted" if one["accepted"] else f"refused: {one['reason']}",
            ]
        )
    header = ["points", "pairs", "solve s", "MB", "write s", "check s", "checker"]
    return "## With a certificate\n\n" + show(header, lines) + "\n"


def _draw(plain: Sequence[ResultRow], path: Path) -> None:
    """Time against size on logarithmic axes, with a line of slope one."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.5, 3.6), layout="constrained")
    for kind, mark in (("ML", "o-"), ("CL", "s-")):
        mine = [row for row in plain if row.facts["kind"] == kind]
        sizes, times = [row.facts["n"] for row in mine], [row.seconds or 0.0 for row in mine]
        axes.plot(sizes, times, mark, label="must-links" if kind == "ML" else "cannot-links")
    first = plain[-1]
    ends = [min(row.facts["n"] for row in plain), max(row.facts["n"] for row in plain)]
    rate = (first.seconds or 1.0) / first.facts["n"]
    axes.plot(ends, [rate * n for n in ends], ":", color="grey", label="in proportion")
    axes.set(xscale="log", yscale="log", xlabel="points", ylabel="seconds to a gap of 0.1 %")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


STUDY = Study(
    name="scale",
    what="time and memory up to a hundred million points, written to docs/benchmarks",
    rows=rows,
    write=write_report,
    add_options=_options,
    per_commit=False,
)
