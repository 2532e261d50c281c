"""Fixed groups: neither replaceable by cannot-link neighbours nor in other clusters."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.kernels.aggregation import FIXED, mark_fixed_groups
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.graph_builder import build_cannot_link_graph

# Two clusters around 0 and 10, and a group between them that may belong to either.
POINTS = np.array([5.0, 0.1, 9.9, 0.2, 10.1, 9.8])
LABELS = np.array([0, 0, 1, 0, 1, 1])


def fixed_points(chain: list[int], order: list[int]) -> set[float]:
    """Points of the fixed groups, given a chain of cannot-links and an order of the groups."""
    position_of = np.argsort(order)
    links = position_of[np.array([chain[:-1], chain[1:]], dtype=np.int64).T]
    graph, by_component = build_cannot_link_graph(len(order), links)
    points, home = POINTS[order][by_component], LABELS[order][by_component]
    reduced = ReducedProblem(points[:, None], np.ones(len(order)), CannotLinks(graph), 2, 0.0)
    instance = Pricer(reduced).instance(np.full(len(order), 30.0))
    state = np.empty(len(order), dtype=np.uint8)
    count = mark_fixed_groups(
        instance, home, np.array([[0.0], [10.0]]), np.full(2, 0.5), 0.05, state
    )
    assert count == np.count_nonzero(state == FIXED)
    return set(points[state == FIXED].tolist())


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 1, 5, 3, 4]])
def test_neighbors_of_free_groups_not_fixed(order):
    assert fixed_points([], order) == {0.1, 9.9, 0.2, 10.1, 9.8}
    # 5.0 could replace 0.1; 9.9 could not, nor any group behind it.
    assert fixed_points([0, 1, 2, 3], order) == {9.9, 0.2, 10.1, 9.8}
