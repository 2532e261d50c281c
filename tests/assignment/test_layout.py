"""Elimination orders and clique covers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from certikmeans.assignment.layout import clique_cover, elimination_order, max_scope_size


def random_adjacency(seed, n, density):
    rng = np.random.default_rng(seed)
    near = [set() for _ in range(n)]
    for u, v in itertools.combinations(range(n), 2):
        if rng.random() < density:
            near[u].add(v)
            near[v].add(u)
    return near


@pytest.mark.parametrize("n", [1, 5, 12, 160])  # from 150 on by degree instead of fill
@pytest.mark.parametrize("seed", range(3))
def test_order_matches_simulated_elimination(seed, n):
    near = random_adjacency(seed, n, min(0.4, 3 / n))
    order = elimination_order(near, max_scope=n)
    assert sorted(order.vertices) == list(range(n))
    left = [set(row) for row in near]
    position = {v: i for i, v in enumerate(order.vertices)}
    for v, scope in zip(order.vertices, order.scopes, strict=True):
        rest = {u for u in left[v] if position[u] > position[v]}
        assert scope == tuple(sorted(position[u] for u in rest))
        for u in rest:
            left[u] |= rest - {u}


def test_no_order_for_wide_graphs():
    clique = [set(range(8)) - {v} for v in range(8)]
    assert elimination_order(clique, max_scope=6) is None
    assert elimination_order(clique, max_scope=7) is not None


def test_scopes_of_known_graphs():
    cycle = [{(v - 1) % 9, (v + 1) % 9} for v in range(9)]
    assert max(map(len, elimination_order(cycle, 8).scopes)) == 2
    grid = {(i, j): 4 * i + j for i in range(4) for j in range(4)}
    near = [set() for _ in grid]
    for (i, j), v in grid.items():
        for step in ((i + 1, j), (i, j + 1)):
            if step in grid:
                near[v].add(grid[step])
                near[grid[step]].add(v)
    assert max(map(len, elimination_order(near, 15).scopes)) == 4


@pytest.mark.parametrize(("n_labels", "entries", "expected"), [(2, 8, 2), (3, 26, 1), (3, 27, 2)])
def test_max_scope_size(n_labels, entries, expected):
    assert max_scope_size(n_labels, entries) == expected


@pytest.mark.parametrize("seed", range(5))
def test_clique_cover(seed):
    near = random_adjacency(seed, 15, 0.4)
    held = set()
    for clique in clique_cover(near):
        for u, v in itertools.combinations(clique, 2):
            assert v in near[u]
            held.add((u, v))
    assert held == {(u, v) for u, row in enumerate(near) for v in row if u < v}
