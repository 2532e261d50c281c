"""Diagnosis of contradicting pairs: listed conflicts are valid, removals are minimum."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from certikmeans import Constraints
from certikmeans.errors import InputError
from certikmeans.problem.conflicts.conflict_sets import ConflictWalks, PairGraph, coloring_conflicts
from certikmeans.problem.conflicts.diagnosis import diagnose
from certikmeans.problem.conflicts.min_removal import RemovalParams, heuristic_labels, min_removal
from certikmeans.stop import StopSignal


def n_violated(labels, must, cannot) -> int:
    return sum(labels[i] != labels[j] for i, j in must) + sum(
        labels[i] == labels[j] for i, j in cannot
    )


def min_violated(n: int, must, cannot, n_clusters: int) -> int:
    """Enumerate all labellings; the pairs that one violates form a removal."""
    return min(
        n_violated((0, *labels), must, cannot)
        for labels in product(range(n_clusters), repeat=n - 1)
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
def test_removal_matches_brute_force(n_clusters):
    conflicting = 0
    for seed in range(25):
        n = 7 if n_clusters < 4 else 6
        pairs = random_pairs(n, 100 * n_clusters + seed)
        must, cannot = pairs.must_link.tolist(), pairs.cannot_link.tolist()
        optimum = min_violated(n, must, cannot, n_clusters)
        found = pairs.conflicts(n_clusters, time_limit=None)
        assert found.decided
        assert found.size == found.least == optimum
        assert found.smallest
        assert found.feasible == (optimum == 0) == (not found.broken and not found.clashes)
        rest = found.cleaned(pairs)
        assert len(rest.must_link) + len(rest.cannot_link) == len(must) + len(cannot) - optimum
        left = min_violated(n, rest.must_link.tolist(), rest.cannot_link.tolist(), n_clusters)
        assert left == 0
        conflicting += optimum > 0
    assert conflicting >= 10


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_listed_conflicts_are_valid(n_clusters):
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
            assert min_violated(7, clash.must_link, clash.cannot_link, n_clusters) > 0
            kinds.add(clash.kind)
    assert kinds >= ({"odd cycle"} if n_clusters == 2 else {"clique"})


def flipped(n: int, n_clusters: int, n_pairs: int, fraction: float, seed: int):
    """Pairs from labels, a fraction of them of the opposite kind; also the wrong ones."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    keys = rng.choice(n * n, size=3 * n_pairs, replace=False)
    pairs = np.stack([keys // n, keys % n], axis=1)
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    pairs = pairs[np.sort(rng.choice(len(pairs), size=n_pairs, replace=False))]
    wrong = rng.random(n_pairs) < fraction
    together = (labels[pairs[:, 0]] == labels[pairs[:, 1]]) ^ wrong
    return Constraints.from_pairs(pairs[together], pairs[~together], n), pairs[wrong]


@pytest.mark.parametrize(
    ("n", "n_clusters"), [(150, 3), pytest.param(300, 2, marks=pytest.mark.slow), (500, 3)]
)
def test_recovers_flipped_pairs(n, n_clusters):
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


def test_interrupted_search_returns_valid_removal():
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


def pairs_of(graph: PairGraph, conflict):
    must = [graph.edges[e].tolist() for e in conflict if e < graph.n_must]
    return must, [graph.edges[e].tolist() for e in conflict if e >= graph.n_must]


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_walks_are_conflicts(n_clusters):
    found = 0
    for seed in range(20):
        pairs = random_pairs(8, 500 + seed)
        graph = PairGraph.of(8, pairs.must_link, pairs.cannot_link)
        m = len(graph.edges)
        walks = ConflictWalks(graph, StopSignal(), doubled=n_clusters == 2)
        for step_cost in (0.2, 1e-7):
            for row in walks.lighter_than(np.zeros(m), np.ones(m, dtype=bool), 1.0, step_cost):
                assert min_violated(8, *pairs_of(graph, row), n_clusters) > 0
                found += 1
    assert found >= 40


def test_coloring_conflicts_match_brute_force():
    uncolorable = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, k = 7, int(rng.integers(2, 5))
        edges = [(v, u) for u in range(n) for v in range(u) if rng.random() < 0.62]
        graph = PairGraph(n, np.array(edges), 0)
        nothing = np.zeros(len(edges), dtype=bool)
        found = coloring_conflicts(graph, nothing, k, StopSignal(), max_conflicts=3)
        assert bool(found) == (min_violated(n, [], edges, k) > 0)
        for conflict in found:
            assert min_violated(n, [], pairs_of(graph, conflict)[1], k) > 0
        uncolorable += bool(found)
    assert 30 <= uncolorable <= 120


def test_undecided_coloring_is_reported():
    clique = [(u, v) for v in range(9) for u in range(v)]
    pairs = Constraints.from_pairs(None, clique, 9)
    assert diagnose(pairs, 8, StopSignal()).clashes[0].kind == "clique"
    stop = StopSignal()
    stop.interrupt()
    found = diagnose(pairs, 8, stop)
    assert not found.decided
    assert not found.feasible
    assert found.least == 0 < found.size
    assert found.cleaned(pairs).conflicts(8).feasible


def test_invalid_params_are_rejected():
    with pytest.raises(ValueError, match="positive"):
        RemovalParams(max_uses=0)
    with pytest.raises(ValueError, match="local_step_cost"):
        RemovalParams(local_step_cost=0.0)


def test_trivial_and_invalid_input():
    assert Constraints(n_points=5).conflicts(2).feasible
    assert Constraints.from_pairs([(0, 1)], None, 5).conflicts(1).feasible
    with pytest.raises(InputError):
        Constraints(n_points=5).conflicts(0)
    with pytest.raises(InputError):
        Constraints(n_points=5).conflicts("3")


def test_heuristic_labels_many_clusters():
    # A tenth of the pairs is wrong: labels grown vertex by vertex violate many more.
    rng = np.random.default_rng(0)
    classes = rng.integers(100, size=600)
    pairs = rng.integers(600, size=(200_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    chosen = np.concatenate([pairs[same][:1500], pairs[~same][:1500]])
    wrong = rng.random(3000) < 0.1
    must = (np.arange(3000) < 1500) ^ wrong
    graph = PairGraph(600, np.concatenate([chosen[must], chosen[~must]]), int(must.sum()))
    every = np.ones(len(graph.edges), dtype=bool)
    labels = heuristic_labels(graph, 100, every, target=0, patience=300, tenure=10)
    assert wrong.sum() > 100
    assert labels.max() < 100
    assert len(graph.violated(labels)) <= wrong.sum()


def test_heuristic_labels_random_graph():
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(200, size=(600, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    graph = PairGraph(200, pairs, 0)
    every = np.ones(len(pairs), dtype=bool)
    labels = heuristic_labels(graph, 3, every, target=0, patience=1000, tenure=10)
    greedy = heuristic_labels(graph, 3, every, target=0, patience=0, tenure=10)
    assert set(labels.tolist()) <= {0, 1, 2}
    assert 2 * len(graph.violated(labels)) <= len(graph.violated(greedy))
