"""Partition bound: valid for any partition into parts, failures, sizes."""

from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.partition import partition_bound, scheduler
from certikmeans.bounds.partition.parts import (
    PARTITION_PARAMS,
    PartitionParams,
    anticlusters,
    equal_share,
    first_size,
    next_size,
    part_size,
    shared_groups,
    split_into_parts,
)
from certikmeans.bounds.partition.scheduler import (
    CompactMultipliers,
    PartSpec,
    PartTask,
    round_mantissa,
    solve_part,
    solve_part_spec,
)
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.limits import weight_limits
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.parallel import TaskPool
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import brute_force
from tests.bounds.contexts import RecordingContext
from tests.bounds.partition_cases import least_cost, random_instance, some_labels, weights_add_up
from tests.bounds.sdp_cases import reduced_of


def blobs(n=120, d=6, k=3, seed=0, spread=1.0, **pairs):
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    points = 4.0 * rng.normal(size=(k, d))[truth] + spread * rng.normal(size=(n, d))
    done = reduced_of(Problem.from_data(points, k, **pairs))
    return done, done.presolve_labels(truth)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("size", [2, 3, 5])
def test_bound_below_all_labellings(seed, size):
    _, done, least = random_instance(seed)
    labels = some_labels(done, np.random.default_rng(seed))
    ctx = RecordingContext()
    found = partition_bound(done.reduced, labels, np.inf, ctx, size=size, seed=seed)
    assert found.value >= 0.0
    assert Fraction(found.value) <= least
    assert ctx.values == sorted(set(ctx.values))
    assert all(Fraction(value) <= least for value in ctx.values)
    assert found.failures == 0


@pytest.mark.parametrize("seed", range(60))
def test_split_with_uneven_components(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(10, 60)), int(rng.integers(2, 5))
    truth = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    points = rng.normal(size=(n, 3)) + 5.0 * rng.normal(size=(k, 3))[truth]
    ends = rng.integers(n, size=(n, 2))
    apart = ends[truth[ends[:, 0]] != truth[ends[:, 1]]][: int(rng.integers(1, n))]
    done = reduced_of(Problem.from_data(points, k, cannot_link=apart))
    for size in (3, 5, 8, 12):
        parts = split_into_parts(done.reduced, done.presolve_labels(truth), size, seed)
        assert weights_add_up(done.reduced, parts)
        seen = np.unique(np.concatenate([part.rows for part in parts]))
        assert np.array_equal(seen, np.arange(n))


@pytest.mark.parametrize("seed", range(40))
def test_weights_sum_exactly(seed):
    _, done, _ = random_instance(seed)
    labels = some_labels(done, np.random.default_rng(seed))
    for size in (1, 2, 3, 4, 100):
        parts = split_into_parts(done.reduced, labels, size, seed)
        assert weights_add_up(done.reduced, parts)
        seen = np.unique(np.concatenate([part.rows for part in parts]))
        assert np.array_equal(seen, np.arange(done.reduced.n_groups))


@pytest.mark.parametrize("seed", range(30))
def test_part_optima_below_whole(seed):
    """The inequality between costs of parts and of the whole, with rounded weights."""
    _, done, least = random_instance(seed, least_groups=4)
    labels = some_labels(done, np.random.default_rng(seed))
    parts = split_into_parts(done.reduced, labels, 3, seed)
    assert len(parts) > 1
    assert sum(least_cost(part.problem) for part in parts) <= least


@pytest.mark.parametrize("n_parts", [2, 3, 5, 6, 7, 49, 1000])
def test_equal_shares_below_weight(n_parts):
    rng = np.random.default_rng(n_parts)
    weights = np.concatenate(
        [rng.uniform(0.5, 2.0, 200), 10.0 ** rng.uniform(-12, 12, 200), 2.0 ** np.arange(-40, 40)]
    )
    shares = equal_share(weights, n_parts)
    for weight, share in zip(weights.tolist(), shares.tolist(), strict=True):
        assert n_parts * Fraction(share) <= Fraction(weight)
        assert n_parts * share >= weight * (1.0 - 1e-15)


