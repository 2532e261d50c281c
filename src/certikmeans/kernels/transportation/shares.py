"""Exact transportation of divisible groups by successive shortest paths. Compiled.

As in `kernels.transportation.units`, with a demand per group: the linear relaxation of the
assignment of groups. An arc from cluster ``i`` to ``j`` is the group with a share in ``i`` whose
move costs least per demand.
"""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.transportation.units import (
    Heaps,
    Network,
    initial_flow,
    pop,
    push,
    sift_down,
)

LEAST_SHARE = 1e-12  # smaller parts of a group or of the demand are rounding errors


@njit(cache=True, nogil=True)
def _build(costs, demand, shares):
    """Allocate heaps with room for new members, and fill them."""
    n, n_clusters = costs.shape
    members = np.zeros(n_clusters, dtype=np.int64)
    for s in range(n):
        for i in range(n_clusters):
            members[i] += shares[s, i] > 0.0
    room = n // (2 * n_clusters) + 32
    start = np.empty(n_clusters, dtype=np.int64)
    capacity = np.empty(n_clusters, dtype=np.int64)
    pool = 0
    for i in range(n_clusters):
        start[i], capacity[i] = pool, members[i] + room
        pool += n_clusters * capacity[i]
    size = np.zeros((n_clusters, n_clusters), dtype=np.int64)
    limit = np.full((n_clusters, n_clusters), np.inf)
    heaps = Heaps(np.empty(pool), np.empty(pool, dtype=np.int32), start, capacity, size, limit)
    for s in range(n):
        for i in range(n_clusters):
            if shares[s, i] > 0.0:
                place = start[i] + size[i, i]
                size[i, i] += 1
                for j in range(n_clusters):
                    if j != i:
                        at = place + j * capacity[i]
                        heaps.keys[at] = (costs[s, j] - costs[s, i]) / demand[s]
                        heaps.units[at] = s
    for i in range(n_clusters):
        for j in range(n_clusters):
            if j != i:
                size[i, j] = size[i, i]
                base = start[i] + j * capacity[i]
                for position in range(size[i, j] // 2 - 1, -1, -1):
                    sift_down(heaps.keys, heaps.units, base, size[i, j], position)
    return heaps


@njit(cache=True, nogil=True)
def _clean_top(shares, heaps, i, j):
    """Remove groups without a share in ``i``; returns whether there is a top."""
    base = heaps.start[i] + j * heaps.capacity[i]
    while heaps.size[i, j] > 0 and shares[heaps.units[base], i] <= 0.0:
        pop(heaps, i, j)
    return heaps.size[i, j] > 0


@njit(cache=True, nogil=True)
def _shortest_path(shares, heaps, network, least_flow):
    """Dijkstra from all nodes with excess to the nearest one with a deficit; -1 if there is none.

    Excess, and room for flow, of at most ``least_flow`` is rounding.
    """
    lower, upper, flow, prices = network.lower, network.upper, network.flow, network.prices
    excess, distance = network.excess, network.distance
    previous, settled = network.previous, network.settled
    n_clusters = lower.size
    for v in range(n_clusters + 1):
        distance[v] = 0.0 if excess[v] > least_flow else np.inf
        previous[v], settled[v] = -1, False
    while True:
        u, least = -1, np.inf
        for v in range(n_clusters + 1):
            if not settled[v] and distance[v] < least:
                u, least = v, distance[v]
        if u < 0:
            return -1
        settled[u] = True
        if excess[u] < -least_flow:
            return u
        for v in range(n_clusters + 1):
            if settled[v]:
                continue
            if u == n_clusters:
                if flow[v] <= lower[v] + least_flow:
                    continue
                arc = prices[v] - prices[u]
            elif v == n_clusters:
                if flow[u] >= upper[u] - least_flow:
                    continue
                arc = prices[v] - prices[u]
            else:
                if not _clean_top(shares, heaps, u, v):
                    continue
                arc = heaps.keys[heaps.start[u] + v * heaps.capacity[u]] + prices[v] - prices[u]
            if least + max(0.0, arc) < distance[v]:
                distance[v], previous[v] = least + max(0.0, arc), u


@njit(cache=True, nogil=True)
def _augment(costs, demand, shares, heaps, network, end):
    """Send as much as fits along the path to ``end``; returns whether the heaps had room."""
    n_clusters = costs.shape[1]
    flow, previous, excess = network.flow, network.previous, network.excess
    amount, v = -excess[end], end
    while previous[v] >= 0:
        u = previous[v]
        if u == n_clusters:
            amount = min(amount, flow[v] - network.lower[v])
        elif v == n_clusters:
            amount = min(amount, network.upper[u] - flow[u])
        else:
            amount = min(amount, shares[heaps.units[heaps.start[u] + v * heaps.capacity[u]], u])
        v = u
    amount = min(amount, excess[v])
    excess[v] -= amount
    excess[end] += amount
    fits, v = True, end
    while previous[v] >= 0:
        u = previous[v]
        if u == n_clusters:
            flow[v] -= amount
        elif v == n_clusters:
            flow[u] += amount
        else:
            s = heaps.units[heaps.start[u] + v * heaps.capacity[u]]
            part = amount if shares[s, u] - amount > LEAST_SHARE * demand[s] else shares[s, u]
            shares[s, u] -= part
            if shares[s, v] <= 0.0:
                for j in range(n_clusters):
                    if j == v:
                        continue
                    if heaps.size[v, j] >= heaps.capacity[v]:
                        fits = False
                        break
                    base = heaps.start[v] + j * heaps.capacity[v]
                    key = (costs[s, j] - costs[s, v]) / demand[s]
                    push(heaps.keys, heaps.units, base, heaps.size[v, j], key, s)
                    heaps.size[v, j] += 1
            shares[s, v] += part
        v = u
    return fits


@njit(cache=True, nogil=True)
def transport_shares(
    costs,  # IN   (n, n_clusters) float64, finite
    demand,  # IN   (n,) float64, positive
    limits,  # IN   (2, n_clusters) float64 lower and upper
    max_steps,  # IN   limit on the number of paths
    prices,  # INOUT (n_clusters,) float64: any start values; optimal at the end
    shares,  # OUT  (n, n_clusters) float64 demand of a group that is in a cluster
):
    """Cheapest fractional labels within the limits.

    Returns the number of paths; -1 if there is no such labelling, -2 at the limit. Then the
    shares violate the limits.
    """
    n, n_clusters = costs.shape
    totals, whole = np.zeros(n_clusters), 0.0
    for s in range(n):
        least, label = np.inf, 0
        for k in range(n_clusters):
            shares[s, k] = 0.0
            here = costs[s, k] + demand[s] * prices[k]
            if here < least:
                least, label = here, k
        shares[s, label] = demand[s]
        totals[label] += demand[s]
        whole += demand[s]
    network = Network(
        limits[0],
        limits[1],
        np.empty(n_clusters),
        np.zeros(n_clusters + 1),
        np.zeros(n_clusters + 1),
        np.empty(n_clusters + 1),
        np.empty(n_clusters + 1, dtype=np.int64),
        np.empty(n_clusters + 1, dtype=np.bool_),
        np.empty(n_clusters + 1, dtype=np.bool_),
    )
    initial_flow(totals, prices, network)
    least_flow, steps = LEAST_SHARE * whole, 0
    heaps = _build(costs, demand, shares)
    while network.excess.max() > least_flow:
        end = _shortest_path(shares, heaps, network, least_flow)
        if end < 0 or steps == max_steps:
            # What is left may be the rounding error of the sums.
            if network.excess.max() > 100.0 * least_flow:
                steps = -1 if end < 0 else -2
            break
        for v in range(n_clusters + 1):
            network.prices[v] -= min(network.distance[v], network.distance[end])
        if not _augment(costs, demand, shares, heaps, network, end):
            heaps = _build(costs, demand, shares)
        steps += 1
    for k in range(n_clusters):
        prices[k] = network.prices[k] - network.prices[n_clusters]
    return steps


@njit(cache=True, nogil=True)
def largest_shares(
    shares,  # IN   (n, n_clusters) float64
    labels,  # OUT  (n,) int64
):
    """Cluster with the largest share of every group. Returns the number of divided groups."""
    divided = 0
    for s in range(labels.size):
        label, parts = 0, 0
        for k in range(shares.shape[1]):
            parts += shares[s, k] > 0.0
            if shares[s, k] > shares[s, label]:
                label = k
        labels[s] = label
        divided += parts > 1
    return divided
