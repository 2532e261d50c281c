"""Resumable coloring searches: one exact, one by tabu moves. Compiled.

Each ``advance_...`` does a bounded amount of work on a state made of plain arrays and returns
YES, NO or UNDECIDED; after UNDECIDED the next call continues.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit

YES, NO, UNDECIDED = 1, 0, -1


class ExactColoringState(NamedTuple):
    """The exact search. A *level* is the position in the sequence of colored vertices."""

    prefix: np.ndarray  # (q,) int64: a clique, colored first
    color: np.ndarray  # (n,) int64, valid where level >= 0
    level: np.ndarray  # (n,) int64, -1: not colored
    order: np.ndarray  # (n,) int64: vertex at each level
    used: np.ndarray  # (n + 1,) int64: colors used below each level
    counts: np.ndarray  # (n, K) int32: neighbours of each color
    saturation: np.ndarray  # (n,) int64: colors seen by each vertex
    weight: np.ndarray  # (n,) int64: degree plus number of dead ends; breaks ties
    excluded: np.ndarray  # (n, K) bool, by level: colors proven impossible
    conflict: np.ndarray  # (n, words) uint64, by level: bits of the levels that prove it
    core_vertices: np.ndarray  # (n,) bool: vertices that took part in any conflict
    present: np.ndarray  # (K,) bool: scratch
    depth: np.ndarray  # (1,) int64: levels colored


@njit(cache=True, nogil=True)
def _select_vertex(state):
    """Return the uncolored vertex that sees most colors; ties by weight, then by number."""
    best = -1
    for v in range(state.level.size):
        if state.level[v] >= 0:
            continue
        if best >= 0:
            gain = state.saturation[v] - state.saturation[best]
            if gain < 0 or (gain == 0 and state.weight[v] <= state.weight[best]):
                continue
        best = v
    return best


@njit(cache=True, nogil=True)
def _assign(indptr, neighbors, state, v, c, level):
    state.color[v] = c
    state.level[v] = level
    state.used[level + 1] = max(state.used[level], c + 1)
    for e in range(indptr[v], indptr[v + 1]):
        u = neighbors[e]
        state.counts[u, c] += 1
        if state.counts[u, c] == 1:
            state.saturation[u] += 1


@njit(cache=True, nogil=True)
def _unassign(indptr, neighbors, state, v):
    c = state.color[v]
    state.level[v] = -1
    for e in range(indptr[v], indptr[v + 1]):
        u = neighbors[e]
        state.counts[u, c] -= 1
        if state.counts[u, c] == 0:
            state.saturation[u] -= 1


@njit(cache=True, nogil=True)
def _next_color(state, v, level):
    """Return the next color to try at ``level``, or -1. At most one unused color is offered."""
    for c in range(min(state.used[level] + 1, state.excluded.shape[1])):
        if state.counts[v, c] == 0 and not state.excluded[level, c]:
            return c
    return -1


@njit(cache=True, nogil=True)
def _explain_dead_end(indptr, neighbors, state, v, level):
    """Add, for every color taken by neighbours, one of them to the conflict of ``level``."""
    row = state.conflict[level]
    one = np.uint64(1)
    state.core_vertices[v] = True
    state.weight[v] += 1
    for c in range(state.excluded.shape[1]):
        if state.excluded[level, c]:
            continue
        reason = level
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            if state.level[u] < 0 or state.color[u] != c:
                continue
            at = state.level[u]
            if (row[at >> 6] >> np.uint64(at & 63)) & one:
                reason = at  # already involved: the conflict does not grow
                break
            reason = min(reason, at)
        row[reason >> 6] |= one << np.uint64(reason & 63)
        state.core_vertices[state.order[reason]] = True


@njit(cache=True, nogil=True)
def _deepest_level(row):
    """Return the highest level in a set of levels, or -1."""
    for w in range(row.size - 1, -1, -1):
        bits = row[w]
        if bits != np.uint64(0):
            at = 64 * w - 1
            while bits != np.uint64(0):
                bits = bits >> np.uint64(1)
                at += 1
            return at
    return -1


@njit(cache=True, nogil=True)
def _record_conflict(state, level, failed, color):
    """Record at ``level`` that ``color`` fails because of the levels in ``failed``.

    Colors are interchangeable: with ``failed`` as it is, a color that none of its vertices
    has fails just as ``color`` does, provided that none of them has ``color`` either.
    """
    one = np.uint64(1)
    state.present[:] = False
    for w in range(failed.size):
        bits = failed[w]
        state.conflict[level, w] |= bits
        at = 64 * w
        while bits != np.uint64(0):
            if bits & one:
                state.present[state.color[state.order[at]]] = True
            bits = bits >> one
            at += 1
    state.excluded[level, color] = True
    if not state.present[color]:
        for c in range(state.present.size):
            if not state.present[c]:
                state.excluded[level, c] = True


@njit(cache=True, nogil=True)
def _backjump(indptr, neighbors, state, level):
    """Return to the deepest level of the conflict set; -1 if it is empty: not colorable."""
    row = state.conflict[level]
    target = _deepest_level(row)
    if target < 0:
        return -1
    color = state.color[state.order[target]]
    row[target >> 6] ^= np.uint64(1) << np.uint64(target & 63)
    _record_conflict(state, target, row, color)
    for at in range(level - 1, target - 1, -1):
        _unassign(indptr, neighbors, state, state.order[at])
    return target


@njit(cache=True, nogil=True)
def advance_search(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    state,  # IN/OUT ExactColoringState
    max_work,  # IN   int: elementary steps, about a nanosecond each
):
    """Color vertex by vertex (most colors seen first), with conflict-directed backjumping.

    Every dead end is explained by a set of earlier vertices whose colors alone rule out any
    proper coloring: for each color of the vertex either a neighbour that has it, or the set that
    proved it impossible. The search returns to the deepest of them. When the set is empty, the
    graph has no proper coloring.
    """
    n, n_colors = state.excluded.shape
    depth = state.depth[0]
    work = 0
    while depth < n:
        if work > max_work:
            state.depth[0] = depth
            return UNDECIDED
        v = state.prefix[depth] if depth < state.prefix.size else _select_vertex(state)
        state.order[depth] = v
        state.excluded[depth, :] = False
        state.conflict[depth, :] = np.uint64(0)
        work += n + n_colors + state.conflict.shape[1]
        c = _next_color(state, v, depth)
        while c < 0:
            _explain_dead_end(indptr, neighbors, state, v, depth)
            work += n_colors * (indptr[v + 1] - indptr[v]) + n
            depth = _backjump(indptr, neighbors, state, depth)
            if depth < 0:
                state.depth[0] = 0
                return NO
            v = state.order[depth]
            c = _next_color(state, v, depth)
        _assign(indptr, neighbors, state, v, c, depth)
        work += indptr[v + 1] - indptr[v]
        depth += 1
    state.depth[0] = depth
    return YES


class TabuColoringState(NamedTuple):
    """The tabu search: a complete coloring with conflicts, and its tabu list."""

    color: np.ndarray  # (n,) int64
    counts: np.ndarray  # (n, K) int32: neighbours of each color
    forbidden: np.ndarray  # (n, K) int64: iteration until which a move is not allowed
    conflicting: np.ndarray  # (n,) int64: the first n_conflicting are vertices in a conflict
    position: np.ndarray  # (n,) int64: index in ``conflicting``, or -1
    counters: np.ndarray  # (5,) int64: n_conflicting, twice the conflicts, best, iteration, random


N_CONFLICTING, N_CONFLICTS, BEST, ITERATION, RANDOM = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True)
def _random(counters):
    """Next of a linear congruential sequence, 31 bits."""
    counters[RANDOM] = (counters[RANDOM] * 1103515245 + 12345) & 0x7FFFFFFF
    return counters[RANDOM] >> 8


@njit(cache=True, nogil=True)
def _update_conflict_list(state, v):
    """Add ``v`` to the list of conflicting vertices, or remove it."""
    in_conflict = state.counts[v, state.color[v]] > 0
    at = state.position[v]
    if in_conflict and at < 0:
        state.position[v] = state.counters[N_CONFLICTING]
        state.conflicting[state.counters[N_CONFLICTING]] = v
        state.counters[N_CONFLICTING] += 1
    elif not in_conflict and at >= 0:
        state.counters[N_CONFLICTING] -= 1
        last = state.conflicting[state.counters[N_CONFLICTING]]
        state.conflicting[at] = last
        state.position[last] = at
        state.position[v] = -1


@njit(cache=True, nogil=True)
def start_tabu(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    state,  # IN/OUT TabuColoringState; ``color`` may hold -1, replaced by the color least seen
):
    """Complete the coloring and count its conflicts."""
    n, n_colors = state.counts.shape
    state.counts[:, :] = 0
    for v in range(n):
        if state.color[v] >= 0:
            for e in range(indptr[v], indptr[v + 1]):
                state.counts[neighbors[e], state.color[v]] += 1
    for v in range(n):
        if state.color[v] < 0:
            best = 0
            for c in range(1, n_colors):
                if state.counts[v, c] < state.counts[v, best]:
                    best = c
            state.color[v] = best
            for e in range(indptr[v], indptr[v + 1]):
                state.counts[neighbors[e], best] += 1
    state.counters[:] = 0
    state.counters[RANDOM] = 20240229
    for v in range(n):
        state.position[v] = -1
    for v in range(n):
        _update_conflict_list(state, v)
        state.counters[N_CONFLICTS] += state.counts[v, state.color[v]]
    state.counters[BEST] = state.counters[N_CONFLICTS]


@njit(cache=True, nogil=True)
def _best_move(state, sample):
    """Return the best allowed move of a sample, ``(vertex, color)``; (-1, -1) if none."""
    counters = state.counters
    n_conflicting = counters[N_CONFLICTING]
    offset = _random(counters) % n_conflicting
    vertex, color, best_change, ties = -1, -1, 0, 0
    for i in range(min(n_conflicting, sample)):
        v = state.conflicting[(offset + i) % n_conflicting]
        own = state.color[v]
        for c in range(state.counts.shape[1]):
            change = state.counts[v, c] - state.counts[v, own]
            if c == own or (vertex >= 0 and change > best_change):
                continue
            improves = counters[N_CONFLICTS] + 2 * change < counters[BEST]
            if state.forbidden[v, c] > counters[ITERATION] and not improves:
                continue
            ties = ties + 1 if vertex >= 0 and change == best_change else 1
            if _random(counters) % ties == 0:
                vertex, color = v, c
            best_change = change
    return vertex, color


@njit(cache=True, nogil=True)
def advance_tabu(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    state,  # IN/OUT TabuColoringState
    sample,  # IN   int, conflicting vertices examined per move: the fewer, the more random
    tenure,  # IN   int, how long moves back are forbidden, per cent of the conflicting vertices
    max_work,  # IN   int: elementary steps, about a nanosecond each
):
    """Recolor one conflicting vertex after another until none is left. Never returns NO."""
    counters = state.counters
    n_colors = state.counts.shape[1]
    work = 0
    while counters[N_CONFLICTING] > 0:
        if work > max_work:
            return UNDECIDED
        work += 4 * min(counters[N_CONFLICTING], sample) * n_colors
        counters[ITERATION] += 1
        v, c = _best_move(state, sample)
        if v < 0:
            continue
        old = state.color[v]
        counters[N_CONFLICTS] += 2 * (state.counts[v, c] - state.counts[v, old])
        rest = _random(counters) % 10 + tenure * counters[N_CONFLICTING] // 100
        state.forbidden[v, old] = counters[ITERATION] + 1 + rest
        state.color[v] = c
        _update_conflict_list(state, v)
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            state.counts[u, old] -= 1
            state.counts[u, c] += 1
            _update_conflict_list(state, u)
        work += indptr[v + 1] - indptr[v]
        counters[BEST] = min(counters[BEST], counters[N_CONFLICTS])
    return YES
