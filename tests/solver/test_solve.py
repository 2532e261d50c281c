"""`solve` from end to end: exact on small instances, honest about everything else."""

from __future__ import annotations

import json
import math
import threading
import time
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from certikmeans import InputError, Problem, Status, StopReason, StopSignal, events, solve
from certikmeans.bounds.registry import BOUNDS
from certikmeans.events import (
    BoundImproved,
    Finished,
    IncumbentFound,
    StageFinished,
    StageStarted,
)
from certikmeans.heuristics import default
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.testing.instances import feasible_problem, infeasible_problem
from certikmeans.testing.oracle import brute_force, exact_cost, respects
from tests.clock import timed, within


@pytest.mark.parametrize("seed", range(150))
def test_small_instances_against_brute_force(seed):
    problem = feasible_problem(seed, min_clusters=1)
    result = solve(problem, seed=seed, jobs=1)
    optimum = brute_force(problem)
    assert respects(result.labels, problem.must_link, problem.cannot_link)
    exact = exact_cost(problem.points, problem.weights, result.labels)
    scatter = exact_cost(problem.points, problem.weights, [0] * problem.n_points)
    assert exact <= Fraction(result.cost)
    assert Fraction(result.cost) - exact <= Fraction(1e-13) * scatter
    assert Fraction(result.lower_bound) <= optimum[0]
    assert result.bound in (*BOUNDS, "trivial")
    # Seven points: the default budget must find the optimum itself.
    assert exact - optimum[0] <= Fraction(1e-12) * scatter


@pytest.mark.parametrize("seed", range(50))
def test_infeasible_has_proof(seed):
    problem = infeasible_problem(seed)
    result = solve(problem, seed=seed, jobs=1)
    assert brute_force(problem) is None
    assert result.status is Status.INFEASIBLE
    assert result.stop_reason is StopReason.PROVEN_INFEASIBLE
    assert result.labels is None
    assert result.infeasibility.check(problem)


@pytest.mark.parametrize("seed", range(30))
def test_as_many_clusters_as_groups_or_more(seed):
    # What feasible_problem leaves out: there is little to decide, and nothing may go wrong.
    rng = np.random.default_rng(seed)
    n_points = int(rng.integers(1, 6))
    points, chain = rng.normal(size=(n_points, 2)), [(i, i + 1) for i in range(n_points - 1)]
    joined, apart = (chain, []) if seed % 2 else (chain[:1], chain[1:2])
    problem = Problem.from_data(
        points, int(rng.integers(max(1, n_points - 1), n_points + 1)),
        must_link=joined, cannot_link=apart,
    )  # fmt: skip
    result = solve(problem, seed=seed, jobs=1)
    optimum, _ = brute_force(problem)
    assert result.status is Status.OPTIMAL
    assert Fraction(result.lower_bound) <= optimum <= Fraction(result.cost)


