"""Threads against a Dask cluster on one machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import crossed, noise, synthetic_with_pairs
from benchmarks.pages import show, write_page
from benchmarks.results import ResultRow, RunRequest, commits, latest
from benchmarks.solvers.executors import ExecutorSolver
from benchmarks.study import Scope, Study

LIMIT = 60.0
MAX_RATIO = 1.2
RUNS = (("threads", 1), ("threads", 2), ("dask", 1), ("dask", 2))
PAIRS: dict[str, Any] = {"gap": 1e-5, "node_limit": 65}
BOXES: dict[str, Any] = {"bound": "cluster", "branching": "centers", "gap": 1e-6}


def measured(small: bool) -> Iterator[tuple[Recipe, dict[str, Any]]]:
    """Instances that close at the root, with a tree, and in parts, with their settings."""
    easy = partial(synthetic_with_pairs, 2_000, "CL", 2, 3)
    yield Recipe("easy: normal clusters n=2,000 d=2 K=3, n/4 CL", easy), {}
    if small:
        return
    tree = partial(crossed, 70, 3, 6, 140)
    yield Recipe("tree: uniform n=70 d=3 K=6, 140 CL", tree), PAIRS
    few = partial(crossed, 60, 3, 5, 120, 2)
    yield Recipe("short tree: uniform n=60 d=3 K=5, 120 CL", few), PAIRS
    yield Recipe("boxes: uniform n=60 d=3 K=5, 120 CL, 33 nodes", few), BOXES | {"node_limit": 33}
    cheap = {"bound": "sample", "branching": "centers", "node_limit": 16_001}
    plane = partial(noise, 2_000, 2, 4)
    yield Recipe("small nodes: normal n=2,000 d=2 K=4, 16,001 nodes", plane), cheap
    # Parts improve for as long as there is time: all runs have to reach the same gap.
    parts = {"bound": "partition", "node_limit": 1, "gap": 0.055}
    yield Recipe("parts: normal n=1,500 d=12 K=5, to 5.5 %", partial(noise, 1_500, 12, 5)), parts


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Threads and Dask on each instance."""
    for instance, settings in measured(scope.small):
        for where, workers in RUNS:
            yield RunRequest(instance, ExecutorSolver(where, workers, **settings), LIMIT)


def _measured_line(name: str, by_solver: dict[str, ResultRow]) -> list[Any] | None:
    one, two, dask = (by_solver.get(key) for key in ("threads, 1", "threads, 2", "dask, 2"))
    alone = by_solver.get("dask, 1")
    if not (one and two and dask and one.seconds and two.seconds and dask.seconds):
        return None
    same = (two.nodes, two.cost, two.lower_bound) == (dask.nodes, dask.cost, dask.lower_bound)
    if "parts" in name:  # their size depends on the clock
        same = (two.nodes, two.cost) == (dask.nodes, dask.cost)
    return [
        name, two.nodes, f"{one.seconds:.1f}", f"{two.seconds:.1f}",
        f"{alone.seconds:.1f}" if alone and alone.seconds else "",
        f"{dask.seconds:.1f}", f"{dask.seconds / two.seconds:.2f}",
        f"{dask.details.get('start_seconds', 0.0):.1f}", "yes" if same else "no",
    ]  # fmt: skip


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write the page with the table."""
    found = latest(rows)
    lines: list[list[Any]] = []
    for name in dict.fromkeys(row.instance for row in rows):
        by_solver = {row.solver: row for row in found.values() if row.instance == name}
        line = _measured_line(name, by_solver)
        if line is not None:
            lines.append(line)
    header = ["instance", "nodes", "1 thread", "2 threads", "Dask, 1 worker", "Dask, 2 workers",
              "ratio", "start of the cluster", "same answer"]  # fmt: skip
    parts = [
        "# Executors: threads against a Dask cluster\n",
        "`python -m benchmarks executors` writes this page; how to use a cluster is in the "
        "[guide](../guides/executors.md).\n",
        "Seconds of the run, all with the same counted budget. The cluster is a Dask scheduler and "
        "two workers, processes of their own that communicate over TCP; starting them and loading "
        "the code is a column of its own. Scheduler, workers and the calling process share the "
        "cores that the two threads have alone. Ratio: two workers against two threads; the target "
        f"for nodes of 50 ms and more is {MAX_RATIO}.\n",
        show(header, lines) + "\n",
        LIMITS,
        f"Rows were measured at commit {commits(found.values())}.\n",
    ]
    return write_page(directory / "executors.md", parts)


LIMITS = """Every task costs the calling process and the scheduler one to two milliseconds, so a
cluster is for nodes that take longer than about 50 ms; with hundreds of workers, longer than a
tenth of a second. A small tree has few open nodes, whatever the number of workers; the first levels
of a large one take as long as their slowest node.
"""

STUDY = Study(
    name="executors",
    what="threads against a Dask cluster of two workers",
    rows=rows,
    write=write_report,
    small_limit=20.0,
)
