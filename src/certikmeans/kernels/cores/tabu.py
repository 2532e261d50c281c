"""Tabu search on a core: single moves through labellings that clash, at a price."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.smallest import two_least


@njit(cache=True, nogil=True)
def _count_clashes(core, labels, clash):
    """Count, for every vertex and label, the neighbours with that label. Returns the clashes."""
    total = 0
    for v in range(labels.size):
        for k in range(clash.shape[1]):
            clash[v, k] = 0
        for e in range(core.link_start[v], core.link_start[v + 1]):
            clash[v, labels[core.link[e]]] += 1
        total += clash[v, labels[v]]
    return total // 2


@njit(cache=True, nogil=True)
def _best_move(costs, labels, clash, penalty, until, step):
    """Return the vertex and label of the cheapest move that is not tabu; -1 if there is none."""
    least, vertex, label = np.inf, -1, -1
    for v in range(labels.size):
        own = labels[v]
        stay = costs[v, own] + penalty * clash[v, own]
        for k in range(costs.shape[1]):
            if k != own and until[v, k] <= step:
                change = costs[v, k] + penalty * clash[v, k] - stay
                if change < least:
                    least, vertex, label = change, v, k
    return vertex, label


@njit(cache=True, nogil=True)
def _first_penalty(costs):
    """Average of what the second best label costs more than the best."""
    total, count = 0.0, 0
    for v in range(costs.shape[0]):
        best, second, _ = two_least(costs[v])
        if second < np.inf:
            total += second - best
            count += 1
    return total / count if total > 0.0 else 1.0


@njit(cache=True, nogil=True)
def tabu_search(
    core,  # IN
    reduced,  # IN  (n_core, n_labels) float64 costs plus prices, by which moves are chosen
    labels,  # IN/OUT  (n_core,) int64 allowed labels that may clash; scratch
    steps,  # IN
    upper,  # IN  cost of ``places``, or inf
    places,  # IN/OUT  (n_core,) int64 the best proper labelling
):
    """Look for proper labels cheaper than ``places``. Returns the cost of the best.

    A clash costs a penalty that rises while there are clashes and falls while there are none, so
    that the search crosses the boundary of the proper labellings again and again. A vertex may
    not return to a label for some steps; their number comes from a fixed generator, because with
    a regular pattern the search runs in circles.
    """
    link_start, link, costs = core.link_start, core.link, core.costs
    n_core, n_labels = costs.shape
    clash = np.empty((n_core, n_labels), np.int64)
    until = np.zeros((n_core, n_labels), np.int64)
    clashes = _count_clashes(core, labels, clash)
    first_penalty = _first_penalty(costs)
    penalty, seed = 0.2 * first_penalty, 1
    for step in range(steps):
        v, k = _best_move(reduced, labels, clash, penalty, until, step)
        if v < 0:
            continue
        own = labels[v]
        clashes += clash[v, k] - clash[v, own]
        for e in range(link_start[v], link_start[v + 1]):
            clash[link[e], own] -= 1
            clash[link[e], k] += 1
        labels[v] = k
        seed = (1103515245 * seed + 12345) % 2147483648
        until[v, own] = step + 5 + (seed >> 16) % 10 + min(clashes, n_core // 4)
        penalty = min(1e3 * first_penalty, penalty * (1.02 if clashes > 0 else 0.95))
        if clashes == 0:
            value = 0.0
            for u in range(n_core):
                value += costs[u, labels[u]]
            if value < upper:
                upper = value
                for u in range(n_core):
                    places[u] = labels[u]
    return upper
