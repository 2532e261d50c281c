"""Instances for tests of resuming: small, and not solved at the root."""

from __future__ import annotations

import numpy as np

from certikmeans import Problem
from certikmeans.events import CheckpointOpportunity
from certikmeans.generate import random_pairs


class Killed(BaseException):
    """Stands for the end of a process."""


class KillAt:
    """Ends the run at a safe point, counted from 1; by default it only counts."""

    def __init__(self, number=None):
        self.number = number
        self.seen = 0

    def __call__(self, event):
        if isinstance(event, CheckpointOpportunity):
            self.seen += 1
            if self.seen == self.number:
                raise Killed


def clumps(n=30, k=4, must=0, pairs=60, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    points, classes = rng.uniform(size=(n, 2)), rng.integers(k, size=n)
    must, cannot = random_pairs(classes, must, pairs, seed=seed)
    weights = rng.uniform(0.5, 2.0, size=n) if weighted else None
    return Problem.from_data(points, k, must_link=must, cannot_link=cannot, weights=weights)


# Settings under which the course is different; every one of them with a counted budget.
RUN_SETTINGS = {
    "cluster, pairs": {"gap": 1e-5, "bound": "cluster", "branching": "pairs", "node_limit": 9},
    "cluster, centers": {"gap": 1e-5, "bound": "cluster", "branching": "centers", "node_limit": 5},
    "sample, depth": {"bound": "sample", "selection": "depth", "node_limit": 60},
    "sample, mixed": {"bound": "sample", "selection": "mixed", "node_limit": 60},
    "grouped": {"gap": 1e-9, "bound": "grouped", "node_limit": 3},
    "sdp": {"gap": 1e-9, "bound": "sdp", "node_limit": 3},
    "proof kept": {"gap": 1e-5, "keep_proof": True, "node_limit": 7},
}


def same(one, other):
    """Whether two results are the same answer."""
    return (
        one.nodes == other.nodes
        and one.lower_bound == other.lower_bound
        and one.cost == other.cost
        and one.status is other.status
        and one.stop_reason is other.stop_reason
        and np.array_equal(one.labels, other.labels)
    )
