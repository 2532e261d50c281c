"""Ryan-Foster branching: pairs of groups that a fractional solution partly joins.

In a fractional solution, two groups are together to the total weight of the clusters that contain
both. If that weight is strictly between 0 and 1, both a must-link and a cannot-link between the two
groups exclude the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import FractionalSolution
from certikmeans.problem import ReducedProblem

Pair = tuple[int, int]


@final
@dataclass(frozen=True, slots=True)
class RyanFosterParams:
    """Settings of the selection of pairs."""

    max_patterns: int = 1_000  # membership patterns considered, by descending weight
    min_fractionality: float = 0.01  # distance of the joint weight of a pair from 0 and from 1
    tie_ratio: float = 0.7  # of fractionalities, above which the heaviest pair is taken
    similarity: float = 0.8  # joint weight of groups that are exchangeable in a pair

    def __post_init__(self) -> None:
        if not 0.0 < self.min_fractionality < 0.5 or not 0.0 < self.tie_ratio <= 1.0:
            raise ValueError("min_fractionality has to be in (0, 0.5), tie_ratio in (0, 1]")


DEFAULT_PARAMS = RyanFosterParams()


def fractional_pairs(
    problem: ReducedProblem,
    fractional: FractionalSolution | None,
    count: int,
    params: RyanFosterParams = DEFAULT_PARAMS,
) -> list[Pair]:
    """At most ``count`` dissimilar pairs of groups, best first.

    Pairs with a joint weight close to one half are best; the heaviest pair breaks near ties.
    """
    if fractional is None or problem.n_groups < 2:
        return []
    rows = _membership_patterns(problem, fractional, params.max_patterns)
    inside = fractional.members[:, rows].astype(np.float64)
    # The weights only approximate a solution: scale those of every group to a sum of 1.
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
        if max_fractionality < params.min_fractionality:
            break
        eligible = np.where(fractionality < params.tie_ratio * max_fractionality, -1.0, weight)
        heaviest = eligible == eligible.max()
        best = int(np.argmax(np.where(heaviest, fractionality, -1.0)))
        first, second = np.unravel_index(best, fractionality.shape)
        pairs.append((int(rows[first]), int(rows[second])))
        like_first = together[first] >= params.similarity
        like_second = together[second] >= params.similarity
        fractionality[np.ix_(like_first, like_second)] = 0.0
        fractionality[np.ix_(like_second, like_first)] = 0.0
        fractionality[first, second] = fractionality[second, first] = 0.0
    return pairs


def _membership_patterns(
    problem: ReducedProblem, fractional: FractionalSolution, max_patterns: int
) -> NDArray[np.int64]:
    """Heaviest group of every membership pattern in the clusters of the solution."""
    heaviest_first = np.argsort(-problem.weights, kind="stable")
    patterns = np.packbits(fractional.members[:, heaviest_first], axis=0).T
    first = np.unique(np.ascontiguousarray(patterns), axis=0, return_index=True)[1]
    rows = heaviest_first[np.sort(first)]
    covered = fractional.members[:, rows].any(axis=0)
    return np.asarray(rows[covered][:max_patterns], dtype=np.int64)
