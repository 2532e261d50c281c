"""Cuts of the SDP bound: validity, separation, projection."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.sdp.admm import Admm, project_capped_simplex
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.model import (
    MatrixMultipliers,
    SdpModel,
    aggregate_cuts,
    append_cuts,
    cut_table,
    find_violated_cuts,
)
from certikmeans.bounds.sdp.primal_rounding import fractional_clusters, round_to_centers
from certikmeans.kernels.sdp import EntryLimits, project_on_cuts, violated_cuts
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost


def every_cut(n):
    pairs = [(s, t, -1) for s, t in product(range(n), repeat=2) if s != t]
    triangles = [
        (s, t, u) for s, t, u in product(range(n), repeat=3) if t < u and s not in (t, u)
    ]  # fmt: skip
    return np.array(pairs + triangles)


def excess(z, cut):
    s, t, u = cut
    if u < 0:
        return z[s][t] - z[s][s]
    return z[s][t] + z[s][u] - z[s][s] - z[t][u]


def labelling_matrix(labels, weights):
    masses = {}
    for label, weight in zip(labels, weights, strict=True):
        masses[label] = masses.get(label, Fraction(0)) + Fraction(weight)
    return [[Fraction(int(a == b)) / masses[a] for b in labels] for a in labels]


def random_matrix(rng, n):
    half = rng.uniform(size=(n, n)) * (rng.random((n, n)) < 0.6)
    return half + half.T


def test_cuts_valid_for_all_labellings():
    weights = [1.0, 0.3, 2.5, 7.0, 1.0]
    cuts = every_cut(5)
    for labels in product(range(3), repeat=5):
        z = labelling_matrix(labels, weights)
        assert all(excess(z, cut) <= 0 for cut in cuts)


@pytest.mark.parametrize("seed", range(5))
def test_cut_table(seed):
    rng = np.random.default_rng(seed)
    z = random_matrix(rng, 6)
    cuts = every_cut(6)
    table = cut_table(cuts, 6)
    assert (table.entry_indices // 6 <= table.entry_indices % 6).all()
    sums = np.einsum("cj,cj->c", table.factors, z.ravel()[table.entry_indices])
    assert sums == pytest.approx([excess(z, cut) for cut in cuts])
    for c, cut in enumerate(cuts):
        matrix = np.zeros((6, 6))
        np.add.at(matrix.ravel(), table.entry_indices[c], table.symmetric_factors[c])
        matrix += np.triu(matrix, 1).T
        assert np.sum(matrix * z) == pytest.approx(excess(z, cut))


@pytest.mark.parametrize("seed", range(10))
def test_violated_cuts(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    z = random_matrix(rng, n)
    least = 0.1
    expected = {
        tuple(cut) for cut in every_cut(n) if excess(z, cut) > least * z[cut[0], cut[0]] > 0
    }
    cuts, violations = np.empty((10_000, 3), dtype=np.int64), np.empty(10_000)
    count = violated_cuts(z, least, 1_000, cuts, violations)
    assert {tuple(cut) for cut in cuts[:count].tolist()} == expected
    for cut, violation in zip(cuts[:count], violations[:count], strict=True):
        assert violation == pytest.approx(excess(z, cut) / z[cut[0], cut[0]])
    # At most three per group: the most violated.
    count = violated_cuts(z, least, 3, cuts, violations)
    for s in range(n):
        mine = sorted((excess(z, cut) for cut in expected if cut[0] == s), reverse=True)[:3]
        kept = [excess(z, cut) for cut in cuts[:count] if cut[0] == s]
        assert sorted(kept, reverse=True) == pytest.approx(mine)
    assert len(find_violated_cuts(z, least, 4)) == min(4, len(expected))


@pytest.mark.parametrize("seed", range(8))
def test_projection_optimality(seed):
    rng = np.random.default_rng(seed)
    n = 6
    target = random_matrix(rng, n) - 0.2
    zero_mask = np.zeros((n, n), dtype=bool)
    zero_mask[0, 1] = zero_mask[1, 0] = True
    cuts = every_cut(n)[rng.permutation(len(every_cut(n)))[:30]]
    table = cut_table(cuts, n)
    multipliers = np.zeros(len(cuts))
    entries = target.ravel().copy()
    curvatures = np.einsum("cj,cj->c", table.factors, table.symmetric_factors)
    project_on_cuts(
        entries,
        EntryLimits(np.zeros(n), np.where(zero_mask, 0.0, np.inf).ravel()),
        table.entry_indices,
        table.factors,
        table.symmetric_factors,
        curvatures,
        multipliers,
        5_000,
    )
    upper = np.triu(np.maximum(entries.reshape(n, n), 0.0))
    projected = upper + np.triu(upper, 1).T
    projected[zero_mask] = 0.0
    slack = np.array([excess(projected, cut) for cut in cuts])
    assert slack.max() <= 1e-9
    assert (multipliers >= 0.0).all()
    assert np.abs(multipliers * slack).max() <= 1e-8
    # Stationarity: entries = target - sum of cuts with their multipliers.
    cut_sum = np.bincount(
        table.entry_indices.ravel(), (multipliers[:, None] * table.symmetric_factors).ravel(), n * n
    )
    assert np.triu(entries.reshape(n, n)) == pytest.approx(
        np.triu(target - cut_sum.reshape(n, n)), abs=1e-9
    )


def test_append_cuts():
    cuts, cut_multipliers = append_cuts(
        np.array([[0, 1, 2], [0, 1, -1]]), np.array([3.0, 4.0]),
        np.array([[0, 1, -1], [1, 0, 2]]), 3,
    )  # fmt: skip
    assert cuts.tolist() == [[0, 1, 2], [0, 1, -1], [1, 0, 2]]
    assert cut_multipliers.tolist() == [3.0, 4.0, 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_aggregate_cuts(seed):
    rng = np.random.default_rng(seed)
    group_of = np.array([0, 1, 2, 3, *rng.integers(4, size=3)])
    z = random_matrix(rng, 4)
    repeated = z[np.ix_(group_of, group_of)]
    cuts = every_cut(7)
    cut_multipliers = rng.uniform(size=len(cuts))
    fewer, sums = aggregate_cuts(cuts, cut_multipliers, group_of, 4)
    before = sum(a * excess(repeated, cut) for a, cut in zip(cut_multipliers, cuts, strict=True))
    after = sum(a * excess(z, cut) for a, cut in zip(sums, fewer, strict=True))
    assert after == pytest.approx(before)
    assert len(np.unique(fewer, axis=0)) == len(fewer)
    assert {tuple(cut) for cut in fewer.tolist()} <= {tuple(cut) for cut in every_cut(4).tolist()}


@pytest.mark.parametrize("seed", range(20))
def test_capped_simplex_projection(seed):
    rng = np.random.default_rng(seed)
    values, total = rng.normal(scale=2.0, size=9), int(rng.integers(1, 5))
    found = project_capped_simplex(values, total)
    assert (found >= 0.0).all()
    assert (found <= 1.0).all()
    assert found.sum() <= total + 1e-12
    for _ in range(50):
        other = rng.uniform(size=9)
        other *= min(1.0, total / other.sum())
        assert (
            np.dot(values - found, other - found) <= 1e-9
        )  # variational inequality of the projection


def test_rounding_of_labelling():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(9, 2)), rng.uniform(1.0, 3.0, size=9)
    problem = presolve(Problem.from_data(points, 3, weights=weights), StopSignal()).reduced
    labels = np.array([0, 0, 1, 2, 2, 2, 1, 0, 1])
    z = np.array(labelling_matrix(labels.tolist(), problem.weights.tolist()), dtype=float)
    fractional = fractional_clusters(problem, z)
    assert fractional.weights == pytest.approx(np.ones(3))
    assert {tuple(row) for row in fractional.members.tolist()} == {
        tuple((labels == k).astype(int).tolist()) for k in range(3)
    }
    means = [
        np.average(problem.points[labels == k], axis=0, weights=problem.weights[labels == k])
        for k in range(3)
    ]
    centers = round_to_centers(problem, z)
    assert np.allclose(sorted(centers.tolist()), sorted(np.array(means).tolist()))


@pytest.mark.parametrize("seed", range(10))
def test_degenerate_cuts_valid(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(5, 2)), rng.uniform(0.5, 3.0, size=5)
    problem = Problem.from_data(points, 2, weights=weights)
    done = presolve(problem, StopSignal())
    model = SdpModel.of(done.reduced)
    least = min(
        exact_cost(done.reduced.points, done.reduced.weights, labels)
        for labels in product(range(2), repeat=5)
    )
    admm = Admm(model)
    admm.run(100, StopSignal())
    near = admm.multipliers  # nearly tight, so that an invalid cut would show
    degenerate = [(s, t, u) for s, t, u in product(range(5), repeat=3) if len({s, t, u}) < 3]
    for _ in range(20):
        cuts = rng.permutation(degenerate)[:5]
        cut_multipliers = model.total * 10.0 ** rng.uniform(-4, 0, size=len(cuts))
        given = MatrixMultipliers(
            near.entries,
            np.concatenate([near.cuts, cuts]),
            np.concatenate([near.cut_multipliers, cut_multipliers]),
        )
        assert Fraction(safe_bound(model, given)) <= least
