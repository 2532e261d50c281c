"""Which points and pairs of a large input are drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem import Problem
from certikmeans.problem.numbering import distinct

MAX_PAIRS = 300


def thinned_pairs(
    problem: Problem, rng: np.random.Generator, most: int = MAX_PAIRS
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both kinds get half of the room, and what the other kind does not need."""
    must, cannot = problem.must_link, problem.cannot_link
    half = most // 2
    n_must = min(len(must), max(half, most - len(cannot)))
    n_cannot = min(len(cannot), most - n_must)
    chosen = [
        pairs[np.sort(rng.choice(len(pairs), size=size, replace=False))] if size else pairs[:0]
        for pairs, size in ((must, n_must), (cannot, n_cannot))
    ]
    return chosen[0], chosen[1]


def thinned_points(
    n_points: int, pairs: NDArray[np.int64], rng: np.random.Generator, most: int
) -> NDArray[np.int64]:
    """Return the rows to draw, among them the ends of every pair drawn."""
    if n_points <= most:
        return np.arange(n_points)
    ends = distinct(pairs)
    others = rng.choice(n_points, size=most, replace=False)
    others = np.setdiff1d(others, ends, assume_unique=True)[: most - len(ends)]
    return np.sort(np.concatenate([ends, others]))
