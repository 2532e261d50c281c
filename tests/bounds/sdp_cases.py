"""Instances and inaccurate eigensolvers for the SDP bound and its verifier."""

from __future__ import annotations

import numpy as np

from certikmeans import Problem
from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost, feasible_labellings


def reduced_of(problem):
    done = presolve(problem, StopSignal())
    assert not isinstance(done, InfeasibilityProof), "nothing to test: draw another problem"
    return done


def exact_costs(problem, done):
    reduced = done.reduced
    return [
        exact_cost(reduced.points, reduced.weights, done.presolve_labels(np.array(labels)))
        for labels in feasible_labellings(problem)
    ]


def separated(rng, shift):
    """Separated clusters: the bound is tight, so that an error in the last place shows."""
    n, k = int(rng.integers(5, 8)), int(rng.integers(2, 4))
    middle = rng.normal(scale=20.0, size=(k, 2))
    points = middle[rng.integers(k, size=n)] + rng.normal(scale=0.1, size=(n, 2)) + shift
    return Problem.from_data(points, k, weights=10.0 ** rng.uniform(-6, 6, size=n))


def inaccurate_eigensolver(rng):
    """Replacement of `numpy.linalg.eigh` with random errors."""
    right = np.linalg.eigh

    def wrong(matrix):
        values, vectors = right(matrix)
        if rng.random() < 0.5:  # correct product, vectors not normalized
            return values / 4.0, 2.0 * vectors
        size = 10.0 ** rng.integers(-12, 1)
        noise = rng.normal(size=vectors.shape) * size
        return values + np.abs(values).max() * np.abs(rng.normal()) * size, vectors + noise

    return wrong
