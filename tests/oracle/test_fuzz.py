"""Solves and forged certificates of every kind of constraint against exact optima."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from certikmeans.testing.oracle import brute_force
from tests.oracle.fuzz import KINDS, draw_problem, fuzz_forgery, fuzz_solve, statement_of


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, *range(100, 115)])
def test_solve(kind, seed):
    assert fuzz_solve(kind, seed)["solves"] == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, *range(100, 115)])
def test_forged_certificates(kind, seed):
    count = 8 if seed < 100 else 25
    counts = fuzz_forgery(kind, seed, count)
    assert counts["forged"] == count * counts["genuine"]


@pytest.mark.slow
def test_forgeries_are_accepted_where_they_are_true():
    """Otherwise the comparison with exact optima would compare nothing."""
    total: Counter[str] = Counter()
    for seed in range(200, 204):
        for kind in KINDS:
            total += fuzz_forgery(kind, seed)
    assert total["genuine accepted"] > 0.9 * total["genuine"] > 10
    assert total["forged accepted"] > 0.1 * total["forged"]
    assert total["claims next to the optimum"] > 10


@pytest.mark.parametrize("kind", KINDS)
def test_two_enumerations_agree(kind):
    """The table over sets of groups, and the one over labellings."""
    infeasible = 0
    for seed in range(4):
        problem = draw_problem(kind, seed)
        stated, best = statement_of(problem), brute_force(problem)
        infeasible += best is None
        assert stated.optimum() == (None if best is None else best[0])
        if best is not None:
            assert stated.cost(best[1]) == best[0]
            labels = np.random.default_rng(seed).integers(problem.n_clusters, size=len(best[1]))
            cost = stated.cost(labels)
            assert cost is None or cost >= Fraction(best[0])
    assert infeasible < 4
