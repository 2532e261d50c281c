"""How the cannot-link graph is laid out for compiled code: flat arrays, prepared once."""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit

# What solves the core of a component with cycles when its nearest labels clash.
ELIMINATE, MATCH, SEARCH = 0, 1, 2


class Graph(NamedTuple):
    """Components of the cannot-link graph, as in `problem.graph.ApartGraph`."""

    indptr: np.ndarray  # (n_linked + 1,)
    neighbors: np.ndarray
    starts: np.ndarray  # (n_components + 1,) first vertex
    parents: np.ndarray  # (n_linked,) breadth-first parent, -1 at a root
    slot: np.ndarray  # (n_components,) number among the components with cycles, -1 for a tree
    witness: np.ndarray  # (n_linked,) labels that are proper


class Cores(NamedTuple):
    """Components with cycles: what is peeled off, and what stays, the core.

    Inside a component vertices are numbered from 0 ("local"); inside a core by their position in
    the elimination order ("place").
    """

    method: np.ndarray  # (n_slots,) ELIMINATE, MATCH or SEARCH
    peel_start: np.ndarray  # (n_slots + 1,)
    peel: np.ndarray  # local vertices in the order they are peeled
    anchor: np.ndarray  # local vertex that each of them hung on
    start: np.ndarray  # (n_slots + 1,)
    vertex: np.ndarray  # (n_places,) local vertex of every place
    link_start: np.ndarray  # (n_places + 1,)
    link: np.ndarray  # places of the neighbours in the core
    clique_start: np.ndarray  # (n_slots + 1,) cliques that cover the links; SEARCH only
    member_start: np.ndarray  # (n_cliques + 1,)
    member: np.ndarray  # places


class Tables(NamedTuple):
    """The tables of bucket elimination, one per place."""

    scope_start: np.ndarray  # (n_places + 1,)
    scope: np.ndarray  # later places that the table depends on, ascending
    scope_linked: np.ndarray  # 1 where that place is a neighbour
    child_start: np.ndarray  # (n_places + 1,)
    child: np.ndarray  # places whose tables are summed here
    stride_start: np.ndarray  # (n_children + 1,)
    stride: np.ndarray  # step in the child's table per scope place, then for the place itself
    start: np.ndarray  # (n_places,) first entry
    size: np.ndarray  # (n_slots,) entries in all tables of a slot; 0: too many, not laid out


class Layout(NamedTuple):
    """Everything that compiled code needs to know about the cannot-links."""

    graph: Graph
    cores: Cores
    tables: Tables


@njit(cache=True, nogil=True)
def tables_of(tables, cores, slot):
    """Return the tables of one slot, by place."""
    first, last = cores.start[slot], cores.start[slot + 1]
    return Tables(
        tables.scope_start[first : last + 1],
        tables.scope,
        tables.scope_linked,
        tables.child_start[first : last + 1],
        tables.child,
        tables.stride_start,
        tables.stride,
        tables.start[first:last],
        tables.size,
    )
