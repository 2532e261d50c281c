"""Bucket elimination of a core along a fixed order: exact, one table per vertex."""

import numpy as np

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def _place_minimum(
    costs,  # IN  (n_labels,) float64
    blocked,  # IN  (n_labels,) int64, > 0 where a neighbour has the label
    entries,  # IN  float64 tables
    bases,  # IN  where the child tables stand
    strides,  # IN  their step per label of this place
    n_children,  # IN
):
    """Least cost over the labels of one place, and the lowest label that attains it."""
    best, where = np.inf, -1
    for k in range(costs.size):
        if blocked[k] == 0:
            value = costs[k]
            for c in range(n_children):
                value += entries[bases[c] + strides[c] * k]
            if value < best:
                best, where = value, k
    return best, where


@njit(cache=True, nogil=True)
def _load_children(tables, place, n_scope, bases, strides):
    first = tables.child_start[place]
    n_children = tables.child_start[place + 1] - first
    for c in range(n_children):
        bases[c] = tables.start[tables.child[first + c]]
        strides[c] = tables.stride[tables.stride_start[first + c] + n_scope]
    return n_children


@njit(cache=True, nogil=True)
def _fill_table(
    tables,  # IN
    place,  # IN
    costs,  # IN  (n_labels,) float64
    entries,  # IN/OUT
    digits,  # OUT  scratch: the labels of the scope
    blocked,  # OUT  scratch (n_labels,)
    bases,  # OUT  scratch
    strides,  # OUT  scratch
):
    """Least cost of the eliminated part for every labelling of the scope."""
    n_labels = costs.size
    begin = tables.scope_start[place]
    n_scope = tables.scope_start[place + 1] - begin
    children = tables.child_start[place]
    n_children = _load_children(tables, place, n_scope, bases, strides)
    for k in range(n_labels):
        blocked[k] = 0
    for u in range(n_scope):
        digits[u] = 0
        blocked[0] += tables.scope_linked[begin + u]
    entry = tables.start[place]
    u = 0
    while u >= 0:
        value, _ = _place_minimum(costs, blocked, entries, bases, strides, n_children)
        entries[entry] = value
        entry += 1
        u = n_scope - 1
        while u >= 0:  # count up: the last scope place runs fastest
            linked = tables.scope_linked[begin + u]
            blocked[digits[u]] -= linked
            step = 1 if digits[u] + 1 < n_labels else 1 - n_labels
            digits[u] += step
            blocked[digits[u]] += linked
            for c in range(n_children):
                bases[c] += step * tables.stride[tables.stride_start[children + c] + u]
            if step == 1:
                break
            u -= 1


@njit(cache=True, nogil=True)
def _read_label(tables, place, places, costs, entries, blocked, bases, strides):
    """Best label of a place once its scope is labelled (``places``)."""
    begin = tables.scope_start[place]
    n_scope = tables.scope_start[place + 1] - begin
    children = tables.child_start[place]
    n_children = _load_children(tables, place, n_scope, bases, strides)
    for k in range(costs.size):
        blocked[k] = 0
    for u in range(n_scope):
        label = places[tables.scope[begin + u]]
        blocked[label] += tables.scope_linked[begin + u]
        for c in range(n_children):
            bases[c] += label * tables.stride[tables.stride_start[children + c] + u]
    _, label = _place_minimum(costs, blocked, entries, bases, strides, n_children)
    return label


@njit(cache=True, nogil=True)
def eliminate(
    tables,  # IN   of one slot, see `layout.tables_of`
    costs,  # IN   (n_core, n_labels) float64 >= 0, inf = forbidden; by place
    entries,  # OUT  float64 scratch, as long as the slot's tables
    places,  # OUT  (n_core,) int64 a cheapest proper labelling, if the value is finite
):
    """Least cost of a proper labelling of a core; inf if there is none.

    Only sums and minima of nonnegative numbers, as in `trees.solve_tree`.
    """
    n_core, n_labels = costs.shape
    digits = np.empty(n_core, np.int64)
    bases = np.empty(n_core, np.int64)
    strides = np.empty(n_core, np.int64)
    blocked = np.empty(n_labels, np.int64)
    total = 0.0
    for v in range(n_core):
        _fill_table(tables, v, costs[v], entries, digits, blocked, bases, strides)
        if tables.scope_start[v] == tables.scope_start[v + 1]:
            total += entries[tables.start[v]]
    if total < np.inf:
        for v in range(n_core - 1, -1, -1):
            places[v] = _read_label(tables, v, places, costs[v], entries, blocked, bases, strides)
    return total
