"""Annealed recolouring: labels drawn by heat bath under a rising price of violations. Compiled."""

import math

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.label_search.state import (
    conflicts,
    excess_change,
    relabel,
    unary,
    uniform,
)

# Labels whose probability is less than exp(-30) of the best are not drawn.
MAX_EXPONENT = 30.0


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

    Probabilities fall exponentially with the cost about the present means, soft pairs and violated
    hard constraints included.
    """
    rules = data.rules
    k = state.counts.size
    energy = np.empty(k)
    unit = 0.0
    if rules.demand.size:
        unit = rules.demand.size / max(rules.demand.sum(), 1e-300)
    changes = 0
    for at in range(order.size):
        i = order[at]
        a = state.labels[i]
        least = np.inf
        for c in range(k):
            value = unary(data, state, i, c) + penalty * conflicts(rules, state, i, c)
            if state.bonus.size:
                value -= state.bonus[i, c]
            if rules.demand.size and c != a:
                value += penalty * unit * excess_change(rules, state, i, c)
            energy[c] = value
            least = min(least, value)
        if not math.isfinite(least):
            continue
        total = 0.0
        for c in range(k):
            exponent = (energy[c] - least) / temperature
            energy[c] = math.exp(-exponent) if exponent < MAX_EXPONENT else 0.0
            total += energy[c]
        threshold = uniform(generator) * total
        chosen, running = a, 0.0
        for c in range(k):
            if energy[c] > 0.0:
                chosen = c
                running += energy[c]
                if running > threshold:
                    break
        if chosen != a:
            relabel(data, state, i, chosen, False)
            changes += 1
    return changes


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
