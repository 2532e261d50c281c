"""Projection against SLSQP, and proofs of infeasibility against linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, nnls

from certikmeans.bounds.cluster import projection
from certikmeans.bounds.cluster.projection import project
from certikmeans.stop import StopSignal


def draw(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 12)), int(rng.integers(1, 8))
    rows = 1.0 - 3.0 * rng.integers(0, 2, size=(p, n))  # like cuts with K = 3
    rows *= rng.uniform(0.5, 2.0, size=n)
    high = rng.uniform(0.0, 2.0, size=n) * (rng.random(n) > 0.1)
    reference = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(size=n) * high)
    needed = rows @ (rng.uniform(size=n) * high) + rng.normal(scale=0.5, size=p)
    return rows, needed, reference, np.zeros(n), high


def highest_margin(rows, needed, low, high):
    """Largest m such that some t in the box has ``rows @ t >= needed + m``."""
    p, n = rows.shape
    answer = linprog(
        np.r_[np.zeros(n), -1.0],
        A_ub=np.c_[-rows, np.ones(p)],
        b_ub=-needed,
        bounds=[*zip(low, high, strict=True), (None, None)],
    )
    assert answer.status == 0
    return -answer.fun


@pytest.mark.parametrize("seed", range(150))
def test_nearest_point_or_infeasible(seed):
    rows, needed, reference, low, high = draw(seed)
    margin = highest_margin(rows, needed, low, high)

    found = project(rows, needed, reference, low, high, 1e-9)

    if found.infeasible:
        assert margin < 0.0
        assert found.excess >= margin - 1e-9  # never below the true margin
    elif margin > 1e-6:
        assert found.violation <= 1e-8
        assert np.all((found.point >= low) & (found.point <= high))
        exact = minimize(
            lambda t: 0.5 * np.sum((t - reference) ** 2),
            np.clip(reference, low, high),
            jac=lambda t: t - reference,
            bounds=list(zip(low, high, strict=True)),
            constraints={
                "type": "ineq",
                "fun": lambda t: rows @ t - needed,
                "jac": lambda t: rows,
            },
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        distance = 0.5 * float(np.sum((found.point - reference) ** 2))
        if exact.success:
            assert distance <= exact.fun + 1e-6 * (1.0 + exact.fun)


def test_infeasibility_detected():
    missed = 0
    impossible = 0
    for seed in range(300):
        rows, needed, reference, low, high = draw(seed)
        if highest_margin(rows, needed, low, high) < -1e-3:
            impossible += 1
            missed += not project(rows, needed, reference, low, high, 1e-9).infeasible
    assert impossible > 50
    assert missed == 0


def test_feasible_never_called_infeasible():
    possible = 0
    for seed in range(300):
        rows, needed, reference, low, high = draw(seed)
        if highest_margin(rows, needed, low, high) > 1e-9:
            possible += 1
            assert not project(rows, needed, reference, low, high, 1e-9).infeasible
    assert possible > 50


def test_stopped_projection_stays_in_the_box():
    stop = StopSignal()
    stop.interrupt()
    for seed in range(20):
        rows, needed, reference, low, high = draw(seed)
        found = project(rows, needed, reference, low, high, 1e-9, stop=stop)
        assert found.steps == 0
        assert not found.infeasible
        assert (found.point >= low).all()
        assert (found.point <= high).all()


def test_start_on_bounds():
    # All variables start on their lower bounds: the first step must not be empty.
    found = project(
        np.array([[1.0, -2.0, 1.0]]), np.array([1.0]), np.zeros(3), np.zeros(3), np.ones(3), 1e-9
    )
    assert np.allclose(found.point, [0.5, 0.0, 0.5])


@pytest.mark.parametrize("n", [1, 2, 5, 12, 16])
@pytest.mark.parametrize("seed", range(8))
def test_block_pivoting_agrees_with_nnls(n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, n + 3))
    matrix, linear = rows @ rows.T + 1e-3 * np.eye(n), rng.normal(size=n)
    found = projection._block_pivoting(matrix, linear)
    factor = np.linalg.cholesky(matrix)
    expected, _ = nnls(factor.T, np.linalg.solve(factor, linear))
    assert found is not None
    assert (found >= 0.0).all()
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
