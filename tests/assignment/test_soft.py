"""Cheapest labels under soft pairs, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certikmeans.assignment.soft import SoftAssignment, SoftAssignmentParams, assign_soft
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.problem.graph_builder import build_cannot_link_graph


def random_case(seed, kind):
    """Costs, soft pairs and cannot-links on at most seven vertices."""
    rng = np.random.default_rng([seed, len(kind)])
    n, k = int(rng.integers(3, 8)), int(rng.integers(2, 4))
    costs = rng.uniform(0.0, 2.0, size=(n, k))
    if kind == "tree":
        pairs = np.array([(rng.integers(i), i) for i in range(1, n)])
    elif kind == "cycle":
        pairs = np.array([(i, (i + 1) % n) for i in range(n)])
    else:
        pairs = np.array([(i, j) for i in range(n) for j in range(i)])
        pairs = pairs[rng.random(len(pairs)) < (1.0 if kind == "complete" else 0.6)]
    bonus = rng.normal(size=len(pairs))
    links = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < 0.15])
    # The graph numbers vertices in an order of its own.
    graph, _ = build_cannot_link_graph(n, links.reshape(-1, 2))
    linked = {tuple(edge) for edge in graph.edges().tolist()}
    pairs = [pair for pair in np.sort(pairs.reshape(-1, 2)).tolist() if tuple(pair) not in linked]
    bonus = rng.normal(size=len(pairs))
    soft = SoftPairs.of(
        n, np.array(pairs).reshape(-1, 2), bonus, float(np.maximum(bonus, 0).sum()), 0.0
    )
    return costs, soft, graph


def cheapest(costs, soft, graph):
    """Least objective over all labellings that respect the cannot-links, and one of them."""
    edges, best = graph.edges(), (np.inf, None)
    for found in product(range(costs.shape[1]), repeat=len(costs)):
        labels = np.array(found)
        if (labels[edges[:, 0]] == labels[edges[:, 1]]).any():
            continue
        value = costs[np.arange(len(costs)), labels].sum()
        if soft is not None:
            first, second = labels[soft.pairs].T
            value += np.abs(soft.bonus[(first == second) == (soft.bonus < 0.0)]).sum()
        if value < best[0]:
            best = (value, found)
    return best


KINDS = ("tree", "cycle", "sparse", "complete")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_exact_or_not_worse_than_start(seed, kind):
    costs, soft, graph = random_case(seed, kind)
    least, feasible = cheapest(costs, soft, graph)
    rng = np.random.default_rng(seed)
    for params in (SoftAssignmentParams(), SoftAssignmentParams(max_removed=0)):
        prepared = SoftAssignment(*costs.shape, soft, graph, params)
        for start in _feasible(rng, costs, graph, feasible):
            labels, exact = prepared.assign(costs, start)
            value = prepared.objective(costs, labels)
            assert value >= least - 1e-12
            assert value <= prepared.objective(costs, start)
            if exact:
                assert value == pytest.approx(least, abs=1e-12)
    if kind in ("tree", "cycle") and len(graph.edges()) == 0:
        assert assign_soft(costs, soft)[1]


def _feasible(rng, costs, graph, feasible):
    """The given labels, if there are any, and random labels that respect the cannot-links."""
    edges = graph.edges()
    drawn = [rng.integers(costs.shape[1], size=len(costs)) for _ in range(50)]
    kept = [one for one in drawn if not (one[edges[:, 0]] == one[edges[:, 1]]).any()]
    return kept[:1] if feasible is None else [np.array(feasible), *kept[:1]]


@pytest.mark.parametrize("seed", range(10))
def test_forbidden_labels_are_not_used(seed):
    costs, soft, graph = random_case(seed, "sparse")
    rng = np.random.default_rng(seed)
    costs[rng.integers(len(costs)), rng.integers(costs.shape[1])] = np.inf
    least, feasible = cheapest(costs, soft, graph)
    if feasible is None:
        pytest.skip("no labels of finite cost")
    for params in (SoftAssignmentParams(), SoftAssignmentParams(max_removed=0)):
        prepared = SoftAssignment(*costs.shape, soft, graph, params)
        labels, _ = prepared.assign(costs, np.array(feasible))
        assert prepared.objective(costs, labels) == pytest.approx(least, abs=1e-12)


def test_large_sparse_pairs_are_solved_and_repeatable():
    rng = np.random.default_rng(0)
    n, k = 3000, 5
    pairs = rng.integers(n, size=(2 * n, 2))
    bonus = rng.normal(size=len(pairs))
    soft = SoftPairs.of(n, pairs, bonus, float(np.maximum(bonus, 0).sum()), 0.0)
    costs = rng.uniform(size=(n, k))
    prepared = SoftAssignment(n, k, soft)
    nearest = np.argmin(costs, axis=1)

    labels, exact = prepared.assign(costs, nearest)
    again, _ = prepared.assign(costs, nearest)

    assert not exact
    assert np.array_equal(labels, again)
    assert prepared.objective(costs, labels) < prepared.objective(costs, nearest)
    # No single vertex can change its label with a gain.
    indptr, neighbors, values = prepared.graph
    tails = np.repeat(np.arange(n), np.diff(indptr))
    marginal = costs.copy()
    np.subtract.at(marginal, (tails, labels[neighbors]), values)
    assert (marginal.min(axis=1) >= marginal[np.arange(n), labels] - 1e-9).mean() > 0.99


def test_parameters_are_validated():
    with pytest.raises(ValueError, match="max_sweeps"):
        SoftAssignmentParams(max_sweeps=0)
