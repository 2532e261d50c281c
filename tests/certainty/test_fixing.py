"""Bound on the number of reassigned points: the knapsack compared with enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certikmeans.certainty.fixing import knapsack_steps, max_knapsack_gain


def max_gain(component, gain, cost, budget):
    """Largest gain of a set, where a component costs as much as its dearest member."""
    best = 0.0
    for chosen in product((False, True), repeat=len(gain)):
        taken = np.array(chosen)
        total = sum(cost[taken & (component == q)].max(initial=0.0) for q in set(component))
        if total <= budget:
            best = max(best, float(gain[taken].sum()))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_knapsack_bound_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    component = np.sort(rng.integers(4, size=7))
    gain = rng.integers(1, 5, size=7) / rng.choice([1.0, 3.0])
    cost = rng.choice([0.0, 0.5, 1.0, 2.0, 7.0], size=7) * 10.0 ** rng.integers(-200, 3)
    for share in (0.0, 0.2, 0.5, 1.0):
        budget = share * float(cost.sum())
        bound = max_knapsack_gain(*knapsack_steps(component, gain, cost), budget)
        best = max_gain(component, gain, cost, budget)
        sharing = np.bincount(component)[component]

        assert best <= bound
        # At most the bound with the cost of a component divided among its members.
        assert bound <= max_knapsack_gain(gain, cost / sharing, budget) * (1.0 + 1e-12)


def test_knapsack_cheap_and_dear_group():
    component, gain, cost = np.array([0, 0, 1]), np.ones(3), np.array([1.0, 100.0, 1.0])
    assert max_knapsack_gain(*knapsack_steps(component, gain, cost), 2.0) == pytest.approx(2.0)
    assert max_knapsack_gain(*knapsack_steps(component, gain, cost), 1.0) == pytest.approx(1.0)
