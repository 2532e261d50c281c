"""Search for labels under any mix of constraints: feasible, repeatable, never worse."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.assignment.label_search import LabelSearch, search_feasible_labels
from certikmeans.generate import gaussian_clusters, random_pairs
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import CannotLinks
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_feasible
from tests.assignment.kinds import KINDS, all_labellings, drawn_problem


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_anneal_and_descend(kind, seed):
    _, done = drawn_problem(seed, kind)
    reduced = done.reduced
    search = LabelSearch(reduced)
    centers = reduced.points[: reduced.n_clusters]
    labels = search.anneal(None, centers, seed)
    assert labels is not None
    check_feasible(reduced, labels)
    start = search.evaluate(labels)
    found = search.descend(labels)
    check_feasible(reduced, found.labels)
    assert found.cost <= start.cost * (1.0 + 1e-12)
    assert found.cost == pytest.approx(search.evaluate(found.labels).cost, rel=1e-12)
    again = LabelSearch(reduced).anneal(None, centers, seed)
    assert np.array_equal(labels, again)
    assert np.array_equal(found.labels, search.descend(again).labels)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_best_of_few_starts_is_optimal(kind, seed):
    _, done = drawn_problem(seed, kind, largest=7)
    reduced = done.reduced
    search = LabelSearch(reduced)
    found = []
    for number in range(12):
        rng = np.random.default_rng([seed, number])
        centers = reduced.points[rng.integers(reduced.n_groups, size=reduced.n_clusters)]
        labels = search.anneal(None, centers, number)
        found.append(search.descend(labels).cost)
    optimum = min(search.evaluate(one).cost for one in all_labellings(reduced))
    assert min(found) >= optimum * (1.0 - 1e-9) - 1e-9
    assert min(found) <= optimum * (1.0 + 1e-9) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_descent_keeps_feasible_labels_of_a_table(kind):
    _, done = drawn_problem(3, kind)
    reduced = done.reduced
    costs = np.random.default_rng(0).uniform(size=(reduced.n_groups, reduced.n_clusters))
    rows = np.arange(reduced.n_groups)
    for start in list(all_labellings(reduced))[:20]:
        found = LabelSearch(reduced).descend(start.copy(), costs=costs)
        check_feasible(reduced, found.labels)
        before = costs[rows, start].sum() + reduced.label_constraints.penalty(start)
        assert found.cost <= before * (1.0 + 1e-12)


def entangled(n_points, n_clusters, n_links, seed=1):
    points, classes = gaussian_clusters(n_points, 2, n_clusters, spread=1.6, seed=seed)
    _, links = random_pairs(classes, 0, n_links, seed=seed)
    return Problem.from_data(points, n_clusters, cannot_link=links), classes


@pytest.mark.parametrize("seed", range(3))
def test_entangled_cannot_links_with_few_clusters(seed):
    """Where the classes of the links are the best labels, one start finds them or better ones."""
    problem, classes = entangled(300, 3, 3_000, seed)
    done = presolve(problem, StopSignal())
    search = LabelSearch(done.reduced)
    labels = search.anneal(None, done.reduced.points[:3], 0)
    found = search.descend(labels)
    check_feasible(done.reduced, found.labels)
    of_classes = search.evaluate(done.presolve_labels(classes)).cost
    assert found.cost <= of_classes * (1.0 + 1e-9)


def test_dense_cannot_links_have_feasible_labels():
    """A coloring without regard to the points takes a minute or more here."""
    problem, _ = entangled(1_000, 10, 20_000)
    done = presolve(problem, StopSignal())
    check_feasible(done.reduced, done.feasible_labels)


def test_infeasible_constraints_give_nothing():
    graph, _ = build_cannot_link_graph(4, np.array([[0, 1], [1, 2], [0, 2]]))
    for n_clusters, feasible in ((2, False), (3, True)):
        found = search_feasible_labels(
            CannotLinks(graph), n_clusters, None, np.arange(4.0)[:, None], StopSignal(), 2
        )
        assert (found is not None) is feasible


def test_stopped_search_returns_feasible_labels():
    problem, _ = entangled(400, 4, 3_000)
    done = presolve(problem, StopSignal())
    stop = StopSignal()
    stop.interrupt()
    search = LabelSearch(done.reduced)
    assert search.anneal(None, done.reduced.points[:4], 0, stop=stop) is None
    found = search.descend(done.feasible_labels, stop=stop)
    assert np.array_equal(found.labels, done.feasible_labels)
