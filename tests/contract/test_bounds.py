"""Every bound stays below every labelling, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans.assignment import Assigner
from certikmeans.bounds._template import Template
from certikmeans.bounds.sample import SampleBound
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_bound
from certikmeans.testing.instances import random_problem
from certikmeans.testing.oracle import feasible_labellings


def sample_bound(done):
    return SampleBound(Assigner(done.reduced, done.witness))


def template(done):
    return Template()


@pytest.mark.parametrize("make", [sample_bound, template])
@pytest.mark.parametrize("seed", range(100))
def test_root(make, seed):
    check_bound(make, random_problem(seed, largest=6))


def exact_mean(points, weights, members, axis):
    mass = sum(Fraction(float(weights[i])) for i in members)
    return (
        sum(Fraction(float(weights[i])) * Fraction(float(points[i, axis])) for i in members) / mass
    )


def exact_cost_if_inside(reduced, labels, part):
    """Exact cost of ``labels`` if its means lie in the boxes (empty clusters may), else None."""
    total = Fraction(0)
    for k in range(reduced.n_clusters):
        members = np.flatnonzero(labels == k)
        for j in range(reduced.n_axes if len(members) else 0):
            mean = exact_mean(reduced.points, reduced.weights, members, j)
            if not Fraction(part.lower[k, j]) <= mean <= Fraction(part.upper[k, j]):
                return None
            for i in members:
                away = Fraction(float(reduced.points[i, j])) - mean
                total += Fraction(float(reduced.weights[i])) * away**2
    return total


@pytest.mark.parametrize("seed", range(120))
def test_sample_bound_in_random_boxes(seed):
    problem = random_problem(seed, largest=6)
    done = presolve(problem, StopSignal())
    if isinstance(done, InfeasibilityProof):
        return
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    root = Subproblem.root(reduced)
    ends = rng.uniform(root.lower, root.upper + 1e-12, size=(2, *root.lower.shape))
    part = Subproblem(ends.min(axis=0), ends.max(axis=0))
    bound = sample_bound(done)
    value = bound.evaluate(bound.prepare(reduced), part, np.inf, StopSignal()).value
    for labels in feasible_labellings(problem):
        # Boxes belong to cluster numbers, so every renaming counts as another labelling.
        for _ in range(3):
            renamed = rng.permutation(problem.n_clusters)[done.reduce_labels(np.array(labels))]
            cost = exact_cost_if_inside(reduced, renamed, part)
            if cost is not None:
                assert Fraction(value) <= cost


@pytest.mark.parametrize("seed", range(60))
def test_sample_bound_is_tight_where_the_boxes_are_points(seed):
    # Boxes shrunk to the means of a labelling: the bound may not exceed its cost, and equals
    # the cost of the best assignment to those means.
    problem = random_problem(seed, largest=6)
    done = presolve(problem, StopSignal())
    if isinstance(done, InfeasibilityProof):
        return
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(reduced.n_clusters, reduced.n_axes)) * np.abs(reduced.points).max()
    assigner = Assigner(reduced, done.witness)
    bound = SampleBound(assigner)
    part = Subproblem(centers, centers)
    value = bound.evaluate(reduced, part, np.inf, StopSignal()).value
    assert value == pytest.approx(assigner.assign(centers).cost, rel=1e-12)
