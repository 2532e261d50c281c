"""Centres moved to where they are worth more: what local searches do not find by themselves.

A local search hardly ever moves a centre past another. With many clusters a local optimum has
places with a centre too many and others with one too few, so a swap takes the centre that is
missed least (its groups go to the next cluster, or two clusters become one) and splits a cluster
where that gains most. Or a few clusters that are neighbours are drawn anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.heuristics.base import Centers
from certikmeans.heuristics.local_search import LocalOptimum
from certikmeans.heuristics.regions import cluster_costs
from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.kernels.lloyd.splits import split_costs, split_in_two
from certikmeans.problem import ReducedProblem

# Groups that distances are computed for at a time.
BLOCK = 4096
# Clusters of a neighbourhood that is drawn anew.
FEWEST, MOST = 2, 6

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Landscape:
    """Where a labelling has too many centres and where too few: estimates that rank moves."""

    optimum: LocalOptimum
    members: tuple[NDArray[np.int64], ...]  # by cluster
    loss: Vector  # (n_clusters,): of removing the centre, at most about this
    gain: Vector  # (n_clusters,): of splitting the cluster
    near: NDArray[np.int64]  # (n_clusters, .): nearest centres, itself first


def survey(problem: ReducedProblem, optimum: LocalOptimum) -> Landscape:
    """Estimate what every centre is worth, and every split."""
    k = problem.n_clusters
    centers, labels = optimum.centers, optimum.labels
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=k))])
    members = tuple(np.split(order, starts[1:-1]))
    masses = np.bincount(labels, problem.weights, k)
    apart = ((centers[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    near = np.argsort(apart, axis=1, kind="stable")[:, : MOST + 1]
    both = masses[:, None] + masses[None, :]
    merged = np.divide(
        masses[:, None] * masses[None, :], both, out=np.zeros((k, k)), where=both > 0
    )
    merged *= apart
    np.fill_diagonal(merged, np.inf)
    costs = cluster_costs(problem, optimum)
    dealt_out = np.bincount(labels, _next_costs(problem, optimum), k) - costs
    halved = np.empty(k)
    split_costs(problem.points, problem.weights, order, starts, halved)
    return Landscape(
        optimum, members, np.minimum(merged.min(axis=1), dealt_out), costs - halved, near
    )


def _next_costs(problem: ReducedProblem, optimum: LocalOptimum) -> Vector:
    """Cost of every group at the nearest centre other than its own."""
    found = np.empty(problem.n_groups)
    squares = np.einsum("ij,ij->i", optimum.centers, optimum.centers)
    for first in range(0, problem.n_groups, BLOCK):
        points = problem.points[first : first + BLOCK]
        away = squares - 2.0 * (points @ optimum.centers.T)
        away[np.arange(len(points)), optimum.labels[first : first + BLOCK]] = np.inf
        found[first : first + BLOCK] = away.min(axis=1) + np.einsum("ij,ij->i", points, points)
    return problem.weights * found


def with_swaps(
    problem: ReducedProblem, land: Landscape, count: int, rng: np.random.Generator
) -> Centers:
    """Take ``count`` centres away that are missed little, split as many clusters elsewhere."""
    k = problem.n_clusters
    centers = land.optimum.centers.copy()
    # Draws favour the front of the order: a cube of a uniform number.
    away, into = np.argsort(land.loss, kind="stable"), np.argsort(-land.gain, kind="stable")
    touched: set[int] = set()
    pair = np.empty((2, problem.n_axes))
    for _ in range(count):
        target = int(into[int(k * rng.random() ** 3)])
        source = int(away[int(k * rng.random() ** 3)])
        share = float(rng.random())
        members = land.members[target]
        if source == target or source in touched or target in touched or len(members) < 2:
            continue
        touched |= {source, target}
        split_in_two(problem.points, problem.weights, members, share, pair)
        centers[target], centers[source] = pair
    return centers


def with_new_neighbourhoods(
    problem: ReducedProblem, land: Landscape, count: int, rng: np.random.Generator
) -> Centers:
    """Draw the centres of ``count`` neighbourhoods anew by k-means++ on their groups.

    Or of twice as many, every other one with a centre more, the rest with one less.
    """
    k = problem.n_clusters
    kept = np.ones(k, dtype=bool)
    drawn = []
    changes = (0,) if rng.random() < 0.5 else (1, -1)
    for _ in range(count):
        places = []
        for change in changes:
            middle, size = int(rng.integers(k)), int(rng.integers(FEWEST, MOST + 1))
            chosen = land.near[middle, :size]
            shares = rng.random((len(chosen) + change, 2))
            rows = np.concatenate([land.members[c] for c in chosen])
            if kept[chosen].all() and 0 < len(shares) < len(rows):
                places.append((chosen, rows, shares))
        numbers = np.concatenate([chosen for chosen, _, _ in places]) if places else np.empty(0)
        if len(places) < len(changes) or len(np.unique(numbers)) < len(numbers):
            continue
        for chosen, rows, shares in places:
            kept[chosen] = False
            drawn.append(_drawn(problem, rows, shares))
    return np.concatenate([land.optimum.centers[kept], *drawn])


def _drawn(problem: ReducedProblem, rows: NDArray[np.int64], shares: Vector) -> Centers:
    """Centres among some groups by k-means++."""
    points, weights = np.ascontiguousarray(problem.points[rows]), problem.weights[rows]
    points.flags.writeable = weights.flags.writeable = False
    seeds = np.empty(len(shares), dtype=np.int64)
    kmeanspp_seeds(points, weights, shares, seeds)
    return points[seeds]
