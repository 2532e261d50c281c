"""What workers elsewhere cost and bring: threads, a Dask cluster, and many workers simulated."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import crossed, noise, synthetic_with_pairs
from benchmarks.pages import show, write_page
from benchmarks.rows import Request, Row, commits, latest
from benchmarks.solvers.elsewhere import Elsewhere
from benchmarks.study import Scope, Study

LIMIT = 60.0
JOURNEY = 0.01  # seconds for a round to go out and come back, on a cluster
SIMULATED = (1, 2, 8, 16, 32, 64, 128)
MOST_SLOWER = 1.2
RUNS = (("threads", 1), ("threads", 2), ("dask", 1), ("dask", 2), ("stopwatch", 1))


def instances(small: bool) -> Iterator[tuple[Recipe, dict[str, object]]]:
    """Some that close at the root, some with a tree, one in parts; and their settings."""
    easy = partial(synthetic_with_pairs, 2_000, "CL", 2, 3)
    yield Recipe("easy: normal clusters n=2,000 d=2 K=3, n/4 CL", easy), {}
    if small:
        return
    pairs: dict[str, object] = {"gap": 1e-5, "node_limit": 65}
    tree = partial(crossed, 70, 3, 6, 140)
    yield Recipe("tree: uniform n=70 d=3 K=6, 140 CL", tree), pairs
    few = partial(crossed, 60, 3, 5, 120, 2)
    yield Recipe("short tree: uniform n=60 d=3 K=5, 120 CL", few), pairs
    boxes = {"bound": "cluster", "branching": "centers", "gap": 1e-6, "node_limit": 33}
    yield Recipe("boxes: uniform n=60 d=3 K=5, 120 CL, 33 nodes", few), boxes
    cheap = {"bound": "sample", "branching": "centers", "node_limit": 16_001}
    plane = partial(noise, 2_000, 2, 4)
    yield Recipe("small nodes: normal n=2,000 d=2 K=4, 16,001 nodes", plane), cheap
    # Left alone, parts go on for as long as there is time: a gap is what they all have to reach.
    parts = {"bound": "partition", "node_limit": 1, "gap": 0.055}
    yield Recipe("parts: normal n=1,500 d=12 K=5, to 5.5 %", partial(noise, 1_500, 12, 5)), parts


def rows(scope: Scope) -> Iterator[Request]:
    """Threads, Dask and the stopwatch on each."""
    for instance, settings in instances(scope.small):
        for where, workers in RUNS:
            solver = Elsewhere(where, workers, **settings)  # type: ignore[arg-type]
            yield Request(instance, solver, LIMIT)


def makespan(tasks: Sequence[float], workers: int) -> float:
    """Seconds until tasks are done that are handed out in order to whoever is free.

    >>> makespan([3.0, 1.0, 1.0, 1.0], 2)
    3.0
    >>> makespan([1.0, 1.0, 1.0], 1)
    3.0
    """
    free = [0.0] * workers
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def simulated(total: float, rounds: Sequence[Sequence[float]], workers: int) -> float:
    """Seconds that a run would take whose tasks were recorded.

    What is no task stays as it was; every round takes a journey and waits for its last task.

    >>> round(simulated(10.0, [[2.0, 2.0], [2.0, 2.0]], 2), 2)
    6.02
    """
    here = total - sum(map(sum, rounds))
    journeys = JOURNEY * len(rounds) if workers > 1 else 0.0
    return here + journeys + sum(makespan(one, workers) for one in rounds)


def write_report(rows: Sequence[Row], directory: Path) -> Path:
    """What was measured, what was simulated, and how."""
    found = latest(rows)
    names = list(dict.fromkeys(row.instance for row in rows))
    measured, guessed = [], []
    for name in names:
        by_solver = {row.solver: row for row in found.values() if row.instance == name}
        one, two, dask = (by_solver.get(key) for key in ("threads, 1", "threads, 2", "dask, 2"))
        alone = by_solver.get("dask, 1")
        if one and two and dask and one.seconds and two.seconds and dask.seconds:
            same = two.nodes == dask.nodes and two.cost == dask.cost
            start = dask.details.get("start_seconds", 0.0)
            measured.append([
                name, two.nodes, f"{one.seconds:.1f}", f"{two.seconds:.1f}",
                f"{alone.seconds:.1f}" if alone and alone.seconds else "",
                f"{dask.seconds:.1f}", f"{dask.seconds / two.seconds:.2f}", f"{start:.1f}",
                "yes" if same else "no",
            ])  # fmt: skip
        watch = by_solver.get("stopwatch")
        if watch and watch.seconds and watch.details.get("rounds"):
            rounds = watch.details["rounds"]
            by_one = simulated(watch.seconds, rounds, 1)
            tasks = [seconds for one in rounds for seconds in one]
            guessed.append([
                name, len(tasks), len(rounds), f"{1e3 * sum(tasks) / len(tasks):.0f}",
                *(f"{by_one / simulated(watch.seconds, rounds, w):.1f}" for w in SIMULATED[1:]),
            ])  # fmt: skip
    header = ["instance", "nodes", "1 thread", "2 threads", "Dask, 1 worker", "Dask, 2 workers",
              "ratio", "start of the cluster", "same answer"]  # fmt: skip
    columns = ["instance", "tasks", "rounds", "ms per task", *(f"{w}" for w in SIMULATED[1:])]
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
        show(header, measured) + "\n",
        "## Simulated: many workers\n",
        "How many times as fast as with one worker. Method: the run is done once, on one thread, "
        "with an executor that takes the time of every task (the tasks of the first second are "
        "done before tasks go out, and count as work that is not shared). Then, for every number "
        "of workers, the tasks of a round are handed out in their order to whoever is free, a "
        f"round ends with its last task and costs one journey of {1e3 * JOURNEY:.0f} ms, and "
        "everything that is no task takes as long as it did. What is left out: that workers may be "
        "slower or faster than this machine, that the first task of a worker waits for the data, "
        "and what the scheduler itself takes. Rounds of a tree have 4 to 64 nodes, two tasks each, "
        "depending on how many nodes are open, never on the number of workers; so small trees "
        "cannot use many. Parts have no rounds.\n",
        show(columns, guessed) + "\n",
        f"Rows were measured at commit {commits(found.values())}.\n",
    ]
    return write_page(directory / "executors.md", parts)


STUDY = Study(
    name="executors",
    what="threads against a Dask cluster of two, and many workers simulated",
    rows=rows,
    write=write_report,
    small_limit=20.0,
)
