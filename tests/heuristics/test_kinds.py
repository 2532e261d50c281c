"""Heuristics under every kind of constraint: feasible, repeatable, optimal on tiny problems."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.assignment.label_search import LabelSearch
from certikmeans.generate import gaussian_clusters
from certikmeans.heuristics.annealed_search import AnnealedSearch, is_entangled
from certikmeans.heuristics.default import DefaultSearch, HeuristicParams
from certikmeans.heuristics.genetic_search import GeneticBudget, GeneticSearch
from certikmeans.heuristics.local_search import LocalSearch, draw_sample
from certikmeans.heuristics.swap_search import SwapBudget, SwapSearch
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_feasible, make_heuristic_context
from tests.assignment.kinds import KINDS, all_labellings, drawn_problem
from tests.assignment.test_label_search import entangled

SEARCHES = {
    "default": DefaultSearch,
    "genetic": lambda: GeneticSearch(GeneticBudget(starts=8, offspring=16, max_no_improve=16)),
    "swap": lambda: SwapSearch(SwapBudget(starts=8, max_no_improve=16, trials=80)),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_contract(name, kind, seed):
    problem, _ = drawn_problem(seed, kind, largest=7)
    ctx = make_heuristic_context(problem, seed=seed)
    search = SEARCHES[name]()
    labels = search.search(ctx)
    check_feasible(ctx.problem, labels)
    with ThreadPoolExecutor(2) as executor:
        assert np.array_equal(labels, search.search(ctx.replace(executor=executor)))
    evaluate = LabelSearch(ctx.problem).evaluate
    cost = evaluate(labels).cost
    assert cost <= evaluate(ctx.feasible_labels).cost * (1.0 + 1e-12)
    optimum = min(evaluate(one).cost for one in all_labellings(ctx.problem))
    assert cost == pytest.approx(optimum, rel=1e-9, abs=1e-9)
    no_time = StopSignal()
    no_time.interrupt()
    check_feasible(ctx.problem, search.search(ctx.replace(stop=no_time)))


@pytest.mark.parametrize("kind", KINDS)
def test_local_search_from_labels_is_never_worse(kind):
    problem, _ = drawn_problem(5, kind)
    ctx = make_heuristic_context(problem)
    evaluate = LabelSearch(ctx.problem).evaluate
    for search in (LocalSearch(ctx.problem, ctx.assigner), AnnealedSearch(ctx.problem)):
        found = search.from_labels(ctx.feasible_labels, ctx)
        check_feasible(ctx.problem, found.labels)
        assert found.cost <= evaluate(ctx.feasible_labels).cost * (1.0 + 1e-12)


def test_entangled_cannot_links_are_annealed():
    sparse, dense = entangled(200, 3, 150)[0], entangled(200, 3, 1_200)[0]
    for problem, expected in ((sparse, False), (dense, True)):
        ctx = make_heuristic_context(problem)
        assert is_entangled(ctx.problem, ctx.assigner) is expected


def test_entangled_labels_cost_no_more_than_the_classes():
    problem, classes = entangled(500, 10, 5_000)
    ctx = make_heuristic_context(problem)
    labels = DefaultSearch(HeuristicParams(work_budget=3e8)).search(ctx)
    check_feasible(ctx.problem, labels)
    evaluate = LabelSearch(ctx.problem).evaluate
    assert (
        evaluate(labels).cost
        <= evaluate(presolve(problem, StopSignal()).presolve_labels(classes)).cost
    )


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_feasible_problems_or_whole(kind):
    problem, _ = drawn_problem(2, kind)
    ctx = make_heuristic_context(problem)
    sample = draw_sample(ctx.problem, 5, np.random.default_rng(0))
    assert len(sample.rows) >= ctx.problem.n_clusters
    assert sample.problem.n_groups == len(sample.rows)


@pytest.mark.parametrize("kind", ["cannot_link_groups", "nothing"])
def test_large_data_with_sizes_are_sampled(kind):
    """Labels of a sample violate the scaled limits until they are repaired."""
    points, classes = gaussian_clusters(600, 2, 3, seed=4)
    given = {"cannot_link_groups": np.arange(600) // 3} if kind == "cannot_link_groups" else {}
    if given:
        points = points[np.argsort(classes, kind="stable").reshape(3, 200).T.ravel()]
    ctx = make_heuristic_context(Problem.from_data(points, 3, size_min=190, size_max=210, **given))
    params = HeuristicParams(max_direct_groups=400, sample_size=150, work_budget=1e7)
    labels = DefaultSearch(params).search(ctx)
    check_feasible(ctx.problem, labels)
    evaluate = LabelSearch(ctx.problem).evaluate
    assert evaluate(labels).cost <= evaluate(ctx.feasible_labels).cost * (1.0 + 1e-9)
