"""The spectral way, for many axes: overlap and points elsewhere, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certainty.level import most_reduced_cost
from certikmeans.certainty.overlap import most_points_elsewhere, spectral_overlap
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost, feasible_labellings
from tests.certainty.every_labelling import check_every_statement


def blobs(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    k, d, n = int(rng.integers(2, 4)), int(rng.integers(3, 6)), 8
    middles = rng.normal(size=(k, d)) * rng.uniform(2.0, 8.0)
    points = middles[np.arange(n) % k] + rng.normal(size=(n, d)) * 0.6
    points += (0.0, 1e4)[seed % 2]
    weights = rng.integers(1, 4, n).astype(float) if seed % 3 == 0 else None
    cannot = [(0, 1), (1, 2 if k == 3 else 4)] if seed % 4 == 0 else None
    return Problem.from_data(points, k, cannot_link=cannot, weights=weights)


def overlap(weights, ours, theirs) -> Fraction:
    masses = [Fraction(float(w)) for w in weights]

    def weight(chosen) -> Fraction:
        return sum((m for m, c in zip(masses, chosen, strict=True) if c), Fraction(0))

    total = Fraction(0)
    for a in set(ours):
        for b in set(theirs):
            both = weight([x == a and y == b for x, y in zip(ours, theirs, strict=True)])
            total += both**2 / weight([x == a for x in ours]) / weight([y == b for y in theirs])
    return total


def compared_labellings(problem: Problem, slack: float) -> int:
    """Compare every good labelling with what is said of them; 0: nothing is said."""
    result = solve(problem, jobs=1)
    done = presolve(problem, StopSignal())
    ours, k = done.reduce_labels(result.labels), problem.n_clusters
    most = most_reduced_cost(done, result.cost, slack)
    eta = spectral_overlap(done.reduced, ours, most, StopSignal())
    sizes = np.ones(done.reduced.n_groups, dtype=np.int64)
    elsewhere = most_points_elsewhere(done.reduced, ours, sizes, eta)
    if elsewhere is None:
        return 0
    compared = 0
    for labels in feasible_labellings(problem):
        cost = exact_cost(problem.points, problem.weights, labels)
        if cost > Fraction(result.cost) * (1 + Fraction(slack)):
            continue
        theirs = done.reduce_labels(np.array(labels))
        shared = overlap(done.reduced.weights, ours.tolist(), theirs.tolist())
        assert shared >= k - Fraction(eta)
        table = np.zeros((k, k))
        np.add.at(table, (ours, theirs), 1)
        same = max(
            sum(table[a, b] for a, b in enumerate(order)) for order in permutations(range(k))
        )
        assert problem.n_points - same <= elsewhere
        compared += 1
    return compared


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_overlap_of_every_good_labelling(first):
    slacks = (0.01, 0.1, 0.5)
    compared = [compared_labellings(blobs(i), slacks[i % 3]) for i in range(first, first + 20)]
    assert np.count_nonzero(compared) >= 10


def test_certainty_falls_back_to_it_with_many_axes():
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(3, 20)) * 6.0
    points = middles[np.arange(9) % 3] + 0.3 * rng.normal(size=(9, 20))
    problem = Problem.from_data(points, 3)
    result = solve(problem, bound="spectral", jobs=1)
    sure = result.certainty(0.01)
    assert check_every_statement(problem, result, sure) >= 1
    assert sure.method in ("spectral overlap", "regions of centres")
    assert sure.agreement > 0.5
