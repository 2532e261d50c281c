"""The bundle against the linear program whose dual it climbs, on cases small enough to list."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from certikmeans import Problem, solve

GAP = 1e-4


def relaxed_cost(problem: Problem) -> float:
    """Cheapest mixture of clusters that holds every point once, at most K in all: by listing."""
    n = problem.n_points
    inside = ((np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1).astype(float)
    first, second = problem.cannot_link.T
    inside = inside[~(inside[:, first] * inside[:, second]).any(axis=1)]
    sizes = inside.sum(axis=1)
    means = inside @ problem.points / sizes[:, None]
    squares = (problem.points**2).sum(axis=1)
    costs = inside @ squares - sizes * (means**2).sum(axis=1)
    found = linprog(
        costs,
        A_eq=inside.T,
        b_eq=np.ones(n),
        A_ub=np.ones((1, len(costs))),
        b_ub=[problem.n_clusters],
    )
    return float(found.fun)


@pytest.mark.parametrize("n_pairs", [0, 6, 14])
@pytest.mark.parametrize("seed", range(4))
def test_the_root_reaches_the_optimum_of_the_relaxation(seed, n_pairs):
    rng = np.random.default_rng([seed, n_pairs])
    points = rng.uniform(size=(11, 2))
    pairs = np.stack(np.triu_indices(11, 1), axis=1)
    apart = pairs[rng.choice(len(pairs), n_pairs, replace=False)]
    problem = Problem.from_data(points, 6, cannot_link=apart)
    relaxed = relaxed_cost(problem)

    result = solve(problem, gap=GAP, bound="cluster", node_limit=1)

    assert result.lower_bound <= relaxed * (1.0 + 1e-9)
    assert result.lower_bound >= relaxed * (1.0 - GAP)
