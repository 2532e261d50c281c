"""Every bound stays below every labelling, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans.assignment import Assigner
from certikmeans.bounds._template import Template
from certikmeans.bounds.cluster import ClusterBound
from certikmeans.bounds.grouped import GroupedBound
from certikmeans.bounds.sample import SampleBound
from certikmeans.bounds.sdp import SdpBound
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


def cluster_bound(done):
    return ClusterBound(Assigner(done.reduced, done.witness), gap=1e-3)


def grouped_bound(done):
    return GroupedBound()


def sdp_bound(done):
    return SdpBound(max_iterations=100)


@pytest.mark.parametrize("make", [sample_bound, template, cluster_bound, grouped_bound, sdp_bound])
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


@pytest.mark.parametrize("make", [sample_bound, cluster_bound, grouped_bound, sdp_bound])
@pytest.mark.parametrize("seed", range(120))
def test_random_boxes_and_parts_of_them(make, seed):
    problem = random_problem(seed, largest=6)
    done = presolve(problem, StopSignal())
    if isinstance(done, InfeasibilityProof):
        return
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    root = Subproblem.root(reduced)
    ends = rng.uniform(root.lower, root.upper + 1e-12, size=(2, *root.lower.shape))
    bound = make(done)
    state = bound.prepare(reduced)
    parts = [Subproblem(ends.min(axis=0), ends.max(axis=0))]
    found = [bound.evaluate(state, parts[0], np.inf, StopSignal())]
    # A part of the part, with groups left out, started from what the larger one found.
    viable = rng.random((reduced.n_groups, reduced.n_clusters)) < 0.8
    viable[np.arange(reduced.n_groups), rng.permutation(reduced.n_clusters)[done.witness]] = True
    upper = parts[0].lower + rng.uniform(size=ends.shape[1:]) * (parts[0].upper - parts[0].lower)
    parts.append(Subproblem(parts[0].lower, upper, viable))
    cutoff = rng.choice([np.inf, found[0].value, 2.0 * found[0].value])
    found.append(bound.evaluate(state, parts[1], cutoff, StopSignal(), found[0].restart))
    for labels in feasible_labellings(problem):
        # Boxes belong to cluster numbers, so every renaming counts as another labelling.
        for _ in range(3):
            renamed = rng.permutation(problem.n_clusters)[done.reduce_labels(np.array(labels))]
            for part, result in zip(parts, found, strict=True):
                allowed = part.viable is None or part.viable[np.arange(len(renamed)), renamed].all()
                cost = exact_cost_if_inside(reduced, renamed, part) if allowed else None
                if cost is not None:
                    assert Fraction(result.value) <= cost


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
