"""Descent among feasible labels: moves, ejections, Kempe chains and swaps. Compiled.

A compound move is a sequence of single ones. It is applied move by move, with the exact gain of
each, and undone if the total is no improvement or the result violates a limit on sizes.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.label_search.state import (
    conflicts,
    entering_cost,
    excess_change,
    leaving_gain,
    move_gain,
    relabel,
    total_excess,
)


class MoveLimits(NamedTuple):
    """Which compound moves are considered."""

    min_gain: float  # smaller gains are attributed to rounding
    max_ejected: int  # groups that a group may push out of its new cluster
    max_chain: int  # groups in a Kempe chain
    n_candidates: int  # groups of a pair of clusters tried in swaps


class MoveScratch(NamedTuple):
    """Scratch arrays of compound moves."""

    mark: np.ndarray  # (n,) int64, all -1
    groups: np.ndarray  # (max_chain,) int64 moved
    origins: np.ndarray  # (max_chain,) int64 their labels before
    stamp: np.ndarray  # (1,) int64
    blocking: np.ndarray  # (max_ejected,) int64


@njit(cache=True, nogil=True)
def _undo(data, state, scratch, count):
    """Take back the last moves."""
    for at in range(count - 1, -1, -1):
        relabel(data, state, scratch.groups[at], scratch.origins[at], True)


@njit(cache=True, nogil=True)
def _record(data, state, scratch, count, i, b):
    """Make a move and note it. Returns its gain."""
    gain = move_gain(data, state, i, b)
    scratch.groups[count] = i
    scratch.origins[count] = state.labels[i]
    relabel(data, state, i, b, True)
    return gain


@njit(cache=True, nogil=True)
def _members_in(data, state, i, b, found):
    """Groups in cluster ``b`` that cannot share it with ``i``; at most ``found.size``."""
    rules, count = data.rules, 0
    for e in range(rules.link_indptr[i], rules.link_indptr[i + 1]):
        other = rules.links[e]
        if state.labels[other] == b and count < found.size:
            found[count] = other
            count += 1
    for e in range(rules.group_indptr[i], rules.group_indptr[i + 1]):
        one = rules.group_sets[e]
        if state.occupancy[one, b] == 0:
            continue
        for at in range(rules.set_indptr[one], rules.set_indptr[one + 1]):
            other = rules.set_members[at]
            if other != i and state.labels[other] == b and count < found.size:
                known = False
                for c in range(count):
                    known = known or found[c] == other
                if not known:
                    found[count] = other
                    count += 1
    return count


@njit(cache=True, nogil=True)
def _eject(data, state, i, b, limits, scratch):
    """Move a group to ``b`` and the groups in its way to their best free clusters.

    Returns the gain, or 0 if nothing was changed.
    """
    rules = data.rules
    k = state.counts.size
    a = state.labels[i]
    blocking = scratch.blocking
    n_blocking = _members_in(data, state, i, b, blocking)
    estimate = move_gain(data, state, i, b)
    for at in range(n_blocking):
        other = blocking[at]
        leave = leaving_gain(data, state, other)
        if state.bonus.size:
            leave -= state.bonus[other, b]
        best = -np.inf
        for c in range(k):
            if c == b or conflicts(rules, state, other, c) > (1 if c == a else 0):
                continue
            value = leave - entering_cost(data, state, other, c)
            if state.bonus.size:
                value += state.bonus[other, c]
            best = max(best, value)
        estimate += best
        if estimate <= limits.min_gain:
            return 0.0
    before = total_excess(rules, state)
    gain = _record(data, state, scratch, 0, i, b)
    moved = 1
    for at in range(n_blocking):
        other = blocking[at]
        best, target = -np.inf, -1
        for c in range(k):
            if c == b or conflicts(rules, state, other, c) > 0:
                continue
            value = move_gain(data, state, other, c)
            if value > best:
                best, target = value, c
        if target < 0 or gain + best <= limits.min_gain:
            _undo(data, state, scratch, moved)
            return 0.0
        gain += _record(data, state, scratch, moved, other, target)
        moved += 1
    feasible = conflicts(rules, state, i, b) == 0 and total_excess(rules, state) <= before
    if gain > limits.min_gain and feasible:
        return gain
    _undo(data, state, scratch, moved)
    return 0.0


@njit(cache=True, nogil=True)
def _chain(data, state, i, b, limits, scratch):
    """Swap the clusters of ``i`` and ``b`` on the Kempe chain of ``i``; undo what does not gain."""
    rules, labels = data.rules, state.labels
    a = labels[i]
    scratch.stamp[0] += 1
    stamp = scratch.stamp[0]
    chain, mark = scratch.groups, scratch.mark
    chain[0], mark[i] = i, stamp
    length, head = 1, 0
    while head < length:
        v = chain[head]
        head += 1
        side = b if labels[v] == a else a
        for e in range(rules.link_indptr[v], rules.link_indptr[v + 1]):
            other = rules.links[e]
            if labels[other] == side and mark[other] != stamp:
                if length == limits.max_chain:
                    return 0.0
                mark[other] = stamp
                chain[length] = other
                length += 1
        for e in range(rules.group_indptr[v], rules.group_indptr[v + 1]):
            one = rules.group_sets[e]
            if state.occupancy[one, side] == 0:
                continue
            for at in range(rules.set_indptr[one], rules.set_indptr[one + 1]):
                other = rules.set_members[at]
                if labels[other] == side and mark[other] != stamp:
                    if length == limits.max_chain:
                        return 0.0
                    mark[other] = stamp
                    chain[length] = other
                    length += 1
    if state.bonus.size == 0 and _chain_estimate(data, state, length, a, b, chain) <= 0.0:
        return 0.0
    before, gain = total_excess(rules, state), 0.0
    for at in range(length):
        v = chain[at]
        gain += _record(data, state, scratch, at, v, b if labels[v] == a else a)
    if gain > limits.min_gain and total_excess(rules, state) <= before:
        return gain
    _undo(data, state, scratch, length)
    return 0.0


@njit(cache=True, nogil=True)
def _chain_estimate(data, state, length, a, b, chain):
    """Gain of a chain, without soft pairs, up to rounding."""
    gain = 0.0
    if data.costs.size:
        for at in range(length):
            v = chain[at]
            sign = 1.0 if state.labels[v] == a else -1.0
            gain += sign * (data.costs[v, a] - data.costs[v, b])
        return gain
    mass_a, mass_b = state.masses[a], state.masses[b]
    for j in range(state.sums.shape[1]):
        shift, mass = 0.0, 0.0
        for at in range(length):
            v = chain[at]
            w = data.weights[v] if state.labels[v] == a else -data.weights[v]
            shift += w * data.points[v, j]
            mass += w
        one, other = state.sums[a, j], state.sums[b, j]
        if mass_a > 0.0:
            gain -= one * one / mass_a
        if mass_b > 0.0:
            gain -= other * other / mass_b
        if mass_a - mass > 0.0:
            gain += (one - shift) ** 2 / (mass_a - mass)
        if mass_b + mass > 0.0:
            gain += (other + shift) ** 2 / (mass_b + mass)
    return gain


@njit(cache=True, nogil=True)
def descend(
    data,  # IN
    state,  # IN/OUT  feasible labels before and after
    first,  # IN   first group visited
    last,  # IN   one past the last
    limits,  # IN
    scratch,  # IN/OUT
):
    """Visit groups once and make the best single or first improving compound move of each.

    Returns the sum of the gains.
    """
    rules = data.rules
    k = state.counts.size
    entangled = rules.links.size + rules.set_members.size > 0
    total = 0.0
    for i in range(first, last):
        improved = True
        rounds = 0
        while improved and rounds < k:
            improved = False
            rounds += 1
            a = state.labels[i]
            leave = leaving_gain(data, state, i)
            best, target = limits.min_gain, -1
            for b in range(k):
                if b == a:
                    continue
                gain = leave - entering_cost(data, state, i, b)
                if state.bonus.size:
                    gain += state.bonus[i, b] - state.bonus[i, a]
                if gain <= best or conflicts(rules, state, i, b) > 0:
                    continue
                if excess_change(rules, state, i, b) <= 0.0:
                    best, target = gain, b
            if target >= 0:
                relabel(data, state, i, target, True)
                total += best
                improved = True
                continue
            if not entangled:
                break
            for b in range(k):
                if b == a:
                    continue
                blocked = conflicts(rules, state, i, b)
                if blocked == 0:
                    continue
                gain = leave - entering_cost(data, state, i, b)
                if state.bonus.size:
                    gain += state.bonus[i, b] - state.bonus[i, a]
                if gain <= limits.min_gain:
                    continue
                done = 0.0
                if blocked <= limits.max_ejected:
                    done = _eject(data, state, i, b, limits, scratch)
                if done <= 0.0 and limits.max_chain > 0:
                    done = _chain(data, state, i, b, limits, scratch)
                if done > 0.0:
                    total += done
                    improved = True
                    break
    return total


@njit(cache=True, nogil=True)
def _insert_candidate(values, groups, value, i):
    """Keep the largest values, in descending order."""
    at = values.size - 1
    if value <= values[at]:
        return
    while at > 0 and values[at - 1] < value:
        values[at], groups[at] = values[at - 1], groups[at - 1]
        at -= 1
    values[at], groups[at] = value, i


@njit(cache=True, nogil=True)
def swap_groups(
    data,  # IN
    state,  # IN/OUT  feasible labels before and after
    limits,  # IN
    scratch,  # IN/OUT
):
    """Exchange two groups of two clusters where that gains, best candidates first.

    Returns the sum of the gains.
    """
    rules, labels = data.rules, state.labels
    n, k = labels.size, state.counts.size
    count = limits.n_candidates
    values = np.full((k, k, count), -np.inf)
    groups = np.full((k, k, count), -1, np.int64)
    for i in range(n):
        a = labels[i]
        leave = leaving_gain(data, state, i)
        for b in range(k):
            if b == a or conflicts(rules, state, i, b) > 1:
                continue
            gain = leave - entering_cost(data, state, i, b)
            if state.bonus.size:
                gain += state.bonus[i, b] - state.bonus[i, a]
            _insert_candidate(values[a, b], groups[a, b], gain, i)
    total = 0.0
    for a in range(k):
        for b in range(a + 1, k):
            for one in range(count):
                i = groups[a, b, one]
                if i < 0 or values[a, b, one] + values[b, a, 0] <= limits.min_gain:
                    break
                for other in range(count):
                    j = groups[b, a, other]
                    if j < 0 or values[a, b, one] + values[b, a, other] <= limits.min_gain:
                        break
                    if labels[i] != a or labels[j] != b:
                        continue
                    before = total_excess(rules, state)
                    gain = _record(data, state, scratch, 0, i, b)
                    gain += _record(data, state, scratch, 1, j, a)
                    feasible = (
                        conflicts(rules, state, i, b) == 0
                        and conflicts(rules, state, j, a) == 0
                        and total_excess(rules, state) <= before
                    )
                    if gain > limits.min_gain and feasible:
                        total += gain
                        break
                    _undo(data, state, scratch, 2)
    return total
