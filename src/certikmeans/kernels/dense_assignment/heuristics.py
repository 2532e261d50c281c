"""Heuristics for dense components: relabeling, Kempe chains and tabu search. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.assignment import min_cost_matching
from certikmeans.kernels.dense_assignment.dual_bound import core_value
from certikmeans.kernels.kempe_chains import collect_chain, swap_chain
from certikmeans.kernels.rows import two_smallest
from certikmeans.rounding import EPS

_MAX_CHAIN_LENGTH = 100


@njit(cache=True, nogil=True)
def permute_classes(
    costs,  # IN   (n_core, n_labels) float64
    feasible_labels,  # IN   (n_core,) int64 a feasible labelling
    labels,  # OUT  (n_core,) int64 the same classes, renamed at least cost
):
    """Permute the labels of a feasible labelling at least cost, by one matching.

    Returns False if every renaming has infinite cost; ``labels`` is then a copy.
    """
    n_labels = costs.shape[1]
    naming = np.zeros((n_labels, n_labels))
    for v in range(feasible_labels.size):
        for k in range(n_labels):
            naming[feasible_labels[v], k] += costs[v, k]
    name = np.arange(n_labels)
    possible = min_cost_matching(naming, name, np.empty(n_labels))
    for v in range(feasible_labels.size):
        labels[v] = name[feasible_labels[v]] if possible else feasible_labels[v]
    return possible


@njit(cache=True, nogil=True)
def _chain_change(costs, labels, chain, length, b):
    """Change of cost if a chain swaps its labels, the other one being ``b``."""
    a = labels[chain[0]]
    change = 0.0
    for i in range(length):
        v = chain[i]
        change += costs[v, b if labels[v] == a else a] - costs[v, labels[v]]
    return change


@njit(cache=True, nogil=True)
def improve_by_swaps(
    core,  # IN
    labels,  # IN/OUT  (n_core,) int64 a feasible labelling of finite cost
    passes,  # IN  at most this many rounds over all vertices
):
    """Swap two labels along Kempe chains while that lowers the cost. Stays feasible.

    A chain without a conflict is a single vertex, so this includes moving one vertex.
    """
    costs = core.costs
    n_core, n_labels = costs.shape
    mark = np.zeros(n_core, np.int64)
    chain = np.empty(min(n_core, _MAX_CHAIN_LENGTH), np.int64)
    tiny = 8 * EPS * core_value(core, labels)
    stamp = mark[0]
    for _ in range(passes):
        improved = False
        for v in range(n_core):
            for k in range(n_labels):
                if k == labels[v] or costs[v, k] == np.inf:
                    continue
                stamp += 1
                length = collect_chain(core.link_start, core.link, labels, v, k, stamp, mark, chain)
                if length > 0 and _chain_change(costs, labels, chain, length, k) < -tiny:
                    improved = True
                    swap_chain(labels, chain, length, k)
        if not improved:
            return


# Tabu search on a core: single moves through infeasible labellings, with a penalty.


@njit(cache=True, nogil=True)
def _count_conflicts(core, labels, neighbor_counts):
    """Count, for every vertex and label, the neighbours with that label. Returns the conflicts."""
    total = 0
    for v in range(labels.size):
        for k in range(neighbor_counts.shape[1]):
            neighbor_counts[v, k] = 0
        for e in range(core.link_start[v], core.link_start[v + 1]):
            neighbor_counts[v, labels[core.link[e]]] += 1
        total += neighbor_counts[v, labels[v]]
    return total // 2


@njit(cache=True, nogil=True)
def _best_move(costs, labels, neighbor_counts, penalty, tabu_until, step):
    """Return the vertex and label of the cheapest move that is not tabu; -1 if there is none."""
    least, vertex, label = np.inf, -1, -1
    for v in range(labels.size):
        own = labels[v]
        stay = costs[v, own] + penalty * neighbor_counts[v, own]
        for k in range(costs.shape[1]):
            if k != own and tabu_until[v, k] <= step:
                change = costs[v, k] + penalty * neighbor_counts[v, k] - stay
                if change < least:
                    least, vertex, label = change, v, k
    return vertex, label


@njit(cache=True, nogil=True)
def _first_penalty(costs):
    """Average difference between the second best and the best label."""
    total, count = 0.0, 0
    for v in range(costs.shape[0]):
        best, second, _ = two_smallest(costs[v])
        if second < np.inf:
            total += second - best
            count += 1
    return total / count if total > 0.0 else 1.0


@njit(cache=True, nogil=True)
def tabu_search(
    core,  # IN
    reduced,  # IN  (n_core, n_labels) float64 costs plus multipliers, by which moves are chosen
    labels,  # IN/OUT  (n_core,) int64 allowed labels that may conflict; scratch
    steps,  # IN
    upper,  # IN  cost of ``best_labels``, or inf
    best_labels,  # IN/OUT  (n_core,) int64 the best feasible labelling
):
    """Look for feasible labels cheaper than ``best_labels``. Returns the cost of the best.

    A conflict costs a penalty that rises while there are conflicts and falls while there are none,
    so that the search keeps crossing the boundary of the feasible labellings. A vertex may not
    return to a label for some steps; their number is pseudorandom with a fixed seed, because with
    a regular pattern the search cycles.
    """
    link_start, link, costs = core.link_start, core.link, core.costs
    n_core, n_labels = costs.shape
    neighbor_counts = np.empty((n_core, n_labels), np.int64)
    tabu_until = np.zeros((n_core, n_labels), np.int64)
    n_conflicts = _count_conflicts(core, labels, neighbor_counts)
    first_penalty = _first_penalty(costs)
    penalty, seed = 0.2 * first_penalty, 1
    for step in range(steps):
        v, k = _best_move(reduced, labels, neighbor_counts, penalty, tabu_until, step)
        if v < 0:
            continue
        own = labels[v]
        n_conflicts += neighbor_counts[v, k] - neighbor_counts[v, own]
        for e in range(link_start[v], link_start[v + 1]):
            neighbor_counts[link[e], own] -= 1
            neighbor_counts[link[e], k] += 1
        labels[v] = k
        seed = (1103515245 * seed + 12345) % 2147483648
        tabu_until[v, own] = step + 5 + (seed >> 16) % 10 + min(n_conflicts, n_core // 4)
        penalty = min(1e3 * first_penalty, penalty * (1.02 if n_conflicts > 0 else 0.95))
        if n_conflicts == 0:
            value = 0.0
            for u in range(n_core):
                value += costs[u, labels[u]]
            if value < upper:
                upper = value
                for u in range(n_core):
                    best_labels[u] = labels[u]
    return upper
