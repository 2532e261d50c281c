"""Validation and presolve at the paper's largest sizes."""

from __future__ import annotations

import argparse
import time

from benchmarks.pages import show
from certikmeans import Problem, StopSignal
from certikmeans.generate import gaussian_clusters, random_pairs
from certikmeans.presolve.pipeline import presolve


def main(arguments: argparse.Namespace) -> None:
    """Print seconds for must-links, cannot-links and both, n/4 of each kind."""
    n_points = 15_000 if arguments.small else 1_500_000
    points, labels = gaussian_clusters(n_points, seed=1)
    must, cannot = random_pairs(labels, n_points // 4, n_points // 4, seed=1)
    presolve(Problem.from_data(points[:9], 3, cannot_link=[(0, 1)]), StopSignal())
    rows = []
    for name, pairs in {
        "ML": {"must_link": must},
        "CL": {"cannot_link": cannot},
        "ML+CL": {"must_link": must, "cannot_link": cannot},
    }.items():
        began = time.perf_counter()
        problem = Problem.from_data(points, 3, **pairs)
        stated = time.perf_counter()
        presolve(problem, StopSignal())
        rows.append([name, f"{stated - began:.2f}", f"{time.perf_counter() - stated:.2f}"])
    print(f"n = {n_points:,}, d = 2, K = 3")
    print(show(["pairs", "validate (s)", "presolve (s)"], rows))
