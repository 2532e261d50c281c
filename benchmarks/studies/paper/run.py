"""``python -m benchmarks paper --table NAME``: run rows, then write the page.

Every solver has a limit of its own (`experiments.LIMITS`). ``--limit 10`` gives all of them
10 seconds instead, ``--limit-of scip=30 --limit-of heuristics=15`` some of them another one.
"""

from __future__ import annotations

import argparse
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.datasets.paper import Instance
from benchmarks.results import RunRequest
from benchmarks.solvers.registry import HEURISTICS
from benchmarks.studies.paper.experiments import EXPERIMENTS, LIMITS, estimate_minutes, requests
from benchmarks.studies.paper.report import write_report
from benchmarks.study import Scope, Study


def add_options(command: argparse.ArgumentParser) -> None:
    """The options of this study."""
    command.add_argument(
        "--table", choices=[*EXPERIMENTS, "all"], default="all", help="which table of the paper"
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


def rows(scope: Scope) -> Iterator[RunRequest]:
    """The selected tables; if small, one instance of the density study."""
    options = scope.options
    if scope.small:
        yield from requests("density", only="Syn-1200 ML |")
        return
    limit_of = dict(ChainMap(*reversed(options.limit_of)))
    for name in EXPERIMENTS if options.table == "all" else (options.table,):
        for one in requests(name, limit=options.limit, limit_of=limit_of):
            assert isinstance(one.instance, Instance)
            yield replace(one, instance=one.instance.with_pairs_of(scope.directory))


def _estimate(wanted: Sequence[RunRequest]) -> str:
    likely, most = estimate_minutes(wanted)
    return f"about {likely:.0f} minutes, at most {most:.0f}"


STUDY = Study(
    name="paper",
    what="the paper's tables beside ours, written to docs/benchmarks",
    rows=rows,
    write=write_report,
    add_options=add_options,
    small_limit=2.0,
    per_commit=False,  # hours for the whole: rows are measured again where --again says so
    own_limits=True,
    estimate=_estimate,
)
