"""Pricing search with an excluded box of centres."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.bounds.cluster.pricing import OpenBox, Pricer, no_excluded_box, search_box
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.graph_builder import build_cannot_link_graph


def problem_of(points, pairs=()) -> ReducedProblem:
    points = np.asarray(points, dtype=float)
    graph, order = build_cannot_link_graph(
        len(points), np.array(pairs, dtype=np.int64).reshape(-1, 2)
    )
    return ReducedProblem(points[order], np.ones(len(points)), CannotLinks(graph), 2, 0.0)


def search_all(reduced: ReducedProblem, lam, cutoff: float, excluded_box):
    """Search all of space until no box is open; returns the first improving centre, or None."""
    pricer = Pricer(reduced)
    whole, error = pricer.full_region, pricer.error(lam)
    search_params = pricer.search_params(error, 2.0 * error, 1e5)
    members = np.flatnonzero(lam > 0.0).astype(np.int32)
    nothing = np.zeros(reduced.n_dims + 2)
    open_boxes = [
        OpenBox(
            -np.inf, 0, whole.low, whole.high, nothing, members, whole.active_faces, excluded_box, 0
        )
    ]
    for _ in range(1_000):
        if not open_boxes:
            return None
        outcome = search_box(open_boxes.pop(), pricer.instance(lam), search_params, cutoff)
        if outcome.improving_centers:
            return outcome.improving_centers[-1]
        assert outcome.unsplittable_bound <= cutoff
        open_boxes += outcome.open_boxes
    raise AssertionError("the search does not end")


def best_value(reduced: ReducedProblem, lam, center) -> float:
    """Value of the best independent set at a centre, by enumeration."""
    values = lam - reduced.weights * np.sum((reduced.points - center) ** 2, axis=1)
    edges, best = reduced.graph.edges(), 0.0
    for number in range(1 << len(values)):
        chosen = (number >> np.arange(len(values))) & 1 == 1
        if not chosen[edges].all(axis=1).any():
            best = max(best, float(values[chosen].sum()))
    return best


def test_center_found_with_mean_in_excluded_box():
    # All sets of large value at 0.5 have their mean near 0.
    reduced = problem_of([[-3.0], [-0.1], [0.0], [0.1], [3.0]])
    lam = np.array([0.1, 5.0, 5.0, 5.0, 0.1])
    cutoff = best_value(reduced, lam, np.array([1.0]))
    excluded_box = np.array([[-0.2], [0.2]])
    value, center = search_all(reduced, lam, cutoff, excluded_box)
    assert value > cutoff
    assert not (excluded_box[0] <= center).all() or not (center <= excluded_box[1]).all()
    # No improving centre exists outside a sufficiently large excluded box.
    assert search_all(reduced, lam, cutoff, np.array([[-1.01], [1.01]])) is None


@pytest.mark.parametrize("seed", range(30))
def test_closed_search_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 3))
    pairs = [(0, 1), (1, 2), (0, 2)][: seed % 4]
    reduced = problem_of(rng.normal(size=(7, d)) * 2.0, pairs)
    lam = rng.uniform(0.0, 6.0, size=7)
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    centers = [low + fraction * (high - low) for fraction in rng.uniform(size=(60, d))]
    values = np.array([best_value(reduced, lam, center) for center in centers])
    top = centers[int(np.argmax(values))]
    closed = 0
    for fraction in (0.1, 0.3, 0.6, 1.0, 1.6):
        reach = fraction * (high - low)
        excluded_box = np.stack([top - reach, top + reach])
        outside = [
            not ((excluded_box[0] <= y).all() and (y <= excluded_box[1]).all()) for y in centers
        ]
        cutoff = 0.9 * float(values.max())
        found = search_all(reduced, lam, cutoff, excluded_box)
        if found is None:
            closed += 1
            assert values[outside].max(initial=0.0) <= cutoff * (1.0 + 1e-9)
        else:
            value, center = found
            assert value > cutoff
            assert best_value(reduced, lam, center) == pytest.approx(value, rel=1e-9)
            assert not ((excluded_box[0] <= center).all() and (center <= excluded_box[1]).all())
    assert closed >= 1  # the largest excluded box contains all improving centres
    assert no_excluded_box(d).shape == (2, d)
