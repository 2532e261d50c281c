"""A core as compiled code sees it, and what a search for its optimum keeps."""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit


class Core(NamedTuple):
    """What is left of a component without its trees; vertices are numbered by place. Read only."""

    link_start: np.ndarray  # (n_core + 1,) int64
    link: np.ndarray  # places of the neighbours
    member_start: np.ndarray  # (n_cliques + 1,) int64 cliques that cover the links
    member: np.ndarray  # places
    costs: np.ndarray  # (n_core, n_labels) float64 >= 0, inf = forbidden


class Priced(NamedTuple):
    """Labels that are still allowed, and the prices that bar the others."""

    allowed: np.ndarray  # (n_core, n_labels) bool
    prices: np.ndarray  # (n_cliques, n_labels) float64 >= 0
    reduced: np.ndarray  # (n_core, n_labels) costs plus prices, inf where not allowed
    n_allowed: np.ndarray  # (n_core,) int64 labels left to a vertex


class CoreAnswer(NamedTuple):
    """The best labelling found, and what is proven about it."""

    status: int  # SOLVED, UNFINISHED or IMPOSSIBLE
    value: float  # cost of the labelling; inf if none was found
    lower: float  # no labelling costs less
    margin: float  # what rounding may have hidden when labels were barred


@njit(cache=True, nogil=True)
def core_value(
    core,  # IN
    places,  # IN  (n_core,) int64, any numbers
):
    """Cost of a labelling of a core; inf if it is not proper."""
    total = 0.0
    for v in range(places.size):
        label = places[v]
        if label < 0 or label >= core.costs.shape[1]:
            return np.inf
        for e in range(core.link_start[v], core.link_start[v + 1]):
            if places[core.link[e]] == label:
                return np.inf
        total += core.costs[v, label]
    return total