@pytest.mark.parametrize("scale", [5e-59, 5e-31, 5e29, 5e55])
@pytest.mark.parametrize("seed", range(12))
def test_data_of_any_size(seed, scale):
    for number in range(100):
        small = feasible_problem(seed + 100 * number, largest=6)
        shifted = small.points - small.points.mean(axis=0)
        largest = float(np.abs(shifted).max())
        if largest > 1e-6:
            break
    assert largest > 1e-6
    problem = Problem.from_data(
        shifted * (scale / largest),
        small.n_clusters,
        must_link=small.must_link,
        cannot_link=small.cannot_link,
        weights=small.weights * 1e-9 if seed % 2 else small.weights * 1e9,
    )
    result = solve(problem, seed=seed, jobs=1, gap=1e-6, time_limit=5)
    optimum, _ = brute_force(problem)
    assert Fraction(result.lower_bound) <= optimum
    assert exact_cost(problem.points, problem.weights, result.labels) <= Fraction(result.cost)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(3)
    points = np.concatenate([rng.normal(size=(40, 2)) + shift for shift in (0, 4, 8)])
    labels = np.repeat([0, 1, 2], 40)
    pairs = rng.integers(0, 120, size=(60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return Problem.from_data(points, 3, must_link=pairs[same], cannot_link=pairs[~same])


def test_repeatable_for_any_thread_count(blobs):
    first = solve(blobs, seed=5, jobs=1)
    for jobs in (1, 2, 3):
        again = solve(blobs, seed=5, jobs=jobs)
        assert np.array_equal(first.labels, again.labels)
        assert first.cost == again.cost
        assert np.array_equal(first.centers, again.centers)


def test_result_is_complete_and_plain(blobs):
    result = solve(blobs)
    data = json.loads(result.to_json())
    assert data["cost"] == result.cost
    assert data["labels"] == result.labels.tolist()
    assert data["n_must_link"] == len(blobs.must_link)
    assert data["seconds"]["total"] >= sum(
        seconds for stage, seconds in data["seconds"].items() if stage != "total"
    )
    assert data["gap"] == pytest.approx((result.cost - result.lower_bound) / result.cost)
    assert data["status"] == "feasible" or result.gap <= 1e-3
    assert np.allclose(
        result.centers, [blobs.points[result.labels == k].mean(axis=0) for k in range(3)]
    )


def test_labels_are_numbered_by_first_appearance(blobs):
    labels = solve(blobs, seed=9).labels
    _, first = np.unique(labels, return_index=True)
    assert (np.diff(first) > 0).all()


@pytest.mark.parametrize(
    ("points", "k", "pairs", "cost"),
    [
        ([[1.0], [2.0], [6.0]], 1, {}, 14.0),
        ([[1.0], [2.0], [6.0]], 3, {}, 0.0),
        ([[1.0], [1.0], [1.0]], 2, {}, 0.0),
        ([[1.0], [1.0], [1.0]], 3, {"cannot_link": [(0, 1), (0, 2), (1, 2)]}, 0.0),
        ([[0.0], [1.0], [5.0]], 2, {"must_link": [(0, 1), (1, 2)]}, 14.0),
        ([[7.0, 7.0]], 1, {}, 0.0),
        ([[0.0, 1.0], [2.0, 1.0], [9.0, 1.0]], 2, {}, 2.0),
    ],
)
def test_edge_cases(points, k, pairs, cost):
    result = solve(Problem.from_data(points, k, **pairs))
    assert result.cost == pytest.approx(cost, abs=1e-12)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-3
    assert np.isfinite(result.centers).all()
    assert result.centers.shape == (k, len(points[0]))


def test_meeting_the_trivial_bound_is_a_proof():
    problem = Problem.from_data([[0.0], [2.0], [9.0]], 2, must_link=[(0, 1)])
    result = solve(problem)
    assert (result.status, result.stop_reason) == (Status.OPTIMAL, StopReason.GAP_REACHED)
    assert result.gap <= 1e-12


def test_event_order(blobs):
    events = []
    result = solve(blobs, callbacks=[events.append])
    assert isinstance(events[-1], Finished)
    assert events[-1].result is result
    costs = [event.cost for event in events if isinstance(event, IncumbentFound)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == result.cost
    bounds = [event.lower_bound for event in events if isinstance(event, BoundImproved)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == result.lower_bound
    times = [event.seconds for event in events]
    assert times == sorted(times)
    started = [event.stage for event in events if isinstance(event, StageStarted)]
    finished = [event.stage for event in events if isinstance(event, StageFinished)]
    assert started == finished == ["presolve", "heuristics", "bounds"]


def test_rounding_above_cost_stops():
    # The two heavy points are a hair apart: what they cost together is below one rounding error
    # of their weights times the distance of the others.
    points, weights = [[0.0], [1e-9], [1.0], [2.0]], [1e12, 1e12, 1.0, 1.0]
    result = solve(Problem.from_data(points, 3, weights=weights))
    assert result.stop_reason is StopReason.ROUNDING
    assert result.status is Status.FEASIBLE
    assert 0.0 < result.cost < 1e-6
    assert 0.0 <= result.lower_bound <= result.cost
    assert "similar size" in result.advice


def test_time_in_listeners_does_not_count(blobs, monkeypatch):
    clock = SimpleNamespace(now=0.0)  # ticks at every look, and jumps in the listener
    n_events = 0

    def now():
        clock.now += 1e-3
        return clock.now

    def slow(event):
        nonlocal n_events
        if isinstance(event, StageStarted):
            n_events += 1
            clock.now += 1000.0

    monkeypatch.setattr(events, "CLOCK", SimpleNamespace(now=now, excluded=lambda: 0.0))
    result = solve(blobs, callbacks=[slow])
    assert n_events == 3
    assert clock.now > 3000.0
    assert result.seconds["total"] < 1000.0


def test_listener_error_propagates(blobs):
    def broken(event):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        solve(blobs, callbacks=[broken])


def hard_problem(n=3000, k=12):
    rng = np.random.default_rng(0)
    return Problem.from_data(rng.uniform(size=(n, 6)), k)


@timed(2.0)
def test_time_limit_returns_the_best_so_far(seconds):
    solve(hard_problem(50, 3), gap=0.2)  # compile outside the clock
    with within(seconds):
        result = solve(hard_problem(), time_limit=0.5)
    assert (result.status, result.stop_reason) == (Status.FEASIBLE, StopReason.TIME_LIMIT)
    assert result.labels is not None
    assert math.isfinite(result.gap)


def test_heuristics_leave_time_for_the_proof(blobs, monkeypatch):
    class Endless(DefaultSearch):
        def search(self, ctx):
            labels = super().search(ctx)
            while not ctx.finished():
                time.sleep(0.01)
            return labels

    monkeypatch.setattr(default, "DefaultSearch", Endless)
    result = solve(blobs, time_limit=4)
    assert result.status is Status.OPTIMAL
    assert result.bound == "cluster"


def test_interrupt_returns_the_best_so_far():
    stop = StopSignal()
    timer = threading.Timer(0.3, stop.interrupt)
    timer.start()
    result = solve(hard_problem(), stop=stop)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.labels is not None


def test_interrupted_before_start(blobs):
    stop = StopSignal()
    stop.interrupt()
    result = solve(blobs, stop=stop)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert respects(result.labels, blobs.must_link, blobs.cannot_link)


def test_warm_starts(blobs):
    best = solve(blobs)
    stop = StopSignal()
    stop.interrupt()
    kept = solve(blobs, start_labels=best.labels, stop=stop)
    assert kept.cost == best.cost
    again = solve(blobs, initial_centers=best.centers, seed=1)
    assert again.cost <= best.cost * (1 + 1e-12)


@pytest.mark.parametrize(
    ("start", "what"),
    [
        ({"start_labels": [0, 1]}, "expected 120 whole numbers"),
        ({"start_labels": np.zeros(120)}, "whole numbers"),
        ({"start_labels": np.full(120, 3)}, "point 0 has label 3"),
        ({"start_labels": np.zeros(120, dtype=int)}, "share cluster 0, but must not"),
        ({"start_labels": np.arange(120) % 3}, "must share one"),
        ({"initial_centers": [[0.0, 0.0]]}, "shape (3, 2)"),
        ({"initial_centers": np.full((3, 2), np.nan)}, "finite"),
        ({"initial_centers": "x"}, "not a table of numbers"),
    ],
)
def test_invalid_warm_starts(blobs, start, what):
    with pytest.raises(InputError) as caught:
        solve(blobs, **start)
    assert what in str(caught.value)


def test_undecided_feasibility(monkeypatch):
    # Feasible labels that are not found in time are neither a labelling nor a proof.
    from certikmeans.presolve import feasibility
    from certikmeans.presolve.coloring import ColoringResult

    monkeypatch.setattr(
        feasibility, "find_coloring", lambda *_: ColoringResult("undecided", None, 0)
    )
    problem = Problem.from_data([[0.0], [1.0], [2.0]], 2, cannot_link=[(0, 1)])
    result = solve(problem)
    assert result.status is Status.UNKNOWN
    assert result.labels is None
    assert result.to_dict()["cost"] is None
    known = solve(problem, start_labels=[0, 1, 1])
    assert known.status is not Status.UNKNOWN
    assert known.cost == pytest.approx(0.5)


def test_array_instead_of_problem():
    with pytest.raises(InputError, match="problem: expected a Problem, got ndarray") as caught:
        solve(np.eye(3))
    assert "Problem.from_data" in caught.value.hint


@pytest.mark.parametrize("n_points", [3_000, 45_000])
def test_no_time_returns_descent_labels(n_points):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(8, 3)) * 20.0
    classes = rng.integers(8, size=n_points)
    points = centers[classes] + rng.normal(size=(n_points, 3))
    result = solve(Problem.from_data(points, 8), time_limit=1e-9)
    spread = ((points - points.mean(axis=0)) ** 2).sum()
    assert result.stop_reason == "time_limit"
    assert result.cost < 0.2 * spread
