"""Tabu search from labels that violate hard constraints to feasible ones. Compiled."""

import math

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.label_search.state import (
    below,
    conflicts,
    excess_change,
    relabel,
    total_excess,
    unary,
)


@njit(cache=True, nogil=True)
def conflicted_groups(
    data,  # IN
    state,  # IN
    found,  # OUT  (n,) int64
):
    """List the groups in violated cannot-links and sets. Returns their number."""
    count = 0
    for i in range(state.labels.size):
        if conflicts(data.rules, state, i, state.labels[i]) > 0:
            found[count] = i
            count += 1
    return count


@njit(cache=True, nogil=True)
def _set_listed(conflicted, position, i, listed, size):
    """Enter a group into the list of conflicted groups, or remove it. Returns the new size."""
    if listed and position[i] < 0:
        conflicted[size] = i
        position[i] = size
        return size + 1
    if not listed and position[i] >= 0:
        last = conflicted[size - 1]
        conflicted[position[i]] = last
        position[last] = position[i]
        position[i] = -1
        return size - 1
    return size


@njit(cache=True, nogil=True)
def _relist(rules, state, i, conflicted, position, size):
    """Update the list after a group moved."""
    labels = state.labels
    size = _set_listed(conflicted, position, i, conflicts(rules, state, i, labels[i]) > 0, size)
    for e in range(rules.link_indptr[i], rules.link_indptr[i + 1]):
        other = rules.links[e]
        listed = conflicts(rules, state, other, labels[other]) > 0
        size = _set_listed(conflicted, position, other, listed, size)
    for e in range(rules.group_indptr[i], rules.group_indptr[i + 1]):
        one = rules.group_sets[e]
        for at in range(rules.set_indptr[one], rules.set_indptr[one + 1]):
            other = rules.set_members[at]
            listed = conflicts(rules, state, other, labels[other]) > 0
            size = _set_listed(conflicted, position, other, listed, size)
    return size


@njit(cache=True, nogil=True)
def _violated_cluster(rules, state, generator):
    """Some cluster outside its limits, or -1."""
    k = state.totals.size
    first = below(generator, k)
    for step in range(k):
        c = (first + step) % k
        if state.totals[c] > rules.upper[c] or state.totals[c] < rules.lower[c]:
            return c
    return -1


@njit(cache=True, nogil=True)
def repair(
    data,  # IN
    state,  # IN/OUT  means follow
    max_steps,  # IN
    max_candidates,  # IN   groups tried in a step
    weight,  # IN   price of a violation at the beginning
    generator,  # IN/OUT
):
    """Move groups in violated constraints until none is left. Returns whether that succeeded.

    Every step makes the best move that is not tabu; the price of a violation rises while their
    number does not fall.
    """
    rules, labels = data.rules, state.labels
    n, k = labels.size, state.counts.size
    conflicted = np.empty(n, np.int64)
    position = np.full(n, -1, np.int64)
    tabu = np.zeros((n, k), np.int64)
    unit = 1.0
    if rules.demand.size:
        unit = rules.demand.size / max(rules.demand.sum(), 1e-300)
    size, total = 0, 0
    for i in range(n):
        own = conflicts(rules, state, i, labels[i])
        total += own
        size = _set_listed(conflicted, position, i, own > 0, size)
    violation = 0.5 * total + unit * total_excess(rules, state)
    least, last_gain = violation, 0
    for step in range(max_steps):
        cluster = -1
        if rules.demand.size:
            cluster = _violated_cluster(rules, state, generator)
        if size == 0 and cluster < 0:
            return True
        if step - last_gain > 50 + size:
            weight, last_gain = 1.5 * weight, step
        best, chosen, target, change = np.inf, -1, -1, 0.0
        by_size = cluster >= 0 and (size == 0 or step % 2 == 0)
        over = by_size and state.totals[cluster] > rules.upper[cluster]
        pool = n if by_size else size
        n_tried = pool if by_size else min(pool, max_candidates)
        offset = below(generator, pool) if n_tried < pool else 0
        for at in range(n_tried):
            i = at if by_size else conflicted[(offset + at) % pool]
            a = labels[i]
            if by_size and over != (a == cluster):
                continue
            own = conflicts(rules, state, i, a)
            here = unary(data, state, i, a)
            for b in range(k):
                if b == a or (by_size and not over and b != cluster):
                    continue
                delta = conflicts(rules, state, i, b) - own
                delta += unit * excess_change(rules, state, i, b)
                if tabu[i, b] > step and violation + delta >= least - 1e-9:
                    continue
                value = weight * delta + unary(data, state, i, b) - here
                if state.bonus.size:
                    value += state.bonus[i, a] - state.bonus[i, b]
                if value < best:
                    best, chosen, target, change = value, i, b, delta
        if chosen < 0 or not math.isfinite(best):
            if n_tried == pool and chosen < 0 and size + int(by_size) > 0:
                # Everything is tabu: a random move.
                i = conflicted[below(generator, size)] if size else below(generator, n)
                b = below(generator, k)
                if b == labels[i]:
                    continue
                chosen, target = i, b
                change = conflicts(rules, state, i, b) - conflicts(rules, state, i, labels[i])
                change += unit * excess_change(rules, state, i, b)
            else:
                continue
        tabu[chosen, labels[chosen]] = step + 3 + below(generator, 10) + (6 * size) // 10
        relabel(data, state, chosen, target, True)
        size = _relist(rules, state, chosen, conflicted, position, size)
        violation += change
        if violation < least - 1e-9:
            least, last_gain = violation, step
    if rules.demand.size and _violated_cluster(rules, state, generator) >= 0:
        return False
    return size == 0
