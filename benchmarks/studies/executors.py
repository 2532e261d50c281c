"""What workers elsewhere cost and bring: threads, a Dask cluster, and many workers emulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import blobs, crossed, noise, synthetic_with_pairs
from benchmarks.pages import show, write_page
from benchmarks.results import ResultRow, RunRequest, commits, latest
from benchmarks.solvers.emulated import CLIENT, LATENCY, SCHEDULER, WORKERS, EmulatedClusterSolver
from benchmarks.solvers.executors import ExecutorSolver
from benchmarks.study import Scope, Study

LIMIT, EMULATED_LIMIT = 60.0, 900.0
MOST_SLOWER = 1.2
RUNS = (("threads", 1), ("threads", 2), ("dask", 1), ("dask", 2))
PAIRS: dict[str, Any] = {"gap": 1e-5, "node_limit": 65}
BOXES: dict[str, Any] = {"bound": "cluster", "branching": "centers", "gap": 1e-6}


def measured(small: bool) -> Iterator[tuple[Recipe, dict[str, Any]]]:
    """Some that close at the root, some with a tree, one in parts; and their settings."""
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
    # Left alone, parts go on for as long as there is time: a gap is what they all have to reach.
    parts = {"bound": "partition", "node_limit": 1, "gap": 0.055}
    yield Recipe("parts: normal n=1,500 d=12 K=5, to 5.5 %", partial(noise, 1_500, 12, 5)), parts


def emulated(small: bool) -> Iterator[tuple[Recipe, dict[str, Any]]]:
    """Large trees and many parts; and a small tree, which cannot use many workers."""
    few = partial(crossed, 60, 3, 5, 120, 2)
    if small:
        yield Recipe("short tree: uniform n=60 d=3 K=5, 120 CL", few), PAIRS | {"node_limit": 9}
        return
    tree = partial(crossed, 70, 3, 6, 140)
    yield Recipe("tree: uniform n=70 d=3 K=6, 140 CL", tree), PAIRS
    whole = partial(noise, 80, 8, 5)
    yield Recipe("large tree: normal n=80 d=8 K=5, to 0.1 %", whole), {"gap": 1e-3}
    begun = partial(noise, 90, 7, 4)
    counted = {"gap": 1e-3, "node_limit": 3_001}
    yield Recipe("large tree: normal n=90 d=7 K=4, 3,001 nodes", begun), counted
    boxes = BOXES | {"node_limit": 1_001}
    yield Recipe("boxes: uniform n=60 d=3 K=5, 120 CL, 1,001 nodes", few), boxes
    many = partial(blobs, 60_000, 16, 10, 6.0)
    parts = {"bound": "partition", "node_limit": 1, "gap": 4.5e-3}
    yield Recipe("many parts: blobs n=60,000 d=16 K=10, to 0.45 %", many), parts


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Threads and Dask on each; then those that are emulated."""
    for instance, settings in measured(scope.small):
        for where, workers in RUNS:
            yield RunRequest(instance, ExecutorSolver(where, workers, **settings), LIMIT)
    for instance, settings in emulated(scope.small):
        solver = EmulatedClusterSolver(**settings, workers=WORKERS[:2] if scope.small else WORKERS)
        yield RunRequest(instance, solver, EMULATED_LIMIT)


def _measured_line(name: str, by_solver: dict[str, ResultRow]) -> list[Any] | None:
    one, two, dask = (by_solver.get(key) for key in ("threads, 1", "threads, 2", "dask, 2"))
    alone = by_solver.get("dask, 1")
    if not (one and two and dask and one.seconds and two.seconds and dask.seconds):
        return None
    same = (two.nodes, two.cost, two.lower_bound) == (dask.nodes, dask.cost, dask.lower_bound)
    if "parts" in name:  # sized by a clock
        same = (two.nodes, two.cost) == (dask.nodes, dask.cost)
    return [
        name, two.nodes, f"{one.seconds:.1f}", f"{two.seconds:.1f}",
        f"{alone.seconds:.1f}" if alone and alone.seconds else "",
        f"{dask.seconds:.1f}", f"{dask.seconds / two.seconds:.2f}",
        f"{dask.details.get('start_seconds', 0.0):.1f}", "yes" if same else "no",
    ]  # fmt: skip


