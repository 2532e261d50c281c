"""Exact transportation of units by successive shortest paths over the clusters. Compiled.

The network has a node per cluster and a slack node. Moving a unit from its cluster ``i`` to ``j``
costs ``key = costs[s, j] - costs[s, i]``; the cheapest of cluster ``i`` is the top of a heap for
``(i, j)``. Units that have left are removed when they reach the top. A cluster ``k`` passes
``flow[k]`` units on to the sink, between its limits; arcs to and from the slack node change it.
Prices keep all reduced costs nonnegative, so that Dijkstra's algorithm finds shortest paths.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit

# Heaps of a first pass have about so many keys for every unit that has to move, and per cluster.
KEYS_PER_EXCESS = 8
KEYS_PER_CLUSTER = 64
SAMPLE = 2000  # units from which the largest of these keys is estimated


class Heaps(NamedTuple):
    """Heaps of the units of cluster ``i`` by the cost of moving to ``j``, in one pool.

    That of ``(i, j)`` begins at ``start[i] + j * capacity[i]``. It has all keys up to
    ``limit[i, j]``, and some of the others.
    """

    keys: np.ndarray  # (pool,) float64
    units: np.ndarray  # (pool,) int32
    start: np.ndarray  # (n_clusters,) int64
    capacity: np.ndarray  # (n_clusters,) int64
    size: np.ndarray  # (n_clusters, n_clusters) int64
    limit: np.ndarray  # (n_clusters, n_clusters) float64


class Network(NamedTuple):
    """Flow and prices at the nodes: the clusters, then the slack node. Flows of units are int64."""

    lower: np.ndarray  # (n_clusters,)
    upper: np.ndarray  # (n_clusters,)
    flow: np.ndarray  # (n_clusters,) what is passed on to the sink
    excess: np.ndarray  # (n_clusters + 1,)
    prices: np.ndarray  # (n_clusters + 1,) float64
    distance: np.ndarray  # (n_clusters + 1,) float64 from the nodes with excess
    previous: np.ndarray  # (n_clusters + 1,) int64 on the shortest path
    settled: np.ndarray  # (n_clusters + 1,) bool
    estimated: np.ndarray  # (n_clusters + 1,) bool: of the last arc only a lower bound is known


@njit(cache=True, nogil=True)
def sift_down(keys, units, base, size, position):
    """Move the entry at ``position`` down to its place."""
    key, unit = keys[base + position], units[base + position]
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and keys[base + child + 1] < keys[base + child]:
            child += 1
        if keys[base + child] >= key:
            break
        keys[base + position] = keys[base + child]
        units[base + position] = units[base + child]
        position = child
    keys[base + position], units[base + position] = key, unit


@njit(cache=True, nogil=True)
def push(keys, units, base, size, key, unit):
    """Insert an entry into a heap of ``size`` entries."""
    position = size
    while position > 0:
        parent = (position - 1) // 2
        if keys[base + parent] <= key:
            break
        keys[base + position] = keys[base + parent]
        units[base + position] = units[base + parent]
        position = parent
    keys[base + position], units[base + position] = key, unit


@njit(cache=True, nogil=True)
def pop(heaps, i, j):
    """Remove the top of the heap of ``(i, j)``."""
    base = heaps.start[i] + j * heaps.capacity[i]
    size = heaps.size[i, j] - 1
    heaps.size[i, j] = size
    if size > 0:
        heaps.keys[base] = heaps.keys[base + size]
        heaps.units[base] = heaps.units[base + size]
        sift_down(heaps.keys, heaps.units, base, size, 0)


@njit(cache=True, nogil=True)
def _fill(costs, labels, heaps, only):
    """Build the heaps of cluster ``only``, or of all clusters if it is negative."""
    n, n_clusters = costs.shape
    for i in range(n_clusters):
        if only < 0 or i == only:
            for j in range(n_clusters):
                heaps.size[i, j] = 0
    for s in range(n):
        i = labels[s]
        if only >= 0 and i != only:
            continue
        own = costs[s, i]
        for j in range(n_clusters):
            key = costs[s, j] - own
            if j != i and key <= heaps.limit[i, j]:
                at = heaps.start[i] + j * heaps.capacity[i] + heaps.size[i, j]
                heaps.keys[at], heaps.units[at] = key, s
                heaps.size[i, j] += 1
    for i in range(n_clusters):
        if only >= 0 and i != only:
            continue
        for j in range(n_clusters):
            base = heaps.start[i] + j * heaps.capacity[i]
            for position in range(heaps.size[i, j] // 2 - 1, -1, -1):
                sift_down(heaps.keys, heaps.units, base, heaps.size[i, j], position)


@njit(cache=True, nogil=True)
def _build(costs, labels, sizes, limit):
    """Allocate heaps with room for new members, and fill them."""
    n, n_clusters = costs.shape
    room = n // (2 * n_clusters) + 32
    start = np.empty(n_clusters, dtype=np.int64)
    capacity = np.empty(n_clusters, dtype=np.int64)
    pool = 0
    for i in range(n_clusters):
        start[i], capacity[i] = pool, sizes[i] + room
        pool += n_clusters * capacity[i]
    heaps = Heaps(
        np.empty(pool),
        np.empty(pool, dtype=np.int32),
        start,
        capacity,
        np.zeros((n_clusters, n_clusters), dtype=np.int64),
        limit,
    )
    _fill(costs, labels, heaps, -1)
    return heaps


@njit(cache=True, nogil=True)
def _clean_top(labels, heaps, i, j):
    """Remove units that have left cluster ``i``; returns whether there is a top."""
    base = heaps.start[i] + j * heaps.capacity[i]
    while heaps.size[i, j] > 0 and labels[heaps.units[base]] != i:
        pop(heaps, i, j)
    return heaps.size[i, j] > 0


@njit(cache=True, nogil=True)
def _shortest_path(labels, heaps, network):
    """Dijkstra from all nodes with excess to the nearest one with a deficit; -1 if there is none.

    Node ``n_clusters`` is the slack node.
    """
    lower, upper, flow, prices = network.lower, network.upper, network.flow, network.prices
    excess, distance = network.excess, network.distance
    previous, settled = network.previous, network.settled
    n_clusters = lower.size
    for v in range(n_clusters + 1):
        distance[v] = 0.0 if excess[v] > 0 else np.inf
        previous[v], settled[v] = -1, False
    while True:
        u, least = -1, np.inf
        for v in range(n_clusters + 1):
            if not settled[v] and distance[v] < least:
                u, least = v, distance[v]
        if u < 0:
            return -1
        settled[u] = True
        if excess[u] < 0:
            return u
        if u == n_clusters:
            for v in range(n_clusters):
                if flow[v] > lower[v] and not settled[v]:
                    length = least + max(0.0, prices[v] - prices[u])
                    if length < distance[v]:
                        distance[v], previous[v], network.estimated[v] = length, u, False
            continue
        for v in range(n_clusters):
            if v == u or settled[v]:
                continue
            key = np.inf
            if _clean_top(labels, heaps, u, v):
                key = heaps.keys[heaps.start[u] + v * heaps.capacity[u]]
            known = key <= heaps.limit[u, v]
            key = key if known else heaps.limit[u, v]
            length = least + max(0.0, key + prices[v] - prices[u])
            if length < distance[v]:
                distance[v], previous[v], network.estimated[v] = length, u, not known
        if flow[u] < upper[u] and not settled[n_clusters]:
            length = least + max(0.0, prices[n_clusters] - prices[u])
            if length < distance[n_clusters]:
                distance[n_clusters], previous[n_clusters] = length, u
                network.estimated[n_clusters] = False


@njit(cache=True, nogil=True)
def _any_estimated(network, end):
    """Whether an arc on the path to ``end`` is not known."""
    v = end
    while network.previous[v] >= 0:
        if network.estimated[v]:
            return True
        v = network.previous[v]
    return False


@njit(cache=True, nogil=True)
def _key_limits(costs, labels, prices, excess):
    """Keys that paths for this excess may need, about; infinite where that is most of them.

    From a sample of the units: the reduced cost of the cheapest move of a unit that is exceeded by
    all but some times as many units as there is excess.
    """
    n, n_clusters = costs.shape
    limit = np.full((n_clusters, n_clusters), np.inf)
    wanted = KEYS_PER_EXCESS * excess + KEYS_PER_CLUSTER * n_clusters
    if 2 * wanted > n:
        return limit
    stride = max(1, n // SAMPLE)
    regrets = np.empty((n + stride - 1) // stride)
    for place in range(regrets.size):
        s = place * stride
        i, least = labels[s], np.inf
        for j in range(n_clusters):
            if j != i:
                least = min(least, costs[s, j] + prices[j])
        regrets[place] = least - costs[s, i] - prices[i]
    regrets.sort()
    largest = regrets[min(regrets.size - 1, regrets.size * wanted // n + 1)]
    for i in range(n_clusters):
        for j in range(n_clusters):
            limit[i, j] = largest + prices[i] - prices[j]
    return limit


@njit(cache=True, nogil=True)
def _move_top(costs, labels, heaps, sizes, u, v):
    """Move the cheapest unit of ``u`` to ``v``; returns whether its heaps had room for it."""
    n_clusters = costs.shape[1]
    s = heaps.units[heaps.start[u] + v * heaps.capacity[u]]
    pop(heaps, u, v)
    labels[s] = v
    sizes[u] -= 1
    sizes[v] += 1
    for j in range(n_clusters):
        if j != v and heaps.size[v, j] >= heaps.capacity[v]:
            return False
    for j in range(n_clusters):
        if j != v:
            base = heaps.start[v] + j * heaps.capacity[v]
            push(heaps.keys, heaps.units, base, heaps.size[v, j], costs[s, j] - costs[s, v], s)
            heaps.size[v, j] += 1
    return True


@njit(cache=True, nogil=True)
def _augment(costs, labels, heaps, sizes, network, end):
    """Send a unit along the path to ``end``.

    Returns a cluster whose heaps are full, -1 if there is none, ``n_clusters`` if there are two.
    """
    n_clusters = costs.shape[1]
    flow, previous = network.flow, network.previous
    full, v = -1, end
    while previous[v] >= 0:
        u = previous[v]
        if u == n_clusters:
            flow[v] -= 1
        elif v == n_clusters:
            flow[u] += 1
        elif not _move_top(costs, labels, heaps, sizes, u, v):
            full = v if full < 0 else n_clusters
        v = u
    network.excess[v] -= 1
    network.excess[end] += 1
    return full


@njit(cache=True, nogil=True)
def initial_flow(sizes, prices, network):
    """Set flow and excess to what the prices ask for; returns whether nothing is left over."""
    flow, excess, n_clusters = network.flow, network.excess, sizes.size
    balanced = True
    for k in range(n_clusters):
        network.prices[k] = prices[k]
        flow[k] = min(max(sizes[k], network.lower[k]), network.upper[k])
        if prices[k] > 0.0:
            flow[k] = network.upper[k]
        elif prices[k] < 0.0:
            flow[k] = network.lower[k]
        excess[k] = sizes[k] - flow[k]
        excess[n_clusters] -= excess[k]
        balanced = balanced and excess[k] == 0
    return balanced


@njit(cache=True, nogil=True)
def transport_units(
    costs,  # IN   (n, n_clusters) float64, finite
    lower,  # IN   (n_clusters,) int64
    upper,  # IN   (n_clusters,) int64
    max_steps,  # IN   limit on the number of paths
    prices,  # INOUT (n_clusters,) float64: any start values; optimal at the end
    labels,  # OUT  (n,) int64
):
    """Cheapest labels with at least ``lower`` and at most ``upper`` units per cluster.

    Returns the number of paths; -1 if there is no such labelling, -2 at the limit. Then the
    labels violate the limits.
    """
    n, n_clusters = costs.shape
    sizes = np.zeros(n_clusters, dtype=np.int64)
    for s in range(n):
        least, label = np.inf, 0
        for k in range(n_clusters):
            here = costs[s, k] + prices[k]
            if here < least:
                least, label = here, k
        labels[s] = label
        sizes[label] += 1
    network = Network(
        lower,
        upper,
        np.empty(n_clusters, dtype=np.int64),
        np.zeros(n_clusters + 1, dtype=np.int64),
        np.zeros(n_clusters + 1),
        np.empty(n_clusters + 1),
        np.empty(n_clusters + 1, dtype=np.int64),
        np.empty(n_clusters + 1, dtype=np.bool_),
        np.empty(n_clusters + 1, dtype=np.bool_),
    )
    if initial_flow(sizes, prices, network):
        return 0
    surplus = np.maximum(network.excess, 0).sum()
    limit = _key_limits(costs, labels, prices, surplus)
    heaps, steps = _build(costs, labels, sizes, limit), 0
    while network.excess.max() > 0:
        end = _shortest_path(labels, heaps, network)
        if end < 0 or steps == max_steps:
            steps = -1 if end < 0 else -2
            break
        if _any_estimated(network, end):
            limit[:] = np.inf
            heaps = _build(costs, labels, sizes, limit)
            continue
        for v in range(n_clusters + 1):
            network.prices[v] -= min(network.distance[v], network.distance[end])
        full = _augment(costs, labels, heaps, sizes, network, end)
        steps += 1
        if full >= 0:
            if full < n_clusters and sizes[full] + 16 <= heaps.capacity[full]:
                _fill(costs, labels, heaps, full)
            else:
                heaps = _build(costs, labels, sizes, limit)
    for k in range(n_clusters):
        prices[k] = network.prices[k] - network.prices[n_clusters]
    return steps
