"""Every selection: nothing is lost or doubled, ties go by age, the least bound is the least."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certikmeans.options import SELECTIONS
from certikmeans.proof import Leaf
from certikmeans.search.node import Node
from certikmeans.search.store import CYCLE, NodeStore


def node(number, bound, depth=0):
    return Node(number, -1, depth, None, bound, Leaf("trivial"))


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


def next_nodes(nodes, selection, turn, count):
    """What a round should take, by sorting everything; rounds are counted from 1."""
    deep = selection == "depth" or (selection == "mixed" and turn % CYCLE != 0)
    return sorted(nodes, key=by_depth if deep else by_bound)[:count]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("seed", range(20))
def test_contract(selection, seed):
    rng = np.random.default_rng(seed)
    store, held, number, taken = NodeStore(selection), [], 0, []
    for turn in range(1, 60):
        for one in random_nodes(rng, int(rng.integers(0, 6)), number):
            store.push(one)
            held.append(one)
            number += 1
        assert store.least == min((one.bound for one in held), default=math.inf)
        count = int(rng.integers(1, 5))
        expected = next_nodes(held, selection, turn, count)
        found = store.take(count)
        assert [one.number for one in found] == [one.number for one in expected]
        assert all(a is b for a, b in zip(found, expected, strict=True))
        held = [one for one in held if one not in found]
        taken += found
        assert len(store) == len(held)
        assert [one.number for one in store.nodes()] == [one.number for one in held]
        assert store.least == min((one.bound for one in held), default=math.inf)
    taken += store.take(10 * number)
    assert len(store) == 0
    assert store.least == math.inf
    assert sorted(one.number for one in taken) == list(range(number))
    assert number > 50


@pytest.mark.parametrize("selection", SELECTIONS)
def test_an_empty_store(selection):
    store = NodeStore(selection)
    assert len(store) == 0
    assert store.take(3) == []
    assert store.nodes() == []
    assert store.least == math.inf


@pytest.mark.parametrize("selection", SELECTIONS)
def test_ties_go_by_age(selection):
    store = NodeStore(selection)
    for number in (3, 1, 2, 0):
        store.push(node(number, 1.0))
    assert [one.number for one in store.take(4)] == [0, 1, 2, 3]


def test_the_orders_differ():
    nodes = [node(0, 0.0, 0), node(1, 5.0, 2), node(2, 1.0, 1)]
    first = {}
    for selection in SELECTIONS:
        store = NodeStore(selection)
        for one in nodes:
            store.push(one)
        first[selection] = [store.take(1)[0].number for _ in range(3)]
    assert first["best"] == [0, 2, 1]
    assert first["depth"] == first["mixed"] == [1, 2, 0]
