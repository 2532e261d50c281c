"""Every heuristic keeps the promises of its base class."""

from __future__ import annotations

import pytest

from certikmeans.heuristics._template import Template
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.heuristics.population import Budget, Population
from certikmeans.testing.contracts import check_heuristic
from certikmeans.testing.instances import feasible_problem

HEURISTICS = [DefaultSearch(), Template(), Population(Budget(starts=4, offspring=8, patience=8))]


@pytest.mark.parametrize("heuristic", HEURISTICS, ids=lambda heuristic: heuristic.name)
@pytest.mark.parametrize("seed", range(60))
def test_contract(heuristic, seed):
    check_heuristic(heuristic, feasible_problem(seed, largest=9), seed=seed)
