"""``python -m benchmarks paper --table NAME``: run rows, then write the page.

Every solver has a limit of its own (`experiments.LIMITS`). ``--limit 10`` gives all of them
10 seconds instead, ``--limit-of scip=30 --limit-of heuristics=15`` some of them another one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import ChainMap
from pathlib import Path

from benchmarks.answers import SKIPPED, load
from benchmarks.datasets.published import data_dir
from benchmarks.paper.experiments import EXPERIMENTS, LIMITS, estimate_minutes, requests
from benchmarks.paper.report import write_report
from benchmarks.runner import run_all, unique
from benchmarks.solvers.registry import HEURISTICS

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "paper.jsonl"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    command.add_argument(
        "--table", choices=[*EXPERIMENTS, "all"], default="all", help="which table of the paper"
    )
    command.add_argument(
        "--limit", type=float, default=None, help="seconds per row, whatever the solver"
    )
    command.add_argument(
        "--limit-of",
        type=_limit_of,
        action="append",
        default=[],
        metavar="SOLVER=SECONDS",
        help=f"seconds per row of one solver ({', '.join(LIMITS)}) or of all 'heuristics'; "
        "repeatable, goes before --limit",
    )
    command.add_argument("--only", default=None, help="rows whose title contains this")
    command.add_argument("--results", type=Path, default=RESULTS, help="where rows are appended")
    command.add_argument("--again", action="store_true", help="also rows that are there already")
    command.add_argument("--report-only", action="store_true", help="write the page, run nothing")


def _limit_of(text: str) -> dict[str, float]:
    """Solvers and their limit.

    >>> _limit_of("scip=30")
    {'scip': 30.0}
    """
    name, _, seconds = text.partition("=")
    solvers = HEURISTICS if name == "heuristics" else (name,)
    try:
        limit = float(seconds)
    except ValueError:
        limit = 0.0
    if not limit > 0.0 or not LIMITS.keys() >= set(solvers):
        known = ", ".join((*LIMITS, "heuristics"))
        raise argparse.ArgumentTypeError(f"{text!r} is not SOLVER=SECONDS; solvers: {known}")
    return dict.fromkeys(solvers, limit)


def main(arguments: argparse.Namespace) -> None:
    """Estimate, run, report."""
    if arguments.small:
        _smoke(arguments.seed)
        return
    directory = data_dir(arguments.data_dir)
    if directory is None:
        print("the real data sets are not here (--data-dir): synthetic and Iris rows only")
    names = EXPERIMENTS if arguments.table == "all" else (arguments.table,)
    wanted = unique(
        [
            request
            for name in names
            for request in requests(
                name,
                limit=arguments.limit,
                limit_of=dict(ChainMap(*reversed(arguments.limit_of))),
                seed=arguments.seed,
                only=arguments.only,
            )
        ]
    )
    if not arguments.report_only:
        done = {row.key for row in load(arguments.results) if row.stop_reason != SKIPPED}
        pending = [one for one in wanted if arguments.again or one.key not in done]
        likely, most = estimate_minutes(pending)
        sys.stderr.write(
            f"{len(pending)} of {len(wanted)} rows to run: about {likely:.0f} minutes, "
            f"at most {most:.0f}; interrupt and run again to go on from there\n"
        )
        run_all(pending, arguments.results, directory, again=arguments.again)
    page = write_report(load(arguments.results), arguments.results.parent)
    print(f"wrote {page}")


def _smoke(seed: int) -> None:
    """A few small rows into a folder that is thrown away."""
    wanted = requests("density", limit=2.0, seed=seed, only="Syn-1200 ML |")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "paper.jsonl"
        run_all(wanted, results, None)
        write_report(load(results), Path(folder))
