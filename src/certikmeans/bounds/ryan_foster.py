"""Pairs of groups that a relaxation neither joins nor separates (Ryan and Foster's branching).

In a mixture of clusters, two groups are together to the weight of the clusters that hold both. A
pair with a weight strictly between 0 and 1 must be together in one labelling and apart in another:
either answer cuts the mixture off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import FractionalSolution
from certikmeans.problem import ReducedProblem

# Kinds of groups that are looked at, the heaviest first.
MAX_PATTERNS = 1_000
# How close to "always" or "never" a pair may be to count as undecided.
MIN_FRACTIONALITY = 0.01
# Of those nearly as doubtful as the most doubtful one, the heaviest is taken.
TIE_RATIO = 0.7
# Groups that are together to this degree ask the same question.
SIMILARITY = 0.8

Pair = tuple[int, int]


def fractional_pairs(
    problem: ReducedProblem, fractional: FractionalSolution | None, count: int
) -> list[Pair]:
    """At most ``count`` pairs of groups, the best first; each asks something else.

    A pair close to one half is good, the heaviest among those nearly as close the best.
    """
    if fractional is None or problem.n_groups < 2:
        return []
    rows = _membership_patterns(problem, fractional)
    inside = fractional.members[:, rows].astype(np.float64)
    # The weights only approximate a solution: scale every group's clusters to a total of 1.
    coverage = fractional.weights @ inside
    together = (fractional.weights[:, None] * inside).T @ inside
    together /= np.minimum(coverage[:, None], coverage[None, :])
    fractionality = np.minimum(together, 1.0 - together)
    np.fill_diagonal(fractionality, 0.0)
    index_of_group = np.full(problem.n_groups, -1)
    index_of_group[rows] = np.arange(len(rows))
    for i, s in enumerate(rows):
        others = index_of_group[problem.label_constraints.neighbors_of(s)]
        fractionality[i, others[others >= 0]] = 0.0
    weight = np.minimum(problem.weights[rows][:, None], problem.weights[rows][None, :])
    pairs: list[Pair] = []
    while len(pairs) < count:
        max_fractionality = float(fractionality.max(initial=0.0))
        if max_fractionality < MIN_FRACTIONALITY:
            break
        eligible = np.where(fractionality < TIE_RATIO * max_fractionality, -1.0, weight)
        heaviest = eligible == eligible.max()
        best = int(np.argmax(np.where(heaviest, fractionality, -1.0)))
        first, second = np.unravel_index(best, fractionality.shape)
        pairs.append((int(rows[first]), int(rows[second])))
        like_first, like_second = together[first] >= SIMILARITY, together[second] >= SIMILARITY
        fractionality[np.ix_(like_first, like_second)] = 0.0
        fractionality[np.ix_(like_second, like_first)] = 0.0
        fractionality[first, second] = fractionality[second, first] = 0.0
    return pairs


def _membership_patterns(
    problem: ReducedProblem, fractional: FractionalSolution
) -> NDArray[np.int64]:
    """The heaviest group of every kind: one kind is in the same clusters of the mixture."""
    heaviest_first = np.argsort(-problem.weights, kind="stable")
    patterns = np.packbits(fractional.members[:, heaviest_first], axis=0).T
    first = np.unique(np.ascontiguousarray(patterns), axis=0, return_index=True)[1]
    rows = heaviest_first[np.sort(first)]
    covered = fractional.members[:, rows].any(axis=0)
    return np.asarray(rows[covered][:MAX_PATTERNS], dtype=np.int64)
