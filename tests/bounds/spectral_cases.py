"""Instances and random evidence for the spectral bound and its verifier."""

from __future__ import annotations

import numpy as np

from certikmeans import Problem
from certikmeans.bounds.sdp.model import MatrixMultipliers
from certikmeans.bounds.spectral.dual_bound import coefficient_matrix, valid_multipliers
from certikmeans.bounds.spectral.gram import Frame, SpectralMultipliers, all_columns
from certikmeans.problem import ReducedProblem
from certikmeans.testing.instances import feasible_problem
from tests.bounds.sdp_cases import exact_costs, reduced_of


def random_instance(seed, *, least_groups=2):
    """First feasible instance of a seed with at least ``least_groups`` groups; also presolved."""
    for step in range(1000):
        problem = feasible_problem(1000 * seed + step, largest=6, min_clusters=1 + step % 2)
        done = reduced_of(problem)
        if done.reduced.n_groups >= least_groups:
            return problem, done
    raise AssertionError("no feasible instance")


def separated_blobs(rng, shift=0.0, scale=1.0, ratio=6.0):
    """Few points in separated clusters with extreme weights, and an optimal labelling.

    Bounds are tight here, so that an error in the last place shows.
    """
    k = int(rng.integers(2, 4))
    n = int(rng.integers(k + 2, 8))
    truth = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    middle = 20.0 * np.eye(3)[:k]
    points = scale * (middle[truth] + rng.normal(scale=0.1, size=(n, 3)) + shift)
    weights = 10.0 ** rng.uniform(-ratio, ratio, size=n)
    return Problem.from_data(points, k, weights=weights), truth


def random_evidence(rng, reduced, size):
    """Random multipliers of any sign and size, with random labels, nodes and links."""
    n, k = reduced.n_groups, reduced.n_clusters
    labels = rng.integers(k, size=n)
    every = [(a, b) for a in range(k) for b in range(k) if a != b and b <= labels.max()]
    every = [pair for pair in every if pair[0] <= labels.max()]
    p = int(rng.integers(0, len(every) + 1))
    pairs = np.array([every[i] for i in rng.permutation(len(every))[:p]], dtype=np.int64)
    q = int(rng.integers(2, 5))
    spread = max(float(np.ptp(reduced.points)), 1e-100) ** 2
    nodes = spread * rng.normal(size=(p, 2, q))
    if rng.random() < 0.7:
        nodes.sort(axis=2)
    unit = size / max(float(reduced.weights.sum()), 1e-300) * 10.0 ** rng.integers(-4, 3)
    coefficients = unit * rng.normal(size=(p, q, q))
    if rng.random() < 0.5:
        coefficients = np.abs(coefficients)
    edges = reduced.graph.edges()
    link_pairs = np.concatenate([edges, rng.integers(n, size=(int(rng.integers(0, 4)), 2))])
    link_pairs = link_pairs[rng.random(len(link_pairs)) < 0.7].astype(np.int64)
    # For points of weight w, a link multiplier of the matrix M is w times that of Z.
    link_multipliers = size * 10.0 ** rng.integers(-4, 2) * rng.normal(size=len(link_pairs))
    return SpectralMultipliers(
        labels, pairs.reshape(-1, 2), nodes, coefficients, link_pairs, link_multipliers
    )


def least_cost(problem, done):
    return min(exact_costs(problem, done))


def with_pairs(rng, n, d, k, spread):
    """Overlapping clusters with true must-links and cannot-links, and weights: done, labels."""
    truth = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    points = rng.normal(size=(k, d))[truth] * 3.0 + spread * rng.normal(size=(n, d))
    ends = rng.integers(n, size=(n, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    same = truth[ends[:, 0]] == truth[ends[:, 1]]
    problem = Problem.from_data(
        points, k, must_link=ends[same][: n // 8], cannot_link=ends[~same][: n // 4],
        weights=rng.uniform(0.5, 3.0, size=n),
    )  # fmt: skip
    done = reduced_of(problem)
    return done, done.presolve_labels(truth)


def dense_multipliers(problem: ReducedProblem, evidence: SpectralMultipliers) -> MatrixMultipliers:
    """The same multipliers for the SDP bound, as an n x n matrix.

    ``Lambda`` belongs to M, that of the SDP bound to Z: ``L_st = v_s v_t Lambda_st``.
    """
    usable = valid_multipliers(problem, evidence)
    zeros = MatrixMultipliers.zeros(problem.n_groups)
    if usable is None:
        return zeros
    frame = Frame.of(problem)
    gram, columns = all_columns(problem, frame, usable)
    d = gram.n_dims
    middle = coefficient_matrix(gram, frame, usable)[d:, d:]
    entries = columns @ middle @ columns.T
    sqrt_weights = np.sqrt(problem.weights)
    entries *= np.ldexp(sqrt_weights[:, None] * sqrt_weights, 2 * frame.exponent)
    return MatrixMultipliers(0.5 * (entries + entries.T), zeros.cuts, zeros.cut_multipliers)
