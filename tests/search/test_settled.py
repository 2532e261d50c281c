"""The sample bound with settled groups, against enumeration in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans.assignment import Assigner
from certikmeans.bounds.sample import settled_bound
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem


def exact_cost_about_boxes(reduced, labels, part):
    """Least cost of ``labels`` with every centre in its box."""
    total = Fraction(0)
    for k in range(reduced.n_clusters):
        members = np.flatnonzero(labels == k)
        masses = [Fraction(float(reduced.weights[i])) for i in members]
        for j in range(reduced.n_axes if len(members) else 0):
            values = [Fraction(float(reduced.points[i, j])) for i in members]
            mean = sum(w * x for w, x in zip(masses, values, strict=True)) / sum(masses)
            centre = min(max(mean, Fraction(part.lower[k, j])), Fraction(part.upper[k, j]))
            total += sum(w * (x - centre) ** 2 for w, x in zip(masses, values, strict=True))
    return total


@pytest.mark.parametrize("seed", range(150))
def test_below_every_viable_labelling(seed):
    problem = feasible_problem(seed, largest=6)
    done = presolve(problem, StopSignal())
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    root = Subproblem.root(reduced)
    ends = np.sort(rng.uniform(root.lower, root.upper + 1e-12, size=(2, *root.lower.shape)), axis=0)
    viable = rng.random((reduced.n_groups, reduced.n_clusters)) < rng.choice([0.3, 0.6, 0.9])
    viable[np.arange(reduced.n_groups), done.witness] = True
    part = Subproblem(ends[0], ends[1], viable)
    value = settled_bound(reduced, Assigner(reduced, done.witness), part, StopSignal())
    edges = reduced.graph.edges()
    best = None
    for labels in product(range(reduced.n_clusters), repeat=reduced.n_groups):
        labels = np.array(labels)
        proper = (labels[edges[:, 0]] != labels[edges[:, 1]]).all()
        if proper and viable[np.arange(len(labels)), labels].all():
            cost = exact_cost_about_boxes(reduced, labels, part)
            best = cost if best is None else min(best, cost)
    assert Fraction(value) <= best
    if (viable.sum(axis=1) == 1).all():
        assert value == pytest.approx(float(best), rel=1e-9, abs=1e-25)
