"""Every bound stays below every labelling, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds._template import Template
from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.registry import BOUNDS, make_bound
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_bound, make_bound_input
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import feasible_labellings
from tests.bounds.box_bound import box_bound_value

# Every registered bound, and the template. Settings that make a test quick go here.
QUICK = {"sdp": {"max_iterations": 100}}
ALL = [Template(), *(make_bound(name, **QUICK.get(name, {})) for name in BOUNDS)]


# One problem after the other is put to every bound: what is known of it is worked out once.
drawn = lru_cache(maxsize=2)(feasible_problem)


@pytest.mark.parametrize("bound", ALL, ids=lambda bound: bound.name)
@pytest.mark.parametrize("seed", range(100))
def test_root(bound, seed):
    check_bound(bound, drawn(seed, largest=6, weightless=seed % 4 == 0))


def exact_clusters(reduced, labels):
    """Mean and cost of every cluster that is not empty, in Fractions, by its number."""
    found = {}
    for k in np.unique(labels).tolist():
        members = np.flatnonzero(labels == k)
        masses = [Fraction(weight) for weight in reduced.weights[members].tolist()]
        mean, cost = [], Fraction(0)
        for column in reduced.points[members].T.tolist():
            places = [Fraction(value) for value in column]
            middle = sum(w * x for w, x in zip(masses, places, strict=True)) / sum(masses)
            cost += sum(w * (x - middle) ** 2 for w, x in zip(masses, places, strict=True))
            mean.append(middle)
        found[k] = (mean, cost)
    return found


def exact_cost_if_inside(clusters, box_of, domain):
    """Exact cost if means lie in their boxes (those of empty clusters may be anywhere), or None."""
    for k, (mean, _) in clusters.items():
        low, high = domain.lower[box_of[k]].tolist(), domain.upper[box_of[k]].tolist()
        if not all(a <= x <= b for a, x, b in zip(low, mean, high, strict=True)):
            return None
    return sum((cost for _, cost in clusters.values()), Fraction(0))


@lru_cache(maxsize=2)
def every_labelling(seed):
    """A problem, presolved, and all its labellings with their clusters."""
    problem = feasible_problem(seed, largest=6)
    done = presolve(problem, StopSignal())
    labellings = [done.presolve_labels(np.array(one)) for one in feasible_labellings(problem)]
    return problem, done, labellings, [exact_clusters(done.reduced, one) for one in labellings]


def box_around(rng, reduced, labels, low=None, high=None):
    """A box for every centre that holds the means of ``labels``, within limits, and no points."""
    root = Domain.root(reduced)
    low, high = (root.lower, root.upper) if low is None else (low, high)
    lower, upper = low.copy(), high.copy()
    for k in range(reduced.n_clusters):
        members = labels == k
        mean = 0.5 * (low[k] + high[k])
        if members.any():
            mean = np.average(reduced.points[members], axis=0, weights=reduced.weights[members])
            mean = np.clip(mean, low[k], high[k])  # equal points: rounding
        margin = 1e-6 * (root.upper[k] - root.lower[k])
        lower[k] = np.minimum(mean - margin, low[k] + rng.uniform(size=len(mean)) * (mean - low[k]))
        upper[k] = np.maximum(
            mean + margin, high[k] - rng.uniform(size=len(mean)) * (high[k] - mean)
        )
    return np.maximum(lower, low), np.minimum(upper, high)


@pytest.mark.parametrize("keep_proof", [False, True])
@pytest.mark.parametrize("bound", ALL, ids=lambda bound: bound.name)
@pytest.mark.parametrize("seed", range(60))
def test_bound_below_optimum_in_boxes(bound, seed, keep_proof):
    problem, done, labellings, clusters = every_labelling(seed)
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    # Boxes belong to cluster numbers, so every renaming counts as another labelling.
    turned = rng.permutation(problem.n_clusters)
    chosen = rng.integers(len(labellings))
    held = turned[labellings[chosen]]
    state = bound.setup(make_bound_input(done, keep_proof=keep_proof))
    parts = [Domain(*box_around(rng, reduced, held))]
    found = [bound.compute(state, parts[0], np.inf, BoundContext())]
    # A part of the part, with groups left out, started from what the larger one found.
    allowed = rng.random((reduced.n_groups, reduced.n_clusters)) < 0.8
    allowed[np.arange(reduced.n_groups), held] = True
    smaller = box_around(rng, reduced, held, parts[0].lower, parts[0].upper)
    parts.append(Domain(*smaller, allowed))
    cutoff = rng.choice([np.inf, found[0].value, 2.0 * found[0].value])
    found.append(bound.compute(state, parts[1], cutoff, BoundContext(), found[0].warm_start))
    compared = [0, 0]
    every = [(labellings[chosen], clusters[chosen], turned)]
    unchanged = np.arange(problem.n_clusters)
    every += [(one, its, unchanged) for one, its in zip(labellings, clusters, strict=True)]
    for labels, its, first in every:
        for turn in range(3):
            box_of = first if turn == 0 else rng.permutation(problem.n_clusters)[first]
            renamed = box_of[labels]
            for number, (domain, result) in enumerate(zip(parts, found, strict=True)):
                allowed = (
                    domain.allowed is None or domain.allowed[np.arange(len(renamed)), renamed].all()
                )
                cost = exact_cost_if_inside(its, box_of, domain) if allowed else None
                if cost is not None:
                    compared[number] += 1
                    assert Fraction(result.value) <= cost
    assert min(compared) > 0, "nothing was compared"


@pytest.mark.parametrize("seed", range(60))
def test_sample_bound_exact_for_point_boxes(seed):
    # Boxes shrunk to the means of a labelling: the bound may not exceed its cost, and equals
    # the cost of the best assignment to those means.
    problem = feasible_problem(seed, largest=6)
    done = presolve(problem, StopSignal())
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(reduced.n_clusters, reduced.n_dims)) * np.abs(reduced.points).max()
    assigner = CannotLinkAssigner(reduced, done.feasible_labels)
    value = box_bound_value(reduced, assigner, Domain(centers, centers))
    assert value == pytest.approx(assigner.assign(centers).cost, rel=1e-12)
