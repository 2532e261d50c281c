"""Smoothed ascent: log-sum-exp model, L-BFGS, cut management, strong branching."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from certikmeans.bounds.base import FractionalSolution
from certikmeans.bounds.cluster.cut_model import CutModel, CutModelParams, Cuts, SparseRows
from certikmeans.bounds.cluster.driver import strong_branching_pair
from certikmeans.bounds.cluster.dual_box import make_dual_box
from certikmeans.bounds.cluster.initial_point import column_of
from certikmeans.bounds.cluster.lbfgs import maximize
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.step_rule import Iterate, LogSumExpModel, SmoothedAscent, Target
from certikmeans.bounds.cluster.symmetry import SymmetryClass
from certikmeans.bounds.ryan_foster import fractional_pairs
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal


def draw_cuts(seed):
    """Random cuts of three symmetry classes; the first ones partition the variables."""
    rng = np.random.default_rng(seed)
    n, more, n_sym_classes = int(rng.integers(4, 12)), int(rng.integers(1, 12)), 3
    counts = rng.integers(1, 4, size=n_sym_classes)
    labels = rng.integers(int(counts.sum()), size=n)
    owner = np.repeat(np.arange(n_sym_classes), counts)
    own = [(labels == k, owner[k]) for k in range(int(counts.sum())) if (labels == k).any()]
    others = rng.integers(0, 2, size=(more, n)).astype(bool)
    inside = np.array([*(members for members, _ in own), *others], dtype=float)
    sym_class = np.array([*(f for _, f in own), *rng.integers(n_sym_classes, size=more)])
    return Cuts(
        rows=SparseRows.of(inside),
        constants=-rng.uniform(0.0, 2.0, size=len(inside)),
        sym_class=sym_class.astype(np.int64),
        counts=counts.astype(float),
        total=np.ones(n),
        base=float(rng.normal()),
        high=np.ones(n),
    )


def highest(cuts):
    """Largest value of the model without a box, by linear programming."""
    one_of = np.eye(len(cuts.counts))[cuts.sym_class]
    answer = linprog(
        np.r_[-cuts.total, cuts.counts],
        A_ub=np.c_[cuts.rows.full(), -one_of],
        b_ub=-cuts.constants,
        bounds=[(None, None)] * len(cuts.total) + [(0.0, None)] * len(cuts.counts),
    )
    assert answer.status == 0
    return cuts.base - answer.fun


@pytest.mark.parametrize("seed", range(40))
def test_smoothing_error_bounded(seed):
    cuts = draw_cuts(seed)
    rng = np.random.default_rng(seed)
    t = rng.normal(size=len(cuts.total))
    for temperature in (1.0, 0.1, 0.01):
        value, slope = LogSumExpModel(cuts, temperature).value(t)
        sizes = 1.0 + np.bincount(cuts.sym_class, minlength=len(cuts.counts))
        below = temperature * float(cuts.counts @ np.log(sizes))
        assert cuts.value(t) - below - 1e-9 <= value <= cuts.value(t) + 1e-9
        step = 1e-6 * rng.normal(size=len(t))
        after, _ = LogSumExpModel(cuts, temperature).value(t + step)
        before, _ = LogSumExpModel(cuts, temperature).value(t - step)
        assert after - before == pytest.approx(2.0 * float(slope @ step), abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_upper_bound_from_smoothed_maximum(seed):
    cuts = draw_cuts(seed)
    smoothed = LogSumExpModel(cuts, 0.02)
    found = maximize(smoothed.value, np.zeros(len(cuts.total)), 0.1, 2_000, StopSignal())
    known = highest(cuts)
    assert cuts.value(found.point) <= known + 1e-9
    # The cost of the fractional solution is at least the optimum, and tends to it.
    assert found.value + smoothed.entropy(found.point) >= known - 1e-4
    assert found.value + smoothed.entropy(found.point) <= known + 0.02 * float(
        cuts.counts.sum()
    ) * np.log(1.0 + len(cuts.constants))


@pytest.mark.parametrize("seed", range(20))
def test_lbfgs_increases_value(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    root = rng.normal(size=(n, n))
    hessian, top = root @ root.T + 0.01 * np.eye(n), rng.normal(size=n)
    seen = []

    def bowl(x):
        value = -float((x - top) @ hessian @ (x - top))
        seen.append(value)
        return value, -2.0 * hessian @ (x - top)

    found = maximize(bowl, np.zeros(n), 0.1, 400, StopSignal())
    assert found.value >= seen[0]
    assert found.gain == pytest.approx(found.value - seen[0])
    assert found.value == pytest.approx(-float((found.point - top) @ hessian @ (found.point - top)))
    assert found.value >= -1e-6 * abs(seen[0]) - 1e-9


def test_lbfgs_at_maximum():
    found = maximize(lambda x: (-float(x @ x), -2.0 * x), np.zeros(3), 1.0, 50, StopSignal())
    assert found.gain == 0.0
    assert not found.point.any()


def test_lbfgs_stops():
    stop, evaluations = StopSignal(), []

    def rising(x):
        evaluations.append(x)
        if len(evaluations) == 3:
            stop.interrupt()
        return float(x.sum()), np.ones(3)  # unbounded

    maximize(rising, np.zeros(3), 1.0, 10_000, stop)
    assert 3 <= len(evaluations) <= 4


def many_clusters(seed, n=300, k=12):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0.0, 20.0, size=(k, 2))
    points = centers[rng.integers(k, size=n)] + rng.normal(scale=1.5, size=(n, 2))
    reduced = presolve(Problem.from_data(points, k), StopSignal()).reduced
    away = ((reduced.points[:, None] - reduced.points[:k][None]) ** 2).sum(axis=2)
    labels = np.argmin(away, axis=1)
    pricer = Pricer(reduced)
    model = CutModel(
        make_dual_box(reduced, labels), [SymmetryClass(pricer.full_region, tuple(range(k)))]
    )
    own = [column_of(reduced, labels == j) for j in range(k)]
    model.add(own)
    model.make_permanent()
    return pricer, model, own, make_dual_box(reduced, labels)


def test_permanent_columns_not_dropped():
    pricer, model, own, dual_box = many_clusters(0)
    model.add(
        pricer.price_heuristic(dual_box.multipliers(dual_box.start), list(pricer.reduced.points))
    )
    assert len(model.columns) > len(own)
    nothing = np.zeros(len(model.columns))
    for _ in range(CutModelParams().max_idle_rounds + 1):
        model.set_weights(nothing, nothing > 0.0)
    model.drop_idle()
    assert len(model.columns) == len(own)
    assert all(a is b for a, b in zip(model.columns, own, strict=True))


def test_smoothed_ascent_improves_and_stays_below_cost():
    pricer, model, own, dual_box = many_clusters(1)
    cost = sum(column.cost for column in own)
    step_rule = SmoothedAscent(model, cost, 1.0, warm_started=False)
    target = Target(bound=0.99 * cost, level=cost, abs_gap=0.01 * cost)
    position, values = dual_box.start, []
    for _ in range(60):
        lam = dual_box.multipliers(position)
        known = float(model.class_values(position)[0])
        found = pricer.price_heuristic(lam, list(pricer.reduced.points))
        least = step_rule.min_column_value(known, float(lam.sum()), target)
        added = model.add([column for column in found if column.value > least])
        step_rule.observe_pricing(max(found[0].value - known, 0.0), added)
        values.append(model.value(position))
        position = step_rule.next_position(
            Iterate(position, position, values[-1]), target, StopSignal()
        )
    assert max(values) <= cost
    assert max(values) > values[0] + 0.1 * (cost - values[0])
    assert np.isfinite(step_rule.upper_bound)
    assert max(values) <= step_rule.upper_bound + 0.01 * cost
    # The weights are a fractional solution: every group about once, K clusters.
    inside = np.stack([column.members for column in model.columns])
    assert model.weights.sum() == pytest.approx(12.0, rel=0.05)
    assert np.median(np.abs(model.weights @ inside - 1.0)) < 0.1


def test_strong_branching_pair():
    """Two distant clusters are decided; a point half way between two others is not."""
    points = np.array([[0.0, 0], [0.2, 0], [10.0, 0], [10.2, 0], [5.1, 0], [40.0, 0], [60.0, 0]])
    done = presolve(Problem.from_data(points, 4), StopSignal())
    reduced, order = done.reduced, done.group_of_point.tolist()
    back = {row: i for i, row in enumerate(order)}
    sets = [(0, 1, 4), (2, 3), (0, 1), (2, 3, 4), (5,), (6,)]
    members = np.zeros((len(sets), 7), dtype=np.uint8)
    for i, one in enumerate(sets):
        members[i, [order[j] for j in one]] = 1
    labels = np.empty(7, dtype=np.int64)
    for i in (0, 1, 4, 5):
        labels[members[i] == 1] = (0, 1, 2, 3)[(0, 1, 4, 5).index(i)]
    dual_box = make_dual_box(reduced, labels)
    model = CutModel(dual_box, [SymmetryClass(Pricer(reduced).full_region, (0, 1, 2, 3))])
    columns = [column_of(reduced, row) for row in members]
    model.add(columns)
    fractional = FractionalSolution(
        members,
        np.stack([column.center for column in columns]),
        np.array([0.5, 0.5, 0.5, 0.5, 1.0, 1.0]),
        ((0, 1, 2, 3),) * 6,
    )
    assert all(4 in (back[a], back[b]) for a, b in fractional_pairs(reduced, fractional, 5))
    cost = sum(columns[i].cost for i in (0, 1, 4, 5))
    pair = strong_branching_pair(reduced, model, fractional, dual_box.start, cost, StopSignal())
    assert pair is not None
    assert 4 in {back[pair[0]], back[pair[1]]}
