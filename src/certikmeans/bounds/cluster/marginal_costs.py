"""Ranges of the multipliers around an incumbent, with all kinds of constraints.

At fixed centres the multiplier of a group lies between what the group costs in its own cluster and
what it would cost in another one. With soft pairs the bonuses to groups that share its cluster
count half in the former (so that the incumbent's clusters have value 0 there) and fully in the
latter. With sizes, costs include the prices of the transportation problem. The members of a
cannot-link set are assigned to clusters together: their multipliers lie between the least and the
largest dual solution of that linear assignment. These are initial values and scales; the bound is
valid for any multipliers.
"""

from __future__ import annotations

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.assignment.transportation import assign_sizes
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.problem import ReducedProblem

Labels = Ints
CHARGE_ROUNDS = 2
MAX_SHARE = 0.8


def model_cost_ranges(
    reduced: ReducedProblem, means: Floats, labels: Labels, fraction: float
) -> tuple[Floats, Floats, Floats]:
    """Lower and upper ends of the multipliers, and initial values.

    The second is infinite where hard cannot-links block all other clusters. ``labels`` number the
    rows of ``means``; ``fraction`` is the initial position between the ends.
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
    graph = model.cannot_links
    tails = np.repeat(rows, np.diff(graph.indptr))
    charged = own + blocking_charges(costs, own, labels, tails, graph.neighbors)
    limit = np.full(n, np.inf)
    if model.sets is not None:
        least, limit = set_duals(model.sets, costs, own, labels)
        charged += least
        for members in model.sets.as_list():  # the duals take account of these clusters
            costs[members[:, None], labels[members][None, :]] = np.inf
    costs[rows, labels] = np.inf
    nearest = np.minimum(costs.min(axis=1), limit) if k > 1 else limit
    costs[tails, labels[graph.neighbors]] = np.inf
    other = np.maximum(np.minimum(costs.min(axis=1), limit), charged) if k > 1 else limit
    room = np.minimum(other, nearest) - charged
    room[np.isinf(room)] = 0.0
    initial = charged + balanced_share(charged - own, np.maximum(room, 0.0), labels, k, fraction)
    return lowest, other, initial


def balanced_share(
    charges: Floats, room: Floats, labels: Labels, n_clusters: int, fraction: float
) -> Floats:
    """Part of its room for every multiplier, such that all clusters have about the same value.

    The value of a cluster is the sum of its members' multipliers minus its cost, and the bound
    subtracts the largest value of a cluster for all of them.
    """
    values = np.bincount(labels, charges, n_clusters)
    rooms = np.bincount(labels, room, n_clusters)
    highest = float((values + fraction * rooms).max())
    shares = np.divide(highest - values, rooms, out=np.zeros(n_clusters), where=rooms > 0.0)
    part: Floats = np.clip(shares, 0.0, MAX_SHARE)[labels] * room
    return part


def blocking_charges(
    costs: Floats,
    own: Floats,
    labels: Labels,
    first: Ints,
    second: Ints,
) -> Floats:
    """What groups have to pay for keeping others out of their cluster.

    A group that a cheaper cluster excludes would gain there; in the pricing of that cluster, the
    members that exclude it must have at least that value. Each pays in proportion to what it can
    add to its multiplier before another cluster attracts it.
    """
    n, k = costs.shape
    rows = np.arange(n)
    charges = np.zeros(n)
    if len(first) == 0 or k == 1:
        return charges
    others = costs.copy()
    others[rows, labels] = np.inf
    slack = np.maximum(others.min(axis=1) - own, 0.0) + 1e-3 * float(np.abs(own).mean()) + 1e-300
    key = first * k + labels[second]
    totals = np.bincount(key, slack[second], n * k)
    share = slack[second] / totals[key]
    for _ in range(CHARGE_ROUNDS):
        gain = np.maximum((own + charges)[first] - costs[first, labels[second]], 0.0)
        charges = np.bincount(second, gain * share, n).astype(np.float64)
    return charges


def cost_table(reduced: ReducedProblem, means: Floats) -> Floats:
    """Cost of every group at every centre."""
    costs = np.empty((reduced.n_groups, len(means)))
    for k, mean in enumerate(means):
        away = reduced.points - mean
        costs[:, k] = reduced.weights * np.einsum("ij,ij->i", away, away)
    return costs


def bonus_table(soft: SoftPairs, labels: Labels, n_clusters: int) -> Floats:
    """Bonuses of every group to the groups of every cluster."""
    table = np.zeros((len(labels), n_clusters))
    first, second = soft.pairs.T
    np.add.at(table, (first, labels[second]), soft.bonus)
    np.add.at(table, (second, labels[first]), soft.bonus)
    return table


def set_duals(
    sets: CannotLinkSets, costs: Floats, own: Floats, labels: Labels
) -> tuple[Floats, Floats]:
    """What the members of sets have to pay, at least, and the largest values of multipliers.

    In the linear assignment of a set to clusters, a multiplier is at most the cost in a cluster
    without a member, and at most the cost in another member's cluster plus what that member pays
    for its place. Among the dual solutions of an optimal assignment there is a least and a largest
    one, found by shortest paths. If all clusters have a member, a number may be added to all
    multipliers: then the member that pays least does not pay more in the largest one.
    """
    charges, limits = np.zeros(len(own)), np.full(len(own), np.inf)
    for members in sets.as_list():
        used, mine = labels[members], own[members]
        # Entry (i, j): member j in the cluster of member i.
        exchanged = costs[members[None, :], used[:, None]]
        pays = np.zeros(len(members))
        for _ in range(len(members)):
            more = np.maximum((mine + pays - exchanged).max(axis=1), pays)
            np.maximum(more, 0.0, out=more)
            if (more <= pays).all():
                break
            pays = more
        free = np.ones(costs.shape[1], dtype=bool)
        free[used] = False
        if free.any():
            highest = costs[np.ix_(members, free)].min(axis=1)
        else:
            highest = np.full(len(members), np.inf)
            cheapest = int(np.argmin(pays))
            highest[cheapest] = mine[cheapest] + pays[cheapest]
        for _ in range(len(members)):
            less = np.minimum(highest, (exchanged + (highest - mine)[:, None]).min(axis=0))
            if (less >= highest).all():
                break
            highest = less
        charges[members] += pays
        limits[members] = np.minimum(limits[members], highest)
    return charges, limits
