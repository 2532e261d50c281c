"""Every method for a component with cycles, forced one at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certikmeans.assignment import AssignmentParams, CannotLinkAssigner, dense_components, layout
from certikmeans.kernels.assignment import ELIMINATE, MATCH, SEARCH
from certikmeans.stop import StopSignal
from tests.assignment.helpers import (
    any_feasible_labels,
    build_graph,
    build_problem,
    is_feasible,
    oracle,
    random_edges,
)
from tests.clock import timed, within

CYCLIC = ("cycle", "wheel", "dense", "clique with tails", "several")
seeds = st.integers(0, 2**32 - 1)


NO_SEARCH = AssignmentParams(short_search_work=0, long_search_work=0, max_search_work=-1)


def assign_costs(problem, feasible_labels, costs, **settings):
    return CannotLinkAssigner(problem, feasible_labels, **settings).assign_costs(costs)


def draw(seed, shape, sizes=(4, 9)):
    rng = np.random.default_rng(seed)
    feasible_labels = None
    while feasible_labels is None:
        n_clusters, n = int(rng.integers(2, 6)), int(rng.integers(*sizes))
        edges = random_edges(shape, n, n_clusters, rng)
        problem = build_problem(np.zeros((n, 1)), np.ones(n), edges, n_clusters)
        feasible_labels = any_feasible_labels(problem.graph, n_clusters, seed)
    costs = rng.integers(0, 4, size=(n, n_clusters)).astype(float)
    if seed % 3:
        costs = rng.random((n, n_clusters)) * 10.0 ** rng.integers(-3, 4)
    if seed % 2:
        costs[rng.random(costs.shape) < 0.3] = np.inf
    return problem, feasible_labels, costs


def check(problem, answer, costs):
    best = oracle(problem.graph, costs)
    assert is_feasible(problem.graph, answer.labels)
    assert answer.exact
    if best is None:
        assert answer.cost == answer.lower_bound == np.inf
    else:
        assert math.isclose(answer.cost, best, rel_tol=1e-12)
        assert Fraction(answer.lower_bound) <= best
        assert answer.lower_bound >= float(best) * (1 - 1e-9)


@pytest.mark.parametrize("method", [ELIMINATE, SEARCH], ids=["eliminate", "search"])
@pytest.mark.parametrize("shape", CYCLIC)
def test_method_is_exact(method, shape):
    @settings(max_examples=60, deadline=None, database=None)
    @given(seed=seeds)
    def run(seed):
        problem, feasible_labels, costs = draw(seed, shape)
        check(problem, assign_costs(problem, feasible_labels, costs, method=method), costs)

    run()


def test_matching_is_exact_on_cliques():
    @settings(max_examples=80, deadline=None, database=None)
    @given(seed=seeds, shape=st.sampled_from(["clique", "clique with tails"]))
    def run(seed, shape):
        problem, feasible_labels, costs = draw(seed, shape, sizes=(3, 8))
        check(problem, assign_costs(problem, feasible_labels, costs, method=MATCH), costs)

    run()


@pytest.mark.parametrize("tables", [True, False], ids=["elimination", "programs"])
def test_methods_after_short_search(tables):
    # Without a search the component is solved by elimination or the integer program.
    params = NO_SEARCH if tables else replace(NO_SEARCH, max_total_entries=0)
    finished = 0
    for seed in range(40):
        problem, feasible_labels, costs = draw(seed, "dense", sizes=(6, 9))
        answer = assign_costs(
            problem, feasible_labels, costs, exact_time_limit=10.0, method=SEARCH, params=params
        )
        best = oracle(problem.graph, costs)
        assert is_feasible(problem.graph, answer.labels)
        if best is None:
            assert answer.cost == np.inf
        else:
            assert math.isclose(answer.cost, best, rel_tol=1e-12)
            assert Fraction(answer.lower_bound) <= best
            finished += answer.exact
            assert answer.exact or not tables
    assert finished > 5


def test_huge_component_uses_initial_labels():
    # Multipliers of hundreds of thousands of cannot-links would take longer than a time limit.
    params = AssignmentParams(max_multipliers=0)
    dearer = 0
    for seed in range(40):
        problem, feasible_labels, costs = draw(2 * seed, "dense", sizes=(6, 9))  # even: all finite
        answer = assign_costs(problem, feasible_labels, costs, method=SEARCH, params=params)
        best = oracle(problem.graph, costs)
        assert is_feasible(problem.graph, answer.labels)
        assert Fraction(answer.lower_bound) <= best <= Fraction(answer.cost) * Fraction(1 + 1e-12)
        dearer += answer.cost > float(best) * (1 + 1e-9)
    assert dearer > 5


def test_heuristic_labels_are_not_claimed_exact():
    unproven, dearer = 0, 0
    for seed in range(150):
        problem, feasible_labels, costs = draw(2 * seed, "dense", sizes=(6, 9))  # even: all finite
        answer = assign_costs(
            problem, feasible_labels, costs, exact_time_limit=0.0, method=SEARCH, params=NO_SEARCH
        )
        best = oracle(problem.graph, costs)
        assert is_feasible(problem.graph, answer.labels)
        assert Fraction(answer.lower_bound) <= best
        assert answer.cost >= float(best) * (1 - 1e-12)
        assert answer.exact <= math.isclose(answer.cost, best, rel_tol=1e-12)
        unproven += not answer.exact
        dearer += answer.cost > float(best) * (1 + 1e-9)
    assert unproven > 10
    assert dearer < unproven


def test_undecided_is_not_called_infeasible():
    # An odd cycle with two of its three labels: infeasible, but only a search can prove it.
    problem = build_problem(np.zeros((7, 1)), np.ones(7), random_edges("cycle", 7, 3, None), 3)
    costs = np.ones((7, 3))
    costs[:, 2] = np.inf
    feasible_labels = any_feasible_labels(problem.graph, 3)
    settings = {"exact_time_limit": 0.0, "method": SEARCH}
    decided = assign_costs(problem, feasible_labels, costs, **settings)
    assert (decided.cost, decided.lower_bound, decided.exact) == (np.inf, np.inf, True)
    answer = assign_costs(problem, feasible_labels, costs, params=NO_SEARCH, **settings)
    assert answer.cost == np.inf
    assert answer.lower_bound < np.inf
    assert not answer.exact
    assert is_feasible(problem.graph, answer.labels)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_integer_program_is_optimal(seed):
    problem, feasible_labels, costs = draw(seed, "dense", sizes=(5, 9))
    built = layout.build_layout(problem.graph, problem.n_clusters, feasible_labels, method=SEARCH)
    for cyclic_component in range(len(built.cores.method)):
        core, program = core_program(built, cyclic_component, costs, feasible_labels)
        core_labels = program.labels(10.0)
        multipliers = program.clique_multipliers(10.0)
        best = least_core_cost(core)
        if best == np.inf:
            assert core_labels is None
        else:
            assert core_labels is not None
            value = core.costs[np.arange(len(core_labels)), core_labels].sum()
            assert math.isclose(best, value)
        assert multipliers is None or (multipliers >= 0).all()


def core_program(layout, cyclic_component, costs, feasible_labels):
    component = np.flatnonzero(layout.graph.cyclic_component == cyclic_component)[0]
    first, last = layout.graph.starts[component], layout.graph.starts[component + 1]
    unary = costs[first:last].copy()
    n_core = layout.cores.start[cyclic_component + 1] - layout.cores.start[cyclic_component]
    gathered = np.empty((n_core, costs.shape[1]))
    dense_components.gather_core(layout.cores, cyclic_component, unary, gathered)
    component = dense_components.DenseComponent(
        layout, cyclic_component, gathered, feasible_labels[first:last], feasible_labels[first:last]
    )
    return component.core, component._program()


def least_core_cost(core):
    starts, link = core.link_start, core.link
    edges = [(v, int(u)) for v in range(len(core.costs)) for u in link[starts[v] : starts[v + 1]]]
    graph, order = build_graph(len(core.costs), edges)
    best = oracle(graph, core.costs[order])
    return np.inf if best is None else float(best)


def dense_problem(n, n_clusters, n_pairs, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    pairs = set()
    while len(pairs) < n_pairs:
        u, v = sorted(rng.integers(n, size=2).tolist())
        if labels[u] != labels[v]:
            pairs.add((u, v))
    points = rng.normal(size=(n, 2)) + 0.3 * labels[:, None]
    problem = build_problem(points, np.ones(n), sorted(pairs), n_clusters)
    _, order = build_graph(n, sorted(pairs))
    return problem, labels[order], rng.normal(size=(n_clusters, 2))


@pytest.mark.parametrize("seed", range(3))
@timed(20.0)
def test_time_limit_of_dense_component(seed, seconds):
    problem, feasible_labels, centers = dense_problem(60, 5, 300, seed)
    quick = CannotLinkAssigner(problem, feasible_labels, exact_time_limit=0.0).assign(centers)
    with within(seconds):  # generous: other processes may be running
        answer = CannotLinkAssigner(problem, feasible_labels, exact_time_limit=1.0).assign(centers)
    for found in (quick, answer):
        assert is_feasible(problem.graph, found.labels)
        assert found.lower_bound <= found.cost
    assert quick.lower_bound <= answer.cost * (1 + 1e-12)
    assert answer.lower_bound <= quick.cost * (1 + 1e-12)
    assert answer.cost <= quick.cost * (1 + 1e-12)


def test_interrupted_labels_are_feasible():
    problem, feasible_labels, centers = dense_problem(60, 5, 300, 7)
    stop = StopSignal()
    stop.interrupt()
    answer = CannotLinkAssigner(problem, feasible_labels, exact_time_limit=1e9).assign(
        centers, stop=stop
    )
    assert is_feasible(problem.graph, answer.labels)
    assert answer.lower_bound <= answer.cost


def test_step_counts_changes_of_searched_components():
    problem, feasible_labels, centers = dense_problem(40, 4, 120, 1)
    solver = CannotLinkAssigner(problem, feasible_labels)
    labels = feasible_labels.copy()
    step = solver.step(centers, labels)
    assert step.changed == np.count_nonzero(labels != feasible_labels)
    assert is_feasible(problem.graph, labels)
    distances = ((problem.points - centers[labels]) ** 2).sum(axis=1)
    assert math.isclose(step.cost, distances.sum(), rel_tol=1e-12)
    assert solver.step(centers, labels).changed == 0
