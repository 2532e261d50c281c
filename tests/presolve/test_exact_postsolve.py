"""The bound carried back by postsolve is at most the exact cost, for every labelling.

Every labelling of a tiny problem is costed in rational arithmetic on the original rows and on the
reduced groups. Each family of instances makes one rounding error dominate, so that the test fails
without its term.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.presolve.pipeline import _center_points, presolve
from certikmeans.presolve.postsolve import MustLinkMerge, Rotation
from certikmeans.presolve.reductions import (
    aggregate,
    must_link_groups,
    rotate_to_principal_axes,
)
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost, numbered_by_first_appearance


def below(value):
    """Largest float that is at most an exact number."""
    found = float(value)
    while Fraction(found) > value:
        found = math.nextafter(found, -math.inf)
    return found


def shifted(seed):
    """One axis, one point far from the others: only differences from the mean are rounded."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(5, 1))
    points[0] = 10.0 ** rng.uniform(3, 12)
    return Problem.from_data(points, 3)


def merged(seed):
    """One axis, must-links, weights of any size: means of groups are rounded."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, 1)) * 10.0 ** rng.uniform(0, 6, size=(6, 1))
    weights = 10.0 ** rng.uniform(-6, 6, size=6)
    return Problem.from_data(points, 2, must_link=[(0, 1), (1, 2), (3, 4)], weights=weights)


def rotated(seed):
    """Several axes of very different scales: the product with the axes is rounded."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(3, 3))
    points = (rng.normal(size=(5, 3)) * np.array([1e6, 1.0, 1e-2])) @ mixing
    return Problem.from_data(points, 3)


def wild(seed):
    """All of it at once."""
    rng = np.random.default_rng(seed)
    n = 6
    points = 1e7 * rng.normal(size=2) + rng.normal(size=(n, 2)) * 10.0 ** rng.uniform(-5, 3)
    weights = 10.0 ** rng.uniform(-12, 12, size=n)
    links = [(0, 1)] if seed % 2 else [(0, 1), (1, 2)]
    return Problem.from_data(points, 2, must_link=links, weights=weights)


def sites(seed, n_dims=1):
    """Two places far apart, groups close to each other at both: coordinates are large."""
    rng = np.random.default_rng(seed)
    place = np.repeat([-1.0, 1.0], 4)[:, None] * 1e8 * rng.uniform(0.5, 1.0, size=n_dims)
    points = place + 1e-6 * rng.normal(size=(8, n_dims))
    links = [(0, 1), (2, 3), (4, 5), (6, 7)] if n_dims == 1 else []
    return Problem.from_data(points if links else points[[0, 1, 2, 4, 5, 6]], 2, must_link=links)


def sites_in_the_plane(seed):
    """The same with two features and without must-links."""
    return sites(seed, n_dims=2)


