"""Good proper labellings of a core, without proof: relabelling, single moves and Kempe chains."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.assignment.matching import cheapest_matching
from certikmeans.kernels.cores.core import core_value
from certikmeans.rounding import EPS

_LONGEST_CHAIN = 100


@njit(cache=True, nogil=True)
def permute_classes(
    costs,  # IN   (n_core, n_labels) float64
    proper,  # IN   (n_core,) int64 a proper labelling
    places,  # OUT  (n_core,) int64 the same classes under their cheapest names
):
    """Rename the labels of a proper labelling at least cost: n! namings by one matching.

    Returns False if every naming is infinitely expensive; ``places`` is then a copy.
    """
    n_labels = costs.shape[1]
    naming = np.zeros((n_labels, n_labels))
    for v in range(proper.size):
        for k in range(n_labels):
            naming[proper[v], k] += costs[v, k]
    name = np.arange(n_labels)
    possible = cheapest_matching(naming, name, np.empty(n_labels))
    for v in range(proper.size):
        places[v] = name[proper[v]] if possible else proper[v]
    return possible


@njit(cache=True, nogil=True)
def _chain_change(core, places, start, other, stamp, mark, chain):
    """Collect the chain of ``start`` towards label ``other``: ``(length, change of cost)``.

    A chain longer than ``chain`` is not worth following: its change is inf.
    """
    link_start, link, costs = core.link_start, core.link, core.costs
    own = places[start]
    chain[0] = start
    mark[start] = stamp
    length, head, change = 1, 0, 0.0
    while head < length:
        v = chain[head]
        head += 1
        target = other if places[v] == own else own
        change += costs[v, target] - costs[v, places[v]]
        for e in range(link_start[v], link_start[v + 1]):
            u = link[e]
            if places[u] == target and mark[u] != stamp:
                if length == chain.size:
                    return length, np.inf
                mark[u] = stamp
                chain[length] = u
                length += 1
    return length, change


@njit(cache=True, nogil=True)
def improve_by_swaps(
    core,  # IN
    places,  # IN/OUT  (n_core,) int64 a proper labelling of finite cost
    passes,  # IN  at most this many rounds over all vertices
):
    """Swap two labels along Kempe chains while that lowers the cost. Stays proper.

    A chain without a clash is a single vertex, so this includes moving one vertex.
    """
    costs = core.costs
    n_core, n_labels = costs.shape
    mark = np.zeros(n_core, np.int64)
    chain = np.empty(min(n_core, _LONGEST_CHAIN), np.int64)
    tiny = 8 * EPS * core_value(core, places)
    stamp = mark[0]
    for _ in range(passes):
        improved = False
        for v in range(n_core):
            for k in range(n_labels):
                own = places[v]
                if k == own or costs[v, k] == np.inf:
                    continue
                stamp += 1
                length, change = _chain_change(core, places, v, k, stamp, mark, chain)
                if change < -tiny:
                    improved = True
                    for i in range(length):
                        u = chain[i]
                        places[u] = k if places[u] == own else own
        if not improved:
            return
