"""Graphs and oracles shared by the tests of colouring and of infeasibility proofs."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

K4 = list(combinations(range(4), 2))
CYCLE_5 = [(i, (i + 1) % 5) for i in range(5)]
WHEEL_5 = CYCLE_5 + [(i, 5) for i in range(5)]
PETERSEN = CYCLE_5 + [(i, i + 5) for i in range(5)] + [(5 + i, 5 + (i + 2) % 5) for i in range(5)]


def mycielski(n: int, edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """One more colour needed, no new triangle. Vertices: n old, n copies, one apex."""
    copied = [(i, n + j) for i, j in edges] + [(j, n + i) for i, j in edges]
    return edges + copied + [(n + i, 2 * n) for i in range(n)]


GROETZSCH = mycielski(5, CYCLE_5)


def colorable(n: int, edges, n_colors: int) -> bool:
    """Try every labelling."""
    edges = list(edges)
    return any(
        all(labels[i] != labels[j] for i, j in edges)
        for labels in product(range(n_colors), repeat=n)
    )


def planted_coloring(rng, n: int, n_edges: int, n_colors: int) -> np.ndarray:
    """Random edges between different hidden labels."""
    labels = rng.integers(0, n_colors, n)
    edges = rng.integers(0, n, (3 * n_edges, 2))
    return edges[labels[edges[:, 0]] != labels[edges[:, 1]]][:n_edges]


def random_edges(rng, n: int, probability: float) -> np.ndarray:
    """Each of the possible edges with the given probability."""
    tails, heads = np.triu_indices(n, 1)
    chosen = rng.random(len(tails)) < probability
    return np.stack([tails[chosen], heads[chosen]], axis=1)
