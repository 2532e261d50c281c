"""The grouped bound against enumeration in exact arithmetic."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.grouped import GroupedBound
from certikmeans.bounds.grouped.bound import GroupedWarmStart
from certikmeans.bounds.grouped.bundle import GroupedDual
from certikmeans.errors import InputError
from certikmeans.generate import gaussian_clusters, random_pairs
from certikmeans.parallel import TaskPool
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_bound
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import feasible_labellings
from tests.bounds.box_bound import box_bound_value
from tests.bounds.contexts import RecordingContext
from tests.clock import timed, within
from tests.contract.test_bounds import box_around, exact_clusters, exact_cost_if_inside


def reduced_of(seed, largest=6):
    """Problem, and what presolve made of it."""
    problem = feasible_problem(seed, largest=largest)
    return problem, presolve(problem, StopSignal())


def value_of(bound, reduced, domain, cutoff=np.inf, warm_start=None, ctx=None):
    state = bound.setup(BoundInput(reduced, None))
    return bound.compute(state, domain, cutoff, ctx or BoundContext(), warm_start)


def random_part(done, rng):
    """A part that holds a random labelling: boxes around its means, sometimes a viable table."""
    reduced = done.reduced
    labels = rng.permutation(reduced.n_clusters)[done.feasible_labels]
    lower, upper = box_around(rng, reduced, labels)
    allowed = None
    if rng.random() < 0.4:
        allowed = rng.random((reduced.n_groups, reduced.n_clusters)) < 0.85
        allowed[np.arange(reduced.n_groups), labels] = True
    return Domain(lower, upper, allowed)


def check_below(value, problem, done, domain):
    costs = list(labellings_in(problem, done, domain))
    assert costs, "nothing to compare with"
    assert Fraction(value) <= min(costs)


def labellings_in(problem, done, domain):
    """Exact costs of all labellings in the part, under every numbering of the clusters."""
    for labels in feasible_labellings(problem):
        groups = done.presolve_labels(np.array(labels))
        clusters = exact_clusters(done.reduced, groups)
        for order in permutations(range(problem.n_clusters)):
            renamed = np.array(order)[groups]
            allowed = (
                domain.allowed is None or domain.allowed[np.arange(len(renamed)), renamed].all()
            )
            cost = exact_cost_if_inside(clusters, order, domain) if allowed else None
            if cost is not None:
                yield cost


@pytest.mark.parametrize("seed", range(100))
def test_root(seed):
    # Groups of at most two samples, so that the multipliers matter on tiny instances.
    check_bound(GroupedBound(max_group_size=2), feasible_problem(seed, largest=6))
    check_bound(GroupedBound(), feasible_problem(seed, largest=6))


@pytest.mark.parametrize("seed", range(200))
def test_random_boxes_and_allowed_pairs(seed):
    problem, done = reduced_of(seed, largest=5)
    rng = np.random.default_rng(seed)
    domain = random_part(done, rng)
    bound = GroupedBound(
        max_group_size=int(rng.integers(1, 4)),
        node_limit=int(rng.choice([0, 2, 10_000])),
        quick_limit=int(rng.choice([0, 50])),
    )
    check_below(value_of(bound, done.reduced, domain).value, problem, done, domain)


@pytest.mark.parametrize("seed", range(80))
def test_valid_for_any_multipliers(seed):
    # Multipliers of a size that makes rounding of their sum visible.
    problem, done = reduced_of(seed, largest=5)
    rng = np.random.default_rng(seed)
    domain = random_part(done, rng)
    bound = GroupedBound(max_group_size=1, max_evaluations=1)
    groups = bound.setup(BoundInput(done.reduced, None))
    spread = np.ptp(done.reduced.points) * done.reduced.weights.max()
    nu = rng.normal(size=(groups.n_sets, *domain.lower.shape)) * spread
    nu *= rng.choice([1e-2, 1.0, 1e6])
    nu -= nu.mean(axis=0)
    warm_start = GroupedWarmStart(nu, np.full(done.reduced.n_groups, -1))
    value = bound.compute(groups, domain, np.inf, BoundContext(), warm_start).value
    check_below(value, problem, done, domain)


@pytest.mark.parametrize("seed", range(60))
def test_at_least_sample_bound(seed):
    # The paper's inequality. With zero multipliers and a group for each sample it is the sample
    # bound; larger groups and better multipliers only raise it.
    _, done = reduced_of(seed, largest=9)
    domain = random_part(done, np.random.default_rng(seed))
    assigner = CannotLinkAssigner(done.reduced, done.feasible_labels)
    sample = box_bound_value(done.reduced, assigner, domain)
    plain = value_of(GroupedBound(max_group_size=1, max_evaluations=1), done.reduced, domain).value
    full = value_of(GroupedBound(), done.reduced, domain).value
    assert np.isfinite(full)  # the part holds a labelling
    slack = 1e-6 * sample + 1e-11 * np.sum(done.reduced.weights @ done.reduced.points**2)
    assert plain >= sample - slack
    assert full >= plain - slack
    if done.reduced.graph.n_linked == 0:
        assert plain == pytest.approx(sample, abs=slack)


def instance(n_points=120, n_pairs=20, n_features=2, seed=3):
    points, classes = gaussian_clusters(n_points, n_features, 3, spread=2.0, seed=seed)
    must, cannot = random_pairs(classes, n_pairs, n_pairs, seed=seed)
    problem = Problem.from_data(points, 3, must_link=must, cannot_link=cannot)
    return presolve(problem, StopSignal())


def test_bound_is_monotone():
    reduced = instance().reduced
    root = Domain.root(reduced)
    values = [
        value_of(GroupedBound(max_evaluations=count), reduced, root).value for count in (1, 2, 5, 9)
    ]
    assert values == sorted(values)
    assert values[-1] > values[0]
    history = value_of(GroupedBound(), reduced, root).numbers["history"]
    assert history == sorted(history)


def test_warm_start_of_child():
    reduced = instance().reduced
    root = Domain.root(reduced)
    parent = value_of(GroupedBound(), reduced, root)
    lower, upper = root.lower.copy(), root.upper.copy()
    upper[0, 0] = 0.0
    child = value_of(
        GroupedBound(max_evaluations=1), reduced, Domain(lower, upper), warm_start=parent.warm_start
    )
    assert child.value >= parent.value * (1.0 - 1e-5)
    for centers in child.centers:
        assert centers.shape == lower.shape
        assert (centers >= lower).all()
        assert (centers <= upper).all()


def test_converges_with_box_size():
    done = instance()
    reduced = done.reduced
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(3, reduced.n_dims)) * 5.0
    exact = CannotLinkAssigner(reduced, done.feasible_labels).assign(centers).cost
    gaps = []
    for half in (1.0, 0.1, 0.01, 0.0):
        domain = Domain(centers - half, centers + half)
        gaps.append(exact - value_of(GroupedBound(), reduced, domain).value)
    assert gaps == sorted(gaps, reverse=True)
    assert 0.0 <= gaps[-1] <= 1e-9 * exact


def test_value_independent_of_workers():
    reduced = instance(400, 60).reduced
    root = Domain.root(reduced)
    alone = value_of(GroupedBound(max_evaluations=3), reduced, root)
    for workers in (1, 2):
        with ThreadPoolExecutor(workers) as executor:
            shared = BoundContext(pool=TaskPool(executor, n_threads=workers))
            found = value_of(GroupedBound(max_evaluations=3), reduced, root, ctx=shared)
        assert found.value == alone.value
        assert np.array_equal(found.warm_start.nu, alone.warm_start.nu)


def test_tasks_pickle():
    from certikmeans.bounds.grouped.bundle import solve_chunk
    from certikmeans.kernels.grouped.solve import SearchLimits
    from tests.bounds.grouped_oracle import random_group

    chunk, nu, _ = random_group(1)
    task = (chunk, nu[None], np.full(len(chunk.points), -1), SearchLimits(0.0, 50, 100))
    solve, arguments = pickle.loads(pickle.dumps((solve_chunk, task)))
    solutions = pickle.loads(pickle.dumps(solve(*arguments)))
    assert solutions.bounds[0] == solve_chunk(*task).bounds[0]


def test_interrupted_evaluation_is_not_saved(monkeypatch):
    """An evaluation interrupted by a stop is repeated on resume."""
    reduced, compute = instance().reduced, GroupedDual.compute
    bound = GroupedBound()
    state, whole = bound.setup(BoundInput(reduced, None)), Domain.root(reduced)
    full = bound.compute(state, whole, np.inf, BoundContext(at_root=True))
    for number in (1, 2, 3):
        stop, done = StopSignal(), []

        def until(self, *given, stop=stop, done=done, number=number):
            done.append(compute(self, *given))
            if len(done) == number:
                stop.interrupt()
            return done[-1]

        monkeypatch.setattr(GroupedDual, "compute", until)
        ctx = RecordingContext(stop, at_root=True)
        found = bound.compute(state, whole, np.inf, ctx)
        assert len(done) >= number
        assert len(ctx.checkpoints) == number - 1
        monkeypatch.setattr(GroupedDual, "compute", compute)
        again = bound.compute(
            state,
            whole,
            np.inf,
            BoundContext(at_root=True),
            found.warm_start if number > 1 else None,
        )
        assert again.value == full.value
        assert again.numbers["history"] == full.numbers["history"]


def test_stops_at_cutoff_and_signal():
    reduced = instance().reduced
    root = Domain.root(reduced)
    full = value_of(GroupedBound(), reduced, root)
    early = value_of(GroupedBound(), reduced, root, cutoff=full.numbers["history"][0])
    assert early.numbers["evaluations"] == 1
    stop = StopSignal()
    stop.interrupt()
    bound = GroupedBound()
    state = bound.setup(BoundInput(reduced, None))
    for warm_start in (None, full.warm_start):
        stopped = bound.compute(state, root, np.inf, BoundContext(stop), warm_start)
        assert 0.0 <= stopped.value <= full.value


@pytest.mark.parametrize("limit", [1, None])
def test_single_cluster_is_exact(limit):
    points = np.arange(12.0).reshape(6, 2) ** 2
    done = presolve(Problem.from_data(points, 1), StopSignal())
    root = Domain.root(done.reduced)
    bound = GroupedBound(max_group_size=limit, max_evaluations=200)
    cost = np.sum((points - points.mean(axis=0)) ** 2)
    value = value_of(bound, done.reduced, root).value + done.reduced.offset
    assert value == pytest.approx(cost, rel=1e-3)
    assert value <= cost * (1.0 + 1e-12)


def test_infinite_only_if_infeasible():
    points = [[0.0], [1.0], [5.0], [9.0]]
    problem = Problem.from_data(points, 2, cannot_link=[(0, 1)])
    reduced = presolve(problem, StopSignal()).reduced
    root = Domain.root(reduced)
    allowed = np.ones((4, 2), dtype=bool)
    allowed[:2, 1] = False  # the linked ones come first
    domain = Domain(root.lower, root.upper, allowed)
    assert value_of(GroupedBound(), reduced, domain).value == np.inf
    # Three in a triangle and two clusters: no propagation sees it, the search does.
    triangle = Problem.from_data([*points, [4.0]], 3, cannot_link=[(0, 1), (1, 2), (0, 2)])
    reduced = presolve(triangle, StopSignal()).reduced
    root = Domain.root(reduced)
    allowed = np.ones((5, 3), dtype=bool)
    allowed[:, 2] = False
    domain = Domain(root.lower, root.upper, allowed)
    assert value_of(GroupedBound(), reduced, domain).value == np.inf
    weak = GroupedBound(node_limit=0)
    assert np.isfinite(value_of(weak, reduced, domain).value)


def test_empty_box():
    reduced = presolve(Problem.from_data([[0.0], [1.0], [5.0]], 2), StopSignal()).reduced
    root = Domain.root(reduced)
    upper = root.upper.copy()
    upper[1] = root.lower[1] - 1.0
    value = value_of(GroupedBound(), reduced, Domain(root.lower, upper)).value
    assert value == pytest.approx(14.0)


@pytest.mark.parametrize("seed", range(4))
def test_scip_bound(seed):
    pytest.importorskip("pyscipopt")
    reduced = instance(15, 2, seed=seed).reduced
    root = Domain.root(reduced)
    half = Domain(root.lower, np.where([[True], [False], [False]], 0.0, root.upper))
    results = [
        value_of(GroupedBound(solver=name, max_group_size=5, max_evaluations=1), reduced, half)
        for name in ("compiled", "scip")
    ]
    assert results[1].value == pytest.approx(results[0].value, rel=2e-2)
    assert results[1].value <= results[0].value


@timed(10.0)
def test_scip_time_limit(seconds):
    pytest.importorskip("pyscipopt")
    reduced = instance(60, 5).reduced
    bound = GroupedBound(solver="scip")
    state = bound.setup(BoundInput(reduced, None))
    with within(seconds):
        found = bound.compute(state, Domain.root(reduced), np.inf, BoundContext(StopSignal(0.5)))
    full = value_of(GroupedBound(), reduced, Domain.root(reduced))
    assert 0.0 <= found.value <= full.value


def test_unknown_solver():
    with pytest.raises(InputError, match="unknown solver"):
        GroupedBound(solver="guess")
