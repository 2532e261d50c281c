"""Initial centers and subsamples, drawn from named random streams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.heuristics.base import Centers
from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator


def kmeanspp_centers(problem: ReducedProblem, rng: np.random.Generator) -> Centers:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007), with weights."""
    n_trials = 2 + int(math.log(problem.n_clusters))
    uniforms = rng.random((problem.n_clusters, n_trials))
    seeds = np.empty(problem.n_clusters, dtype=np.int64)
    kmeanspp_seeds(problem.points, problem.weights, uniforms, seeds)
    return problem.points[seeds]


def weighted_random_centers(problem: ReducedProblem, rng: np.random.Generator) -> Centers:
    """Draw distinct groups with probability proportional to weight."""
    # Exponential keys: the K smallest are a weighted sample without replacement.
    keys = rng.exponential(size=problem.n_groups) / problem.weights
    count = min(problem.n_clusters, problem.n_groups)
    chosen = np.argpartition(keys, count - 1)[:count]
    return problem.points[np.resize(np.sort(chosen), problem.n_clusters)]


def initial_centers(problem: ReducedProblem, seed: int, number: int) -> Centers:
    """Start ``number`` of a run: three in four by k-means++, the rest by weight."""
    rng = generator(seed, "heuristics.start", number)
    if number % 4 == 3:
        return weighted_random_centers(problem, rng)
    return kmeanspp_centers(problem, rng)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Subsample of a reduced problem; ``rows[i]`` is the original row of row ``i``."""

    problem: ReducedProblem
    rows: NDArray[np.int64]


def draw_sample(problem: ReducedProblem, size: int, rng: np.random.Generator) -> Sample:
    """Draw about ``size`` groups: whole components of the constraints, and free groups.

    So the sample has every constraint of its groups. Components larger than ``size`` are left out.
    """
    sizes = np.diff(problem.label_constraints.component_starts())
    kept = (rng.random(len(sizes)) < size / problem.n_groups) & (sizes <= size)
    rows = np.flatnonzero(np.repeat(kept, sizes))
    if len(rows) < problem.n_clusters:
        rows = np.arange(problem.n_groups)
    points, weights = np.ascontiguousarray(problem.points[rows]), problem.weights[rows]
    # As the arrays of presolve: kernels are compiled anew for writable arrays.
    points.flags.writeable = weights.flags.writeable = False
    sample = ReducedProblem(
        points=points,
        weights=weights,
        label_constraints=problem.label_constraints.subset(rows),
        n_clusters=problem.n_clusters,
        offset=0.0,
    )
    return Sample(sample, rows)