def test_part_is_reduced_problem():
    pairs = [(0, 1), (1, 2), (2, 0), (5, 6), (7, 8), (8, 9), (20, 30), (31, 32)]
    done, labels = blobs(80, cannot_link=pairs, must_link=[(10, 11)])
    whole = {tuple(edge) for edge in done.reduced.graph.edges().tolist()}
    parts = split_into_parts(done.reduced, labels, 25)
    kept = 0
    for part in parts:
        graph = part.problem.graph
        edges = np.sort(part.rows[graph.edges()], axis=1)
        assert {tuple(edge) for edge in edges.tolist()} <= whole
        inside = {(u, v) for u, v in whole if u in part.rows and v in part.rows}
        assert {tuple(edge) for edge in edges.tolist()} == inside
        assert np.array_equal(part.problem.points, done.reduced.points[part.rows])
        degrees = np.diff(graph.indptr)
        assert np.all(degrees[: graph.n_linked] > 0)
        assert np.all(degrees[graph.n_linked :] == 0)
        assert np.all(graph.parents < np.arange(graph.n_linked))
        kept += len(edges)
    assert kept >= len(whole)  # small components stay whole


def test_large_components_split():
    chain, _ = blobs(60, cannot_link=[(i, i + 1) for i in range(50)])
    parts = split_into_parts(chain.reduced, np.zeros(60, dtype=np.int64), 15)
    assert max(len(part.rows) for part in parts) <= 24


@pytest.mark.parametrize("n_parts", [2, 5])
def test_anticluster_means(n_parts):
    done, labels = blobs(400)
    zeros = np.zeros(400, dtype=np.bool_)
    part_index = anticlusters(done.reduced, labels, n_parts, zeros, 3)
    assert np.array_equal(part_index, anticlusters(done.reduced, labels, n_parts, zeros, 3))
    sizes = np.bincount(part_index, minlength=n_parts)
    assert sizes.max() - sizes.min() <= done.reduced.n_clusters
    at_random = np.random.default_rng(0).permutation(part_index)
    assert huygens_loss(done.reduced, labels, part_index) < 0.05 * huygens_loss(
        done.reduced, labels, at_random
    )


def huygens_loss(problem, labels, part_index):
    """Loss of a partition by Huygens' theorem."""
    lost = 0.0
    for k in range(problem.n_clusters):
        mean = problem.points[labels == k].mean(axis=0)
        for t in np.unique(part_index):
            mine = problem.points[(labels == k) & (part_index == t)]
            if len(mine):
                lost += len(mine) * np.sum((mine.mean(axis=0) - mean) ** 2)
    return lost


def test_shared_groups():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(200, 4)), 50.0 + rng.normal(size=(4, 4)),
                             [[0.0, 0.0, 30.0, 0.0]]])  # fmt: skip
    done = reduced_of(Problem.from_data(points, 2))
    labels = done.presolve_labels(np.repeat([0, 1, 0], [200, 4, 1]))
    shared = shared_groups(done.reduced, labels, 50)
    few = done.group_of_point[200:]
    assert shared[few].all()
    assert shared.sum() < 15
    assert not shared_groups(done.reduced, labels, 205).any()
    parts = split_into_parts(done.reduced, labels, 50)
    assert all(np.isin(few, part.rows).all() for part in parts)
    found = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=50)
    clusters = [done.reduced.points[labels == k] for k in range(2)]
    cost = sum(float(np.sum((mine - mine.mean(axis=0)) ** 2)) for mine in clusters)
    assert 0.97 * cost <= found.value <= cost


@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_tight_on_separated_clusters(shift):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 50)
    points = 9.0 * np.eye(5)[truth] + rng.normal(size=(150, 5)) + shift
    done = reduced_of(Problem.from_data(points, 3, cannot_link=[(0, 60), (61, 120)]))
    labels = done.presolve_labels(truth)
    found = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=50)
    assert found.n_parts > 1
    cost = sum(
        ((points[truth == k] - points[truth == k].mean(axis=0)) ** 2).sum() for k in range(3)
    )
    assert 0.98 * cost <= found.value <= cost
    assert found.value <= found.upper


def test_extreme_cluster_counts():
    done, _ = blobs(30, k=1)
    zeros = np.zeros(30, dtype=np.int64)
    whole = partition_bound(done.reduced, zeros, np.inf, BoundContext(), size=30)
    cost = float(np.sum((done.reduced.points - done.reduced.points.mean(axis=0)) ** 2))
    assert whole.value <= cost == pytest.approx(whole.value, rel=1e-9)
    assert 0.0 < partition_bound(done.reduced, zeros, np.inf, BoundContext(), size=10).value <= cost
    many = reduced_of(Problem.from_data(np.eye(6), 6))
    assert partition_bound(many.reduced, np.arange(6), np.inf, BoundContext(), size=3).value == 0.0
    # Parts with fewer groups than clusters cost nothing, and that is what they prove.
    few, labels = blobs(20, k=8)
    assert partition_bound(few.reduced, labels, np.inf, BoundContext(), size=5).value >= 0.0


