"""The first minute: how long does it take from nothing to a proof, cold and warm?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import BuiltInstance, Recipe
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, commits, latest
from benchmarks.solvers.startup import ENTRIES, STARTS, NewProcessSolver
from benchmarks.study import Scope, Study
from certikmeans import Problem
from certikmeans.generate import random_pairs

LIMIT = 300.0
COLD_AIM, WARM_AIM = 20.0, 1.2  # seconds on two cores


def iris(n_pairs: int, directory: Path | None = None) -> BuiltInstance:
    """The iris data of scikit-learn with so many pairs of each kind; K = 3."""
    from sklearn.datasets import load_iris

    points, classes = load_iris(return_X_y=True)
    must, cannot = random_pairs(classes, n_pairs, n_pairs, seed=0)
    problem = Problem.from_data(points, 3, must_link=must, cannot_link=cannot)
    return BuiltInstance(problem, classes, "drawn from classes" if n_pairs else "none")


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every way in, cold and warm, with and without pairs."""
    free = Recipe("iris", partial(iris, 0))
    repeats = 1 if scope.small else 5
    for entry in STARTS:
        yield RunRequest(free, NewProcessSolver(entry, repeats=repeats), LIMIT)
    for one in (free, Recipe("iris with 2 x 30 pairs", partial(iris, 30))):
        for entry in ENTRIES:
            for cold in (False,) if scope.small else (False, True):
                yield RunRequest(one, NewProcessSolver(entry, cold, repeats), LIMIT)


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """A line per way in, and what was aimed at."""
    found = latest(rows)
    lines = [
        [
            row.instance if row.cost is not None else "",
            row.solver,
            "" if row.seconds is None else f"{row.seconds:.2f}",
            f"{row.details.get('processor_seconds', 0.0):.2f}",
            percent(row.gap),
            row.note.splitlines()[-1] if row.note else "",
        ]
        for row in found.values()
    ]
    header = ["instance", "what", "seconds", "processor s", "gap %", "note"]
    aims = {"cold": COLD_AIM, "warm": WARM_AIM}
    said = []
    for kind, aim in aims.items():
        name = "command" if kind == "warm" else "fit"
        times = [r.seconds for r in found.values() if r.solver == f"{name}, {kind}" and r.seconds]
        if times:
            verdict = "reached" if max(times) <= aim else "missed"
            said.append(
                f"- {name}, {kind}: {max(times):.2f} s at most; the aim was {aim:g} s: {verdict}."
            )
    parts = [
        "# Starting up\n",
        f"Written by `python -m benchmarks startup` from `startup.jsonl`, commit {commits(rows)}. "
        "Every row is a process from its start to its end, imports included. `cold`: nothing was "
        "ever compiled (numba's cache is an empty directory), timed once; `warm`: the fastest of "
        "five. Processor seconds are those of all processes together: two compile at a time.\n",
        show(header, lines) + "\n" if lines else "",
        "\n".join(said) + "\n" if said else "",
    ]
    return write_page(directory / "startup.md", parts)


STUDY = Study(
    name="startup",
    what="from nothing to a proof: --help, import, command and fit, cold and warm",
    rows=rows,
    write=write_report,
    small_limit=120.0,
    isolated=False,
)
