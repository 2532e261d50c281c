"""Which pair to decide next: together or apart (Ryan and Foster's branching).

**The rule.** In the relaxation's mixture, two groups are together to the weight of the clusters
that hold both. A pair with a weight strictly between 0 and 1 must be so in one labelling and not in
another: either answer cuts the mixture off. We take a pair close to one half, the heaviest among
those nearly as close. Without a mixture (other bounds, or a mixture that is a labelling), groups
are placed one after the other: the group that would cost most wherever it goes is compared with
the cluster it fits best.
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
NEARLY = 0.7

Pair = tuple[int, int]


def doubtful_pair(problem: ReducedProblem, mixture: Mixture | None) -> Pair | None:
    """Pair of groups that the mixture neither joins nor separates; None if there is none."""
    if mixture is None or problem.n_groups < 2:
        return None
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
    most = float(doubt.max(initial=0.0))
    if most < LEAST_DOUBT:
        return None
    weight = np.minimum(problem.weights[rows][:, None], problem.weights[rows][None, :])
    weight[doubt < NEARLY * most] = -1.0
    first, second = np.unravel_index(int(np.argmax(weight)), weight.shape)
    return int(rows[first]), int(rows[second])


def _kinds(problem: ReducedProblem, mixture: Mixture) -> NDArray[np.int64]:
    """The heaviest group of every kind: one kind is in the same clusters of the mixture."""
    heaviest_first = np.argsort(-problem.weights, kind="stable")
    patterns = np.packbits(mixture.members[:, heaviest_first], axis=0).T
    first = np.unique(np.ascontiguousarray(patterns), axis=0, return_index=True)[1]
    rows = heaviest_first[np.sort(first)]
    covered = mixture.members[:, rows].any(axis=0)
    return np.asarray(rows[covered][:MOST_KINDS], dtype=np.int64)


def undecided_pair(problem: ReducedProblem) -> Pair | None:
    """Pair to place the groups one after the other; None when all are placed.

    Heavy groups that are all apart stand for the clusters. Any other group has at least one of
    them it is not apart from yet, or it joins them.
    """
    chosen = _representatives(problem)
    apart = np.zeros((problem.n_groups, len(chosen)), dtype=bool)
    for column, group in enumerate(chosen):
        apart[problem.rules.apart_from(group), column] = True
    weights = problem.weights[:, None]
    away = problem.points[:, None, :] - problem.points[chosen][None, :, :]
    share = weights * problem.weights[chosen] / (weights + problem.weights[chosen])
    cost = share * np.einsum("ijk,ijk->ij", away, away)
    cost[apart] = np.inf
    least = cost.min(axis=1)
    least[chosen] = np.inf
    group = int(np.argmax(np.where(np.isinf(least), -1.0, least)))
    if np.isinf(least[group]):
        return None
    return group, chosen[int(np.argmin(cost[group]))]


def _representatives(problem: ReducedProblem) -> list[int]:
    """Groups that are pairwise apart, chosen greedily by weight; at least one, at most K."""
    chosen: list[int] = []
    common = np.ones(problem.n_groups, dtype=bool)  # apart from all so far
    for s in np.argsort(-problem.weights, kind="stable"):
        if common[s]:
            chosen.append(int(s))
            apart = np.zeros(problem.n_groups, dtype=bool)
            apart[problem.rules.apart_from(int(s))] = True
            common &= apart
            if not common.any():
                break
    return chosen
