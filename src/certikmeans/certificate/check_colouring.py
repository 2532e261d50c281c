"""Cheapest and possible colourings: what the leaves without multipliers rest on."""

from __future__ import annotations

import itertools
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import (
    BLOCK,
    EPS,
    Floats,
    Ints,
    by_level,
    component_labels,
    down,
    span,
    total,
)

MOST_STEPS = 300_000
# Components with cycles that are coloured exactly: up to this size, and this many.
SMALL = 12
MOST_EXACT = 1000


def least_costs(points: Floats, weights: Floats, low: Floats, high: Floats) -> Floats:
    """``w_s |x_s - box k|^2`` for every group and cluster, rounded down."""
    costs = np.zeros((len(points), len(low)))
    for k, j in itertools.product(range(len(low)), range(points.shape[1])):
        x = points[:, j]
        away = np.maximum(np.maximum(low[k, j] - x, x - high[k, j]), 0.0)
        costs[:, k] += away * away
    costs *= weights[:, None] * (1.0 - (points.shape[1] + 6) * EPS)
    return np.maximum(costs - 1e-290, 0.0)


@final
class Colourings:
    """Colourings of a graph with a cost per node and colour: bounds by a spanning forest.

    Leaving out the cannot-links beyond the forest can only make colourings cheaper.
    """

    def __init__(self, costs: Floats, edges: Ints) -> None:
        self._costs, self._edges = costs, edges
        n = len(costs)
        forest = span(n, edges)
        self._parent, self._tangled = forest.parent, forest.tangled
        self._levels = by_level(forest.level)
        self._label = component_labels(n, edges)
        self._sizes = np.bincount(self._label, minlength=n)
        self._largest = int(self._sizes.max())
        self._upward = costs.copy()
        for level in reversed(self._levels[1:]):
            np.add.at(self._upward, self._parent[level], _best_other(self._upward[level]))

    def least(self) -> float:
        """At most the cost of every proper colouring."""
        best = self._upward.min(axis=1)
        roots = self._parent < 0
        small = np.flatnonzero(self._tangled & roots & (self._sizes <= SMALL))
        for name in small[:MOST_EXACT].tolist():
            best[name] = max(best[name], self._exact(np.flatnonzero(self._label == name)))
        return down(total(best[roots]), BLOCK + self._largest + 8)

    def _exact(self, nodes: Ints) -> float:
        """Cheapest colouring of a small component; 0 if that takes too long."""
        place = np.full(len(self._costs), -1)
        place[nodes] = np.arange(len(nodes))
        first, second = np.sort(place[self._edges[place[self._edges[:, 0]] >= 0]], axis=1).T
        before = [first[second == i].tolist() for i in range(len(nodes))]
        costs = self._costs[nodes].tolist()
        best = np.inf
        stack: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        for _ in range(MOST_STEPS):
            if not stack:
                return float(best)
            spent, colours = stack.pop()
            if spent >= best:
                continue
            node = len(colours)
            if node == len(nodes):
                best = spent
                continue
            taken = {colours[i] for i in before[node]}
            options = [(c, k) for k, c in enumerate(costs[node]) if k not in taken]
            for cost, colour in sorted(options, reverse=True):
                stack.append((spent + cost, (*colours, colour)))
        return 0.0

    def marginals(self) -> Floats:
        """At most the cost of every colouring in which a node has a colour, for all of both."""
        downward = np.zeros_like(self._costs)
        for level in self._levels[1:]:
            above = self._parent[level]
            rest = self._upward[above] + downward[above] - _best_other(self._upward[level])
            downward[level] = _best_other(np.maximum(rest, 0.0))
        whole = self._upward + downward
        roots = self._parent < 0
        best = self._upward.min(axis=1)
        others = total(best[roots]) - best[self._label]
        # Sums of at most `largest` numbers up to `size`, some of them subtracted again.
        size = float(whole.max()) + total(best[roots])
        doubt = 8.0 * (self._largest + BLOCK + 16) * EPS * size
        found: Floats = others[:, None] + whole - doubt
        return found


def _best_other(costs: Floats) -> Floats:
    """For each row and colour, the least cost of another colour."""
    if costs.shape[1] == 1:
        return np.full_like(costs, 1e290)
    rows = np.arange(len(costs))
    first = costs.argmin(axis=1)
    least = costs[rows, first]
    rest = costs.copy()
    rest[rows, first] = np.inf
    found = np.repeat(least[:, None], costs.shape[1], axis=1)
    found[rows, first] = rest.min(axis=1)
    return found


def cannot_be_coloured(n: int, edges: Ints, n_colours: int) -> bool:
    """Whether it is shown that no proper colouring exists; False may mean "not found out"."""
    label = component_labels(n, edges)
    neighbours: dict[int, set[int]] = {}
    for a, b in edges.tolist():
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    sizes = np.bincount(label, minlength=n)
    names = np.flatnonzero(sizes > n_colours)
    for name in names[np.argsort(sizes[names], kind="stable")].tolist():
        nodes = np.flatnonzero(label == name).tolist()
        if _has_no_colouring(nodes, neighbours, n_colours):
            return True
    return False


def _has_no_colouring(nodes: list[int], neighbours: dict[int, set[int]], n_colours: int) -> bool:
    """Search all colourings up to names of colours, the most constrained node first."""
    stack: list[dict[int, int]] = [{}]
    for _ in range(MOST_STEPS // max(1, len(nodes))):
        if not stack:
            return True
        colours = stack.pop()
        if len(colours) == len(nodes):
            return False
        seen = {
            v: {colours[u] for u in neighbours[v] if u in colours}
            for v in nodes
            if v not in colours
        }
        node = max(seen, key=lambda v: (len(seen[v]), len(neighbours[v])))
        used = max(colours.values(), default=-1) + 1
        for colour in range(min(n_colours, used + 1)):  # of unused colours, the first will do
            if colour not in seen[node]:
                stack.append({**colours, node: colour})
    return not stack


def viable_colours(costs: Floats, edges: Ints, needed: float) -> NDArray[np.bool_]:
    """Which colours of which nodes a colouring that costs less than ``needed`` may use.

    Costs are capped at ``needed``, which lowers them, so that all numbers stay finite.
    """
    capped = np.minimum(costs, needed)
    viable = np.ones(costs.shape, dtype=bool)
    for _ in range(3):
        removed = viable & (Colourings(capped, edges).marginals() >= needed)
        if not removed.any():
            break
        viable &= ~removed
        capped[removed] = needed
    return viable
