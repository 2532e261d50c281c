"""Rows in fresh processes with a hard end; results appended; a run can be taken up again."""

from __future__ import annotations

import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.datasets.base import BuiltInstance, MissingDataError, Sizes
from benchmarks.datasets.paper import SUBSTITUTE
from benchmarks.environment import about, peak_gigabytes
from benchmarks.metrics import recomputed_cost, scores, violated_pairs
from benchmarks.results import (
    CRASHED,
    KILLED,
    SKIPPED,
    ResultRow,
    RunRequest,
    append,
    empty_row,
    load,
)
from benchmarks.solvers.base import SkipError

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

GRACE_SECONDS = 5.0
GRACE_FRACTION = 0.5
SETUP_SECONDS = 900.0  # making the instance and compiling, which is not on the clock


def run_in_process(
    request: RunRequest, directory: Path | None, started: Callable[[], None] = lambda: None
) -> ResultRow:
    """Make the instance, warm up, call ``started``, solve, judge; whatever goes wrong is a row."""
    try:
        return _run_request(request, directory, started)
    except Exception:
        return _empty_row(request, CRASHED, traceback.format_exc(limit=-3))


def _run_request(
    request: RunRequest, directory: Path | None, started: Callable[[], None]
) -> ResultRow:
    try:
        built = request.instance.build(directory)
    except MissingDataError as absent:
        return _empty_row(request, SKIPPED, str(absent))
    sizes, solver = Sizes.of(built.problem), request.solver
    why = solver.skip(sizes, request.limit)
    if why is not None:
        return _empty_row(request, SKIPPED, why, sizes, built.pairs)
    solver.warm_up()
    started()
    try:
        answer = solver.run(built.problem, request.limit, request.seed)
    except SkipError as skip:
        return _empty_row(request, SKIPPED, str(skip), sizes, built.pairs)
    labels, peak = answer.labels, answer.peak_gigabytes
    return ResultRow(
        instance=request.instance.name,
        solver=solver.name,
        limit=request.limit,
        seed=request.seed,
        stop_reason=answer.stop_reason,
        options=solver.options,
        facts=request.instance.facts,
        pairs=built.pairs,
        sizes=sizes,
        cost=None if labels is None else recomputed_cost(built.problem, labels),
        pairs_broken=None if labels is None else violated_pairs(built.problem, labels),
        lower_bound=answer.lower_bound,
        nodes=answer.nodes,
        seconds=answer.seconds,
        peak_gigabytes=peak_gigabytes() if peak is None else peak,
        scores=_scores(built, answer.labels),
        trace=answer.trace,
        details={**answer.details, **_cost_of_classes(built)},
        about=about(request.seed),
    )


def _cost_of_classes(built: BuiltInstance) -> dict[str, float]:
    """Cost of the true classes, if they are a feasible labelling."""
    classes = built.classes
    if classes is None or violated_pairs(built.problem, classes):
        return {}
    return {"classes_cost": recomputed_cost(built.problem, classes)}


def _scores(built: BuiltInstance, labels: object) -> dict[str, float]:
    if built.classes is None or labels is None:
        return {}
    return scores(built.classes, labels)  # type: ignore[arg-type]


def _empty_row(
    request: RunRequest, reason: str, note: str, sizes: Sizes | None = None, pairs: str = ""
) -> ResultRow:
    return empty_row(request, reason, note, sizes=sizes, pairs=pairs, about=about(request.seed))


@dataclass
class ProgressPrinter:
    """Reports on stderr which row runs and, on a terminal, for how long."""

    total: int
    number: int = 0
    began: float = 0.0

    def start(self, request: RunRequest) -> None:
        """Another row begins."""
        self.number += 1
        self.began = self.began or time.perf_counter()
        self._head = f"[{self.number}/{self.total}, {self._minutes()}] {request.title}"
        self._row_began = time.perf_counter()
        self._print_line(f"{self._head}, limit {request.limit:g} s ...")

    def tick(self) -> None:
        """Still running."""
        if sys.stderr.isatty():
            spent = time.perf_counter() - self._row_began
            sys.stderr.write(f"\r    {spent:.0f} s ")
            sys.stderr.flush()

    def finish(self, row: ResultRow) -> None:
        """The row is known."""
        self._print_line("    " + describe(row))

    def _minutes(self) -> str:
        return f"{(time.perf_counter() - self.began) / 60:.1f} min"

    def _print_line(self, line: str) -> None:
        sys.stderr.write(("\r" if sys.stderr.isatty() else "") + line + "\n")
        sys.stderr.flush()


def describe(row: ResultRow) -> str:
    """One line about a row."""
    if row.seconds is None:
        return f"{row.stop_reason}: {row.note.strip().splitlines()[-1] if row.note else ''}"
    cost = "no labels" if row.cost is None else f"cost {row.cost:.8g}"
    gap = "" if row.gap is None else f", gap {100 * row.gap:.3g} %"
    nodes = "" if row.nodes is None else f", {row.nodes:,} nodes"
    return f"{cost}{gap}{nodes} in {row.seconds:.2f} s ({row.stop_reason}){_warnings(row)}"


