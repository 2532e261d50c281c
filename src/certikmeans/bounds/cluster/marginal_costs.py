"""Ranges of the multipliers around an incumbent, with all kinds of constraints.

At fixed centres the multiplier of a group lies between what the group costs in its own cluster and
what it would cost in another one. With soft pairs the bonuses to groups that share its cluster
count half in the former (so that the incumbent's clusters are worth 0 there) and fully in the
latter. With sizes, costs include the prices of the transportation problem. Where a cannot-link set
has a member in the other cluster already, the two would exchange their places. These are initial
values and scales; the bound is valid for any multipliers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment.transportation import assign_sizes
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.problem import ReducedProblem

Vector = NDArray[np.float64]
Labels = NDArray[np.int64]


def model_cost_ranges(
    reduced: ReducedProblem, means: NDArray[np.float64], labels: Labels
) -> tuple[Vector, Vector, Vector]:
    """Cost of every group in its cluster, in the cheapest other one, and ignoring hard pairs.

    The second is infinite where hard cannot-links block all other clusters. ``labels`` number the
    rows of ``means``.
    """
    model, n, k = reduced.label_constraints, reduced.n_groups, len(means)
    costs = cost_table(reduced, means)
    rows = np.arange(n)
    if model.sizes is not None and k == reduced.n_clusters:
        limits = model.sizes
        found = assign_sizes(costs, limits, start_labels=labels)
        costs = costs + limits.demand[:, None] * found.prices
    own_bonus = np.zeros(n)
    if model.soft is not None:
        together = bonus_table(model.soft, labels, k)
        own_bonus = together[rows, labels]
        costs = costs - together
    own = costs[rows, labels] + 0.5 * own_bonus
    lowest = np.minimum(own, costs[rows, labels])
    if model.sets is not None:
        costs = costs + exchange_costs(model.sets, costs, labels)
    costs[rows, labels] = np.inf
    nearest = costs.min(axis=1) if k > 1 else np.full(n, np.inf)
    graph = model.cannot_links
    tails = np.repeat(rows, np.diff(graph.indptr))
    costs[tails, labels[graph.neighbors]] = np.inf
    other = costs.min(axis=1) if k > 1 else np.full(n, np.inf)
    return lowest, np.maximum(other, own), np.maximum(nearest, own)


def cost_table(reduced: ReducedProblem, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost of every group at every centre."""
    costs = np.empty((reduced.n_groups, len(means)))
    for k, mean in enumerate(means):
        away = reduced.points - mean
        costs[:, k] = reduced.weights * np.einsum("ij,ij->i", away, away)
    return costs


def bonus_table(soft: SoftPairs, labels: Labels, n_clusters: int) -> NDArray[np.float64]:
    """Bonuses of every group to the groups of every cluster."""
    table = np.zeros((len(labels), n_clusters))
    first, second = soft.pairs.T
    np.add.at(table, (first, labels[second]), soft.bonus)
    np.add.at(table, (second, labels[first]), soft.bonus)
    return table


def exchange_costs(
    sets: CannotLinkSets, costs: NDArray[np.float64], labels: Labels
) -> NDArray[np.float64]:
    """What it costs to move the member of a common set out of a cluster, to the group's own."""
    extra = np.zeros_like(costs)
    for members in sets.as_list():
        used = labels[members]
        # Entry (i, j): member j moves from its cluster to that of member i.
        moved = costs[members[None, :], used[:, None]] - costs[members, used][None, :]
        extra[members[:, None], used[None, :]] += np.maximum(moved, 0.0)
    return extra
