"""Children of two labellings: centres of the one or of the other, pair by pair, one of them moved.

The model is HG-means (Gribel and Vidal 2019).
"""

from __future__ import annotations

import numpy as np

from certikmeans.heuristics.base import Centers
from certikmeans.heuristics.matching import nearest_partners
from certikmeans.kernels.lloyd.seeding import pick_by_cost
from certikmeans.problem import ReducedProblem


def child_of(
    problem: ReducedProblem, first: Centers, second: Centers, rng: np.random.Generator
) -> Centers:
    """Centres of either parent at random, paired by distance; then one is moved to where it pays.

    The centre that is moved goes to a group, drawn by what groups cost without it.
    """
    partner = nearest_partners(first, second)
    from_first = rng.random(len(first)) < 0.5
    child = np.where(from_first[:, None], first, second[partner])
    moved = int(rng.integers(len(child)))
    row = pick_by_cost(problem.points, problem.weights, child, moved, float(rng.random()))
    child[moved] = problem.points[row]
    return child


def crossed_by_a_line(first: Centers, second: Centers, rng: np.random.Generator) -> Centers:
    """Centres of the one on this side of a line, of the other beyond it."""
    partner = nearest_partners(first, second)
    along = (first + second[partner]) @ rng.normal(size=first.shape[1])
    share = rng.uniform(0.2, 0.8)
    mine = along <= np.quantile(along, share)
    return np.where(mine[:, None], first, second[partner])
