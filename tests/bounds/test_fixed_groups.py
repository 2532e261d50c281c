"""The sample bound with fixed groups, against enumeration in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.sample import fixed_groups_bound
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem


def exact_cost_about_boxes(reduced, labels, domain):
    """Least cost of ``labels`` with every centre in its box."""
    total = Fraction(0)
    for k in range(reduced.n_clusters):
        members = np.flatnonzero(labels == k)
        masses = [Fraction(float(reduced.weights[i])) for i in members]
        for j in range(reduced.n_dims if len(members) else 0):
            values = [Fraction(float(reduced.points[i, j])) for i in members]
            mean = sum(w * x for w, x in zip(masses, values, strict=True)) / sum(masses)
            center = min(max(mean, Fraction(domain.lower[k, j])), Fraction(domain.upper[k, j]))
            total += sum(w * (x - center) ** 2 for w, x in zip(masses, values, strict=True))
    return total


@pytest.mark.parametrize("seed", range(150))
def test_bound_below_every_labelling(seed):
    problem = feasible_problem(seed, largest=6)
    done = presolve(problem, StopSignal())
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    root = Domain.root(reduced)
    ends = np.sort(rng.uniform(root.lower, root.upper + 1e-12, size=(2, *root.lower.shape)), axis=0)
    allowed = rng.random((reduced.n_groups, reduced.n_clusters)) < rng.choice([0.3, 0.6, 0.9])
    allowed[np.arange(reduced.n_groups), done.feasible_labels] = True
    domain = Domain(ends[0], ends[1], allowed)
    value = fixed_groups_bound(
        reduced, CannotLinkAssigner(reduced, done.feasible_labels), domain, StopSignal()
    )
    edges = reduced.graph.edges()
    best = None
    for labels in product(range(reduced.n_clusters), repeat=reduced.n_groups):
        labels = np.array(labels)
        proper = (labels[edges[:, 0]] != labels[edges[:, 1]]).all()
        if proper and allowed[np.arange(len(labels)), labels].all():
            cost = exact_cost_about_boxes(reduced, labels, domain)
            best = cost if best is None else min(best, cost)
    assert Fraction(value) <= best
    if (allowed.sum(axis=1) == 1).all():
        assert value == pytest.approx(float(best), rel=1e-9, abs=1e-25)
