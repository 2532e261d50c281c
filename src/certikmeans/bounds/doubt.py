"""Pairs of groups that a relaxation neither joins nor separates (Ryan and Foster's branching).

In a mixture of clusters, two groups are together to the weight of the clusters that hold both. A
pair with a weight strictly between 0 and 1 must be together in one labelling and apart in another:
either answer cuts the mixture off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import Mixture
from certikmeans.problem import ReducedProblem

# Kinds of groups that are looked at, the heaviest first.
MOST_KINDS = 1_000
# How close to "always" or "never" a pair may be to count as undecided.
LEAST_DOUBT = 0.01
# Of those nearly as doubtful as the most doubtful one, the heaviest is taken.
NEARLY = 0.7
# Groups that are together to this degree ask the same question.
SAME = 0.8

Pair = tuple[int, int]


def doubtful_pairs(problem: ReducedProblem, mixture: Mixture | None, count: int) -> list[Pair]:
    """At most ``count`` pairs of groups, the best first; each asks something else.

    A pair close to one half is good, the heaviest among those nearly as close the best.
    """
    if mixture is None or problem.n_groups < 2:
        return []
    rows = _kinds(problem, mixture)
    inside = mixture.members[:, rows].astype(np.float64)
    # The weights only approximate a solution: scale every group's clusters to a total of 1.
    coverage = mixture.weights @ inside
    together = (mixture.weights[:, None] * inside).T @ inside
    together /= np.minimum(coverage[:, None], coverage[None, :])
    doubt = np.minimum(together, 1.0 - together)
    np.fill_diagonal(doubt, 0.0)
    place = np.full(problem.n_groups, -1)
    place[rows] = np.arange(len(rows))
    for i, s in enumerate(rows):
        others = place[problem.rules.apart_from(s)]
        doubt[i, others[others >= 0]] = 0.0
    weight = np.minimum(problem.weights[rows][:, None], problem.weights[rows][None, :])
    pairs: list[Pair] = []
    while len(pairs) < count:
        most = float(doubt.max(initial=0.0))
        if most < LEAST_DOUBT:
            break
        eligible = np.where(doubt < NEARLY * most, -1.0, weight)
        heaviest = eligible == eligible.max()
        best = int(np.argmax(np.where(heaviest, doubt, -1.0)))
        first, second = np.unravel_index(best, doubt.shape)
        pairs.append((int(rows[first]), int(rows[second])))
        like_first, like_second = together[first] >= SAME, together[second] >= SAME
        doubt[np.ix_(like_first, like_second)] = 0.0
        doubt[np.ix_(like_second, like_first)] = 0.0
        doubt[first, second] = doubt[second, first] = 0.0
    return pairs


def _kinds(problem: ReducedProblem, mixture: Mixture) -> NDArray[np.int64]:
    """The heaviest group of every kind: one kind is in the same clusters of the mixture."""
    heaviest_first = np.argsort(-problem.weights, kind="stable")
    patterns = np.packbits(mixture.members[:, heaviest_first], axis=0).T
    first = np.unique(np.ascontiguousarray(patterns), axis=0, return_index=True)[1]
    rows = heaviest_first[np.sort(first)]
    covered = mixture.members[:, rows].any(axis=0)
    return np.asarray(rows[covered][:MOST_KINDS], dtype=np.int64)
