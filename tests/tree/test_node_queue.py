"""Every selection: nothing is lost or doubled, ties go by age, the least bound is the least."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certikmeans.options import SELECTIONS
from certikmeans.proof import LeafProof
from certikmeans.tree.node import MIXED_PERIOD, Node, NodeQueue


def node(number, bound, depth=0):
    return Node(number, -1, depth, None, bound, LeafProof("trivial"))


def random_nodes(rng, count, first=0):
    """Few distinct bounds and depths, so that there are ties; some bounds are infinite."""
    return [
        node(
            first + i,
            float(rng.choice([0.0, 1.0, 1.0, 2.5, math.inf])),
            int(rng.integers(3)),
        )
        for i in range(count)
    ]


def by_bound(one):
    return one.bound, one.number


def by_depth(one):
    return -one.depth, one.bound, one.number


def next_node(nodes, selection, turn):
    """What should be taken, by sorting everything; turns are counted from 1."""
    deep = selection == "depth" or (selection == "mixed" and turn % MIXED_PERIOD != 0)
    return min(nodes, key=by_depth if deep else by_bound)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("seed", range(20))
def test_contract(selection, seed):
    rng = np.random.default_rng(seed)
    node_queue, held, number, gone = NodeQueue(selection), [], 0, []
    while number < 200 or held:
        for one in random_nodes(rng, int(rng.integers(0, 6)) if number < 200 else 0, number):
            node_queue.push(one)
            held.append(one)
            number += 1
        for _ in range(min(int(rng.integers(1, 5)), len(held))):
            expected = next_node(held, selection, node_queue.n_taken + 1)
            assert node_queue.first() is expected
            if rng.random() < 0.8:
                assert node_queue.pop() is expected
            else:  # one that is not first may leave, too
                expected = held[int(rng.integers(len(held)))]
                node_queue.remove(expected)
            assert expected not in node_queue
            held.remove(expected)
            gone.append(expected.number)
        assert len(node_queue) == len(held)
        assert [one.number for one in node_queue.nodes()] == [one.number for one in held]
        assert all(one in node_queue for one in held)
        assert node_queue.lower_bound == min((one.bound for one in held), default=math.inf)
    assert sorted(gone) == list(range(number))
    assert node_queue.n_taken > 100


@pytest.mark.parametrize("selection", SELECTIONS)
def test_empty_queue(selection):
    node_queue = NodeQueue(selection)
    assert len(node_queue) == 0
    assert node_queue.nodes() == []
    assert node_queue.lower_bound == math.inf


@pytest.mark.parametrize("selection", SELECTIONS)
def test_ties_go_by_age(selection):
    node_queue = NodeQueue(selection)
    for number in (3, 1, 2, 0):
        node_queue.push(node(number, 1.0))
    assert [node_queue.pop().number for _ in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_priorities_are_those_of_the_first_node(selection):
    node_queue, rng = NodeQueue(selection), np.random.default_rng(0)
    for one in random_nodes(rng, 50):
        node_queue.push(one)
    assert node_queue.priority(node_queue.first()) == min(
        map(node_queue.priority, node_queue.nodes())
    ) or (selection == "mixed")


def test_selection_orders_differ():
    nodes = [node(0, 0.0, 0), node(1, 5.0, 2), node(2, 1.0, 1)]
    first = {}
    for selection in SELECTIONS:
        node_queue = NodeQueue(selection)
        for one in nodes:
            node_queue.push(one)
        first[selection] = [node_queue.pop().number for _ in range(3)]
    assert first["best"] == [0, 2, 1]
    assert first["depth"] == first["mixed"] == [1, 2, 0]