def _warnings(row: ResultRow) -> str:
    """Print a warning."""
    text = f", {row.pairs_broken} PAIRS BROKEN" if row.pairs_broken else ""
    if row.pairs.startswith(SUBSTITUTE):
        text += f", {row.pairs}"
    best, bound = row.facts.get("best_known"), row.lower_bound
    if best is not None and bound is not None and bound > best * (1 + 1e-9):
        text += ", BOUND ABOVE THE BEST KNOWN COST"
    certificate = row.details.get("certificate")
    if certificate is not None and not certificate["accepted"]:
        text += f", CERTIFICATE REFUSED: {certificate['reason']}"
    return text


def measure(request: RunRequest, directory: Path | None, ticker: ProgressPrinter) -> ResultRow:
    """Run a request in a process of its own, which is killed some seconds after the limit."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(request, directory, there), daemon=True)
    process.start()
    there.close()
    try:
        return _wait(request, process, here, ticker)
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        here.close()


def _child(request: RunRequest, directory: Path | None, connection: Connection) -> None:
    connection.send(run_in_process(request, directory, lambda: connection.send("started")))


def _wait(
    request: RunRequest, process: SpawnProcess, here: Connection, ticker: ProgressPrinter
) -> ResultRow:
    needed = request.solver.seconds_needed(request.limit)
    grace_seconds = max(GRACE_SECONDS, GRACE_FRACTION * request.limit)
    deadline, note = time.monotonic() + SETUP_SECONDS, "before its clock started"
    while time.monotonic() < deadline:
        ticker.tick()
        if not here.poll(0.2):
            if process.is_alive():
                continue
            if not here.poll(0.0):
                return _empty_row(
                    request, CRASHED, f"the process ended with code {process.exitcode}"
                )
        try:
            message = here.recv()
        except EOFError:
            process.join()
            return _empty_row(request, CRASHED, f"the process ended with code {process.exitcode}")
        if isinstance(message, ResultRow):
            return message
        deadline = time.monotonic() + needed + grace_seconds
        note = f"still running {grace_seconds:g} s after its limit"
    return _empty_row(request, KILLED, note)


def pending(
    requests: Iterable[RunRequest],
    known: Iterable[ResultRow],
    *,
    again: bool,
    commit: str | None = None,
) -> list[RunRequest]:
    """What is not in ``known`` yet; skipped rows are looked at again.

    With ``commit``, only rows measured at this very commit count as known; with a plus behind
    it (code that is not committed) none do.
    """
    changing = commit is not None and commit.endswith("+")
    done = {
        row.key
        for row in known
        if row.stop_reason != SKIPPED and commit in (None, row.about.get("commit")) and not changing
    }
    return [one for one in unique(requests) if again or one.key not in done]


def run_all(
    requests: Sequence[RunRequest],
    results: Path,
    directory: Path | None,
    *,
    again: bool = False,
    commit: str | None = None,
    isolated: bool = True,
) -> None:
    """Run what is `pending`, in order, and append it to ``results``.

    Parameters
    ----------
    requests : sequence of Request
    results : Path
        Read to see what is there already.
    directory : Path or None
        Where the real data are.
    again : bool
        Also what is there already.
    commit : str, optional
        Rows measured at another commit count as missing.
    isolated : bool
        A process per row. False: all in this one, which is quicker for many small rows.
    """
    known = load(results)
    skipped = {row.key: row.note for row in known if row.stop_reason == SKIPPED}
    sizes = {row.instance: row.sizes for row in known if row.sizes is not None}
    absent: dict[str, str] = {}
    wanted = pending(requests, known, again=again, commit=commit)
    ticker = ProgressPrinter(len(wanted))
    for request in wanted:
        ticker.start(request)
        name = request.instance.name
        row = _skipped(request, sizes.get(name), absent.get(name))
        if row is None and isolated:
            row = measure(request, directory, ticker)
        elif row is None:
            row = run_in_process(request, directory)
        ticker.finish(row)
        if row.sizes is not None:
            sizes[name] = row.sizes
        elif row.stop_reason == SKIPPED:
            absent[name] = row.note
        if row.stop_reason != SKIPPED or skipped.get(row.key) != row.note:
            append(results, row)


def _skipped(request: RunRequest, sizes: Sizes | None, absent: str | None) -> ResultRow | None:
    """The row of a request that need not be started, if that is known already."""
    if absent is not None:
        return _empty_row(request, SKIPPED, absent)
    if sizes is None:
        return None
    why = request.solver.skip(sizes, request.limit)
    return None if why is None else _empty_row(request, SKIPPED, why, sizes)


def unique(requests: Iterable[RunRequest]) -> list[RunRequest]:
    """The requests without repetitions, in order."""
    return list({one.key: one for one in requests}.values())
