"""Where to start: k-means++ and rougher ways, all from one random generator."""

from __future__ import annotations

import math

import numpy as np

from certikmeans.heuristics.base import Centers
from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.problem import ReducedProblem
from certikmeans.streams import generator


def kmeanspp_centers(problem: ReducedProblem, rng: np.random.Generator) -> Centers:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007), with weights."""
    n_trials = 2 + int(math.log(problem.n_clusters))
    shares = rng.random((problem.n_clusters, n_trials))
    seeds = np.empty(problem.n_clusters, dtype=np.int64)
    kmeanspp_seeds(problem.points, problem.weights, shares, seeds)
    return problem.points[seeds]


def scattered_centers(problem: ReducedProblem, rng: np.random.Generator) -> Centers:
    """Draw distinct groups at random, in proportion to weight: large clusters get several."""
    # Exponential keys: the K smallest are a weighted sample without replacement.
    keys = rng.exponential(size=problem.n_groups) / problem.weights
    count = min(problem.n_clusters, problem.n_groups)
    chosen = np.argpartition(keys, count - 1)[:count]
    return problem.points[np.resize(np.sort(chosen), problem.n_clusters)]


def start_centers(problem: ReducedProblem, seed: int, number: int) -> Centers:
    """Start number ``number`` of a run: three of four by k-means++, the rest scattered."""
    rng = generator(seed, "heuristics.start", number)
    if number % 4 == 3:
        return scattered_centers(problem, rng)
    return kmeanspp_centers(problem, rng)