def _emulated_lines(name: str, row: ResultRow) -> Iterator[list[Any]]:
    """The whole run, and the stage that has the tasks."""
    found = row.details
    runs = {int(workers): one for workers, one in found["runs"].items()}
    stage = "search" if row.nodes and row.nodes > 1 else "bounds"
    same = all(one["same"] for one in runs.values())
    if stage == "search":
        same = same and all(one["same_bound"] for one in runs.values())
    tasks, seconds = found["tasks"], found["task_seconds"]
    facts = [tasks, f"{1e3 * seconds / max(tasks, 1):.0f}"]
    for what in ("total", stage):
        alone = runs[1]["stages"][what]
        ratios = [
            f"{alone / runs[w]['stages'][what]:.1f}" if w in runs else "" for w in WORKERS[1:]
        ]
        label = "whole run" if what == "total" else {"search": "tree", "bounds": "parts"}[what]
        yield [name, label, *facts, f"{alone:.0f}", *ratios, "yes" if same else "no"]


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """What was measured, what was emulated, and how."""
    found = latest(rows)
    lines: list[list[Any]] = []
    guessed: list[list[Any]] = []
    for name in dict.fromkeys(row.instance for row in rows):
        by_solver = {row.solver: row for row in found.values() if row.instance == name}
        line = _measured_line(name, by_solver)
        if line is not None:
            lines.append(line)
        watch = by_solver.get("emulated")
        if watch is not None and watch.details.get("runs"):
            guessed += _emulated_lines(name, watch)
    header = ["instance", "nodes", "1 thread", "2 threads", "Dask, 1 worker", "Dask, 2 workers",
              "ratio", "start of the cluster", "same answer"]  # fmt: skip
    columns = ["instance", "what", "tasks", "ms per task", "1 worker (s)",
               *(f"{w}" for w in WORKERS[1:]), "same answer"]  # fmt: skip
    parts = [
        "# Executors: what they cost, and how far they scale\n",
        "`python -m benchmarks executors` writes this page; how to use a cluster is in the "
        "[guide](../guides/executors.md).\n",
        "## Measured: two workers on this machine\n",
        "Seconds of the run, all with the same counted budget. The cluster is a Dask scheduler and "
        "two workers, processes of their own that talk over TCP; starting them and loading the "
        "code is a column of its own. Scheduler, workers and the run share the cores that the two "
        "threads have alone; with one worker, one thread here does what does not pay to send. "
        f"Ratio: two workers against two threads; aimed at is at most {MOST_SLOWER}.\n",
        show(header, lines) + "\n",
        EMULATION,
        show(columns, guessed) + "\n",
        LIMITS,
        f"Rows were measured at commit {commits(found.values())}.\n",
    ]
    return write_page(directory / "executors.md", parts)


EMULATION = f"""## Emulated: many workers

How many times as fast as with one worker. There is no cluster here, so workers are emulated. The
run is done once, on one thread, and every task that would travel is recorded: what it found, and
the seconds of the processor that it took. Then it is done again, by the same program, with workers
that do nothing but wait for as long as the task took, and hand out what was recorded. A bundle of
tasks goes to the worker that is free first. Before that it takes {1e3 * CLIENT:.1f} ms of the
program itself and {1e3 * SCHEDULER:.0f} ms of the scheduler, which has one bundle after the other;
its journey takes {1e3 * LATENCY:.0f} ms, there and back. A task that was not recorded (the run on
one thread was over before its turn) takes as long as the others on average, and brings nothing.
Everything else is real: what is sent and when, what is packed and unpacked, the order in which
answers are taken, what is done here before workers are asked, and how long all of that takes. What
is left out: that workers may be slower or faster than this machine, that they have to load the
code, that the first task of a worker waits for the data, and that networks are shared. `1 worker`
is emulated, too. Parts are sized by one look at the clock, the same for all numbers of workers. The
whole run has stages that are not shared (heuristics, presolve, the bound of the whole before a
tree); the second line of every instance is the stage whose tasks travel. `same answer`: nodes, cost
and bound are those of the run on one thread; the bounds of parts, which are worked on in the order
in which they gain, within a thousandth.
"""

LIMITS = """What limits it: a small tree has not enough open nodes, whoever works on them. In a
large one, nodes become many only after a while: its first levels have as many tasks as nodes, and
take as long as their slowest one. Then it is this program, which hands out the tasks and takes
their answers in, half a millisecond to two for each: beyond some hundred workers tasks should take
longer than a tenth of a second.
"""

STUDY = Study(
    name="executors",
    what="threads against a Dask cluster of two, and many workers emulated",
    rows=rows,
    write=write_report,
    small_limit=20.0,
)
