"""Swap search, partition crossover and the local search for many clusters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from certikmeans.generate import random_pairs
from certikmeans.heuristics.crossover import (
    CrossoverParams,
    FragmentPool,
    costs_by_cluster,
    crossover_mutate,
    hyperplane_crossover,
)
from certikmeans.heuristics.default import DefaultSearch, HeuristicParams
from certikmeans.heuristics.genetic_search import GeneticParams
from certikmeans.heuristics.local_search import (
    LocalOptimum,
    LocalSearchParams,
    NeighborhoodSearch,
    neighbor_clusters,
)
from certikmeans.heuristics.swap_search import (
    SwapBudget,
    SwapParams,
    SwapSearch,
    reseed_neighborhoods,
    score_swaps,
    swap_centers,
)
from certikmeans.kernels.graph import overlap_components
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_feasible, make_heuristic_context
from certikmeans.testing.oracle import exact_cost

BRIEF = SwapBudget(starts=4, max_no_improve=24, trials=400)


def blobs(seed, n_clusters=12, n_points=150, n_pairs=40):
    """Well separated clusters on a grid, with cannot-links between them."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n_points) % n_clusters
    centres = np.stack([classes % 4, classes // 4], axis=1) * 10.0
    points = centres + rng.normal(size=(n_points, 2))
    _, apart = random_pairs(classes, 0, n_pairs, seed=seed)
    return Problem.from_data(points, n_clusters, cannot_link=apart), classes


def optimum_of(problem, labels):
    means = problem.cluster_means(labels)
    away = problem.points - means[labels]
    return LocalOptimum(labels, means, float(problem.weights @ (away**2).sum(axis=1)), 0)


def cost_of(problem, labels):
    return float(exact_cost(problem.points, problem.weights, labels))


@pytest.mark.parametrize("seed", range(6))
def test_finds_separated_clusters(seed):
    problem, classes = blobs(seed)
    ctx = make_heuristic_context(problem, seed=seed)
    assert DefaultSearch().has_many_clusters(ctx)
    labels = DefaultSearch().search(ctx)
    check_feasible(ctx.problem, labels)
    reduced = ctx.problem
    assert cost_of(reduced, labels) == pytest.approx(
        float(exact_cost(problem.points, problem.weights, classes)), rel=1e-9
    )


@pytest.mark.parametrize("n_pairs", [0, 40, 400])
def test_labels_independent_of_threads(n_pairs):
    problem, _ = blobs(1, n_pairs=n_pairs)
    points = problem.points + np.random.default_rng(0).normal(scale=4.0, size=problem.points.shape)
    problem = Problem.from_data(points, 12, cannot_link=problem.cannot_link)
    alone = make_heuristic_context(problem, seed=3)
    expected = SwapSearch(BRIEF).search(alone)
    for workers in (1, 3):
        with ThreadPoolExecutor(workers) as pool:
            found = SwapSearch(BRIEF).search(alone.replace(executor=pool))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_pairs", [0, 60, 400])
def test_neighborhood_search_feasible_and_descends(seed, n_pairs):
    problem, _ = blobs(seed, n_pairs=n_pairs)
    ctx = make_heuristic_context(problem, seed=seed)
    reduced, rng = ctx.problem, np.random.default_rng(seed)
    centers = reduced.points[rng.choice(reduced.n_groups, 12, replace=False)]
    found = NeighborhoodSearch(reduced, ctx.assigner).from_centers(centers, ctx)
    check_feasible(reduced, found.labels)
    assert found.cost == pytest.approx(cost_of(reduced, found.labels), rel=1e-9)
    assert found.cost <= ctx.assigner.assign(centers).cost * (1.0 + 1e-9) or n_pairs > 0
    again = NeighborhoodSearch(reduced, ctx.assigner).from_centers(found.centers, ctx)
    assert again.cost <= found.cost * (1.0 + 1e-9) or n_pairs > 0


@pytest.mark.parametrize("seed", range(10))
def test_perturbations_keep_number_of_centers(seed):
    problem, _ = blobs(seed)
    ctx = make_heuristic_context(problem, seed=seed)
    reduced, rng = ctx.problem, np.random.default_rng(seed)
    optimum = NeighborhoodSearch(reduced, ctx.assigner).from_centers(
        reduced.points[rng.choice(reduced.n_groups, 12, replace=False)], ctx
    )
    scores = score_swaps(reduced, optimum)
    assert (scores.gain >= -1e-9 * optimum.cost).all()
    assert (scores.loss >= -1e-9 * optimum.cost).all()
    for change in (swap_centers, reseed_neighborhoods):
        changed = change(reduced, scores, 3, rng)
        assert changed.shape == optimum.centers.shape
        assert np.isfinite(changed).all()
    mixed = hyperplane_crossover(optimum.centers, optimum.centers[::-1], rng)
    np.testing.assert_array_equal(np.sort(mixed, axis=0), np.sort(optimum.centers, axis=0))
    # All centres but the mutated one come from the parents, and that one is a group.
    child = crossover_mutate(reduced, optimum.centers, optimum.centers[::-1], rng)
    known = (child[:, None, :] == optimum.centers[None, :, :]).all(axis=2).any(axis=1)
    assert np.count_nonzero(~known) <= 1
    at_a_group = (child[:, None, :] == reduced.points[None, :, :]).all(axis=2).any(axis=1)
    assert (known | at_a_group).all()


def test_pool_combines_better_regions():
    problem, classes = blobs(0, n_pairs=0)
    reduced = make_heuristic_context(problem).problem
    # Each splits one pair of blobs wrongly, in different regions.
    first, second = classes.copy(), classes.copy()
    first[classes == 1] = np.where(np.arange((classes == 1).sum()) % 2, 0, 1)
    first[classes == 0] = np.where(np.arange((classes == 0).sum()) % 2, 0, 1)
    second[classes == 11] = np.where(np.arange((classes == 11).sum()) % 2, 10, 11)
    second[classes == 10] = np.where(np.arange((classes == 10).sum()) % 2, 10, 11)
    one, two = optimum_of(reduced, first), optimum_of(reduced, second)
    best, other = sorted((one, two), key=lambda optimum: optimum.cost)
    combined = FragmentPool(reduced, best).combined(other)
    assert combined is not None
    true = reduced.cluster_means(classes)
    np.testing.assert_allclose(np.sort(combined, axis=0), np.sort(true, axis=0), atol=1e-9)


def test_pool_pairs_unbalanced_fragments():
    problem, classes = blobs(0, n_pairs=0)
    reduced = make_heuristic_context(problem).problem
    rows = np.arange(len(classes))
    best = classes.copy()  # blobs 0 and 1 in one cluster, blob 11 in two
    best[classes == 1] = 0
    best[(classes == 11) & (rows % 24 < 12)] = 1
    more = best.copy()  # blobs 0 and 1 separated, but blobs 5 and 6 in one cluster
    more[classes == 1] = 6
    more[classes == 6] = 5
    less = best.copy()  # blob 11 in one cluster, but blob 5 in two
    less[classes == 11] = 11
    less[(classes == 5) & (rows % 24 < 12)] = 1
    pool = FragmentPool(reduced, optimum_of(reduced, best))
    found = [pool.combined(optimum_of(reduced, one)) for one in (more, less)]
    combined = found[-1]
    assert combined is not None
    true = reduced.cluster_means(classes)
    np.testing.assert_allclose(np.sort(combined, axis=0), np.sort(true, axis=0), atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_overlap_components(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 8))
    shared = np.where(rng.random((k, k)) < 0.3, rng.uniform(0.1, 1.0, (k, k)), 0.0)
    least = float(rng.choice([0.0, 0.3]))
    region = np.empty(2 * k, dtype=np.int64)
    count = overlap_components(shared, least, region)
    smaller = np.minimum.outer(shared.sum(axis=1), shared.sum(axis=0))
    joined = (shared > 0.0) & (shared >= least * smaller)
    expected = np.arange(2 * k)
    for _ in range(2 * k):
        for a, b in np.argwhere(joined):
            expected[[a, k + b]] = expected[[a, k + b]].min()
    assert count == len(np.unique(expected))
    same = region[:, None] == region[None, :]
    np.testing.assert_array_equal(same, expected[:, None] == expected[None, :])


def test_costs_by_cluster_sum():
    problem, _ = blobs(2)
    reduced = make_heuristic_context(problem).problem
    labels = np.random.default_rng(0).integers(12, size=reduced.n_groups)
    optimum = optimum_of(reduced, labels)
    assert costs_by_cluster(reduced, optimum).sum() == pytest.approx(optimum.cost)


def test_long_passes_check_stop():
    params = LocalSearchParams(long_pass_work=0)
    problem, _ = blobs(3)
    ctx = make_heuristic_context(problem)
    reduced = ctx.problem
    centers = reduced.points[:12].copy()
    found = NeighborhoodSearch(reduced, ctx.assigner, params).from_centers(centers, ctx)
    stopped = ctx.replace(stop=StopSignal(0.0))
    early = NeighborhoodSearch(reduced, ctx.assigner, params).from_centers(centers, stopped)
    check_feasible(reduced, found.labels)
    check_feasible(reduced, early.labels)
    assert found.cost < early.cost


def test_first_start_runs_after_deadline():
    ctx = make_heuristic_context(blobs(0)[0])
    starts = [np.zeros((12, 2))] * 3
    assert len(list(ctx.until_deadline(starts))) == 3
    assert len(list(ctx.replace(stop=StopSignal(0.0)).until_deadline(starts))) == 1


def test_kdtree_neighbors_equal_direct():
    centers = np.random.default_rng(0).normal(size=(200, 3))
    direct = neighbor_clusters(centers)
    by_tree = neighbor_clusters(centers, LocalSearchParams(kdtree_min_centers=100))
    assert np.array_equal(np.sort(by_tree), np.sort(direct))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LocalSearchParams(max_chain_length=0),
        lambda: GeneticParams(selected_population=30),
        lambda: SwapParams(min_neighborhood=9),
        lambda: CrossoverParams(overlap_thresholds=(0.1,)),
        lambda: HeuristicParams(sample_size=0),
    ],
)
def test_invalid_params(make):
    with pytest.raises(ValueError, match="must"):
        make()
