"""Outside of boxes that grow by little, in searches cut short: what is shown there is true."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.cluster.pricing import Pricer, PricingParams
from certikmeans.certainty import exclusion
from certikmeans.certainty.dual_ascent import DualLevel, PricingGuide
from certikmeans.certainty.exclusion import CandidateBoxes
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal


def random_problem(rng: np.random.Generator) -> ReducedProblem:
    """A few groups with cannot-links, cycles of them, too."""
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
    """``F`` at every place, by all sets there are."""
    squares = np.sum((reduced.points[None] - points_to_check[:, None]) ** 2, axis=2)
    return ((lam - reduced.weights * squares) @ sets.T).max(axis=1)


def probe_points(reduced: ReducedProblem, means, boxes, rng) -> np.ndarray:
    """Means of all sets, places all over, and just beyond the faces of the boxes."""
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
    """Multipliers and a cut at random; and the means of all sets."""
    scale = np.mean(reduced.weights * np.sum(reduced.points**2, axis=1))
    lam = np.abs(rng.normal(size=reduced.n_groups)) * scale
    mass = reduced.weights * sets
    means = mass @ reduced.points / mass.sum(axis=1, keepdims=True)
    sigma = max_cluster_value(reduced, lam, sets, means).max()
    threshold = sigma * rng.uniform(0.3, 1.0)
    return DualLevel(lam, sigma, sigma - threshold, threshold, Pricer(reduced).error(lam)), means


@pytest.mark.parametrize("seed", range(2))
def test_what_is_shown_stays_true_however_often_boxes_grow(monkeypatch, seed):
    """Budgets of a few looks leave boxes half searched, with groups settled, when others grow."""
    rng = np.random.default_rng(seed)
    threshold = exclusion._ExclusionSearch._split
    again = with_settled = boxes = 0

    def noted(search, box):
        nonlocal again, with_settled
        again += search.n_parts > 0
        with_settled += bool(np.any(box.settled != 0.0))
        threshold(search, box)

    def grown_by_little(candidates, starts):
        wide = np.ptp(candidates.guide.pricer.reduced.points, axis=0)
        for start in starts:
            reach = rng.uniform(0.01, 0.2, len(start)) * wide
            candidates.boxes.append((start - reach, start + reach))
        candidates._merge()

    monkeypatch.setattr(exclusion._ExclusionSearch, "_split", noted)
    monkeypatch.setattr(CandidateBoxes, "add", grown_by_little)
    monkeypatch.setattr(exclusion, "MAX_GROWTHS", 200)
    for _ in range(250):
        params = PricingParams(min_budget=float(rng.choice([5, 40])), max_budget=60.0)
        monkeypatch.setattr(exclusion, "BATCH_SIZE", int(rng.choice([1, 4, 16])))
        monkeypatch.setattr(exclusion, "MIN_MEMBERS_TO_FILTER", int(rng.choice([0, 4_000])))
        reduced = random_problem(rng)
        pricer, sets = Pricer(reduced, params=params), independent_sets(reduced)
        level, means = level_of(reduced, sets, rng)
        candidates = CandidateBoxes(
            PricingGuide(pricer, level.multipliers, ()), level.threshold, StopSignal()
        )
        assert exclusion.prove_exclusion(pricer, level, candidates, StopSignal()) is None
        points_to_check = probe_points(reduced, means, candidates.boxes, rng)
        points_to_check = points_to_check[~inside_boxes(candidates.boxes, points_to_check)]
        assert np.all(
            max_cluster_value(reduced, level.multipliers, sets, points_to_check) < level.threshold
        )
        boxes += len(candidates.boxes)
    assert boxes >= 200
    assert again >= 1_000
    assert with_settled >= 100


def test_what_is_best_on_the_face_of_a_box_is_found():
    """Four boxes with no plane between them: left of the first there is a part without a hole."""
    points = np.array([[-1.0, -1.0], [4.0, 4.0], [0.05, 0.5], [0.1, 0.5]])
    graph, _ = build_cannot_link_graph(len(points), np.empty((0, 2), dtype=np.int64))
    reduced = ReducedProblem(points, np.ones(len(points)), CannotLinks(graph), 2, 0.0)
    lam = np.array([0.0, 0.0, 2.0, 2.0])
    level = DualLevel(lam, 4.0, 0.5, 3.5, Pricer(reduced).error(lam))
    ends = np.array(
        [
            [[0.0, 0.0], [1.9, 1.0]],
            [[2.0, 0.0], [3.0, 1.9]],
            [[1.1, 2.0], [3.0, 3.0]],
            [[0.0, 1.1], [0.9, 3.0]],
        ]
    )
    candidates = CandidateBoxes(
        PricingGuide(Pricer(reduced), lam, ()), level.threshold, StopSignal()
    )
    candidates.boxes = [(low, high) for low, high in ends]
    place, sets = np.array([[-0.2, 0.5]]), independent_sets(reduced)
    assert max_cluster_value(reduced, lam, sets, place) > level.threshold
    assert exclusion.prove_exclusion(Pricer(reduced), level, candidates, StopSignal()) is None
    assert inside_boxes(candidates.boxes, place).all()
