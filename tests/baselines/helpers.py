"""Small feasible instances and plain re-implementations to compare with."""

from __future__ import annotations

import itertools

import numpy as np

from certikmeans import Problem
from certikmeans.baselines._base import MustLinkGroups

# Pairs that COP-k-means cannot satisfy in the given order, whatever the start: the first two
# points take a centre each, and the third may join neither. Yet {0, 1} | {2} is feasible.
STUCK = {"X": [[0.0], [10.0], [5.0]], "cannot_link": [(0, 2), (1, 2)]}


def blobs(n_per_cluster=15, seed=0, n_features=2):
    """Three blobs with their labels, not far apart."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3), n_per_cluster)
    middle = rng.normal(scale=4.0, size=(3, n_features))
    return middle[truth] + rng.normal(size=(len(truth), n_features)), truth


def pairs_from(truth, n_must, n_cannot, seed=0):
    """Pairs that ``truth`` satisfies, so that the instance is feasible."""
    rng = np.random.default_rng(seed)
    every = np.array(list(itertools.combinations(range(len(truth)), 2)))
    same = truth[every[:, 0]] == truth[every[:, 1]]
    return (
        rng.permutation(every[same])[:n_must],
        rng.permutation(every[~same])[:n_cannot],
    )


def instance(seed, n_per_cluster=15):
    """A feasible problem with K = 3 and pairs of both kinds."""
    points, truth = blobs(n_per_cluster, seed)
    must, cannot = pairs_from(truth, len(truth) // 4, len(truth) // 3, seed)
    return Problem.from_data(points, 3, must_link=must, cannot_link=cannot)


def least_total(costs, groups: MustLinkGroups, fill=False):
    """Cheapest total over every labelling that respects the pairs; None if there is none."""
    n_groups, n_clusters = costs.shape
    best = None
    for labels in itertools.product(range(n_clusters), repeat=n_groups):
        if any(labels[u] == labels[v] for u, v in groups.cannot_links):
            continue
        if len(groups.conflicting) or (fill and len(set(labels)) < n_clusters):
            continue
        total = sum(costs[g, k] for g, k in enumerate(labels))
        best = total if best is None else min(best, total)
    return best
