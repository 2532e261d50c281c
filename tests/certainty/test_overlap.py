"""Spectral and semidefinite bounds on the overlap and on reassigned points, compared exactly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.sdp.bound import SdpBound
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.certainty.dual_ascent import max_reduced_cost
from certikmeans.certainty.overlap import (
    _incumbent_matrix,
    max_reassigned_points,
    max_reassigned_weight,
    min_merge_cost,
    overlap_deficit,
    semidefinite_overlap,
    spectral_overlap,
)
from certikmeans.certainty.params import OverlapParams
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from tests.certainty.enumeration import check_all_claims, near_optimal_labellings


def blobs(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    k, d, n = int(rng.integers(2, 4)), int(rng.integers(3, 6)), 8
    middles = rng.normal(size=(k, d)) * rng.uniform(2.0, 8.0)
    points = middles[np.arange(n) % k] + rng.normal(size=(n, d)) * 0.6
    points += (0.0, 1e4)[seed % 2]
    weights = rng.integers(1, 4, n).astype(float) if seed % 3 == 0 else None
    cannot = [(0, 1), (1, 2 if k == 3 else 4)] if seed % 4 == 0 else None
    return Problem.from_data(points, k, cannot_link=cannot, weights=weights)


def overlap(weights, ours, theirs) -> Fraction:
    masses = [Fraction(float(w)) for w in weights]

    def weight(chosen) -> Fraction:
        return sum((m for m, c in zip(masses, chosen, strict=True) if c), Fraction(0))

    total = Fraction(0)
    for a in set(ours):
        for b in set(theirs):
            both = weight([x == a and y == b for x, y in zip(ours, theirs, strict=True)])
            total += both**2 / weight([x == a for x in ours]) / weight([y == b for y in theirs])
    return total


def by_spectrum(reduced, ours, most, slack):
    return spectral_overlap(reduced, ours, most, None, StopSignal(), OverlapParams())


def by_matrix(reduced, ours, most, slack):
    return semidefinite_overlap(reduced, ours, most, slack, None, StopSignal(), OverlapParams())


def compared_labellings(problem: Problem, slack: float, bounded) -> int:
    """Compare every labelling within the slack with the bounds; 0 if there are no bounds."""
    result = solve(problem, jobs=1)
    done = presolve(problem, StopSignal())
    ours, k = done.presolve_labels(result.labels), problem.n_clusters
    most = max_reduced_cost(done, result.cost, slack)
    eta = bounded(done.reduced, ours, most, slack * result.cost)
    sizes = np.ones(done.reduced.n_groups, dtype=np.int64)
    reassigned = max_reassigned_points(done.reduced, ours, sizes, eta)
    if reassigned is None:
        return 0
    compared = 0
    for labels in near_optimal_labellings(problem, Fraction(result.cost) * (1 + Fraction(slack))):
        theirs = done.presolve_labels(np.array(labels))
        shared = overlap(done.reduced.weights, ours.tolist(), theirs.tolist())
        assert shared >= k - Fraction(eta)
        table = np.zeros((k, k))
        np.add.at(table, (ours, theirs), 1)
        same = max(
            sum(table[a, b] for a, b in enumerate(order)) for order in permutations(range(k))
        )
        assert problem.n_points - same <= reassigned
        compared += 1
    return compared


@pytest.mark.parametrize("bounded", [by_spectrum, by_matrix])
@pytest.mark.parametrize("first", range(0, 24, 12))
def test_overlap_by_enumeration(first, bounded):
    slacks = (0.01, 0.1, 0.5)
    compared = [
        compared_labellings(blobs(i), slacks[i % 3], bounded) for i in range(first, first + 12)
    ]
    assert np.count_nonzero(compared) >= 6


def test_semidefinite_stronger_on_overlapping_clusters():
    bounded_runs, others = [0, 0], 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(9, 4)) + 2.0 * np.eye(4)[np.arange(9) % 2]
        problem = Problem.from_data(points, 2)
        for i, bounded in enumerate((by_spectrum, by_matrix)):
            compared = compared_labellings(problem, (0.02, 0.1)[seed % 2], bounded)
            bounded_runs[i] += compared > 0
            others += compared > 1
    assert bounded_runs[1] >= bounded_runs[0] + 3
    assert others >= 3  # with more than one labelling


def labels_at_random(rng, n, k):
    return np.concatenate([np.arange(k), rng.integers(k, size=n - k)])[rng.permutation(n)]


@pytest.mark.parametrize("seed", range(10))
def test_reassigned_weight_from_overlap(seed):
    """The lemma alone, for any two labellings of any cost."""
    rng = np.random.default_rng(seed)
    counts = [0, 0]
    for _ in range(200):
        k, n = int(rng.integers(2, 5)), int(rng.integers(6, 25))
        weights = rng.integers(1, 6, n).astype(float) if rng.integers(2) else np.ones(n)
        ours = labels_at_random(rng, n, k)
        theirs = ours.copy()
        moved = rng.permutation(n)[: rng.integers(n)]
        theirs[moved] = rng.integers(k, size=len(moved))
        eta = k - overlap(weights, ours.tolist(), theirs.tolist())
        # The bound is evaluated at no less than eta.
        bound = max_reassigned_weight(np.bincount(ours, weights, k), float(eta) * (1.0 + 1e-15))
        table = np.zeros((k, k))
        np.add.at(table, (ours, theirs), weights)
        same = max(
            sum(table[a, b] for a, b in enumerate(order)) for order in permutations(range(k))
        )
        assert weights.sum() - same <= bound
        if bound < weights.sum():
            counts[int(eta >= 0.5)] += 1
    assert min(counts) >= 10


def test_certainty_with_many_axes():
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(3, 20)) * 6.0
    points = middles[np.arange(9) % 3] + 0.3 * rng.normal(size=(9, 20))
    problem = Problem.from_data(points, 3)
    result = solve(problem, bound="spectral", jobs=1)
    certainty = result.certainty(0.01)
    assert check_all_claims(problem, result, certainty) >= 1
    assert certainty.method in ("spectral overlap", "regions of centres")
    assert certainty.agreement > 0.5


def test_semidefinite_warm_start():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(40, 12)) + 2.5 * np.eye(12)[np.arange(40) % 2]
    result = solve(Problem.from_data(points, 2), bound="sdp", jobs=1)
    assert result.basis is not None
    (artifact,) = result.basis.bound_artifacts
    assert artifact.warm_start is not None
    certainty = result.certainty(1e-3)
    assert certainty.method == "semidefinite overlap"
    assert 0.5 < certainty.agreement <= 1.0
    assert certainty.most_elsewhere < 20
    assert result.certainty(1e-3).most_elsewhere == certainty.most_elsewhere  # deterministic


def real_set(name: str) -> tuple[np.ndarray, int]:
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    if name == "iris":
        return datasets.load_iris().data, 3
    load = datasets.load_wine if name == "wine" else datasets.load_breast_cancer
    return StandardScaler().fit_transform(load().data), 3 if name == "wine" else 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after"), [("iris", 1.0, 0.07), ("wine", 2.0, 0.1), ("breast", 1.0, 0.13)]
)
def test_multipliers_of_the_cost_alone_are_weak(name, before, after):
    """Figures of docs/concepts/certainty.md about overlapping data."""
    points, k = real_set(name)
    problem = Problem.from_data(points, k)
    result = solve(problem, jobs=1)
    done = presolve(problem, StopSignal())
    reduced, ours = done.reduced, done.presolve_labels(result.labels)
    model, bound = SdpModel.of(reduced), SdpBound()
    goal = 0.9998 * max_reduced_cost(done, result.cost, 0.0)
    proof = bound.compute(model, Domain.root(reduced), goal, BoundContext())
    most = max_reduced_cost(done, result.cost, 1e-3)
    etas = []
    for share in (0.01, 0.03, 0.1, 0.3):
        theta = share * min_merge_cost(reduced, ours)
        shifted = replace(model, costs=model.costs + theta * _incumbent_matrix(reduced, ours))
        etas.append(overlap_deficit(most, safe_bound(shifted, proof.leaf.evidence), theta, k))
    assert min(etas) == pytest.approx(before, abs=0.05)
    last = proof.warm_start.admm_state
    slack, params = 1e-3 * result.cost, OverlapParams()
    eta = semidefinite_overlap(reduced, ours, most, slack, last, StopSignal(), params)
    assert eta <= after
