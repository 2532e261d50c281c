"""A study is instances x solvers x page; this module has what studies share.

To add one: a file in ``benchmarks/studies`` with a `Study` (see ``studies/incumbents.py`` for
the shortest). ``python -m benchmarks`` discovers it.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets.base import AbstractInstance
from benchmarks.datasets.published import data_dir
from benchmarks.environment import commit
from benchmarks.results import ResultRow, RunRequest, load
from benchmarks.runner import pending, run_all, unique
from benchmarks.solvers.base import AbstractSolver

PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
OVERHEAD_SECONDS = 5.0  # start of a process, instance, compiled code


@dataclass(frozen=True)
class Scope:
    """What a run is about: real data or none, small or whole, and the options given."""

    directory: Path | None
    small: bool
    options: argparse.Namespace


def product(
    instances: Iterable[AbstractInstance], solvers: Sequence[AbstractSolver], limit: float
) -> list[RunRequest]:
    """Every solver on every instance, solvers of an instance one after the other."""
    return [RunRequest(one, solver, limit) for one in instances for solver in solvers]


def worst_case_estimate(requested: Sequence[RunRequest]) -> str:
    """How long the rows take if each uses up its limit."""
    most = sum(one.limit + OVERHEAD_SECONDS for one in requested) / 60
    return f"at most {most:.0f} minutes"


def no_options(command: argparse.ArgumentParser) -> None:
    """No more than every study has."""


@dataclass(frozen=True)
class Study:
    """Which rows there are, and how they become a page.

    Parameters
    ----------
    name : str
        Of the command, the results file and the page.
    what : str
        One line for the help.
    rows : callable
        Given a `Scope`, the requests: instances x solvers, each with its limit.
    write : callable
        Writes ``name.md``, and pictures, into a directory, from rows alone; returns the page.
    add_options : callable
        Adds options that this study alone has.
    small_limit : float
        Seconds per row at most, with ``--small``.
    per_commit : bool
        Whether rows measured at another commit count as missing. Otherwise a row stays.
    isolated : bool
        Whether every row gets a process of its own.
    kept : bool
        Whether rows and page are kept in ``docs/benchmarks``; otherwise the page is printed.
    own_limits : bool
        Whether ``rows`` heeds ``--limit`` itself.
    estimate : callable
        Says how long rows will take.
    """

    name: str
    what: str
    rows: Callable[[Scope], Iterable[RunRequest]]
    write: Callable[[Sequence[ResultRow], Path], Path]
    add_options: Callable[[argparse.ArgumentParser], None] = no_options
    small_limit: float = 4.0
    per_commit: bool = True
    isolated: bool = True
    kept: bool = True
    own_limits: bool = False
    estimate: Callable[[Sequence[RunRequest]], str] = worst_case_estimate

    @property
    def results(self) -> Path:
        """Default results file."""
        return PAGES / f"{self.name}.jsonl"

    def add_arguments(self, command: argparse.ArgumentParser) -> None:
        """The options of every study, and those of this one."""
        command.add_argument("--only", default=None, help="rows whose title contains this")
        command.add_argument("--limit", type=float, default=None, help="seconds per row")
        command.add_argument(
            "--limit-factor", type=float, default=1.0, help="times the seconds that rows have"
        )
        command.add_argument(
            "--results",
            type=Path,
            default=None,
            help="where rows are appended; the page goes beside it",
        )
        command.add_argument("--again", action="store_true", help="also rows already there")
        command.add_argument(
            "--report-only", action="store_true", help="write the page, run nothing"
        )
        self.add_options(command)

    def requests(self, scope: Scope) -> list[RunRequest]:
        """Select rows, limits and seed by the arguments."""
        options, found = scope.options, []
        for one in self.rows(scope):
            if options.only is not None and options.only.lower() not in one.title.lower():
                continue
            limit = one.limit
            if options.limit is not None and not self.own_limits:
                limit = options.limit
            limit *= options.limit_factor
            if scope.small:
                limit = min(limit, self.small_limit)
            found.append(dataclasses.replace(one, limit=limit, seed=options.seed))
        return unique(found)

    def main(self, options: argparse.Namespace) -> None:
        """Run the selected rows, then write the page."""
        directory = data_dir(options.data_dir)
        if directory is None:
            print("the real data sets are not here (--data-dir): rows without them only")
        scope = Scope(directory, options.small, options)
        if options.small or not self.kept:
            with tempfile.TemporaryDirectory() as folder:
                text = self._measure(scope, Path(folder) / self.results.name).read_text()
                shown = f"a page of {len(text.splitlines())} lines, not kept"
                print(shown if self.kept else text)
        else:
            print(f"wrote {self._measure(scope, options.results or self.results)}")

    def _measure(self, scope: Scope, results: Path) -> Path:
        options = scope.options
        if scope.small or not options.report_only:
            requested = self.requests(scope)
            here = commit() if self.per_commit else None
            rest = pending(requested, load(results), again=options.again, commit=here)
            sys.stderr.write(
                f"{len(rest)} of {len(requested)} rows to run, {self.estimate(rest)}; "
                "interrupt and run again to continue\n"
            )
            run_all(rest, results, scope.directory, again=True, isolated=self.isolated)
        return self.write(load(results), results.parent)
