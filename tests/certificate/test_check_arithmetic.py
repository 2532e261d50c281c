"""Accepted bounds compared with exact rationals: never above the true value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans.certificate.format import Reason
from certikmeans.proof import CenterSplit, GroupMultipliers, LeafProof, Proof
from tests.certificate.helpers import (
    certificate,
    change,
    exact_sigma,
    group_rows,
    root_proof,
    solved_by_force,
    verdict,
)


def identity_proof(problem, nodes):
    """A proof in the original axes, shifted to the first point."""
    return Proof(0.0, problem.points[0].copy(), np.eye(problem.n_features), nodes)


def random_multipliers(rng, problem, n_groups):
    scale = float(np.sum(problem.weights[:, None] * (problem.points - problem.points[0]) ** 2))
    kind = rng.integers(4)
    if kind == 0:
        return rng.uniform(0.0, 2.0, n_groups) * scale / n_groups
    if kind == 1:
        return rng.normal(size=n_groups) * scale
    if kind == 2:
        return np.zeros(n_groups)
    return rng.uniform(0.0, 0.2, n_groups) * scale * 10.0 ** rng.integers(-6, 6, n_groups)


@pytest.mark.parametrize("seed", range(60))
def test_any_multipliers(seed):
    rng = np.random.default_rng(seed)
    problem, optimum, labels = solved_by_force(seed)
    means, masses, inner, edges = group_rows(problem)
    multipliers = random_multipliers(rng, problem, len(means))
    proof = identity_proof(problem, (LeafProof("cluster", GroupMultipliers(multipliers)),))
    made = certificate(problem, labels, float(optimum) * (1 + 1e-9) + 1e-9, proof)
    sigma = exact_sigma(means, masses, edges, multipliers)
    exact = sum(Fraction(float(v)) for v in multipliers) - problem.n_clusters * sigma
    bound = float(max(exact, Fraction(0)) + inner)
    assert exact + inner <= optimum
    # Extreme multipliers lose digits to rounding, in proportion to their size.
    lost = 1e-11 * (float(np.abs(multipliers).sum()) + problem.n_clusters * float(sigma))
    reached = max(0.0, bound * (1 - 1e-7) - lost)
    assert verdict(problem, change(made, lower_bound=reached)).accepted
    beyond = float(optimum) * (1 + 1e-6) + 1e-9 * float(np.ptp(problem.points)) ** 2
    assert beyond > 0.0
    assert verdict(problem, change(made, lower_bound=beyond)).reason is Reason.BOUND
    above = bound * (1 + 1e-7) + lost
    if above > float(inner) * (1 + 1e-6) + lost:
        assert verdict(problem, change(made, lower_bound=above)).reason is Reason.BOUND


@pytest.mark.parametrize("seed", range(40))
def test_solver_proofs(seed):
    problem, optimum, labels = solved_by_force(seed, largest=7, min_clusters=1)
    proof = root_proof(problem, labels)
    made = certificate(problem, labels, np.nextafter(float(optimum), np.inf), proof)
    made = change(made, cost=float(optimum) * (1 + 1e-12) + 1e-30)
    answer = verdict(problem, made)
    assert answer.accepted, answer.message
    assert Fraction(made.lower_bound) <= optimum
    too_much = float(optimum) * (1 + 1e-6) + 1e-12 * float(np.ptp(problem.points)) ** 2
    assert too_much > 0.0
    assert verdict(problem, change(made, lower_bound=too_much)).reason is Reason.BOUND


@pytest.mark.parametrize("seed", range(60))
def test_any_multipliers_in_boxes(seed):
    # Both halves of one split, each with its own multipliers; the claim is the weaker half.
    rng = np.random.default_rng(1000 + seed)
    problem, optimum, labels = solved_by_force(seed, most_features=2)
    means, masses, inner, edges = group_rows(problem)
    cluster, axis = int(rng.integers(problem.n_clusters)), int(rng.integers(problem.n_features))
    shifted = problem.points - problem.points[0]
    value = float(rng.uniform(shifted[:, axis].min(), shifted[:, axis].max()))
    rows = [np.abs(random_multipliers(rng, problem, len(means))) for _ in range(2)]
    nodes = (
        CenterSplit(cluster, axis, value),
        *(LeafProof("cluster", GroupMultipliers(row)) for row in rows),
    )
    made = certificate(
        problem, labels, float(optimum) * (1 + 1e-9) + 1e-9, identity_proof(problem, nodes)
    )
    weakest = min(
        _leaf_bound(problem, (means, masses, edges), rows[side], cluster, axis, value, side)
        for side in range(2)
    )
    size = max(float(row.sum()) for row in rows)
    reached = max(0.0, float(max(weakest, 0) + inner) * (1 - 1e-7) - 1e-11 * size)
    answer = verdict(problem, change(made, lower_bound=reached))
    assert answer.accepted, answer.message
    beyond = float(optimum) * (1 + 1e-6) + 1e-9 * float(np.ptp(problem.points)) ** 2
    assert verdict(problem, change(made, lower_bound=beyond)).reason is Reason.BOUND


def _leaf_bound(problem, groups, multipliers, cluster, axis, value, side):
    """``sum lam - sum_k sigma_k`` in exact arithmetic; no order of clusters but along axis 0."""
    means, masses, edges = groups
    shift = [Fraction(float(v)) for v in problem.points[0]]
    d = problem.n_features
    rows = [[m[j] - shift[j] for j in range(d)] for m in means]
    low = [min(row[j] for row in rows) for j in range(d)]
    high = [max(row[j] for row in rows) for j in range(d)]
    total = sum(Fraction(float(v)) for v in multipliers)
    for k in range(problem.n_clusters):
        box = [list(low), list(high)]
        held = k == cluster or (axis == 0 and (k < cluster if side == 0 else k > cluster))
        if held and side == 0:
            box[1][axis] = min(box[1][axis], Fraction(value))
        if held and side == 1:
            box[0][axis] = max(box[0][axis], Fraction(value))
        if any(a > b for a, b in zip(*box, strict=True)):
            return Fraction(10**9)  # the box is empty
        total -= exact_sigma(rows, masses, edges, multipliers, box)
    return total
