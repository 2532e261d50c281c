"""Annealed recolouring: labels drawn by heat bath under a rising price of violations. Compiled."""

import math

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.label_search.state import (
    excess_change,
    relabel,
    unary,
    uniform,
)


@njit(cache=True, nogil=True)
def _decay(x):
    """About exp(-x) for x >= 0, by squarings; 0 where that would be tiny, since such numbers, below
    the least normal one, slow the arithmetic down.
    """
    y = 1.0 - x * 0.00390625 if x < 40.0 else 0.0
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    return y * y


@njit(cache=True, nogil=True)
def _energies(data, state, i, penalty, energy):
    """Cost of every label of a group, violated constraints included, without sizes."""
    rules = data.rules
    k, d = energy.size, data.points.shape[1]
    if data.costs.size:
        for c in range(k):
            energy[c] = data.costs[i, c] + penalty * state.clashes[i, c]
    else:
        w = data.weights[i]
        for c in range(k):
            square = 0.0
            for j in range(d):
                difference = data.points[i, j] - state.means[c, j]
                square += difference * difference
            energy[c] = w * square + penalty * state.clashes[i, c]
    if state.bonus.size:
        for c in range(k):
            energy[c] -= state.bonus[i, c]
    for e in range(rules.group_indptr[i], rules.group_indptr[i + 1]):
        one = rules.group_sets[e]
        for c in range(k):
            energy[c] += penalty * state.occupancy[one, c]
        energy[state.labels[i]] -= penalty


@njit(cache=True, nogil=True)
def recolor(
    data,  # IN
    state,  # IN/OUT  means stay
    order,  # IN   groups to visit
    temperature,  # IN   > 0
    penalty,  # IN   of a violated cannot-link, and of a mean demand beyond a limit
    generator,  # IN/OUT
):
    """Draw a label for every group of ``order``. Returns the number of changes.

    Probabilities fall about exponentially with the cost about the present means, soft pairs and
    violated hard constraints included.
    """
    rules = data.rules
    k = state.counts.size
    energy = np.empty(k)
    unit, inverse = 0.0, 1.0 / temperature
    if rules.demand.size:
        unit = rules.demand.size / max(rules.demand.sum(), 1e-300)
    changes = 0
    for at in range(order.size):
        i = order[at]
        a = state.labels[i]
        _energies(data, state, i, penalty, energy)
        if rules.demand.size:
            for c in range(k):
                if c != a:
                    energy[c] += penalty * unit * excess_change(rules, state, i, c)
        least = energy[0]
        for c in range(1, k):
            least = min(least, energy[c])
        if not math.isfinite(least):
            continue
        total = 0.0
        for c in range(k):
            energy[c] = _decay((energy[c] - least) * inverse)
            total += energy[c]
        threshold = uniform(generator) * total
        chosen, running = 0, energy[0]
        while chosen < k - 1 and running <= threshold:
            chosen += 1
            running += energy[chosen]
        if chosen != a and energy[chosen] > 0.0:
            relabel(data, state, i, chosen, False)
            changes += 1
    return changes


@njit(cache=True, nogil=True)
def recenter(
    data,  # IN
    state,  # IN/OUT  sums and means, from the labels
):
    """Move the centres to the means; that of an empty cluster stays."""
    state.masses[:] = 0.0
    state.sums[:] = 0.0
    for i in range(state.labels.size):
        a, w = state.labels[i], data.weights[i]
        state.masses[a] += w
        for j in range(data.points.shape[1]):
            state.sums[a, j] += w * data.points[i, j]
    for c in range(state.counts.size):
        if state.counts[c] > 0 and state.masses[c] > 0.0:
            for j in range(state.means.shape[1]):
                state.means[c, j] = state.sums[c, j] / state.masses[c]


@njit(cache=True, nogil=True)
def mean_cost(data, state):
    """Mean cost of the labels about the present means; infinite costs are left out."""
    total, count = 0.0, 0
    for i in range(state.labels.size):
        value = unary(data, state, i, state.labels[i])
        if math.isfinite(value):
            total += value
            count += 1
    return total / max(1, count)


@njit(cache=True, nogil=True)
def nearest_labels(data, state):
    """Give every group the label of least cost about the present means."""
    for i in range(state.labels.size):
        best, label = np.inf, 0
        for c in range(state.counts.size):
            value = unary(data, state, i, c)
            if value < best:
                best, label = value, c
        state.labels[i] = label
