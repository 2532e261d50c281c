"""When not to use it: what certikmeans does on problems that others are made for."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, final

import numpy as np

from benchmarks.datasets.base import BuiltInstance, Recipe
from benchmarks.datasets.recipes import noise
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, commits, latest
from benchmarks.solvers.base import AbstractSolver, SolverOutcome
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.solvers.heuristics import KMeansStarts, PairsAtAPrice
from benchmarks.study import Scope, Study
from certikmeans import Constraints, Problem
from certikmeans.generate import gaussian_clusters, random_pairs

LIMIT = 10.0
LARGE_LIMIT = 30.0
SECTIONS = {
    "noise": "No clusters in the data: points from one normal distribution",
    "wrong": "Pairs of which some are wrong: 1,000 pairs, the kind of 20 of them swapped",
    "plain": "No pairs, and no proof needed",
}


def wrong_pairs(n: int, directory: Path | None = None) -> BuiltInstance:
    """Clusters that overlap a little, n pairs of each kind, the kind of 2 % of them swapped.

    >>> wrong_pairs(100).problem.n_points
    100
    """
    points, classes = gaussian_clusters(n, n_clusters=3, spread=3.0, seed=4)
    must, cannot = random_pairs(classes, n, n, seed=4)
    swapped = n // 50
    problem = Problem.from_data(
        points,
        3,
        must_link=np.concatenate([must[swapped:], cannot[:swapped]]),
        cannot_link=np.concatenate([cannot[swapped:], must[:swapped]]),
    )
    return BuiltInstance(problem, classes, "drawn from classes, 2 % swapped")


def plain(n: int, d: int, k: int, directory: Path | None = None) -> BuiltInstance:
    """Clusters that overlap, without pairs."""
    points, classes = gaussian_clusters(n, d, k, spread=2.0, seed=0)
    return BuiltInstance(Problem.from_data(points, k), classes, "none")


@final
class Cleaned(AbstractSolver):
    """Removes a smallest set of pairs that contradict others, then solves."""

    name: ClassVar[str] = "conflicts removed, then certikmeans"

    def warm_up(self) -> None:
        """As ours."""
        CertikmeansSolver().warm_up()

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Both on the clock; the bound is one for the pairs that are left."""
        began = time.perf_counter()
        pairs = Constraints(problem.must_link, problem.cannot_link, problem.n_points)
        clean = pairs.conflicts(problem.n_clusters, time_limit=limit / 2).cleaned(pairs)
        cleaning = time.perf_counter() - began
        left = Problem.from_data(
            problem.points,
            problem.n_clusters,
            must_link=clean.must_link,
            cannot_link=clean.cannot_link,
        )
        answer = CertikmeansSolver().run(left, max(limit - cleaning, 1.0), seed)
        return dataclasses.replace(answer, seconds=answer.seconds + cleaning)


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Ours, and what to take instead."""
    for n, d, k in ((200, 5, 3),) if scope.small else ((1000, 2, 5), (1000, 10, 5), (1000, 50, 5)):
        instance = Recipe(f"{n:,} x {d}, K = {k}", partial(noise, n, d, k), {"section": "noise"})
        yield RunRequest(instance, CertikmeansSolver(), LIMIT)
    n = 100 if scope.small else 500
    instance = Recipe(f"{n:,} x 2, K = 3", partial(wrong_pairs, n), {"section": "wrong"})
    yield RunRequest(instance, CertikmeansSolver(), LIMIT)
    yield RunRequest(instance, PairsAtAPrice(), LIMIT)
    yield RunRequest(instance, Cleaned(), LIMIT)
    n = 1_000 if scope.small else 100_000
    instance = Recipe(f"{n:,} x 4, K = 10", partial(plain, n, 4, 10), {"section": "plain"})
    yield RunRequest(instance, CertikmeansSolver(), LARGE_LIMIT)
    yield RunRequest(instance, KMeansStarts(10), LARGE_LIMIT)


def _gap(row: ResultRow) -> str:
    """What is proven; where pairs were removed, about those that are left."""
    if row.cost is None:
        return ""
    if row.solver == Cleaned.name:
        return percent(row.details["claimed"]["gap"], " %, pairs left")
    return percent(row.gap, " %") or "no proof"


def _line(row: ResultRow) -> list[object]:
    found = "no labelling" if row.cost is None else f"{row.cost:,.2f}"
    broken = "" if row.pairs_broken is None else row.pairs_broken
    agreement = row.scores.get("ARI")
    return [
        row.instance,
        row.solver,
        found,
        _gap(row),
        broken,
        "" if agreement is None else f"{agreement:.2f}",
        "" if row.seconds is None else f"{row.seconds:.2g} s",
        row.stop_reason.replace("_", " "),
    ]


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """One table per section."""
    header = ["data", "method", "cost", "gap", "pairs broken", "agreement", "time", "ended"]
    found = list(latest(rows).values())
    parts = [
        "# When not to use it\n",
        "Written by `python -m benchmarks limits`. At most "
        f"{LIMIT:g} seconds per row ({LARGE_LIMIT:g} in the last table) on two cores, compilation "
        f"not counted, requested gap 0.1 %, commit {commits(found)}. Agreement is the "
        "adjusted Rand index with the classes that the points were drawn from.\n",
    ]
    for section, title in SECTIONS.items():
        lines = [_line(row) for row in found if row.facts.get("section") == section]
        if lines:
            parts += [f"## {title}\n", show(header, lines) + "\n"]
    parts.append(
        "Sizes of clusters and soft pairs are no part of the problem that is solved here, so there "
        "is nothing to measure; the guide names "
        "[tools for them](../guides/scikit-learn.md#what-it-does-not-do).\n"
    )
    return write_page(directory / "limits.md", parts)


STUDY = Study(
    name="limits",
    what="noise, wrong pairs, plain k-means: when not to use it",
    rows=rows,
    write=write_report,
)
