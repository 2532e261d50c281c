"""Kempe-chain moves keep labels feasible and never raise the cost."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.kernels.graph import CsrGraph
from certikmeans.kernels.lloyd.kempe_moves import ChainLimits, ClusterSums, improve_by_chains
from certikmeans.testing.contracts import check_feasible, make_heuristic_context
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import exact_cost


def improve(problem, labels, max_chain=64):
    labels = labels.copy()
    clusters = ClusterSums(
        counts=np.empty(problem.n_clusters, dtype=np.int64),
        masses=np.empty(problem.n_clusters),
        sums=np.empty((problem.n_clusters, problem.n_dims)),
    )
    limits = ChainLimits(
        min_gain=1e-13 * float(np.sum(problem.weights[:, None] * problem.points**2)),
        max_length=max_chain,
        max_passes=50,
    )
    links = CsrGraph(problem.graph.indptr, problem.graph.neighbors)
    moves = improve_by_chains(problem.points, problem.weights, links, limits, clusters, labels)
    return moves, labels, clusters.masses, clusters.sums


@pytest.mark.parametrize("seed", range(150))
def test_moves_feasible_and_descending(seed):
    ctx = make_heuristic_context(feasible_problem(seed, largest=12))
    problem = ctx.problem
    before = exact_cost(problem.points, problem.weights, ctx.feasible_labels)
    moves, labels, masses, sums = improve(problem, ctx.feasible_labels)
    check_feasible(problem, labels)
    after = exact_cost(problem.points, problem.weights, labels)
    assert after < before if moves else after == before
    filled = masses > 0
    means = sums[filled] / masses[filled, None]
    assert np.allclose(means, problem.cluster_means(labels)[filled], rtol=1e-9, atol=1e-9)


def test_blocked_group_swaps_with_neighbor():
    points = [[0.0], [0.1], [10.0], [10.1], [9.9], [0.2]]
    problem = Problem.from_data(points, 2, cannot_link=[(4, 5)])
    ctx = make_heuristic_context(problem)
    # Groups 4 and 5 are numbered first: 0 and 1. Each starts on the wrong side.
    wrong = ctx.feasible_labels.copy()
    row = {float(p[0]): i for i, p in enumerate(np.round(ctx.problem.points, 6))}
    assert len(row) == 6
    order = np.argsort(ctx.problem.points[:, 0])
    wrong[order[:3]], wrong[order[3:]] = 0, 1
    wrong[[0, 1]] = wrong[[1, 0]]
    moves, labels, *_ = improve(ctx.problem, wrong)
    assert moves == 1
    assert len(set(labels[order[:3]])) == len(set(labels[order[3:]])) == 1


def test_chain_length_limit():
    from certikmeans import Problem

    points = np.arange(8.0).reshape(-1, 1)
    problem = Problem.from_data(points, 2, cannot_link=[(i, i + 1) for i in range(7)])
    ctx = make_heuristic_context(problem)
    moves, labels, *_ = improve(ctx.problem, ctx.feasible_labels, max_chain=3)
    assert moves == 0
    assert np.array_equal(labels, ctx.feasible_labels)


def test_absorbed_weights():
    """Weights so far apart that updates of a cluster's mass round it to 0."""
    points = [
        [44723699011.72379, -65524570454.05724, -51527015677.02674],
        [1.8401850573945905e-09, -2.597291435911681e-10, 4.4300832038912925e-10],
        [-39377.80492404599, 6353.0975289632615, -92917.7591358745],
        [-1.894445554884794e-05, -8.021973574234514e-06, 5.206316374618035e-06],
        [-0.06836525700880215, 0.0368302204500325, -0.02260530615103648],
    ]
    weights = [
        6.55687410553091e-09, 346853556.9124619, 28800.83449541205, 5212403713.722071,
        1409783.25518518,
    ]  # fmt: skip
    problem = Problem.from_data(points, 4, cannot_link=[(2, 1), (2, 0)], weights=weights)
    for seed in range(3):
        result = solve(problem, seed=seed)
        assert result.lower_bound <= result.cost


@pytest.mark.parametrize("seed", range(100))
def test_wide_weights(seed):
    problem = feasible_problem(seed, largest=12)
    weights = 10.0 ** np.random.default_rng(seed).uniform(-12, 12, problem.n_points)
    problem = Problem.from_data(
        problem.points,
        problem.n_clusters,
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
        weights=weights,
    )
    ctx = make_heuristic_context(problem)
    _, labels, *_ = improve(ctx.problem, ctx.feasible_labels)
    check_feasible(ctx.problem, labels)
