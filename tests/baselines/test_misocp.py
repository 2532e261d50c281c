"""The conic program: enumeration, limits, missing solvers."""

from __future__ import annotations

import contextlib
import sys
import types

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.baselines import MISOCP
from certikmeans.baselines.misocp import ConicModel
from certikmeans.errors import InfeasibleError, MissingExtraError
from certikmeans.testing.oracle import brute_force
from tests.baselines.helpers import blobs, pairs_from
from tests.clock import timed, within

pyscipopt = pytest.importorskip("pyscipopt")


def small(seed):
    rng = np.random.default_rng(seed)
    n_points, n_clusters = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    truth = rng.integers(n_clusters, size=n_points)
    must, cannot = pairs_from(truth, int(rng.integers(3)), int(rng.integers(4)), seed)
    points = rng.normal(size=(n_points, int(rng.integers(1, 3)))) * 10.0 ** rng.integers(-2, 4)
    weights = rng.integers(1, 4, size=n_points).astype(float)
    shift = 100.0 * np.abs(points).max() * (seed % 2)
    return Problem.from_data(
        points + shift, n_clusters, must_link=must, cannot_link=cannot, weights=weights
    )


def check_against_enumeration(problem, **params):
    optimum = float(brute_force(problem)[0])
    model = MISOCP(problem.n_clusters, gap=1e-5, **params)
    model.fit(
        problem.points,
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
        sample_weight=problem.weights,
    )
    size = float((problem.weights[:, None] * (problem.points - problem.points.mean(0)) ** 2).sum())
    assert model.status_ == "optimal"
    assert model.feasible_
    assert model.inertia_ == pytest.approx(optimum, rel=1e-4, abs=1e-5 * size)
    assert model.lower_bound_ == pytest.approx(optimum, rel=1e-4, abs=1e-5 * size)
    assert 0.0 <= model.gap_ <= 1.0
    assert model.nodes_ >= 0


@pytest.mark.parametrize("variant", [{}, {"collapse": True, "symmetry_breaking": True}])
@pytest.mark.parametrize("seed", range(5))
def test_against_enumeration(seed, variant):
    check_against_enumeration(small(seed), **variant)


def test_gurobi_against_enumeration():
    pytest.importorskip("gurobipy")
    for seed in range(5):
        check_against_enumeration(small(seed), solver="gurobi")


class GurobiInDisguise(types.ModuleType):
    """The part of gurobipy that is used, played by SCIP: tests the calls, not the solver."""

    GRB = types.SimpleNamespace(BINARY="B", OPTIMAL=2, INFEASIBLE=3, INF_OR_UNBD=4)

    class Env(contextlib.nullcontext):
        def __init__(self, params):
            super().__init__(self)
            assert params == {"OutputFlag": 0}

    class Model:
        def __init__(self, env):
            self._scip = pyscipopt.Model()
            self._scip.hideOutput()
            self.Params = types.SimpleNamespace()
            self.addVar, self.addConstr = self._scip.addVar, self._scip.addCons

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self._scip.freeProb()

        def optimize(self):
            self._scip.setParam("limits/gap", self.Params.MIPGap)
            self._scip.optimize()
            self.Status = {"infeasible": 3}.get(self._scip.getStatus(), 2)
            self.SolCount = self._scip.getNSols()
            self.NodeCount = float(self._scip.getNTotalNodes())
            self.ObjBound = self._scip.getDualbound()

    @staticmethod
    def quicksum(terms):
        return pyscipopt.quicksum(terms)


def test_gurobi_calls(monkeypatch):
    monkeypatch.setitem(sys.modules, "gurobipy", GurobiInDisguise("gurobipy"))
    with pytest.raises(InfeasibleError):
        MISOCP(2, solver="gurobi").fit(np.eye(4), must_link=[(0, 1)], cannot_link=[(0, 1)])


def test_big_m_is_tight():
    rng = np.random.default_rng(0)
    none = np.empty((0, 2), dtype=np.int64)
    model = ConicModel(rng.normal(size=(9, 2)), np.ones(9), 2, none, none, False)
    (a, b), (c, d) = model.bounding_box
    bounding_box = np.array([[a, b], [a, d], [c, b], [c, d]])
    farthest = ((model.points[:, None] - bounding_box) ** 2).sum(axis=2).max(axis=1)
    assert np.allclose(model.big_m, farthest)


@timed(6.0)
def test_time_limit(seconds):
    points, truth = blobs(50, seed=2)
    must, cannot = pairs_from(truth, 30, 30)
    model = MISOCP(3, time_limit=2.0)
    with within(seconds):
        model.fit(points, must_link=must, cannot_link=cannot)
    assert model.status_ in ("feasible", "unknown")
    assert model.lower_bound_ <= model.inertia_
    assert model.feasible_ == (model.status_ == "feasible")


def test_timeout_while_building_model():
    points, _ = blobs(30)
    model = MISOCP(3, time_limit=1e-9).fit(points)
    assert model.status_ == "unknown"
    assert (model.labels_ == -1).all()
    assert (model.lower_bound_, model.gap_, model.nodes_) == (0.0, np.inf, 0)


@pytest.mark.parametrize("collapse", [False, True])
def test_infeasible_pairs(collapse):
    model = MISOCP(2, collapse=collapse)
    with pytest.raises(InfeasibleError) as error:
        model.fit(np.eye(4), cannot_link=[(0, 1), (1, 2), (0, 2)])
    assert error.value.proof.describe()
    with pytest.raises(InfeasibleError):
        model.fit(np.eye(4), must_link=[(0, 1)], cannot_link=[(0, 1)])


@pytest.mark.parametrize(
    ("solver_name", "module", "hint"),
    [("scip", "pyscipopt", r"certikmeans\[scip\]"), ("gurobi", "gurobipy", "gurobipy")],
)
def test_missing_solver(solver_name, module, hint, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=hint):
        MISOCP(2, solver=solver_name).fit(np.eye(4))
