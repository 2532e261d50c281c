"""Instances that the cluster bound does not close at the root: how far each tree gets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.answers import relative_gap
from benchmarks.datasets.published import data_dir
from benchmarks.datasets.recipes import crossed, noise, real_with_pairs, standardised_wine
from benchmarks.environment import about
from benchmarks.objective import recomputed_cost, violated_pairs
from benchmarks.pages import wrapped
from benchmarks.solvers.base import tiny_problem
from benchmarks.tables import show
from certikmeans import Problem, solve
from certikmeans.events import Event, TreeProgress

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "tree.jsonl"
LIMIT = 40.0
SMALL_LIMIT = 4.0

Setting = tuple[str, str]
DEFAULTS: Setting = ("auto", "auto")
SETTINGS: tuple[Setting, ...] = (("cluster", "pairs"), ("cluster", "centers"), DEFAULTS)
"""Bound and branching. The first two differ in the branching alone: ``bound="auto"`` may turn to
the semidefinite bound, but not where centres are branched on."""


@dataclass(frozen=True)
class Hard:
    """An instance by recipe, the gap to prove, and what to prove it with."""

    name: str
    make: Callable[[], Problem | None]
    gap: float = 1e-3
    settings: tuple[Setting, ...] = SETTINGS


def open_at_the_root(small: bool) -> Iterator[Hard]:
    """K >= 5, many axes, dense cannot-links, small n, tight gaps."""
    yield Hard("uniform n=60 d=3 K=5, 120 random CL", partial(crossed, 60, 3, 5, 120, 2), 1e-4)
    if small:
        return
    yield Hard("normal n=100 d=5 K=8", partial(noise, 100, 5, 8))
    yield Hard("normal n=100 d=5 K=8, another", partial(noise, 100, 5, 8, 1))
    yield Hard("uniform n=80 d=2 K=5, 300 random CL", partial(crossed, 80, 2, 5, 300), 1e-4)
    yield Hard("uniform n=400 d=2 K=4, 400 random CL", partial(crossed, 400, 2, 4, 400, 1))
    yield Hard("normal n=60 d=7 K=5", partial(noise, 60, 7, 5))
    yield Hard("normal n=150 d=7 K=3", partial(noise, 150, 7, 3))
    yield Hard("normal n=200 d=10 K=3", partial(noise, 200, 10, 3))
    yield Hard("standardised wine n=178 d=13 K=3", standardised_wine)


def closed_at_the_root(directory: Path | None, small: bool) -> Iterator[Hard]:
    """Large, with a gap ten times tighter than the default; branching plays no part."""
    if not small:
        make = partial(real_with_pairs, directory, "skin_8", "CL")
        yield Hard("Skin_8 n=80,000 d=3 K=3, n/4 CL", make, 1e-4, (DEFAULTS,))


def measure(hard: Hard, setting: Setting, limit: float, seed: int) -> dict[str, Any] | None:
    """Solve with one bound and one way of branching; None where the data are absent."""
    problem = hard.make()
    if problem is None:
        return None
    at_root: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, TreeProgress) and event.nodes == 1:
            at_root.append(event.lower_bound)

    bound, branching = setting
    result = solve(
        problem,
        gap=hard.gap,
        bound=bound,
        branching=branching,
        time_limit=limit,
        seed=seed,
        callbacks=[listen],
    )
    assert result.labels is not None
    assert violated_pairs(problem, result.labels) == 0
    cost = recomputed_cost(problem, result.labels)
    return {
        "name": hard.name,
        "asked": setting,
        "requested_gap": hard.gap,
        "cost": cost,
        "lower_bound": result.lower_bound,
        "root_gap": relative_gap(cost, at_root[0] if at_root else result.lower_bound),
        "gap": relative_gap(cost, result.lower_bound),
        "nodes": result.nodes,
        "seconds": result.seconds["total"],
        "stop_reason": str(result.stop_reason),
        "bound": result.bound,
        "limit": limit,
        "about": about(seed),
    }


def main(arguments: argparse.Namespace) -> None:
    """Run, append to the results, and write the page."""
    directory = data_dir(arguments.data_dir)
    small = arguments.small
    limit = SMALL_LIMIT if small else arguments.limit
    if small or not arguments.report_only:
        for bound, branching in (*SETTINGS[:2], ("sdp", "pairs")):
            solve(tiny_problem(), bound=bound, gap=1e-9, branching=branching, node_limit=5)
        for hard in (*open_at_the_root(small), *closed_at_the_root(directory, small)):
            _run(hard, limit, arguments.seed, None if small else RESULTS)
    if not small:
        print(f"wrote {write_report(RESULTS)}")


def _run(hard: Hard, limit: float, seed: int, results: Path | None) -> None:
    for setting in hard.settings:
        row = measure(hard, setting, limit, seed)
        if row is None:
            print(f"{hard.name}: skipped, its file is not here")
            return
        print(
            f"{hard.name}, {' and '.join(setting)}: root {row['root_gap']:.2e},"
            f" end {row['gap']:.2e} by {row['bound']}, {row['nodes']} nodes,"
            f" {row['seconds']:.1f} s ({row['stop_reason']})",
            flush=True,
        )
        if results is not None:
            with results.open("a") as file:
                file.write(json.dumps(row, allow_nan=False) + "\n")


INTRODUCTION = """# The tree

