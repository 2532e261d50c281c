"""Cuts of the SDP bound: valid for every labelling, found, and projected on."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.cuts import cut_table, joined, merged, most_violated
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.bounds.sdp.multipliers import MatrixMultipliers
from certikmeans.bounds.sdp.safe import safe_bound
from certikmeans.bounds.sdp.spectral import capped
from certikmeans.bounds.sdp.suggest import soft_clusters, suggested_centers
from certikmeans.kernels.sdp.cuts import project_on_cuts, violated_cuts
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


def test_every_labelling_satisfies_every_cut():
    weights = [1.0, 0.3, 2.5, 7.0, 1.0]
    cuts = every_cut(5)
    for labels in product(range(3), repeat=5):
        z = labelling_matrix(labels, weights)
        assert all(excess(z, cut) <= 0 for cut in cuts)


@pytest.mark.parametrize("seed", range(5))
def test_tables_say_the_same_as_the_cuts(seed):
    rng = np.random.default_rng(seed)
    z = random_matrix(rng, 6)
    cuts = every_cut(6)
    table = cut_table(cuts, 6)
    assert (table.places // 6 <= table.places % 6).all()
    sums = np.einsum("cj,cj->c", table.factors, z.ravel()[table.places])
    assert sums == pytest.approx([excess(z, cut) for cut in cuts])
    for c, cut in enumerate(cuts):
        matrix = np.zeros((6, 6))
        np.add.at(matrix.ravel(), table.places[c], table.shares[c])
        matrix += np.triu(matrix, 1).T
        assert np.sum(matrix * z) == pytest.approx(excess(z, cut))


@pytest.mark.parametrize("seed", range(10))
def test_violated_cuts_are_found(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    z = random_matrix(rng, n)
    least = 0.1
    expected = {
        tuple(cut) for cut in every_cut(n) if excess(z, cut) > least * z[cut[0], cut[0]] > 0
    }
    cuts, amounts = np.empty((10_000, 3), dtype=np.int64), np.empty(10_000)
    count = violated_cuts(z, least, 1_000, cuts, amounts)
    assert {tuple(cut) for cut in cuts[:count].tolist()} == expected
    for cut, amount in zip(cuts[:count], amounts[:count], strict=True):
        assert amount == pytest.approx(excess(z, cut) / z[cut[0], cut[0]])
    # Three of every group: the worst three.
    count = violated_cuts(z, least, 3, cuts, amounts)
    for s in range(n):
        mine = sorted((excess(z, cut) for cut in expected if cut[0] == s), reverse=True)[:3]
        kept = [excess(z, cut) for cut in cuts[:count] if cut[0] == s]
        assert sorted(kept, reverse=True) == pytest.approx(mine)
    assert len(most_violated(z, least, 4)) == min(4, len(expected))


@pytest.mark.parametrize("seed", range(8))
def test_projection_satisfies_the_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    n = 6
    target = random_matrix(rng, n) - 0.2
    fixed = np.zeros((n, n), dtype=bool)
    fixed[0, 1] = fixed[1, 0] = True
    cuts = every_cut(n)[rng.permutation(len(every_cut(n)))[:30]]
    table = cut_table(cuts, n)
    multipliers = np.zeros(len(cuts))
    entries = target.ravel().copy()
    curvatures = np.einsum("cj,cj->c", table.factors, table.shares)
    project_on_cuts(
        entries, fixed.ravel(), table.places, table.factors, table.shares, curvatures,
        multipliers, 5_000,
    )  # fmt: skip
    upper = np.triu(np.maximum(entries.reshape(n, n), 0.0))
    projected = upper + np.triu(upper, 1).T
    projected[fixed] = 0.0
    slack = np.array([excess(projected, cut) for cut in cuts])
    assert slack.max() <= 1e-9
    assert (multipliers >= 0.0).all()
    assert np.abs(multipliers * slack).max() <= 1e-8
    # entries = target - sum of multipliers: what is left of the gradient is the clipping.
    taken = np.bincount(table.places.ravel(), (multipliers[:, None] * table.shares).ravel(), n * n)
    assert np.triu(entries.reshape(n, n)) == pytest.approx(
        np.triu(target - taken.reshape(n, n)), abs=1e-9
    )


def test_merging_keeps_multipliers_and_adds_no_cut_twice():
    cuts, amounts = merged(
        np.array([[0, 1, 2], [0, 1, -1]]), np.array([3.0, 4.0]),
        np.array([[0, 1, -1], [1, 0, 2]]), 3,
    )  # fmt: skip
    assert cuts.tolist() == [[0, 1, 2], [0, 1, -1], [1, 0, 2]]
    assert amounts.tolist() == [3.0, 4.0, 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_joined_cuts_say_the_same_about_repeated_matrices(seed):
    rng = np.random.default_rng(seed)
    group_of = np.array([0, 1, 2, 3, *rng.integers(4, size=3)])
    z = random_matrix(rng, 4)
    repeated = z[np.ix_(group_of, group_of)]
    cuts = every_cut(7)
    amounts = rng.uniform(size=len(cuts))
    fewer, sums = joined(cuts, amounts, group_of, 4)
    before = sum(a * excess(repeated, cut) for a, cut in zip(amounts, cuts, strict=True))
    after = sum(a * excess(z, cut) for a, cut in zip(sums, fewer, strict=True))
    assert after == pytest.approx(before)
    assert len(np.unique(fewer, axis=0)) == len(fewer)
    assert {tuple(cut) for cut in fewer.tolist()} <= {tuple(cut) for cut in every_cut(4).tolist()}


@pytest.mark.parametrize("seed", range(20))
def test_capped_eigenvalues_are_the_nearest(seed):
    rng = np.random.default_rng(seed)
    values, total = rng.normal(scale=2.0, size=9), int(rng.integers(1, 5))
    found = capped(values, total)
    assert (found >= 0.0).all()
    assert (found <= 1.0).all()
    assert found.sum() <= total + 1e-12
    for _ in range(50):
        other = rng.uniform(size=9)
        other *= min(1.0, total / other.sum())
        assert np.dot(values - found, other - found) <= 1e-9  # obtuse: found is the projection


def test_a_labelling_suggests_itself():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(9, 2)), rng.uniform(1.0, 3.0, size=9)
    problem = presolve(Problem.from_data(points, 3, weights=weights), StopSignal()).reduced
    labels = np.array([0, 0, 1, 2, 2, 2, 1, 0, 1])
    z = np.array(labelling_matrix(labels.tolist(), problem.weights.tolist()), dtype=float)
    mixture = soft_clusters(problem, z)
    assert mixture.weights == pytest.approx(np.ones(3))
    assert {tuple(row) for row in mixture.members.tolist()} == {
        tuple((labels == k).astype(int).tolist()) for k in range(3)
    }
    means = [
        np.average(problem.points[labels == k], axis=0, weights=problem.weights[labels == k])
        for k in range(3)
    ]
    centers = suggested_centers(problem, z)
    assert np.allclose(sorted(centers.tolist()), sorted(np.array(means).tolist()))


@pytest.mark.parametrize("seed", range(10))
def test_cuts_that_name_a_group_twice_prove_nothing_wrong(seed):
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
    admm.climb(100, StopSignal())
    near = admm.multipliers  # so that there is no room for what is wrong
    degenerate = [(s, t, u) for s, t, u in product(range(5), repeat=3) if len({s, t, u}) < 3]
    for _ in range(20):
        cuts = rng.permutation(degenerate)[:5]
        amounts = model.total * 10.0 ** rng.uniform(-4, 0, size=len(cuts))
        given = MatrixMultipliers(
            near.entries,
            np.concatenate([near.cuts, cuts]),
            np.concatenate([near.amounts, amounts]),
        )
        assert Fraction(safe_bound(model, given)) <= least
