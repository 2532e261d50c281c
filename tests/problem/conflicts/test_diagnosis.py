"""Contradictory pairs: every conflict is one, and the set to remove is the smallest."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from certikmeans import Constraints
from certikmeans.errors import InputError
from certikmeans.problem.conflicts.conflict_sets import (
    disjoint_conflicts,
    is_colorable,
    uncolorable_subset,
)
from certikmeans.problem.conflicts.graph import PairGraph
from certikmeans.problem.conflicts.heuristics import gaec, local_search_labels
from certikmeans.problem.conflicts.min_removal import min_removal
from certikmeans.stop import StopSignal


def broken_by(labels, must, cannot) -> int:
    return sum(labels[i] != labels[j] for i, j in must) + sum(
        labels[i] == labels[j] for i, j in cannot
    )


def fewest_broken(n: int, must, cannot, n_clusters: int) -> int:
    """Try every labelling; a set of pairs to remove is what some labelling breaks."""
    return min(
        broken_by((0, *labels), must, cannot) for labels in product(range(n_clusters), repeat=n - 1)
    )


def random_pairs(n: int, seed: int) -> Constraints:
    rng = np.random.default_rng(seed)
    one, other = np.triu_indices(n, k=1)
    kind = rng.choice(3, size=len(one), p=rng.dirichlet([1.0, 2.0, 2.0]))
    every = np.stack([one, other], axis=1)
    both = every[rng.random(len(every)) < 0.03]  # must-link and cannot-link at once
    return Constraints.from_pairs(
        np.concatenate([every[kind == 1], both]), np.concatenate([every[kind == 2], both]), n
    )


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4])
def test_the_smallest_removal_is_that_of_brute_force(n_clusters):
    conflicting = 0
    for seed in range(25):
        n = 7 if n_clusters < 4 else 6
        pairs = random_pairs(n, 100 * n_clusters + seed)
        must, cannot = pairs.must_link.tolist(), pairs.cannot_link.tolist()
        optimum = fewest_broken(n, must, cannot, n_clusters)
        found = pairs.conflicts(n_clusters, time_limit=None)
        assert found.decided
        assert found.size == found.least == optimum
        assert found.smallest
        assert found.feasible == (optimum == 0) == (not found.broken and not found.clashes)
        rest = found.cleaned(pairs)
        assert len(rest.must_link) + len(rest.cannot_link) == len(must) + len(cannot) - optimum
        left = fewest_broken(n, rest.must_link.tolist(), rest.cannot_link.tolist(), n_clusters)
        assert left == 0
        conflicting += optimum > 0
    assert conflicting >= 10


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_every_conflict_is_one(n_clusters):
    kinds = set()
    for seed in range(30):
        pairs = random_pairs(7, 1000 + seed)
        found = pairs.conflicts(n_clusters, time_limit=None)
        must, cannot = (set(map(tuple, p.tolist())) for p in (pairs.must_link, pairs.cannot_link))
        groups = PairGraph.of(7, pairs.must_link, pairs.cannot_link).groups(
            np.zeros(len(must) + len(cannot), dtype=bool)
        )
        inside = {(i, j) for i, j in cannot if groups[i] == groups[j]}
        assert {tuple(sorted(broken.pair)) for broken in found.broken} == inside
        for broken in found.broken:
            assert tuple(sorted((broken.path[0], broken.path[-1]))) in cannot
            assert all(tuple(sorted(step)) in must for step in pairwise(broken.path))
        for clash in found.clashes:
            assert set(clash.must_link) <= must
            assert set(clash.cannot_link) <= cannot
            assert fewest_broken(7, clash.must_link, clash.cannot_link, n_clusters) > 0
            kinds.add(clash.kind)
    assert kinds >= ({"odd cycle"} if n_clusters == 2 else {"clique"})


def flipped(n: int, n_clusters: int, n_pairs: int, share: float, seed: int):
    """Pairs from labels, of which some say the opposite."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    keys = rng.choice(n * n, size=3 * n_pairs, replace=False)
    pairs = np.stack([keys // n, keys % n], axis=1)
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    pairs = pairs[np.sort(rng.choice(len(pairs), size=n_pairs, replace=False))]
    wrong = rng.random(n_pairs) < share
    together = (labels[pairs[:, 0]] == labels[pairs[:, 1]]) ^ wrong
    return Constraints.from_pairs(pairs[together], pairs[~together], n), pairs[wrong]


@pytest.mark.parametrize(
    ("n", "n_clusters"), [(150, 3), pytest.param(300, 2, marks=pytest.mark.slow), (500, 3)]
)
def test_two_per_cent_of_3000_pairs_are_wrong(n, n_clusters):
    pairs, wrong = flipped(n, n_clusters, 3000, 0.02, seed=5)
    assert len(wrong) > 40
    found = pairs.conflicts(n_clusters, time_limit=None)
    assert found.broken
    assert found.smallest
    assert found.size <= len(wrong)
    removed = {*found.remove_must, *found.remove_cannot}
    agreeing = removed & set(map(tuple, wrong.tolist()))
    assert len(agreeing) > 0.95 * len(wrong)
    assert found.cleaned(pairs).conflicts(n_clusters).feasible


def test_when_time_is_over_there_is_still_an_answer_with_a_bound():
    pairs, wrong = flipped(400, 3, 3000, 0.1, seed=2)
    graph = PairGraph.of(400, pairs.must_link, pairs.cannot_link)
    stop = StopSignal()
    stop.interrupt()
    found = min_removal(graph, 3, stop)
    assert 0 <= found.least <= len(found.edges)
    kept = np.ones(len(graph.edges), dtype=bool)
    kept[found.edges] = False
    rest = Constraints.from_pairs(
        graph.must[kept[: graph.n_must]], graph.cannot[kept[graph.n_must :]], 400
    )
    assert not rest.conflicts(3).broken
    assert wrong.size


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_packed_conflicts_share_nothing_and_are_conflicts(n_clusters):
    packed = 0
    for seed in range(20):
        pairs = random_pairs(8, 500 + seed)
        graph = PairGraph.of(8, pairs.must_link, pairs.cannot_link)
        rows = disjoint_conflicts(graph, n_clusters, StopSignal())
        assert sum(map(len, rows)) == len(frozenset().union(*rows))
        for row in rows:
            must = [graph.edges[e].tolist() for e in row if e < graph.n_must]
            cannot = [graph.edges[e].tolist() for e in row if e >= graph.n_must]
            assert fewest_broken(8, must, cannot, n_clusters) > 0
        packed += len(rows)
    assert packed >= 40


def test_colouring_agrees_with_brute_force():
    uncolourable = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, k = 7, int(rng.integers(2, 5))
        edges = [(u, v) for u in range(n) for v in range(u) if rng.random() < 0.62]
        near = {v: {a + b - v for a, b in edges if v in (a, b)} for v in range(n)}
        expected = fewest_broken(n, [], edges, k) == 0
        assert is_colorable(near, k) == expected
        found = uncolorable_subset(near, k)
        assert (found is None) == expected
        if found is not None:
            inside = [(u, v) for u, v in edges if u in found and v in found]
            assert fewest_broken(n, [], inside, k) > 0
            uncolourable += 1
    assert 30 <= uncolourable <= 120


def test_no_pairs_and_no_clusters():
    assert Constraints(n_points=5).conflicts(2).feasible
    assert Constraints.from_pairs([(0, 1)], None, 5).conflicts(1).feasible
    with pytest.raises(InputError):
        Constraints(n_points=5).conflicts(0)
    with pytest.raises(InputError):
        Constraints(n_points=5).conflicts("3")


def test_joining_what_is_tied_most_makes_sense_of_many_clusters():
    # A tenth of the pairs is wrong, and there are a hundred clusters: growing from a start fails.
    rng = np.random.default_rng(0)
    classes = rng.integers(100, size=600)
    pairs = rng.integers(600, size=(200_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    chosen = np.concatenate([pairs[same][:1500], pairs[~same][:1500]])
    wrong = rng.random(3000) < 0.1
    must = (np.arange(3000) < 1500) ^ wrong
    graph = PairGraph(600, np.concatenate([chosen[must], chosen[~must]]), int(must.sum()))
    labels = local_search_labels(graph, gaec(graph), 100)
    assert wrong.sum() > 100
    assert labels.max() < 100
    assert len(graph.violated(labels)) <= wrong.sum()
