"""How many points can be elsewhere at once: the knapsack against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certikmeans.certainty.fixing import knapsack_steps, max_knapsack_gain


def most_by_enumeration(component, gain, price, budget):
    """The most gain of a set, where every component costs what its dearest member does."""
    best = 0.0
    for chosen in product((False, True), repeat=len(gain)):
        taken = np.array(chosen)
        cost = sum(price[taken & (component == q)].max(initial=0.0) for q in set(component))
        if cost <= budget:
            best = max(best, float(gain[taken].sum()))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_no_set_within_the_budget_has_more(seed):
    rng = np.random.default_rng(seed)
    component = np.sort(rng.integers(4, size=7))
    gain = rng.integers(1, 5, size=7) / rng.choice([1.0, 3.0])
    price = rng.choice([0.0, 0.5, 1.0, 2.0, 7.0], size=7) * 10.0 ** rng.integers(-200, 3)
    for share in (0.0, 0.2, 0.5, 1.0):
        budget = share * float(price.sum())
        bound = max_knapsack_gain(*knapsack_steps(component, gain, price), budget)
        best = most_by_enumeration(component, gain, price, budget)
        sharing = np.bincount(component)[component]

        assert best <= bound
        # Never more than if each of a component counted with its share.
        assert bound <= max_knapsack_gain(gain, price / sharing, budget) * (1.0 + 1e-12)


def test_a_cheap_group_is_paid_in_full_beside_a_dear_one():
    component, gain, price = np.array([0, 0, 1]), np.ones(3), np.array([1.0, 100.0, 1.0])
    assert max_knapsack_gain(*knapsack_steps(component, gain, price), 2.0) == pytest.approx(2.0)
    assert max_knapsack_gain(*knapsack_steps(component, gain, price), 1.0) == pytest.approx(1.0)
