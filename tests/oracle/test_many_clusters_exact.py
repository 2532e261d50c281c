"""Many clusters and colors, and empty clusters, against exact optima."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.testing.oracle import exact_cost, respects


def best_cost(problem):
    """Least cost of a partition into at most K sets without cannot-links; None: there is none.

    A table over all subsets, in fractions: few points with any number of clusters.
    """
    n = problem.n_points
    apart = [0] * n
    for i, j in problem.cannot_link.tolist():
        apart[i] |= 1 << j
        apart[j] |= 1 << i
    alone = {}
    for subset in range(1, 1 << n):
        members = [i for i in range(n) if subset >> i & 1]
        if not any(apart[i] & subset for i in members):
            labels = np.zeros(len(members), dtype=int)
            alone[subset] = exact_cost(problem.points[members], problem.weights[members], labels)
    full = (1 << n) - 1
    best = {0: Fraction(0)}
    for _ in range(problem.n_clusters):
        found = dict(best)
        for covered, cost in best.items():
            rest = full & ~covered
            first = rest & -rest  # the first point that is left goes into the next set
            inner = rest & ~first
            subset = inner
            while first:
                more = first | subset
                if more in alone:
                    total = cost + alone[more]
                    if covered | more not in found or total < found[covered | more]:
                        found[covered | more] = total
                if subset == 0:
                    break
                subset = (subset - 1) & inner
        best = found
    return best.get(full)


def nearly_alone(rng):
    """K close to n."""
    n = int(rng.integers(5, 9))
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.2]
    return n, int(rng.integers(n - 3, n)), pairs


def many_colours(rng):
    """Dense cannot-links: nearly all pairs, or all pairs between parts."""
    n = int(rng.integers(6, 9))
    if rng.random() < 0.5:
        pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.75]
    else:
        domain = rng.integers(n // 2 + 1, size=n)
        pairs = [(i, j) for i, j in combinations(range(n), 2) if domain[i] != domain[j]]
    return n, int(rng.integers(4, n)), pairs


def left_over(rng):
    """More clusters than places."""
    return int(rng.integers(6, 9)), int(rng.integers(4, 6)), []


def draw(kind, seed):
    """Draw until there is a labelling."""
    for number in range(1_000):
        rng = np.random.default_rng([seed, number])
        n, k, pairs = kind(rng)
        points = rng.normal(size=(n, int(rng.integers(1, 4)))) * 10.0 ** rng.integers(-3, 4)
        if kind is left_over:
            points = points[rng.integers(3, size=n)]
        elif rng.random() < 0.3:
            points[0] = points[1]
        points += rng.choice([0.0, 1e4, 1e8])
        weights = rng.uniform(0.1, 3.0, size=n) if rng.random() < 0.5 else None
        problem = Problem.from_data(points, k, cannot_link=pairs, weights=weights)
        optimum = best_cost(problem)
        if optimum is not None:
            return problem, optimum
    raise AssertionError("no feasible problem")


@pytest.mark.parametrize("kind", [nearly_alone, many_colours, left_over])
@pytest.mark.parametrize("seed", range(12))
def test_bound_and_labels(kind, seed):
    problem, optimum = draw(kind, seed)
    scatter = float(exact_cost(problem.points, problem.weights, np.zeros(problem.n_points, int)))
    result = solve(problem, bound="cluster", gap=1e-6)

    assert Fraction(result.lower_bound) <= optimum
    assert respects(result.labels, problem.must_link, problem.cannot_link)
    found = exact_cost(problem.points, problem.weights, result.labels)
    assert optimum <= found <= Fraction(result.cost)
    # Points far from the origin have lost digits: rounding is all that may be missing.
    lost = 1e-13 * float(np.abs(problem.points).max()) ** 2 * float(problem.weights.sum())
    assert float(found - optimum) <= 1e-6 * float(optimum) + 1e-12 * scatter + lost
