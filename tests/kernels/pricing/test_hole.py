"""A search with a hole: what is in it does not count, and everything else does."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.bounds.cluster.box_search import WaitingBox, no_hole, search_box
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.graphs import build_apart_graph
from certikmeans.problem import CannotLinks, ReducedProblem


def problem_of(points, pairs=()) -> ReducedProblem:
    points = np.asarray(points, dtype=float)
    graph, order = build_apart_graph(len(points), np.array(pairs, dtype=np.int64).reshape(-1, 2))
    return ReducedProblem(points[order], np.ones(len(points)), CannotLinks(graph), 2, 0.0)


def searched(reduced: ReducedProblem, lam, cutoff: float, hole):
    """Search all of space until nothing is open; returns whether something was found."""
    pricer = Pricer(reduced)
    whole, error = pricer.everywhere, pricer.error(lam)
    rules = pricer.rules(error, 2.0 * error, 1e5)
    members = np.flatnonzero(lam > 0.0).astype(np.int32)
    nothing = np.zeros(reduced.n_axes + 2)
    waiting = [
        WaitingBox(-np.inf, 0, whole.low, whole.high, nothing, members, whole.walls, hole, 0)
    ]
    for _ in range(1_000):
        if not waiting:
            return None
        outcome = search_box(waiting.pop(), pricer.instance(lam), rules, cutoff)
        if outcome.finds:
            return outcome.finds[-1]
        assert outcome.stuck <= cutoff
        waiting += outcome.open_boxes
    raise AssertionError("the search does not end")


def best_value(reduced: ReducedProblem, lam, place) -> float:
    """Of a set without cannot-links: by trying all."""
    worth = lam - reduced.weights * np.sum((reduced.points - place) ** 2, axis=1)
    edges, best = reduced.graph.edges(), 0.0
    for number in range(1 << len(worth)):
        chosen = (number >> np.arange(len(worth))) & 1 == 1
        if not chosen[edges].all(axis=1).any():
            best = max(best, float(worth[chosen].sum()))
    return best


def test_a_place_is_found_although_the_mean_of_its_set_is_in_the_hole():
    # All sets that are good at 0.5 have their mean near 0.
    reduced = problem_of([[-3.0], [-0.1], [0.0], [0.1], [3.0]])
    lam = np.array([0.1, 5.0, 5.0, 5.0, 0.1])
    cutoff = best_value(reduced, lam, np.array([1.0]))
    hole = np.array([[-0.2], [0.2]])
    value, place = searched(reduced, lam, cutoff, hole)
    assert value > cutoff
    assert not (hole[0] <= place).all() or not (place <= hole[1]).all()
    # Where the hole is as large as what is good, there is nothing to find.
    assert searched(reduced, lam, cutoff, np.array([[-1.01], [1.01]])) is None


@pytest.mark.parametrize("seed", range(30))
def test_what_is_closed_has_nothing_outside_the_hole(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 3))
    pairs = [(0, 1), (1, 2), (0, 2)][: seed % 4]
    reduced = problem_of(rng.normal(size=(7, d)) * 2.0, pairs)
    lam = rng.uniform(0.0, 6.0, size=7)
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    places = [low + share * (high - low) for share in rng.uniform(size=(60, d))]
    values = np.array([best_value(reduced, lam, place) for place in places])
    top = places[int(np.argmax(values))]
    closed = 0
    for share in (0.1, 0.3, 0.6, 1.0, 1.6):
        reach = share * (high - low)
        hole = np.stack([top - reach, top + reach])
        outside = [not ((hole[0] <= y).all() and (y <= hole[1]).all()) for y in places]
        cutoff = 0.9 * float(values.max())
        found = searched(reduced, lam, cutoff, hole)
        if found is None:
            closed += 1
            assert values[outside].max(initial=0.0) <= cutoff * (1.0 + 1e-9)
        else:
            value, place = found
            assert value > cutoff
            assert best_value(reduced, lam, place) == pytest.approx(value, rel=1e-9)
            assert not ((hole[0] <= place).all() and (place <= hole[1]).all())
    assert closed >= 1  # the largest hole holds everything
    assert no_hole(d).shape == (2, d)
