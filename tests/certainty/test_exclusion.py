"""Proof outside of boxes that grow slowly, with searches cut short."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.cluster.lagrangian_dual import DualPoint, LagrangianDual
from certikmeans.bounds.cluster.pricing import PricingParams
from certikmeans.certainty import exclusion
from certikmeans.certainty.dual_ascent import DualLevel
from certikmeans.certainty.exclusion import CandidateBoxes
from certikmeans.certainty.params import RegionParams
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal


def random_problem(rng: np.random.Generator) -> ReducedProblem:
    """A few groups with cannot-links, including cycles."""
    while True:
        n, d = int(rng.integers(5, 9)), int(rng.integers(1, 4))
        points, weights = rng.normal(size=(n, d)), rng.integers(1, 5, n).astype(float)
        pairs = [rng.choice(n, 2, replace=False) for _ in range(int(rng.integers(9)))]
        problem = Problem.from_data(points, 3, cannot_link=pairs, weights=weights)
        done = presolve(problem, StopSignal())
        if isinstance(done, PresolvedProblem):
            return done.reduced


def independent_sets(reduced: ReducedProblem) -> np.ndarray:
    sets = np.array(list(product((0.0, 1.0), repeat=reduced.n_groups)))[1:]
    tails, heads = reduced.graph.edges().T
    return sets[~np.any((sets[:, tails] > 0.0) & (sets[:, heads] > 0.0), axis=1)]


def max_cluster_value(reduced: ReducedProblem, lam, sets, points_to_check) -> np.ndarray:
    """``F`` at every point, over all independent sets."""
    squares = np.sum((reduced.points[None] - points_to_check[:, None]) ** 2, axis=2)
    return ((lam - reduced.weights * squares) @ sets.T).max(axis=1)


def probe_points(reduced: ReducedProblem, means, boxes, rng) -> np.ndarray:
    """Means of all sets, random points, and points just beyond the faces of the boxes."""
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    points_to_check = [means, rng.uniform(low, high, size=(2_000, len(low)))]
    for least, most in boxes:
        beyond = rng.uniform(least, most, size=(300, len(low)))
        axis, above = rng.integers(len(low), size=300), rng.integers(2, size=300)
        face = np.where(above, most[axis], least[axis])
        little = 10.0 ** rng.uniform(-9, -1, 300) * (high - low)[axis]
        beyond[np.arange(300), axis] = face + np.where(above, little, -little)
        points_to_check.append(np.clip(beyond, low, high))
    return np.concatenate(points_to_check)


def inside_boxes(boxes, points_to_check) -> np.ndarray:
    held = np.zeros(len(points_to_check), dtype=bool)
    for low, high in boxes:
        held |= np.all((low <= points_to_check) & (points_to_check <= high), axis=1)
    return held


def level_of(reduced: ReducedProblem, sets, rng) -> tuple[DualLevel, np.ndarray]:
    """Random multipliers and threshold; and the means of all sets."""
    scale = np.mean(reduced.weights * np.sum(reduced.points**2, axis=1))
    lam = np.abs(rng.normal(size=reduced.n_groups)) * scale
    mass = reduced.weights * sets
    means = mass @ reduced.points / mass.sum(axis=1, keepdims=True)
    sigma = max_cluster_value(reduced, lam, sets, means).max()
    threshold = sigma * rng.uniform(0.3, 1.0)
    return DualLevel(
        lam, sigma, sigma - threshold, threshold, LagrangianDual(reduced).error(lam)
    ), means


@pytest.mark.parametrize("seed", range(2))
def test_exclusion_with_growing_boxes(monkeypatch, seed):
    """Small budgets leave boxes partly searched, with fixed groups, when other boxes grow."""
    rng = np.random.default_rng(seed)
    split = exclusion._ExclusionSearch._split
    n_resplit = n_with_fixed = n_boxes = 0

    def counting_split(search, box):
        nonlocal n_resplit, n_with_fixed
        n_resplit += search.n_parts > 0
        n_with_fixed += bool(np.any(box.fixed_sums != 0.0))
        split(search, box)

    def add_small_box(candidates, starts):
        wide = np.ptp(candidates.guide.dual.problem.points, axis=0)
        for start in starts:
            reach = rng.uniform(0.01, 0.2, len(start)) * wide
            candidates.boxes.append((start - reach, start + reach))
        candidates._merge()

    monkeypatch.setattr(exclusion._ExclusionSearch, "_split", counting_split)
    monkeypatch.setattr(CandidateBoxes, "add", add_small_box)
    for _ in range(250):
        budgets = PricingParams(min_budget=float(rng.choice([5, 40])), max_budget=60.0)
        params = RegionParams(
            max_growths=200,
            batch_size=int(rng.choice([1, 4, 16])),
            min_members_to_filter=int(rng.choice([0, 4_000])),
        )
        reduced = random_problem(rng)
        dual, sets = LagrangianDual(reduced, params=budgets), independent_sets(reduced)
        level, means = level_of(reduced, sets, rng)
        guide = DualPoint(dual, level.multipliers, ())
        candidates = CandidateBoxes(guide, level.threshold, StopSignal(), params)
        assert exclusion.prove_exclusion(dual, level, candidates, StopSignal(), params) is None
        points_to_check = probe_points(reduced, means, candidates.boxes, rng)
        points_to_check = points_to_check[~inside_boxes(candidates.boxes, points_to_check)]
        assert np.all(
            max_cluster_value(reduced, level.multipliers, sets, points_to_check) < level.threshold
        )
        n_boxes += len(candidates.boxes)
    assert n_boxes >= 200
    assert n_resplit >= 1_000
    assert n_with_fixed >= 100


def test_exclusion_without_separating_plane():
    """Four boxes without a plane between them: left of the first, a part has no excluded box."""
    points = np.array([[-1.0, -1.0], [4.0, 4.0], [0.05, 0.5], [0.1, 0.5]])
    graph, _ = build_cannot_link_graph(len(points), np.empty((0, 2), dtype=np.int64))
    reduced = ReducedProblem(points, np.ones(len(points)), CannotLinks(graph), 2, 0.0)
    dual, lam = LagrangianDual(reduced), np.array([0.0, 0.0, 2.0, 2.0])
    level = DualLevel(lam, 4.0, 0.5, 3.5, dual.error(lam))
    ends = np.array(
        [
            [[0.0, 0.0], [1.9, 1.0]],
            [[2.0, 0.0], [3.0, 1.9]],
            [[1.1, 2.0], [3.0, 3.0]],
            [[0.0, 1.1], [0.9, 3.0]],
        ]
    )
    params = RegionParams()
    candidates = CandidateBoxes(DualPoint(dual, lam, ()), level.threshold, StopSignal(), params)
    candidates.boxes = [(low, high) for low, high in ends]
    center, sets = np.array([[-0.2, 0.5]]), independent_sets(reduced)
    assert max_cluster_value(reduced, lam, sets, center) > level.threshold
    assert exclusion.prove_exclusion(dual, level, candidates, StopSignal(), params) is None
    assert inside_boxes(candidates.boxes, center).all()
