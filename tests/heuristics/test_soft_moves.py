"""Moves of single groups under soft pairs and cannot-links."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.assignment.soft import pair_graph
from certikmeans.kernels.lloyd.soft_moves import improve_by_soft_moves
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import soft_problem


def objective(reduced, labels):
    """Sum of squares about the means, and penalties."""
    squares = 0.0
    for k in np.unique(labels):
        rows, mass = reduced.points[labels == k], reduced.weights[labels == k]
        mean = mass @ rows / mass.sum()
        squares += float(mass @ ((rows - mean) ** 2).sum(axis=1))
    return squares + reduced.label_constraints.penalty(labels)


@pytest.mark.parametrize("seed", range(30))
def test_descent_ends_at_local_optimum(seed):
    problem = soft_problem(seed, largest=8)
    done = presolve(problem, StopSignal())
    assert isinstance(done, PresolvedProblem)
    reduced = done.reduced
    model = reduced.label_constraints
    labels = done.feasible_labels.copy()
    before = objective(reduced, labels)
    means = np.zeros((reduced.n_clusters, reduced.n_dims))
    pairs = pair_graph(reduced.n_groups, model.soft, model.cannot_links)

    improve_by_soft_moves(reduced.points, reduced.weights, pairs, means, labels, 100, 1e-12)

    assert model.satisfied_by(labels)
    after = objective(reduced, labels)
    tolerance = 1e-9 * (1.0 + before)
    assert after <= before + tolerance
    sizes = np.bincount(labels, minlength=reduced.n_clusters)
    for v in np.flatnonzero(sizes[labels] > 1):
        for k in range(reduced.n_clusters):
            changed = labels.copy()
            changed[v] = k
            if model.satisfied_by(changed):
                assert objective(reduced, changed) >= after - tolerance
    for k in np.flatnonzero(sizes):
        rows, mass = reduced.points[labels == k], reduced.weights[labels == k]
        np.testing.assert_allclose(means[k], mass @ rows / mass.sum(), rtol=1e-9, atol=1e-6)