def test_degenerate_points():
    same = reduced_of(Problem.from_data(np.ones((9, 2)), 2))
    assert (
        partition_bound(same.reduced, np.arange(9) % 2, np.inf, BoundContext(), size=4).value == 0.0
    )
    done, labels = blobs(24, d=60)
    found = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=12)
    assert found.value > 0.0


def test_same_bound_with_executor():
    done, labels = blobs(90, spread=2.0)
    alone = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=30)
    with ThreadPoolExecutor(2) as pool:
        shared = partition_bound(
            done.reduced, labels, np.inf, BoundContext(pool=TaskPool(pool, n_threads=2)), size=30
        )
    assert shared.value == pytest.approx(alone.value, rel=1e-3)


def test_tasks_pickle():
    done, labels = blobs(40)
    (part, *_) = split_into_parts(done.reduced, labels, 20)
    task = PartTask(part.problem, np.inf, 20, StopSignal())
    answer = pickle.loads(pickle.dumps(solve_part(pickle.loads(pickle.dumps(task)))))
    assert answer.value == safe_bound(SdpModel.of(part.problem), answer.proof.full())
    more = solve_part(PartTask(part.problem, np.inf, 20, StopSignal(), answer.start, answer.value))
    assert more.value >= answer.value


def test_part_spec_omits_points():
    done, labels = blobs(400, d=40)
    part = split_into_parts(done.reduced, labels, 20)[0]
    task = PartTask(part.problem, np.inf, 20, StopSignal())
    spec = PartTask(PartSpec.of(part.problem, part.rows), np.inf, 20, StopSignal())
    sent = pickle.dumps(spec)
    assert len(sent) < 0.5 * len(pickle.dumps(task))
    there = solve_part_spec(done.reduced.points, pickle.loads(sent))
    assert there.value == solve_part(task).value


def test_failed_or_stopped_parts_keep_bounds(monkeypatch):
    done, labels = blobs(90, spread=2.0)
    full = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=30)
    calls = []

    def fails_now_and_then(task):
        calls.append(task)
        if len(calls) % 3 == 2:
            raise RuntimeError("no memory")
        return solve_part(task)

    monkeypatch.setattr(scheduler, "solve_part", fails_now_and_then)
    partial = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=30)
    assert partial.failures >= 1
    assert 0.0 < partial.value < full.value
    monkeypatch.undo()
    stop = StopSignal()
    stop.interrupt()
    assert partition_bound(done.reduced, labels, np.inf, BoundContext(stop), size=30).value == 0.0
    ctx = RecordingContext(StopSignal().with_work_limit(1.0))
    early = partition_bound(done.reduced, labels, np.inf, ctx, size=30)
    assert early.value == ctx.values[-1] < full.value


@pytest.mark.parametrize("at", [3, 8, 11, 14])
def test_stopped_parts_continue(monkeypatch, at):
    """A task stopped before its first iteration does not mark its part as finished."""
    done, labels = blobs(90, spread=2.0)
    problem, stop, calls = done.reduced, StopSignal(), []
    full = partition_bound(problem, labels, np.inf, BoundContext(), size=15)

    def told_to_stop(task):
        calls.append(task)
        if len(calls) == at:
            stop.interrupt()
        return solve_part(task)

    monkeypatch.setattr(scheduler, "solve_part", told_to_stop)
    stopped = partition_bound(problem, labels, np.inf, BoundContext(stop), size=15)
    monkeypatch.undo()
    assert len(calls) == at
    state, parts = stopped.state, split_into_parts(problem, labels, 15)
    points = calls[-1].problem.points
    number = next(i for i, part in enumerate(parts) if np.array_equal(part.problem.points, points))
    left = state.part_states[number]
    assert left["start"] is calls[-1].start
    assert (left["ended"], left["failures"]) == (False, 0)
    assert left["tasks"] == sum(task.problem is calls[-1].problem for task in calls[:-1])
    again = partition_bound(problem, labels, np.inf, BoundContext(), size=15, warm_start=state)
    assert again.value == full.value


def test_stops_at_cutoff():
    done, labels = blobs(90, spread=2.0)
    full = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=30)
    early = partition_bound(done.reduced, labels, 0.9 * full.value, BoundContext(), size=30)
    assert early.value >= 0.9 * full.value
    assert early.iterations < full.iterations


def test_mantissa_rounding():
    values = np.random.default_rng(0).normal(size=1000)
    short = round_mantissa(values)
    assert np.all(np.abs(short - values) <= 2.0**-12 * np.abs(values))
    assert np.array_equal(round_mantissa(short.astype(np.float64)), short)
    assert len(CompactMultipliers.zeros(4).cut_multipliers) == 0


