"""Depth-first branch and bound over the labels of one piece of a core."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.rows import two_smallest


class BranchingState(NamedTuple):
    """Scratch of the search, by position; ``order`` and what follows it by depth."""

    label: np.ndarray  # (n_core,) int64 label assigned, or -1
    blocked: np.ndarray  # (n_core, n_labels) int64 how often a label is excluded
    preferred: np.ndarray  # (n_core,) int64 cheapest remaining label of an unassigned vertex
    regret: np.ndarray  # (n_core,) float64 additional cost of its second best label
    paired: np.ndarray  # (n_core,) bool
    open_row: np.ndarray  # (n_labels,) float64
    order: np.ndarray  # (n_core + 1,) int64 vertex branched on
    tried: np.ndarray  # (n_core + 1,) int64 label it has now, or -1
    rest: np.ndarray  # (n_core + 1,) float64 bound of everything but that vertex


class Piece(NamedTuple):
    """Vertices of a core that can still conflict with each other and with no others."""

    vertices: np.ndarray  # (m,) int64
    number: int
    piece_of: np.ndarray  # (n_core,) int64 number of the piece of every position
    paid: float  # sum of its multipliers


@njit(cache=True, nogil=True)
def new_search_state(n_core, n_labels):
    """Scratch for `search_piece`."""
    return BranchingState(
        np.full(n_core, -1),
        np.empty((n_core, n_labels), np.int64),
        np.empty(n_core, np.int64),
        np.empty(n_core),
        np.empty(n_core, np.bool_),
        np.empty(n_labels),
        np.empty(n_core + 1, np.int64),
        np.empty(n_core + 1, np.int64),
        np.empty(n_core + 1),
    )


@njit(cache=True, nogil=True)
def _plain_bound(group, reduced, state):
    """Sum of the assigned and the cheapest remaining labels; inf if a vertex has none."""
    total = 0.0
    for i in range(group.size):
        v = group[i]
        if state.label[v] >= 0:
            total += reduced[v, state.label[v]]
            continue
        for k in range(reduced.shape[1]):
            state.open_row[k] = reduced[v, k] if state.blocked[v, k] == 0 else np.inf
        best, second, state.preferred[v] = two_smallest(state.open_row)
        if state.preferred[v] < 0:
            return np.inf
        state.regret[v] = second - best
        total += best
    return total


@njit(cache=True, nogil=True)
def _conflict_bound(core, piece, state):
    """Additional cost of conflicting preferences, and the vertex to branch on (-1: none).

    Linked vertices that prefer one label cost at least the smaller regret; a matching of such
    pairs adds up. Branching takes the vertex of largest regret in a conflict; ties by degree.
    """
    link_start, link, group = core.link_start, core.link, piece.vertices
    for i in range(group.size):
        state.paired[group[i]] = False
    extra, chosen, most, degree = 0.0, -1, -1.0, 0
    for i in range(group.size):
        v = group[i]
        if state.label[v] >= 0:
            continue
        partner, shared, in_conflict = -1, -1.0, False
        begin, end = link_start[v], link_start[v + 1]
        for e in range(begin, end):
            u = link[e]
            if piece.piece_of[u] != piece.number or state.label[u] >= 0:
                continue
            if state.preferred[u] != state.preferred[v]:
                continue
            in_conflict = True
            if not state.paired[u] and min(state.regret[u], state.regret[v]) > shared:
                partner, shared = u, min(state.regret[u], state.regret[v])
        if in_conflict and (
            state.regret[v] > most or (state.regret[v] == most and end - begin > degree)
        ):
            chosen, most, degree = v, state.regret[v], end - begin
        if partner >= 0 and not state.paired[v]:
            state.paired[v] = state.paired[partner] = True
            extra += shared
    return extra, chosen


@njit(cache=True, nogil=True)
def _update_incumbent(group, costs, state, upper, best):
    """Take the preferred labels, which are feasible, as incumbent. Returns the best value."""
    value = 0.0
    for i in range(group.size):
        v = group[i]
        value += costs[v, state.label[v] if state.label[v] >= 0 else state.preferred[v]]
    if value < upper:
        upper = value
        for i in range(group.size):
            v = group[i]
            best[v] = state.label[v] if state.label[v] >= 0 else state.preferred[v]
    return upper


@njit(cache=True, nogil=True)
def _max_regret_vertex(group, state):
    chosen = -1
    for i in range(group.size):
        v = group[i]
        if state.label[v] < 0 and (chosen < 0 or state.regret[v] > state.regret[chosen]):
            chosen = v
    return chosen


@njit(cache=True, nogil=True)
def _open_node(core, piece, reduced, state, upper, best):
    """Bound the current node. Returns ``(vertex to branch on or -1, bound, upper)``."""
    bound = _plain_bound(piece.vertices, reduced, state) - piece.paid
    if bound >= upper or bound == np.inf:
        return -1, bound, upper
    extra, chosen = _conflict_bound(core, piece, state)
    if bound + extra >= upper or extra == np.inf:
        return -1, bound, upper
    if chosen < 0:
        upper = _update_incumbent(piece.vertices, core.costs, state, upper, best)
        # Multipliers without a paying member can make the bound smaller than this cost.
        if bound < upper:
            chosen = _max_regret_vertex(piece.vertices, state)
    return chosen, bound, upper


@njit(cache=True, nogil=True)
def _next_label(row, blocked, tried):
    """Cheapest open label after ``tried`` in the order of cost, then number; -1 at the end."""
    after = -1
    for k in range(row.size):
        if blocked[k] > 0 or row[k] == np.inf:
            continue
        if tried >= 0 and (row[k] < row[tried] or (row[k] == row[tried] and k <= tried)):
            continue
        if after < 0 or row[k] < row[after]:
            after = k
    return after


@njit(cache=True, nogil=True)
def _set_label(core, v, label, state):
    """Assign a label to ``v``, or remove it (``label`` -1)."""
    step = 1 if label >= 0 else -1
    forbidden = label if label >= 0 else state.label[v]
    state.label[v] = label
    for e in range(core.link_start[v], core.link_start[v + 1]):
        state.blocked[core.link[e], forbidden] += step


@njit(cache=True, nogil=True)
def search_piece(
    core,  # IN
    piece,  # IN
    reduced,  # IN  (n_core, n_labels) float64 costs plus multipliers, inf = excluded
    upper,  # IN  cost of ``best`` on the piece, or inf
    work,  # IN  at most this many vertices are visited
    state,  # OUT scratch
    best,  # IN/OUT  (n_core,) int64 labels, improved on the piece
):
    """Least cost of the piece. Returns ``(finished, upper, work done)``.

    A node is closed when its bound, computed afresh from the reduced costs, reaches ``upper``. So
    when finished no labelling costs less than ``upper`` by more than the rounding of one bound.
    """
    group = piece.vertices
    for i in range(group.size):
        v = group[i]
        state.label[v] = -1
        for k in range(reduced.shape[1]):
            state.blocked[v, k] = 0
    depth, entering, done = 0, True, 0
    while depth >= 0:
        if entering:
            done += group.size
            if done > work:
                return False, upper, work
            chosen, bound, upper = _open_node(core, piece, reduced, state, upper, best)
            state.order[depth], state.tried[depth] = chosen, -1
            if chosen >= 0:
                state.rest[depth] = bound - reduced[chosen, state.preferred[chosen]]
        v, label = state.order[depth], -1
        if v >= 0:
            if state.tried[depth] >= 0:
                _set_label(core, v, label, state)
            label = _next_label(reduced[v], state.blocked[v], state.tried[depth])
            if label >= 0 and state.rest[depth] + reduced[v, label] >= upper:
                label = -1
        if label >= 0:
            _set_label(core, v, label, state)
            state.tried[depth] = label
        depth += 1 if label >= 0 else -1
        entering = label >= 0
    return True, upper, done
