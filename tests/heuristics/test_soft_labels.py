"""Labels under soft pairs, beside those of PCKMeans: never a higher cost."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.baselines import PCKMeans
from certikmeans.generate import gaussian_clusters, random_pairs
from certikmeans.heuristics.default import DefaultSearch, HeuristicParams
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import make_heuristic_context

RESTARTS = 10
SMALL = HeuristicParams(work_budget=1e8)  # the default is 60 times that
SHAPES = {2: (6, 0.25), 3: (2, 1.0), 5: (3, 0.25)}  # features, pairs of a kind per point


def instance(seed, *, n_points, n_features, n_clusters, pairs_per_point, wrong, factor):
    """Overlapping clusters and pairs of which a share is wrong, all of one penalty."""
    points, classes = gaussian_clusters(
        n_points, n_features, n_clusters, spread=3.0, box=6.0, seed=seed
    )
    count = int(pairs_per_point * n_points)
    must, cannot = random_pairs(classes, count, count, seed=seed)
    swapped = round(wrong * count)
    must, cannot = (
        np.concatenate([cannot[:swapped], must[swapped:]]),
        np.concatenate([must[:swapped], cannot[swapped:]]),
    )
    penalty = factor * float(((points - points.mean(axis=0)) ** 2).sum()) / n_points
    soft = [np.column_stack([pairs, np.full(count, penalty)]) for pairs in (must, cannot)]
    problem = Problem.from_data(
        points, n_clusters, soft_must_link=soft[0], soft_cannot_link=soft[1]
    )
    return problem, must, cannot, penalty


def cost(problem, labels):
    """Sum of squares about the means, and penalties."""
    squares = 0.0
    for k in np.unique(labels):
        rows = problem.points[labels == k]
        squares += float(((rows - rows.mean(axis=0)) ** 2).sum())
    return squares + problem.penalty(labels)


@pytest.mark.parametrize("factor", [0.25, 1.0, 10.0])
@pytest.mark.parametrize("n_clusters", SHAPES)
@pytest.mark.parametrize("seed", range(20))
def test_cost_is_never_above_that_of_pckmeans(seed, n_clusters, factor):
    """For either price of a violated pair in PCKMeans that could be meant: P or P / 2."""
    n_features, pairs_per_point = SHAPES[n_clusters]
    problem, must, cannot, penalty = instance(
        seed,
        n_points=80,
        n_features=n_features,
        n_clusters=n_clusters,
        pairs_per_point=pairs_per_point,
        wrong=(0.0, 0.1, 0.2)[seed % 3],
        factor=factor,
    )
    ctx = make_heuristic_context(problem, seed=seed)
    labels = DefaultSearch(SMALL).search(ctx)
    done = presolve(problem, StopSignal())
    ours = cost(problem, done.postsolve_labels(labels))
    for price in (0.5 * penalty, penalty):
        theirs = PCKMeans(n_clusters, w=price, n_init=RESTARTS, random_state=seed).fit(
            problem.points, must_link=must, cannot_link=cannot
        )
        assert ours <= cost(problem, theirs.labels_) * (1.0 + 1e-9)