def test_part_size():
    assert part_size(100, 3, 1.0, 2) == 100
    sizes = [part_size(50_000, 10, seconds, 2) for seconds in (10.0, 100.0, 1000.0)]
    assert sizes == sorted(sizes)
    assert part_size(50_000, 200, 10.0, 2) >= 1_000
    assert part_size(50_000, 10, np.inf, 2) <= 1_000  # never more than matrices can be
    assert part_size(900, 10, np.inf, 2) == 900


@pytest.mark.parametrize("n", [800, 3_000, 10_000, 200_000])
@pytest.mark.parametrize("seconds", [5.0, 60.0, 600.0, np.inf])
def test_first_size_leaves_time(n, seconds):
    first = first_size(n, 10, seconds, 2)
    every = part_size(n, 10, seconds, 2)
    later = part_size(n, 10, seconds, 2, 2_000)
    assert 0 < first <= every <= n
    # Either the first parts use all the time, or enough is left for sufficiently larger ones.
    assert first == every or PARTITION_PARAMS.min_coarsening * first <= later


def test_next_size():
    assert next_size(10_000, 300, 6.0, 3.0, 2_000) == 600
    assert next_size(10_000, 300, 6.0, 3.0, 500) == 500
    assert (
        next_size(10_000, 300, 1.1, 1.0, 2_000) == PARTITION_PARAMS.min_coarsening * 300
    )  # the smallest useful step
    assert next_size(10_000, 300, 9.0, 1.0, 2_000) == 2_000
    assert next_size(10_000, 300, 9.0, -np.inf, 2_000) == 2_000  # no cutoff
    assert next_size(1_500, 300, 4.0, 1.0, 1_500) == 1_500  # all in one
    assert next_size(10_000, 300, 4.0, 1.0, 479) == 0


def test_part_sizes_grow():
    done, labels = blobs(60, spread=2.0)
    params = PartitionParams(
        max_part_size=15, max_later_part_size=30, min_part_size=0, min_groups_per_cluster=0
    )
    ctx = RecordingContext()
    found = partition_bound(done.reduced, labels, np.inf, ctx, params=params)
    assert ctx.values == sorted(ctx.values)
    assert found.value == ctx.values[-1]
    assert found.state.size == 30
    assert found.n_parts < found.state.best.n_parts
    whole = partition_bound(done.reduced, labels, np.inf, BoundContext())
    assert whole.n_parts == 1
    assert whole.value >= found.value * (1.0 - 1e-3)


@pytest.mark.parametrize("exponent", [-90, -40, 0, 40, 90])
def test_data_scale(exponent):
    done, labels = blobs(40, spread=2.0)
    scaled = dataclasses.replace(
        done.reduced, points=np.ascontiguousarray(np.ldexp(done.reduced.points, exponent))
    )
    usual = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=20)
    found = partition_bound(scaled, labels, np.inf, BoundContext(), size=20)
    assert usual.value > 0.0
    assert np.ldexp(found.value, -2 * exponent) == pytest.approx(usual.value, rel=1e-3)


@pytest.mark.parametrize("seed", range(30))
def test_parts_with_cannot_link_sets_below_optimum(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(6, 9)), int(rng.integers(2, 4))
    sets = np.full(n, -1)
    order = rng.permutation(n)
    n_in_sets = int(rng.integers(k, n + 1)) // k * k
    sets[order[:n_in_sets]] = np.arange(n_in_sets) // k
    weights = None if seed % 2 else rng.uniform(0.5, 2.0, size=n)
    problem = Problem.from_data(
        rng.normal(size=(n, 2)), k, cannot_link_groups=sets, weights=weights
    )
    done = reduced_of(problem)
    reduced = done.reduced
    parts = split_into_parts(reduced, done.feasible_labels, 4, seed)
    total = Fraction(0)
    for part in parts:
        if part.problem.n_groups > k:
            found = solve_part(PartTask(part.problem, np.inf, 60, StopSignal()))
            total += Fraction(found.value)
    assert total <= brute_force(problem)[0]


def test_full_sets_stay_whole_in_parts():
    rng = np.random.default_rng(0)
    k, m = 4, 40
    truth = np.tile(np.arange(k), m)
    points = 5.0 * np.eye(k)[truth] + rng.normal(size=(k * m, k))
    sets = np.repeat(np.arange(m), k)
    done = reduced_of(Problem.from_data(points, k, cannot_link_groups=sets))
    parts = split_into_parts(done.reduced, done.presolve_labels(truth), 40)
    assert len(parts) >= 4
    for part in parts:
        family = part.problem.label_constraints.sets
        assert (family.sizes == k).all()
        assert family.sizes.sum() == len(part.rows)
        limits = weight_limits(part.problem)
        assert limits.low == limits.high == len(part.rows) / k
