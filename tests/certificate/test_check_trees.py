"""Trees: leaves that cover all labellings, and boxes of centers."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from certikmeans import Problem, StopReason, check_certificate, solve, write_certificate
from certikmeans.certificate import Limits
from certikmeans.certificate.format import Reason, encode
from certikmeans.certificate.write import make_certificate
from certikmeans.proof import CenterSplit, LeafProof, PairSplit, Proof
from certikmeans.testing.oracle import brute_force, respects
from tests.certificate.helpers import certificate, change, root_proof, solved_by_force, verdict
from tests.clock import timed, within
from tests.tree.helpers import entangled
from tests.tree.test_branch_and_bound import Failing


def random_center_tree(rng, problem, proof, leaf, depth):
    """Preorder nodes of a random tree of center splits."""
    if depth == 0 or rng.random() < 0.2:
        return [leaf]
    spots = (problem.points - proof.center) @ proof.axes
    axis = int(rng.integers(proof.axes.shape[1]))
    value = float(rng.uniform(spots[:, axis].min(), spots[:, axis].max()))
    split = CenterSplit(int(rng.integers(problem.n_clusters)), axis, value)
    sides = [random_center_tree(rng, problem, proof, leaf, depth - 1) for _ in range(2)]
    return [split, *sides[0], *sides[1]]


@pytest.mark.parametrize("seed", range(70))
def test_center_splits(seed):
    rng = np.random.default_rng(seed)
    problem, optimum, labels = solved_by_force(seed, largest=7)
    root = root_proof(problem, labels, gap=1e-3)
    nodes = random_center_tree(rng, problem, root, root.nodes[0], 4)
    proof = Proof(root.lower_bound, root.center, root.axes, tuple(nodes))
    made = certificate(problem, labels, float(optimum) * (1 + 1e-12) + 1e-30, proof)
    answer = verdict(problem, made)
    assert answer.accepted, answer.message
    spread = 1e-10 * float(np.ptp(problem.points)) ** 2
    assert spread > 0.0
    for leaf in ("cluster", "sample"):
        kinds = np.where(made.kinds >= 2, 2 if leaf == "cluster" else 3, made.kinds)
        beyond = change(made, kinds=kinds, lower_bound=float(optimum) * (1 + 1e-6) + spread)
        assert verdict(problem, beyond).reason is Reason.BOUND


def grid(n_clusters, cuts, cluster, first, last):
    """Cells first..last of a cluster, then those of the next cluster, then a leaf."""
    if last - first > 1:
        middle = (first + last) // 2
        return [
            CenterSplit(cluster, 0, float(cuts[middle])),
            *grid(n_clusters, cuts, cluster, first, middle),
            *grid(n_clusters, cuts, cluster, middle, last),
        ]
    if cluster + 1 < n_clusters:
        return grid(n_clusters, cuts, cluster + 1, 0, len(cuts) - 1)
    return [LeafProof("sample")]


def chain(certificate, pairs):
    """The same certificate with a tree that splits one pair after the other."""
    kinds, first, second = [], [], []
    for a, b in pairs:
        kinds += [1, 3]
        first += [a, -1]
        second += [b, -1]
    return change(
        certificate,
        kinds=np.array([*kinds, 3], dtype=np.uint8),
        first=np.array([*first, -1]),
        second=np.array([*second, -1]),
        values=np.zeros(len(kinds) + 1),
        lower_bound=1e-300,
    )


@timed(20.0)
def test_deep_chain_limited(seconds):
    problem = Problem.from_data(np.random.default_rng(0).normal(size=(200, 2)), 3)
    result = solve(problem, keep_proof=True, node_limit=1)
    pairs = list(combinations(range(200), 2))
    deep = chain(make_certificate(problem, result), pairs[:9_990])
    with within(seconds):
        assert verdict(problem, deep).reason is Reason.LIMIT
    answer = verdict(problem, chain(deep, pairs[:300]))
    assert answer.reason is Reason.BOUND  # limits of the tree are not reached
    limits = Limits(base_domain_rows=100, domain_rows_per_number=0)
    assert verdict(problem, chain(deep, pairs[:300]), limits=limits).reason is Reason.LIMIT


@pytest.mark.parametrize("seed", range(24))
def test_sample_bound_of_small_boxes(seed):
    rng = np.random.default_rng(seed)
    n_clusters = 2 + seed % 2
    points = np.round(rng.normal(size=(6, 1)), 2)
    links = [(0, 1), (1, 2), (0, 2), (2, 3)] if n_clusters == 3 else [(0, 1), (1, 2), (2, 3)]
    problem = Problem.from_data(points, n_clusters, cannot_link=links)
    optimum, labels = brute_force(problem)
    cuts = np.linspace(points.min(), points.max(), 6 if n_clusters == 3 else 10)
    expected = np.inf
    for cells in combinations_with_replacement(range(len(cuts) - 1), n_clusters):  # they ascend
        away = [np.maximum(np.maximum(cuts[c] - points, points - cuts[c + 1]), 0) for c in cells]
        costs = np.concatenate(away, axis=1) ** 2
        for trial in product(range(n_clusters), repeat=6):
            if respects(trial, [], links):
                expected = min(expected, costs[np.arange(6), trial].sum())
    nodes = tuple(grid(n_clusters, cuts, 0, 0, len(cuts) - 1))
    proof = Proof(0.0, np.zeros(1), np.eye(1), nodes)
    made = certificate(problem, labels, float(optimum) * (1 + 1e-12) + 1e-30, proof)
    answer = verdict(problem, change(made, lower_bound=expected * (1 - 1e-9)))
    assert answer.accepted, answer.message
    beyond = change(made, lower_bound=float(optimum) * (1 + 1e-6) + 1e-12)
    assert verdict(problem, beyond).reason is Reason.BOUND


@pytest.mark.parametrize("seed", range(40))
def test_pair_splits(seed):
    rng = np.random.default_rng(seed)
    problem, optimum, labels = solved_by_force(seed, largest=7)
    first, second = (int(v) for v in rng.choice(problem.n_points, 2, replace=False))
    root = root_proof(problem, labels)
    leaves, bounds = [], []
    for kind in ("must_link", "cannot_link"):
        pairs = {"must_link": problem.must_link, "cannot_link": problem.cannot_link}
        pairs[kind] = [*pairs[kind].tolist(), (first, second)]
        child = type(problem).from_data(
            problem.points, problem.n_clusters, **pairs, weights=problem.weights
        )
        best = brute_force(child)
        if best is None:
            leaves.append(LeafProof("infeasible"))
        else:
            inner = root_proof(child, best[1])
            leaves += inner.nodes
            bounds.append(inner.lower_bound)
    nodes = (PairSplit(first, second), *leaves)
    proof = Proof(min(bounds), root.center, root.axes, nodes)
    made = certificate(problem, labels, float(optimum) * (1 + 1e-12) + 1e-30, proof)
    answer = verdict(problem, made)
    assert answer.accepted, answer.message
    beyond = float(optimum) * (1 + 1e-6) + 1e-10 * float(np.ptp(problem.points)) ** 2
    assert beyond > 0.0
    assert verdict(problem, change(made, lower_bound=beyond)).reason is Reason.BOUND


@pytest.mark.parametrize("after", [0, 1])  # of the two tasks that the tree needs
def test_certificate_after_worker_failure(after, tmp_path):
    problem = entangled()
    options = {"bound": "cluster", "gap": 1e-9, "time_limit": 20.0, "keep_proof": True}
    result = solve(problem, executor=Failing(after), **options)
    assert result.stop_reason is StopReason.WORKER_FAILED
    write_certificate(tmp_path / "proof", problem, result)
    answer = check_certificate(problem.points, (tmp_path / "proof").read_bytes())
    assert answer.accepted, answer.message
    assert 0.0 < answer.lower_bound <= result.lower_bound


def test_table_size_limited():
    """The number of clusters comes from the file; memory for it is limited by the points."""
    n = 6_000
    points = np.random.default_rng(0).normal(size=(n, 1))
    problem = Problem.from_data(points, n)
    proof = Proof(0.0, np.zeros(1), np.eye(1), (LeafProof("sample"),))
    made = certificate(problem, np.arange(n), 1.0, proof)
    large = change(made, lower_bound=1e-9)
    assert len(encode(large)) < 30_000
    answer = verdict(problem, large)
    assert answer.reason is Reason.LIMIT
    assert "6000 clusters" in answer.message