def inside(seed):
    """One group of many points: all of the cost is within it."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(200, 1))
    links = [(i, i + 1) for i in range(199)]
    return Problem.from_data(points, 1, must_link=links, weights=rng.uniform(0.1, 1.0, size=200))


def heavy(seed):
    """Two groups of many equal points: only the sums of the weights are rounded, each time up."""
    rng = np.random.default_rng(seed)
    points = np.repeat([[0.0], [1.0]], 200, axis=0)
    links = [(i, i + 1) for i in range(399) if i != 199]
    weights = rng.uniform(1.0e-12, 1.1e-12, size=400)  # more than half a unit of the first one
    weights[[0, 200]] = rng.uniform(8_500.0, 16_000.0, size=2)
    return Problem.from_data(points, 1, must_link=links, weights=weights)


FAMILIES = {
    "shifted": shifted, "merged": merged, "rotated": rotated, "wild": wild, "sites": sites,
    "sites in the plane": sites_in_the_plane, "inside": inside, "heavy": heavy,
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 200))]
)
def test_postsolve_bound_of_every_labelling(family, seed):
    problem = FAMILIES[family](seed)
    done = presolve(problem, StopSignal())
    reduced = done.reduced
    compared = 0
    for labels in numbered_by_first_appearance(reduced.n_groups, problem.n_clusters):
        after = exact_cost(reduced.points, reduced.weights, labels)
        original = done.postsolve_labels(np.array(labels, dtype=np.int64))
        before = exact_cost(problem.points, problem.weights, original)
        assert Fraction(done.postsolve_bound(below(after))) <= before
        compared += 1
    assert compared >= 1


def steps_of(problem):
    """Points, weights and groups before and after every step, with the step."""
    ones = np.arange(problem.n_points)
    centered, centering = _center_points(problem.points, problem.weights)
    yield (
        "centering",
        (problem.points, problem.weights),
        (centered, problem.weights),
        ones,
        centering,
    )
    groups = must_link_groups(problem.n_points, problem.must_link)
    merged_points = aggregate(centered, problem.weights, groups)
    means, masses = merged_points.means, merged_points.weights
    merge = merged_points.postsolve_step
    yield "merge", (centered, problem.weights), (means, masses), groups, merge
    turned, rotation = rotate_to_principal_axes(means, masses)
    yield "rotation", (means, masses), (turned, masses), np.arange(len(means)), rotation


def comparisons(family, seeds, wanted):
    """Exact costs before and after one step, and the step, for all labellings."""
    for seed in seeds:
        problem = FAMILIES[family](seed)
        for name, before, after, groups, step in steps_of(problem):
            if name != wanted:
                continue
            n_groups = int(groups.max()) + 1
            for labels in numbered_by_first_appearance(n_groups, problem.n_clusters):
                original = [labels[g] for g in groups]
                yield exact_cost(*before, original), exact_cost(*after, labels), step


STEPS = [
    ("centering", "shifted"), ("merge", "merged"), ("merge", "wild"), ("merge", "sites"),
    ("merge", "heavy"), ("rotation", "rotated"), ("rotation", "wild"),
    ("rotation", "sites in the plane"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "family"), STEPS)
def test_bound_of_one_step(step, family):
    for before, after, inverse in comparisons(family, range(20), step):
        assert Fraction(inverse.postsolve_bound(below(after))) <= before


@pytest.mark.parametrize(("step", "family"), STEPS)
def test_step_needs_its_error_terms(step, family):
    """Without any error term, the bound of some labelling would exceed its exact cost."""
    differences = [
        after + Fraction(getattr(inverse, "offset", 0.0)) > before
        for before, after, inverse in comparisons(family, range(20), step)
    ]
    assert any(differences)


@pytest.mark.parametrize("seed", range(20))
def test_rotation_by_axes_that_are_too_long(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(5, 2))
    axes = np.linalg.qr(rng.normal(size=(2, 2)))[0] * (1.0 + 1e-6 * seed)
    after = points @ axes
    stretch = float(np.linalg.norm(axes, 2)) * (1.0 + 1e-12)
    step = Rotation(axes, 1e-13, stretch)
    labels = [0, 0, 1, 1, 0]
    ones = np.ones(5)
    bound = step.postsolve_bound(below(exact_cost(after, ones, labels)))
    before = exact_cost(points, ones, labels)
    assert Fraction(bound) <= before
    assert bound >= float(before) * (1.0 - 1e-9)


@pytest.mark.parametrize("factor", [1.0 + 1e-9, 1.5])
def test_weights_that_are_too_large(factor):
    points = np.array([[0.0], [1.0], [5.0]])
    step = MustLinkMerge(np.arange(3), 3, 0.0, 0.0, factor)
    after = exact_cost(points, np.full(3, factor), [0, 0, 0])
    before = exact_cost(points, np.ones(3), [0, 0, 0])
    assert Fraction(step.postsolve_bound(below(after))) <= before


def test_cost_inside_groups_is_rounded_down():
    offset = 0.1
    step = MustLinkMerge(np.arange(2), 2, offset, 0.0, 1.0)
    for value in (0.2, 0.7, 1.1, 3.3):
        assert Fraction(step.postsolve_bound(value)) <= Fraction(value) + Fraction(offset)
