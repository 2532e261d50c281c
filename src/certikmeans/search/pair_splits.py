"""Which pair to decide next: together or apart (Ryan and Foster's branching).

**The rule.** A bound that has compared pairs says which. Otherwise it is a pair that its mixture
neither joins nor separates (`bounds/doubt.py`). Without a mixture (other bounds, or a mixture that
is a labelling), groups are placed one after the other: the group that would cost most wherever it
goes is compared with the cluster it fits best.
"""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.base import BoundResult
from certikmeans.bounds.doubt import Pair, doubtful_pairs
from certikmeans.problem import ReducedProblem


def pair_to_decide(problem: ReducedProblem, found: BoundResult) -> Pair | None:
    """Pair of groups to split a part on; None if all are decided."""
    if found.pair is not None:
        return found.pair
    pairs = doubtful_pairs(problem, found.mixture, 1)
    return pairs[0] if pairs else undecided_pair(problem)


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