Written by `python -m benchmarks tree --limit {limit:g}` from `tree.jsonl`: {limit:g} s per row, \
{cores} cores, commit {commit}, seed {seed}. A row is one call of `solve`; `asked bound` and \
`asked branching` are the settings it was given, `proven by` is the bound that its final value \
came from. `pairs` splits on a pair of points (together or apart), `centers` on the box of a \
centre. Rows with bound `cluster` differ in the branching alone. `auto` and `auto` are the \
defaults, what a user gets: pairs here, and the semidefinite bound `sdp` where `cluster` leaves \
more than 1 % at the root of a small instance.

The root gap is that before the first branching, both gaps with the row's own cost, recomputed by \
the benchmark.
"""


def write_report(results: Path) -> Path:
    """Write the page beside the results: the last row of each kind with the last row's limit."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    limit, here = rows[-1]["limit"], rows[-1]["about"]
    # Rows from before the bound was part of what is asked for answer another question.
    asked = [row for row in rows if row["limit"] == limit and "asked" in row]
    latest = {(row["name"], *row["asked"]): row for row in asked}
    commits = ", ".join(sorted({row["about"]["commit"] for row in latest.values()}))
    parts = [
        INTRODUCTION.format(limit=limit, **{**here, "commit": commits}),
        "## Instances that `cluster` does not close at the root\n",
        _table(open_at_the_root(small=False), latest),
        "## Closed at the root\n",
        "Nothing is left to branch on, so only the defaults were run.\n",
        _table(closed_at_the_root(None, small=False), latest),
    ]
    page = results.with_suffix(".md")
    page.write_text(wrapped("\n".join(parts)))
    return page


def _table(instances: Iterator[Hard], latest: dict[tuple[str, ...], dict[str, Any]]) -> str:
    keys = [(hard.name, *setting) for hard in instances for setting in hard.settings]
    header = ["instance", "asked gap", "asked bound", "asked branching", "proven by", "root gap",
              "final gap", "nodes", "seconds", "ended by"]  # fmt: skip
    body = [
        [
            row["name"], f"{100 * row['requested_gap']:g} %", *row["asked"], row["bound"],
            f"{100 * row['root_gap']:.3g} %", f"{100 * row['gap']:.3g} %", row["nodes"],
            f"{row['seconds']:.1f}", row["stop_reason"].replace("_", " "),
        ]
        for row in (latest[key] for key in keys if key in latest)
    ]  # fmt: skip
    return show(header, body) + "\n"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    command.add_argument("--limit", type=float, default=LIMIT, help="seconds per row")
    command.add_argument("--report-only", action="store_true", help="write the page, run nothing")
