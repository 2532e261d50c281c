"""SDP bound: valid for any multipliers, tight on separated clusters, warm starts."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.sdp import SdpBound
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.interior_point import solve_interior_point
from certikmeans.bounds.sdp.model import MatrixMultipliers, SdpModel
from certikmeans.errors import InputError, MissingExtraError
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_bound
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import brute_force, exact_cost
from tests.bounds.sdp_cases import exact_costs, inaccurate_eigensolver, reduced_of, separated
from tests.clock import timed, within
from tests.published import published, stated


def root_bound(done, cutoff=np.inf, stop=None, warm_start=None, **options):
    bound = SdpBound(**options)
    state = bound.setup(BoundInput(done.reduced, None))
    domain = Domain.root(done.reduced)
    return bound.compute(state, domain, cutoff, BoundContext(stop or StopSignal()), warm_start)


def noise(n, d=5, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return reduced_of(Problem.from_data(rng.normal(size=(n, d)), k))


@pytest.mark.parametrize("seed", range(90))
def test_bound_below_all_labellings(seed):
    check_bound(SdpBound(max_iterations=200), feasible_problem(seed, largest=6))


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_clarabel_bound_below_all_labellings(seed):
    pytest.importorskip("clarabel")
    check_bound(SdpBound(solver="clarabel"), feasible_problem(seed, largest=6))


def random_multipliers(rng, model):
    """Random multipliers of any sign and size, with random cuts."""
    n = model.n_groups
    unit = model.total * 10.0 ** rng.integers(-8, 3) / max(model.mass, 1e-300)
    entries = rng.normal(size=(n, n)) * unit * model.mass / n
    if rng.random() < 0.5:
        entries = np.maximum(entries, 0.0)
    if rng.random() < 0.3:
        entries[rng.random((n, n)) < 0.2] *= 1e6
    cuts = np.empty((0, 3), dtype=np.int64)
    if n >= 3:
        cuts = np.array([rng.choice(n, 3, replace=False) for _ in range(rng.integers(0, 30))])
        cuts = cuts.reshape(-1, 3).astype(np.int64)
        cuts[rng.random(len(cuts)) < 0.3, 2] = -1
    return MatrixMultipliers(entries, cuts, rng.normal(size=len(cuts)) * unit * model.mass)


@pytest.mark.parametrize("seed", range(100))
def test_any_multipliers_give_valid_bound(seed):
    problem = feasible_problem(seed, largest=6)
    done = reduced_of(problem)
    least = min(exact_costs(problem, done))
    model = SdpModel.of(done.reduced)
    rng = np.random.default_rng(seed)
    for _ in range(15):
        value = safe_bound(model, random_multipliers(rng, model))
        assert np.isfinite(value)
        assert Fraction(value) <= least


@pytest.mark.parametrize("seed", range(40))
def test_valid_near_best_multipliers(seed):
    rng = np.random.default_rng(seed)
    problem = separated(rng, 1e6 * (seed % 2))
    done = reduced_of(problem)
    least = min(exact_costs(problem, done))
    model = SdpModel.of(done.reduced)
    n = model.n_groups
    admm = Admm(model)
    for _ in range(8):
        admm.iterate(50, StopSignal())
        admm.add_cuts(1e-6, 1000)
        best = admm.multipliers
        assert Fraction(safe_bound(model, best)) <= least
        for size in (1e-15, 1e-12, 1e-6):
            shaken = MatrixMultipliers(
                best.entries * (1.0 + size * rng.normal(size=(n, n))),
                best.cuts,
                best.cut_multipliers * (1.0 + size * rng.normal(size=len(best.cuts))),
            )
            assert Fraction(safe_bound(model, shaken)) <= least


@pytest.mark.parametrize("seed", range(40))
def test_valid_with_inaccurate_eigensolver(seed, monkeypatch):
    problem = feasible_problem(seed, largest=6)
    done = reduced_of(problem)
    least = min(exact_costs(problem, done))
    model = SdpModel.of(done.reduced)
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(np.linalg, "eigh", inaccurate_eigensolver(rng))
    for _ in range(10):
        assert Fraction(safe_bound(model, random_multipliers(rng, model))) <= least
        assert Fraction(safe_bound(model, MatrixMultipliers.zeros(model.n_groups))) <= least


def test_overflow_gives_zero():
    done = noise(5)
    model = SdpModel.of(done.reduced)
    cuts = np.array([[0, 1, 2]])
    for bad in (np.nan, np.inf, 1e308, 1e200):
        entries = np.zeros((5, 5))
        entries[0, 1] = entries[1, 0] = bad
        assert safe_bound(model, MatrixMultipliers(entries, cuts, np.zeros(1))) == 0.0
        assert safe_bound(model, MatrixMultipliers(np.zeros((5, 5)), cuts, np.array([bad]))) == 0.0


@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_one_cluster_exact(shift):
    rng = np.random.default_rng(1)
    problem = Problem.from_data(rng.normal(size=(30, 3)) + shift, 1, weights=rng.uniform(1, 5, 30))
    done = reduced_of(problem)
    exact = exact_cost(done.reduced.points, done.reduced.weights, np.zeros(30, dtype=int))
    value = root_bound(done).value
    assert Fraction(value) <= exact
    assert value == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("n_clusters", [5, 6])
def test_as_many_clusters_as_groups(n_clusters):
    done = reduced_of(Problem.from_data(np.eye(6), n_clusters, must_link=[(0, 1)]))
    assert root_bound(done).value == 0.0


def test_coincident_points():
    done = reduced_of(Problem.from_data(np.ones((6, 2)), 3, cannot_link=[(0, 1)]))
    assert root_bound(done).value == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_clarabel(seed):
    pytest.importorskip("clarabel")
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=16)
    cannot = [(s, t) for s, t in rng.integers(16, size=(8, 2)) if truth[s] != truth[t]]
    problem = Problem.from_data(
        rng.normal(size=(16, 3)), 3, cannot_link=cannot, weights=rng.uniform(0.2, 4.0, size=16)
    )
    done = reduced_of(problem)
    model = SdpModel.of(done.reduced)
    cuts = np.array([[0, 1, -1], [3, 4, 5], [2, 7, 9], [5, 6, 8]])
    for given in (cuts[:0], cuts):
        answer = solve_interior_point(model, given, StopSignal())
        assert safe_bound(model, answer.multipliers) <= answer.objective * (1.0 + 1e-6)
        assert safe_bound(model, answer.multipliers) == pytest.approx(answer.objective, rel=1e-5)
    ours = root_bound(done, cuts=False)
    theirs = root_bound(done, cuts=False, solver="clarabel")
    assert ours.value == pytest.approx(theirs.value, rel=1e-4)
    assert root_bound(done).value == pytest.approx(
        root_bound(done, solver="clarabel").value, rel=1e-3
    )


@pytest.mark.parametrize("seed", range(4))
def test_tight_on_separated_clusters(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(4), 12)
    points = 8.0 * np.eye(4)[truth] + rng.normal(size=(48, 4))
    must = [(0, 1), (12, 13)]
    done = reduced_of(Problem.from_data(points, 4, must_link=must, cannot_link=[(0, 12), (20, 30)]))
    found = root_bound(done)
    groups = done.presolve_labels(truth)
    cost = float(exact_cost(done.reduced.points, done.reduced.weights, groups))
    assert cost * (1.0 - 1e-3) <= found.value <= cost
    means = [np.average(done.reduced.points[groups == k], axis=0,
                        weights=done.reduced.weights[groups == k]) for k in range(4)]  # fmt: skip
    centers = found.centers[0]
    assert np.allclose(sorted(centers.tolist()), sorted(np.array(means).tolist()), atol=1e-6)
    assert sorted(found.fractional.weights) == pytest.approx([1.0] * 4, abs=1e-2)


@pytest.mark.parametrize("seed", range(4))
def test_cuts_improve_bound(seed):
    done = noise(30, seed=seed)
    without = root_bound(done, cuts=False)
    assert len(without.leaf.evidence.cuts) == 0
    with_cuts = root_bound(done)
    assert with_cuts.value >= without.value * (1.0 - 1e-6)
    assert with_cuts.value > without.value  # noise is where they are needed


def test_warm_start_keeps_bound():
    done = noise(40)
    first = root_bound(done, max_iterations=100)
    again = root_bound(done, cutoff=0.999 * first.value, warm_start=first.warm_start)
    assert again.value >= first.value
    assert again.numbers["iterations"] == 0
    assert root_bound(done, warm_start=first.warm_start, max_iterations=25).value >= first.value


@pytest.mark.parametrize("seed", range(9))
def test_warm_start_mapped_to_child(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(10, 3)), rng.uniform(0.5, 2.0, size=10)
    pairs = {"cannot_link": [(0, 1), (1, 2), (3, 4)], "weights": weights}
    before = reduced_of(Problem.from_data(points, 3, must_link=[(5, 6)], **pairs))
    parent = root_bound(before, max_iterations=200)
    must, cannot = [(5, 6), (5, 7), (8, 0), (1, 9)][: 2 + seed % 3], pairs["cannot_link"]
    after = reduced_of(
        Problem.from_data(points, 3, must_link=must, cannot_link=[*cannot, (6, 9)], weights=weights)
    )
    group_of = np.empty(before.reduced.n_groups, dtype=np.int64)
    group_of[before.group_of_point] = after.group_of_point
    moved = SdpBound().map_warm_start(
        parent.warm_start, before.reduced, after.reduced, group_of, np.zeros((3, 3))
    )
    value = safe_bound(SdpModel.of(after.reduced), moved.proof)
    lost = after.reduced.offset - before.reduced.offset
    assert value + lost >= parent.value - 1e-9 * abs(parent.value)
    assert np.allclose(moved.admm_state.z @ after.reduced.weights, 1.0, atol=0.01)
    exact = min(
        exact_cost(after.reduced.points, after.reduced.weights, labels)
        for labels in _feasible_group_labels(after.reduced)
    )
    assert Fraction(root_bound(after, warm_start=moved).value) <= exact


def _feasible_group_labels(reduced):
    edges = reduced.graph.edges()
    stack = [()]
    while stack:
        labels = stack.pop()
        s = len(labels)
        if s == reduced.n_groups:
            yield labels
        else:
            stack += [
                (*labels, k)
                for k in range(min(max(labels, default=-1) + 2, reduced.n_clusters))
                if all(labels[u] != k for u, v in edges if v == s)
            ]


def test_stops_at_cutoff():
    done = noise(40)
    full = root_bound(done)
    early = root_bound(done, cutoff=0.9 * full.value)
    assert early.value >= 0.9 * full.value
    assert early.numbers["iterations"] < full.numbers["iterations"]


@timed(5.0)
def test_stops_on_signal(seconds):
    done = noise(300)
    stop = StopSignal()
    stop.interrupt()
    found = root_bound(done, stop=stop)
    assert found.numbers["iterations"] == 0
    assert found.value > 0.0  # the spectral bound comes for free
    with within(seconds):
        assert root_bound(done, stop=StopSignal(0.3)).value >= found.value


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(MissingExtraError, match="needs clarabel") as error:
        SdpBound(solver="clarabel")
    assert "certikmeans[sdp]" in error.value.hint
    assert root_bound(noise(6)).value >= 0.0  # our own solver needs nothing


def test_invalid_arguments():
    with pytest.raises(InputError, match="solver: 'mosek'"):
        SdpBound(solver="mosek")
    large = Problem.from_data(np.random.default_rng(0).normal(size=(2501, 2)), 2)
    assert "2501 groups" in SdpBound().unsupported_reason(reduced_of(large).reduced)
    with pytest.raises(InputError, match="2501 groups") as error:
        solve(large, bound="sdp")
    assert "auto" in error.value.hint


def test_tight_on_small_problem():
    problem = Problem.from_data([[0.0], [1.0], [5.0], [6.0], [20.0]], 3, cannot_link=[(0, 1)])
    done = reduced_of(problem)
    optimum = float(brute_force(problem)[0])
    assert done.postsolve_bound(root_bound(done).value) == pytest.approx(optimum, rel=1e-4)


CHOSEN = {"iris/ml_50_cl_50_0", "seeds/ml_0_cl_50_0", "wine/ml_0_cl_50_0", "wine/ml_100_cl_0_0"}


@pytest.mark.parametrize(
    "row",
    [row for row in published() if f"{row['dataset']}/{row['instance']}" in CHOSEN],
    ids=lambda row: f"{row['dataset']}/{row['instance']}",
)
def test_published_optima(row):
    done = reduced_of(stated(row))
    known = float(row["best_known_sse"])
    found = root_bound(
        done, cutoff=done.presolve_bound(known * (1.0 - 5e-4)), stop=StopSignal(20.0)
    )
    lower = done.postsolve_bound(found.value)
    assert lower <= known * (1.0 + 1e-9)
    assert lower >= known * (1.0 - 1e-3)
