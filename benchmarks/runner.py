"""Rows in fresh processes with a hard end; results appended; a run can be taken up again."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.answers import CRASHED, KILLED, SKIPPED, Request, Row, append, load
from benchmarks.datasets.instances import AbsentError, Built, build
from benchmarks.environment import about
from benchmarks.objective import recomputed_cost, scores, violated_pairs
from benchmarks.solvers.base import Sizes
from benchmarks.solvers.registry import SOLVERS

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

GRACE_SECONDS = 5.0
GRACE_SHARE = 0.5
SETUP_SECONDS = 900.0  # making the instance and compiling, which is not on the clock


def answer_here(request: Request, directory: Path | None, connection: Connection) -> None:
    """Child: make the instance, warm up, say "started", solve, judge, send the row."""
    try:
        connection.send(_answer(request, directory, connection))
    except Exception:
        note = traceback.format_exc(limit=-3)
        connection.send(_bare(request, CRASHED, note))


def _answer(request: Request, directory: Path | None, connection: Connection) -> Row:
    try:
        built = build(request.instance, directory)
    except AbsentError as absent:
        return _bare(request, SKIPPED, str(absent))
    sizes = Sizes.of(built.problem)
    solver = SOLVERS[request.solver]()
    why = solver.skip(sizes, request.limit)
    if why is not None:
        return _bare(request, SKIPPED, why, sizes, built.pairs)
    solver.warm_up()
    connection.send("started")
    answer = solver.run(built.problem, request.limit, request.seed)
    labels = answer.labels
    return Row(
        instance=request.instance,
        solver=request.solver,
        limit=request.limit,
        seed=request.seed,
        stop_reason=answer.stop_reason,
        pairs=built.pairs,
        sizes=sizes,
        cost=None if labels is None else recomputed_cost(built.problem, labels),
        pairs_broken=None if labels is None else violated_pairs(built.problem, labels),
        lower_bound=answer.lower_bound,
        nodes=answer.nodes,
        seconds=answer.seconds,
        peak_gigabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        scores=_scores(built, answer.labels),
        trace=answer.trace,
        details=answer.details,
        about=about(request.seed),
    )


def _scores(built: Built, labels: object) -> dict[str, float]:
    if built.classes is None or labels is None:
        return {}
    return scores(built.classes, labels)  # type: ignore[arg-type]


def _bare(
    request: Request, reason: str, note: str, sizes: Sizes | None = None, pairs: str = ""
) -> Row:
    """A row without an answer."""
    return Row(
        request.instance,
        request.solver,
        request.limit,
        request.seed,
        reason,
        note,
        pairs,
        sizes,
        about=about(request.seed),
    )


@dataclass
class Ticker:
    """Tells on stderr which row runs, and for how long if somebody watches."""

    total: int
    number: int = 0
    began: float = 0.0

    def start(self, request: Request) -> None:
        """Another row begins."""
        self.number += 1
        self.began = self.began or time.perf_counter()
        self._head = f"[{self.number}/{self.total}, {self._minutes()}] {request.title}"
        self._row_began = time.perf_counter()
        self._say(f"{self._head}, limit {request.limit:g} s ...")

    def tick(self) -> None:
        """Still running."""
        if sys.stderr.isatty():
            spent = time.perf_counter() - self._row_began
            sys.stderr.write(f"\r    {spent:.0f} s ")
            sys.stderr.flush()

    def finish(self, row: Row) -> None:
        """The row is known."""
        self._say("    " + describe(row))

    def _minutes(self) -> str:
        return f"{(time.perf_counter() - self.began) / 60:.1f} min"

    def _say(self, line: str) -> None:
        sys.stderr.write(("\r" if sys.stderr.isatty() else "") + line + "\n")
        sys.stderr.flush()


def describe(row: Row) -> str:
    """One line about a row."""
    if row.seconds is None:
        return f"{row.stop_reason}: {row.note.strip().splitlines()[-1] if row.note else ''}"
    cost = "no labels" if row.cost is None else f"cost {row.cost:.8g}"
    gap = "" if row.gap is None else f", gap {100 * row.gap:.3g} %"
    nodes = "" if row.nodes is None else f", {row.nodes:,} nodes"
    broken = f", {row.pairs_broken} PAIRS BROKEN" if row.pairs_broken else ""
    return f"{cost}{gap}{nodes} in {row.seconds:.2f} s ({row.stop_reason}){broken}"


def measure(request: Request, directory: Path | None, ticker: Ticker) -> Row:
    """Run a request in a process of its own, which is killed some seconds after the limit."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=answer_here, args=(request, directory, there), daemon=True)
    process.start()
    there.close()
    try:
        return _wait(request, process, here, ticker)
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        here.close()


def _wait(request: Request, process: SpawnProcess, here: Connection, ticker: Ticker) -> Row:
    needed = SOLVERS[request.solver]().seconds_needed(request.limit)
    patience = max(GRACE_SECONDS, GRACE_SHARE * request.limit)
    deadline, note = time.monotonic() + SETUP_SECONDS, "before its clock started"
    while time.monotonic() < deadline:
        ticker.tick()
        if not here.poll(0.2):
            if process.is_alive():
                continue
            if not here.poll(0.0):
                return _bare(request, CRASHED, f"the process ended with code {process.exitcode}")
        try:
            message = here.recv()
        except EOFError:
            process.join()
            return _bare(request, CRASHED, f"the process ended with code {process.exitcode}")
        if isinstance(message, Row):
            return message
        deadline = time.monotonic() + needed + patience
        note = f"still running {patience:g} s after its limit"
    return _bare(request, KILLED, note)


def run_all(
    requests: Sequence[Request], results: Path, directory: Path | None, *, again: bool = False
) -> None:
    """Run what is not in ``results`` yet, in order; skipped rows are looked at again."""
    known = load(results)
    done = {row.key for row in known if row.stop_reason != SKIPPED}
    skipped = {row.key: row.note for row in known if row.stop_reason == SKIPPED}
    sizes = {row.instance.name: row.sizes for row in known if row.sizes is not None}
    absent: dict[str, str] = {}
    pending = [one for one in unique(requests) if again or one.key not in done]
    ticker = Ticker(len(pending))
    for request in pending:
        ticker.start(request)
        name = request.instance.name
        row = _skipped(request, sizes.get(name), absent.get(name))
        if row is None:
            row = measure(request, directory, ticker)
        ticker.finish(row)
        if row.sizes is not None:
            sizes[name] = row.sizes
        elif row.stop_reason == SKIPPED:
            absent[name] = row.note
        if row.stop_reason != SKIPPED or skipped.get(row.key) != row.note:
            append(results, row)


def _skipped(request: Request, sizes: Sizes | None, absent: str | None) -> Row | None:
    """The row of a request that need not be started, if that is known already."""
    if absent is not None:
        return _bare(request, SKIPPED, absent)
    if sizes is None:
        return None
    why = SOLVERS[request.solver]().skip(sizes, request.limit)
    return None if why is None else _bare(request, SKIPPED, why, sizes)


def unique(requests: Sequence[Request]) -> list[Request]:
    """The requests without repetitions, in order."""
    return list({one.key: one for one in requests}.values())
