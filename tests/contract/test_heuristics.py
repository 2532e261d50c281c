"""Every heuristic keeps the promises of its base class."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

from certikmeans import heuristics
from certikmeans.heuristics._template import Template
from certikmeans.heuristics.base import AbstractHeuristic
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.heuristics.genetic_search import GeneticBudget, GeneticSearch
from certikmeans.heuristics.set_partitioning import SetPartitioningHeuristic
from certikmeans.heuristics.swap_search import SwapBudget, SwapSearch
from certikmeans.testing.contracts import check_heuristic, make_heuristic_context
from certikmeans.testing.instances import feasible_problem


@dataclass(frozen=True)
class Column:
    center: np.ndarray
    members: np.ndarray
    cost: float


def random_columns(ctx, seed):
    """Clusters of the feasible labels, and random independent sets, as a bound might find them."""
    problem = ctx.problem
    rng = np.random.default_rng(seed)
    chosen = [ctx.feasible_labels == k for k in np.unique(ctx.feasible_labels)]
    near = np.zeros((problem.n_groups, problem.n_groups), dtype=bool)
    tails, heads = problem.graph.edges().T
    near[tails, heads] = near[heads, tails] = True
    for _ in range(8):
        members = np.zeros(problem.n_groups, dtype=bool)
        for i in rng.permutation(problem.n_groups)[: rng.integers(1, problem.n_groups + 1)]:
            members[i] = not near[i, members].any()
        chosen.append(members)
    for members in chosen:
        center = problem.cluster_means(np.where(members, 0, 1))[0]
        away = problem.weights[members, None] * (problem.points[members] - center) ** 2
        yield Column(center, members.astype(np.uint8), float(np.sum(away)))


def column_search(problem, seed):
    ctx = make_heuristic_context(problem, seed=seed)
    return SetPartitioningHeuristic(list(random_columns(ctx, seed)), ctx.feasible_labels)


# How each is made for a problem and a seed.
MAKERS = {
    Template: lambda problem, seed: Template(),
    DefaultSearch: lambda problem, seed: DefaultSearch(),
    GeneticSearch: lambda problem, seed: GeneticSearch(
        GeneticBudget(starts=4, offspring=8, max_no_improve=8)
    ),
    SwapSearch: lambda problem, seed: SwapSearch(SwapBudget(starts=4, max_no_improve=8, trials=60)),
    SetPartitioningHeuristic: column_search,
}


def test_every_heuristic_is_here():
    for module in iter_modules(heuristics.__path__):
        import_module(f"certikmeans.heuristics.{module.name}")
    found = {kind for kind in AbstractHeuristic.__subclasses__() if _in_the_package(kind)}
    assert found == set(MAKERS)
    assert len({kind.name for kind in found}) == len(found)


def _in_the_package(kind):
    return kind.__module__.startswith("certikmeans.")


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", range(60))
def test_contract(kind, seed):
    problem = feasible_problem(seed, largest=9)
    check_heuristic(MAKERS[kind](problem, seed), problem, seed=seed)
