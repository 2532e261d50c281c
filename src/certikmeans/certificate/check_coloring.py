"""Minimum cost colorings and colorability: the basis of leaves without multipliers."""

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
    connected_components,
    down,
    nodes_by_level,
    spanning_forest,
    total,
)

MAX_SEARCH_STEPS = 300_000
# Components with cycles that are colored exactly: maximal size and number.
MAX_EXACT_NODES = 12
MAX_EXACT_COMPONENTS = 1000


def box_costs(points: Floats, weights: Floats, low: Floats, high: Floats) -> Floats:
    """``w_s |x_s - box k|^2`` for every group and cluster, rounded down."""
    costs = np.zeros((len(points), len(low)))
    for k, j in itertools.product(range(len(low)), range(points.shape[1])):
        x = points[:, j]
        deviation = np.maximum(np.maximum(low[k, j] - x, x - high[k, j]), 0.0)
        costs[:, k] += deviation * deviation
    costs *= weights[:, None] * (1.0 - (points.shape[1] + 6) * EPS)
    return np.maximum(costs - 1e-290, 0.0)


@final
class ColoringBounds:
    """Bounds on colorings of a graph with a cost per node and color, by a spanning forest.

    Leaving out the cannot-links beyond the forest can only make colorings cheaper.
    """

    def __init__(self, costs: Floats, edges: Ints) -> None:
        self._costs, self._edges = costs, edges
        n = len(costs)
        forest = spanning_forest(n, edges)
        self._parent, self._has_cycle = forest.parent, forest.has_cycle
        self._levels = nodes_by_level(forest.level)
        self._label = connected_components(n, edges)
        self._sizes = np.bincount(self._label, minlength=n)
        self._largest = int(self._sizes.max())
        self._upward = costs.copy()
        for level in reversed(self._levels[1:]):
            np.add.at(self._upward, self._parent[level], _min_other_color(self._upward[level]))

    def min_cost(self) -> float:
        """Lower bound on the cost of every proper coloring."""
        best = self._upward.min(axis=1)
        roots = self._parent < 0
        small = np.flatnonzero(self._has_cycle & roots & (self._sizes <= MAX_EXACT_NODES))
        for root in small[:MAX_EXACT_COMPONENTS].tolist():
            best[root] = max(best[root], self._exact_min_cost(np.flatnonzero(self._label == root)))
        return down(total(best[roots]), BLOCK + self._largest + 8)

    def _exact_min_cost(self, nodes: Ints) -> float:
        """Minimum cost of a small component; 0 if the search takes too long."""
        index = np.full(len(self._costs), -1)
        index[nodes] = np.arange(len(nodes))
        first, second = np.sort(index[self._edges[index[self._edges[:, 0]] >= 0]], axis=1).T
        before = [first[second == i].tolist() for i in range(len(nodes))]
        costs = self._costs[nodes].tolist()
        best = np.inf
        stack: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        for _ in range(MAX_SEARCH_STEPS):
            if not stack:
                return float(best)
            partial_cost, colors = stack.pop()
            if partial_cost >= best:
                continue
            node = len(colors)
            if node == len(nodes):
                best = partial_cost
                continue
            taken = {colors[i] for i in before[node]}
            options = [(c, k) for k, c in enumerate(costs[node]) if k not in taken]
            for cost, color in sorted(options, reverse=True):
                stack.append((partial_cost + cost, (*colors, color)))
        return 0.0

    def min_marginals(self) -> Floats:
        """Lower bound on the cost of colorings in which a node has a color, for all of them."""
        downward = np.zeros_like(self._costs)
        for level in self._levels[1:]:
            above = self._parent[level]
            rest = self._upward[above] + downward[above] - _min_other_color(self._upward[level])
            downward[level] = _min_other_color(np.maximum(rest, 0.0))
        whole = self._upward + downward
        roots = self._parent < 0
        best = self._upward.min(axis=1)
        others = total(best[roots]) - best[self._label]
        # Sums of at most `largest` numbers up to `size`, some of them subtracted again.
        size = float(whole.max()) + total(best[roots])
        rounding_error = 8.0 * (self._largest + BLOCK + 16) * EPS * size
        found: Floats = others[:, None] + whole - rounding_error
        return found


def _min_other_color(costs: Floats) -> Floats:
    """For each row and color, the least cost of another color."""
    if costs.shape[1] == 1:
        return np.full_like(costs, 1e290)
    rows = np.arange(len(costs))
    first = costs.argmin(axis=1)
    min_cost = costs[rows, first]
    rest = costs.copy()
    rest[rows, first] = np.inf
    found = np.repeat(min_cost[:, None], costs.shape[1], axis=1)
    found[rows, first] = rest.min(axis=1)
    return found


def is_uncolorable(n: int, edges: Ints, n_colors: int) -> bool:
    """Whether it is proven that no proper coloring exists; False may mean "not decided"."""
    label = connected_components(n, edges)
    neighbors: dict[int, set[int]] = {}
    for a, b in edges.tolist():
        neighbors.setdefault(a, set()).add(b)
        neighbors.setdefault(b, set()).add(a)
    sizes = np.bincount(label, minlength=n)
    roots_by_size = np.flatnonzero(sizes > n_colors)
    for root in roots_by_size[np.argsort(sizes[roots_by_size], kind="stable")].tolist():
        nodes = np.flatnonzero(label == root).tolist()
        if _component_is_uncolorable(nodes, neighbors, n_colors):
            return True
    return False


def _component_is_uncolorable(
    nodes: list[int], neighbors: dict[int, set[int]], n_colors: int
) -> bool:
    """Search all colorings up to permutation of colors, the most constrained node first."""
    stack: list[dict[int, int]] = [{}]
    for _ in range(MAX_SEARCH_STEPS // max(1, len(nodes))):
        if not stack:
            return True
        colors = stack.pop()
        if len(colors) == len(nodes):
            return False
        seen = {
            v: {colors[u] for u in neighbors[v] if u in colors} for v in nodes if v not in colors
        }
        node = max(seen, key=lambda v: (len(seen[v]), len(neighbors[v])))
        used = max(colors.values(), default=-1) + 1
        for color in range(min(n_colors, used + 1)):  # unused colors are interchangeable
            if color not in seen[node]:
                stack.append({**colors, node: color})
    return not stack


def allowed_colors(costs: Floats, edges: Ints, required_bound: float) -> NDArray[np.bool_]:
    """Colors that each node can have in a coloring that costs less than ``required_bound``.

    Costs are capped at ``required_bound``, which lowers them, so that all numbers stay finite.
    """
    capped = np.minimum(costs, required_bound)
    allowed = np.ones(costs.shape, dtype=bool)
    for _ in range(3):
        removed = allowed & (ColoringBounds(capped, edges).min_marginals() >= required_bound)
        if not removed.any():
            break
        allowed &= ~removed
        capped[removed] = required_bound
    return allowed
