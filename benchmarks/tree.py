"""Instances that the root does not close: how far the tree gets, by what it splits."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets.paper import real, with_pairs
from benchmarks.datasets.published import data_dir
from benchmarks.environment import about
from benchmarks.objective import recomputed_cost, violated_pairs
from benchmarks.tables import show
from certikmeans import Problem, solve
from certikmeans.events import Event, TreeProgress
from certikmeans.generate import random_pairs

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "tree.jsonl"
LIMIT = 40.0


@dataclass(frozen=True)
class Hard:
    """An instance by recipe, and the gap to prove."""

    name: str
    make: Callable[[], Problem | None]
    gap: float = 1e-3


def _noise(n: int, d: int, k: int, seed: int, *, uniform: bool = False) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem.from_data(rng.uniform(size=(n, d)) if uniform else rng.normal(size=(n, d)), k)


def _dense(n: int, d: int, k: int, n_pairs: int, seed: int) -> Problem:
    """Uniform points with cannot-links drawn from random classes: they cut across the geometry."""
    rng = np.random.default_rng(seed)
    points, classes = rng.uniform(size=(n, d)), rng.integers(k, size=n)
    _, cannot = random_pairs(classes, 0, n_pairs, seed=seed)
    return Problem.from_data(points, k, cannot_link=cannot)


def _wine() -> Problem:
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

    return Problem.from_data(StandardScaler().fit_transform(load_wine().data), 3)


def _skin(directory: Path | None) -> Problem | None:
    data = None if directory is None else real("skin_8", directory)
    return None if data is None else with_pairs(data, "CL")


def instances(directory: Path | None, small: bool) -> Iterator[Hard]:
    """K >= 5, many axes, dense cannot-links, uniform data, small n, tight gaps."""
    yield Hard("uniform n=60 d=3 K=5, 120 random CL", lambda: _dense(60, 3, 5, 120, 2), 1e-4)
    if small:
        return
    yield Hard("normal n=100 d=5 K=8", lambda: _noise(100, 5, 8, 0))
    yield Hard("normal n=100 d=5 K=8, another", lambda: _noise(100, 5, 8, 1))
    yield Hard("uniform n=150 d=3 K=6", lambda: _noise(150, 3, 6, 0, uniform=True), 1e-5)
    yield Hard("uniform n=200 d=2 K=10", lambda: _noise(200, 2, 10, 1, uniform=True), 1e-5)
    yield Hard("uniform n=80 d=2 K=5, 300 random CL", lambda: _dense(80, 2, 5, 300, 0), 1e-4)
    yield Hard("uniform n=400 d=2 K=4, 400 random CL", lambda: _dense(400, 2, 4, 400, 1))
    yield Hard("normal n=60 d=7 K=5", lambda: _noise(60, 7, 5, 0))
    yield Hard("normal n=150 d=7 K=3", lambda: _noise(150, 7, 3, 0))
    yield Hard("normal n=200 d=10 K=3", lambda: _noise(200, 10, 3, 0))
    yield Hard("standardised wine n=178 d=13 K=3", _wine)
    yield Hard("Skin_8 n=80,000 d=3 K=3, n/4 CL", lambda: _skin(directory), 1e-4)


def measure(hard: Hard, branching: str, limit: float, seed: int) -> dict[str, Any] | None:
    """Solve with one way of branching; None where the data are absent."""
    problem = hard.make()
    if problem is None:
        return None
    at_root: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, TreeProgress) and event.nodes == 1:
            at_root.append(event.lower_bound)

    result = solve(
        problem, gap=hard.gap, branching=branching, time_limit=limit, seed=seed, callbacks=[listen]
    )
    assert result.labels is not None
    assert violated_pairs(problem, result.labels) == 0
    cost = recomputed_cost(problem, result.labels)
    bound = at_root[0] if at_root else result.lower_bound
    return {
        "name": hard.name,
        "branching": branching,
        "requested_gap": hard.gap,
        "cost": cost,
        "lower_bound": result.lower_bound,
        "root_gap": (cost - bound) / cost,
        "gap": result.gap,
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
    limit = getattr(arguments, "limit", None) or (5.0 if arguments.small else LIMIT)
    solve(_noise(12, 2, 3, 0), bound="cluster", gap=1e-9, branching="centers", node_limit=5)
    solve(_noise(12, 2, 3, 0), bound="cluster", gap=1e-9, branching="pairs", node_limit=5)
    for hard in instances(directory, arguments.small):
        for branching in ("pairs", "centers"):
            row = measure(hard, branching, limit, arguments.seed)
            if row is None:
                print(f"{hard.name}: skipped, its file is not here")
                break
            print(
                f"{hard.name}, {branching}: root {row['root_gap']:.2e}, end {row['gap']:.2e},"
                f" {row['nodes']} nodes, {row['seconds']:.1f} s ({row['stop_reason']})",
                flush=True,
            )
            if not arguments.small:
                with RESULTS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    if not arguments.small:
        print(f"wrote {write_report()}")


def write_report() -> Path:
    """Write the page from the results; of rows measured twice, the last."""
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    latest = {(row["name"], row["branching"]): row for row in rows}
    table = show(
        ["instance", "asked", "branching", "root gap", "final gap", "nodes", "seconds", "ended by"],
        [
            [
                row["name"], f"{row['requested_gap']:.0e}", row["branching"],
                f"{100 * row['root_gap']:.3g} %", f"{100 * row['gap']:.3g} %", row["nodes"],
                f"{row['seconds']:.1f}", row["stop_reason"].replace("_", " "),
            ]
            for row in latest.values()
        ],
    )  # fmt: skip
    page = RESULTS.with_suffix(".md")
    page.write_text(
        "# The tree on instances that the root does not close\n\n"
        f"`python -m benchmarks tree`, {rows[-1]['limit']:.0f} s per row, "
        f"{rows[-1]['about']['cores']} cores. `pairs` splits on a pair of points (together or "
        "apart), `centers` on the box of a centre.\n\n"
        f"{table}\n"
    )
    return page


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    command.add_argument("--limit", type=float, default=None, help="seconds per row")
