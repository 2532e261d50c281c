"""Infeasibility proofs: found if and only if no labelling exists, and checkable."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certikmeans.presolve.coloring import find_coloring
from certikmeans.presolve.infeasibility_proofs import GroupLink, satisfiable
from certikmeans.presolve.infeasibility_search import (
    CliqueTooLarge,
    MustLinkPath,
    OddCycle,
    UncolorableSet,
    explain_uncolorable,
    find_contradiction,
)
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.problem import Problem
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal
from tests.presolve.graphs import (
    CYCLE_5,
    GROETZSCH,
    K4,
    PETERSEN,
    WHEEL_5,
    planted_coloring,
    random_edges,
)


def state(n, n_clusters, must, cannot):
    return Problem.from_data(np.zeros((n, 1)), n_clusters, must_link=must, cannot_link=cannot)


def explain(problem, stop=None, *, with_witness=True):
    """Run the feasibility part of presolve; None if a labelling exists."""
    stop = stop or StopSignal()
    groups = must_link_groups(problem.n_points, problem.must_link)
    contradiction = find_contradiction(problem, groups)
    if contradiction is not None:
        return contradiction
    graph, order = build_cannot_link_graph(int(groups.max()) + 1, groups[problem.cannot_link])
    rows = np.argsort(order)[groups]
    found = find_coloring(graph, problem.n_clusters, StopSignal())
    if found.answer == "yes":
        return None
    uncolorable_vertices = found.uncolorable_vertices if with_witness else None
    return explain_uncolorable(
        problem,
        rows,
        graph,
        problem.n_clusters,
        found.component,
        stop,
        uncolorable_vertices=uncolorable_vertices,
    )


def labelling_exists(n, must, cannot, n_clusters):
    return any(
        all(labels[i] == labels[j] for i, j in must)
        and all(labels[i] != labels[j] for i, j in cannot)
        for labels in product(range(n_clusters), repeat=n)
    )


def pairs_used(proof):
    """Every pair that the proof leans on, as ``("must" | "cannot", i, j)`` with i < j."""
    if isinstance(proof, MustLinkPath):
        must, cannot = [proof.path], [(proof.path[0], proof.path[-1])]
    elif isinstance(proof, CliqueTooLarge):
        must = [path for link in proof.links for path in (link.first_path, link.second_path)]
        cannot = [link.pair for link in proof.links]
    elif isinstance(proof, OddCycle):
        must, cannot = proof.paths, proof.pairs
    else:
        must, cannot = proof.must_link, proof.cannot_link
    used = {("must", min(p), max(p)) for path in must for p in pairwise(path)}
    return used | {("cannot", min(p), max(p)) for p in cannot}


def without(problem, pair):
    name, *ends = pair
    kept = {"must": problem.must_link.tolist(), "cannot": problem.cannot_link.tolist()}
    kept[name].remove(ends)
    return state(problem.n_points, problem.n_clusters, kept["must"], kept["cannot"])


def assert_sound(proof, problem):
    """It holds, leans on nothing superfluous, and survives JSON."""
    assert proof.check(problem)
    for pair in pairs_used(proof):
        assert not proof.check(without(problem, pair))
    more = state(
        problem.n_points + 5, problem.n_clusters + 1, problem.must_link, problem.cannot_link
    )
    assert proof.check(more) == isinstance(proof, MustLinkPath)
    assert json.loads(json.dumps(proof.to_json()))["kind"] == proof.kind
    assert proof.describe()
    if isinstance(proof, UncolorableSet):
        assert proof.irreducible
        must, cannot = list(proof.must_link), list(proof.cannot_link)
        for pair in cannot:
            assert satisfiable(must, [p for p in cannot if p != pair], proof.n_clusters)
        for pair in must:
            assert satisfiable([p for p in must if p != pair], cannot, proof.n_clusters)


@st.composite
def pairs(draw, n, most):
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    return draw(st.lists(ends, max_size=most))


@settings(max_examples=250, deadline=None)
@given(st.data(), st.integers(2, 8), st.integers(1, 3))
def test_proof_iff_infeasible(data, n, n_clusters):
    n_clusters = min(n, n_clusters)
    must, cannot = data.draw(pairs(n, 4)), data.draw(pairs(n, 28))
    problem = state(n, n_clusters, must, cannot)
    proof = explain(problem)
    assert (proof is None) == labelling_exists(n, must, cannot, n_clusters)
    if proof is not None:
        assert_sound(proof, problem)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(2, 7), st.integers(1, 3))
def test_backtracking_against_enumeration(data, n, n_clusters):
    must, cannot = data.draw(pairs(n, 3)), data.draw(pairs(n, 20))
    expected = labelling_exists(n, must, cannot, n_clusters)
    assert satisfiable(must, cannot, n_clusters) == expected


def blown_up(edges, rng, group_size=3):
    """Replace vertices by must-link chains; a cannot-link ends anywhere in the chain."""
    n = 1 + max(max(edge) for edge in edges)
    names = rng.permutation(n * group_size)
    chains = [names[v * group_size : (v + 1) * group_size] for v in range(n)]
    must = [(int(a), int(b)) for c in chains for a, b in pairwise(c)]
    cannot = [(int(rng.choice(chains[u])), int(rng.choice(chains[v]))) for u, v in edges]
    return n * group_size, must, cannot


@pytest.mark.parametrize("group_size", [1, 3])
@pytest.mark.parametrize(
    ("edges", "n_clusters", "kind"),
    [
        ([(0, 1)], 1, CliqueTooLarge),
        ([(0, 1), (1, 2), (2, 0)], 2, CliqueTooLarge),
        (K4, 3, CliqueTooLarge),
        ([*PETERSEN, (0, 2)], 2, CliqueTooLarge),
        (list(combinations(range(9), 2)), 6, CliqueTooLarge),
        (CYCLE_5, 2, OddCycle),
        (PETERSEN, 2, OddCycle),
        (WHEEL_5, 3, UncolorableSet),
        (GROETZSCH, 3, UncolorableSet),
    ],
)
def test_proof_of_known_graphs(edges, n_clusters, kind, group_size):
    n, must, cannot = blown_up(edges, np.random.default_rng(4), group_size)
    problem = state(n, n_clusters, must, cannot)
    for with_witness in (True, False):
        proof = explain(problem, with_witness=with_witness)
        assert isinstance(proof, kind)
        assert_sound(proof, problem)
        if kind is OddCycle:
            assert len(proof.pairs) == 5
        if kind is UncolorableSet:
            # Both graphs are critical, so that every edge is needed.
            assert len(proof.cannot_link) == len(edges)


def test_petersen_is_feasible():
    assert explain(state(10, 3, [], PETERSEN)) is None


def test_shortest_contradiction():
    chain = [(i, i + 1) for i in range(9)]
    problem = state(13, 2, [*chain, (0, 10), (10, 9), (11, 12)], [(0, 9), (3, 11)])
    proof = explain(problem)
    assert proof == MustLinkPath((0, 10, 9))
    assert_sound(proof, problem)


def test_shortest_path_is_chosen():
    chain = [(i, i + 1) for i in range(9)]
    assert explain(state(10, 2, chain, [(0, 9), (4, 6), (1, 8)])) == MustLinkPath((4, 5, 6))


def test_shortest_odd_cycle():
    # A long odd cycle comes first in every numbering that follows the points.
    long, short = 21, 7
    cannot = [(i, (i + 1) % long) for i in range(long)]
    cannot += [(long + i, long + (i + 1) % short) for i in range(short)] + [(0, long)]
    proof = explain(state(long + short, 2, [], cannot))
    assert isinstance(proof, OddCycle)
    assert len(proof.pairs) == short


@pytest.mark.parametrize("seed", range(6))
def test_odd_girth(seed):
    rng = np.random.default_rng(seed)
    n = 40
    edges = random_edges(rng, n, 0.06)
    problem = state(n, 2, [], edges)
    proof = explain(problem)
    adjacency = np.zeros((n, n), dtype=np.int64)
    adjacency[edges[:, 0], edges[:, 1]] = adjacency[edges[:, 1], edges[:, 0]] = 1
    graph, order = build_cannot_link_graph(n, edges)
    component = find_coloring(graph, 2, StopSignal()).component
    members = order[graph.starts[component] : graph.starts[component + 1]]
    adjacency = adjacency[np.ix_(members, members)]
    walks, odd_girth = adjacency.copy(), 1
    while not np.diag(walks).any():
        walks = np.minimum(walks @ adjacency @ adjacency, 1)
        odd_girth += 2
    assert len(proof.members if isinstance(proof, CliqueTooLarge) else proof.pairs) == odd_girth
    assert_sound(proof, problem)


def test_small_core_of_large_graph():
    rng = np.random.default_rng(6)
    n = 2000
    cannot = np.concatenate([planted_coloring(rng, n, 2 * n, 3), np.array(WHEEL_5)])
    problem = state(n, 3, [], cannot)
    for with_witness in (True, False):
        proof = explain(problem, with_witness=with_witness)
        assert isinstance(proof, UncolorableSet)
        assert len(proof.cannot_link) < 30
        assert_sound(proof, problem)


def test_redundant_must_links_are_removed():
    # Two groups tied by one must-link; the wheel hangs on one side of it only.
    cannot = [*WHEEL_5, (6, 7), (7, 8)]
    problem = state(9, 3, [(0, 6)], cannot)
    proof = explain(problem)
    assert isinstance(proof, UncolorableSet)
    assert proof.must_link == ()


def test_proof_after_timeout():
    rng = np.random.default_rng(8)
    n, must, cannot = blown_up(GROETZSCH, rng, 2)
    extra = [(i, n + i) for i in range(5)]
    problem = state(n + 5, 3, must, cannot + extra)
    stop = StopSignal()
    stop.interrupt()
    proof = explain(problem, stop)
    assert isinstance(proof, UncolorableSet)
    assert not proof.irreducible
    assert proof.check(problem)
    assert not replace(proof, n_clusters=4).check(problem)


@pytest.mark.parametrize("edges", [K4, CYCLE_5, [*PETERSEN, (0, 2)]])
def test_odd_cycle_after_timeout(edges):
    stop = StopSignal()
    stop.interrupt()
    problem = state(10, 2, [], edges)
    proof = explain(problem, stop)
    assert isinstance(proof, OddCycle)
    assert proof.check(problem)


@pytest.mark.parametrize("seed", range(30))
def test_random_groups_against_backtracking(seed):
    rng = np.random.default_rng(seed)
    n_clusters = 3 + seed % 2
    edges = random_edges(rng, 12, 0.45 if n_clusters == 3 else 0.65).tolist()
    n, must, cannot = blown_up(edges, rng, 2)
    # A stray must-link merges two groups; contradictions are part of the game.
    must.append(tuple(rng.choice(n, 2, replace=False).tolist()))
    problem = state(n, n_clusters, must, cannot)
    proof = explain(problem)
    assert (proof is None) == satisfiable(must, cannot, n_clusters)
    if proof is not None:
        assert_sound(proof, problem)


def test_tampered_proofs_are_rejected():
    path = state(4, 2, [(0, 1), (1, 2)], [(0, 2)])
    for points in [(0, 2), (0, 1), (0,), (), (0, 3, 2), (0, 1, 2, 3), (0, 1, -2), (0, 1, 99)]:
        assert not MustLinkPath(points).check(path)

    clique = state(4, 2, [(2, 3)], [(0, 1), (0, 2), (1, 3)])
    good = explain(clique)
    assert good.check(clique)
    first, second, third = good.links
    for bad in (
        replace(good, members=(0, 1)),
        replace(good, members=(0, 1, 0)),
        replace(good, members=good.members[::-1]),
        replace(good, links=good.links[:2]),
        replace(good, links=(first, second, first)),
        replace(good, links=(first, second, GroupLink(third.pair, (1,), (3,)))),
        replace(good, links=(first, second, GroupLink(third.pair, third.first_path, ()))),
        CliqueTooLarge((0, 1), (GroupLink((0, 1), (0,), (1,)),)),
    ):
        assert not bad.check(clique)

    cycle = state(6, 2, [(4, 5)], [(0, 1), (1, 2), (2, 3), (3, 4), (5, 0)])
    good = explain(cycle)
    assert isinstance(good, OddCycle)
    for bad in (
        replace(good, pairs=good.pairs[:-1], paths=good.paths[:-1]),
        replace(good, pairs=good.pairs[::-1]),
        replace(good, paths=tuple((pair[1],) for pair in good.pairs)),
        replace(good, paths=good.paths[:-1]),
        OddCycle((), ()),
    ):
        assert not bad.check(cycle)


def test_tampered_sets_are_rejected():
    wheel = state(7, 3, [], [*WHEEL_5, (5, 6)])
    good = explain(wheel)
    assert good.check(wheel)
    for bad in (
        replace(good, cannot_link=good.cannot_link[1:]),
        replace(good, cannot_link=(*good.cannot_link, (5, 6))),  # not irreducible
        replace(good, cannot_link=(*good.cannot_link, (1, 6)), irreducible=False),  # not given
        replace(good, must_link=((0, 1),)),
        replace(good, n_clusters=2),
    ):
        assert not bad.check(wheel)
    assert replace(good, cannot_link=(*good.cannot_link, (5, 6)), irreducible=False).check(wheel)


def test_description_base():
    assert "1 - 5 - 3" in MustLinkPath((0, 4, 2)).describe(base=1)
    clique = explain(state(4, 2, [(2, 3)], [(0, 1), (0, 2), (1, 3)]))
    assert "must-links 3 - 4" in clique.describe(base=1)
    cycle = explain(state(5, 2, [], CYCLE_5)).describe(base=1)
    assert all(str(point) in cycle for point in range(1, 6))
    assert "(0" not in cycle
    assert "(5, 6)" in explain(state(6, 3, [], WHEEL_5)).describe(base=1)


def test_contradiction_in_large_group():
    n = 300_000
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    problem = state(n, 3, chain, [(10, n - 10), (500, 540)])
    proof = explain(problem)
    assert proof == MustLinkPath(tuple(range(500, 541)))
    assert proof.check(problem)
