"""The SDP baseline: enumeration, limits, missing solvers."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.base import clone

from certikmeans import Problem
from certikmeans.baselines.sdp import PengWeiSDP
from certikmeans.errors import InfeasibleError, InputError, MissingExtraError
from certikmeans.testing.oracle import brute_force
from tests.baselines.helpers import blobs, instance, pairs_from
from tests.clock import timed, within
from tests.published import published, stated


def fitted(problem, **params):
    model = PengWeiSDP(problem.n_clusters, **params)
    return model.fit(
        problem.points,
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
        sample_weight=problem.weights,
    )


def small(seed):
    rng = np.random.default_rng(seed)
    n_points, n_clusters = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    truth = rng.integers(n_clusters, size=n_points)
    must, cannot = pairs_from(truth, int(rng.integers(3)), int(rng.integers(4)), seed)
    points = rng.normal(size=(n_points, 2)) * 10.0 ** rng.integers(-2, 4)
    weights = rng.integers(1, 4, size=n_points).astype(float)
    return Problem.from_data(
        points + 1e3 * (seed % 2), n_clusters, must_link=must, cannot_link=cannot, weights=weights
    )


@pytest.mark.parametrize("solver", ["admm", "clarabel"])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_enclose_optimum(seed, solver):
    if solver == "clarabel":
        pytest.importorskip("clarabel")
    problem = small(seed)
    optimum = brute_force(problem)[0]
    model = fitted(problem, solver=solver)
    assert model.feasible_
    assert model.lower_bound_ <= optimum <= model.inertia_
    if model.status_ == "optimal":
        assert model.inertia_ <= float(optimum) * (1.0 + 2e-3)
        assert model.gap_ <= 1e-3
    else:
        assert model.status_ == "feasible"
        assert model.gap_ > 1e-3


def test_closes_blobs_with_pairs():
    problem = instance(0)
    model = fitted(problem)
    assert model.status_ == "optimal"
    assert model.gap_ == pytest.approx(1.0 - model.lower_bound_ / model.inertia_, abs=1e-12)
    assert model.violated_ == 0
    assert model.n_iter_ >= 1
    assert model.predict(model.cluster_centers_[:1]).shape == (1,)
    again = clone(model).fit(
        problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link
    )
    assert np.array_equal(again.labels_, model.labels_)
    assert again.lower_bound_ == model.lower_bound_


def test_without_cuts():
    points, _ = blobs(15, seed=2, n_features=3)
    rng = np.random.default_rng(0)
    noise = points * 0.0 + rng.normal(size=points.shape)
    plain = PengWeiSDP(3, cuts=False).fit(noise)
    assert plain.n_cuts_ == 0
    full = PengWeiSDP(3).fit(noise)
    assert full.n_cuts_ > 0
    assert full.gap_ < plain.gap_


@timed(6.0)
def test_time_limit(seconds):
    noise = np.random.default_rng(0).normal(size=(400, 6))
    with within(seconds):
        model = PengWeiSDP(3, time_limit=1.0).fit(noise)
    assert model.status_ == "feasible"
    assert 0.0 <= model.lower_bound_ <= model.inertia_


def test_infeasible_pairs():
    with pytest.raises(InfeasibleError) as error:
        PengWeiSDP(2).fit(np.eye(4), cannot_link=[(0, 1), (1, 2), (0, 2)])
    assert error.value.proof.describe()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver": "mosek"}, "solver: 'mosek'"),
        ({"gap": -1}, "gap: -1"),
        ({"max_iter": 0}, "max_iter: 0"),
        ({"time_limit": 0}, "time_limit: 0"),
    ],
)
def test_invalid_parameters(params, message):
    with pytest.raises(InputError, match=message) as error:
        PengWeiSDP(2, **params).fit(np.eye(4))
    assert error.value.hint


def test_too_many_groups():
    points = np.random.default_rng(0).normal(size=(2502, 2))
    with pytest.raises(InputError, match="2502 groups"):
        PengWeiSDP(2).fit(points)


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(MissingExtraError) as error:
        PengWeiSDP(2, solver="clarabel").fit(np.eye(4))
    assert "certikmeans[sdp]" in error.value.hint
    assert PengWeiSDP(2).fit(np.eye(4)).feasible_


@pytest.mark.parametrize(
    "row",
    [row for row in published() if row["instance"] == "ml_25_cl_25_0"],
    ids=lambda row: f"{row['dataset']}/{row['instance']}",
)
def test_published_optima(row):
    problem = stated(row)
    known = float(row["best_known_sse"])
    model = fitted(problem, time_limit=20.0)
    assert model.status_ == "optimal"
    assert model.lower_bound_ <= known * (1.0 + 1e-9)
    assert model.inertia_ == pytest.approx(known, rel=1e-3)
