"""Contract of all baselines: scikit-learn conventions, attributes, errors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from certikmeans import baselines
from certikmeans.errors import CertikmeansError, InfeasibleError, InputError
from certikmeans.testing.oracle import exact_cost
from tests.baselines.helpers import STUCK, blobs, instance, pairs_from

NAMES = baselines.__all__
HARD = ["COPKMeans", "EncodeKMeansPost", "BLPKMCC"]
PAIRED = [*HARD, "PCKMeans"]

MODELS = [
    baselines.COPKMeans(n_clusters=2, random_state=0),
    baselines.EncodeKMeansPost(n_clusters=2, kmeans_n_init=2, random_state=0),
    baselines.BLPKMCC(n_clusters=2, random_state=0),
    baselines.PCKMeans(n_clusters=2, random_state=0),
    baselines.SensitivityCoreset(n_clusters=2, kmeans_n_init=2, random_state=0),
]


def checks():
    """scikit-learn's checks but those of weights, which are rejected or positive here."""
    for model in MODELS:
        for estimator, check in estimator_checks_generator(model):
            if "sample_weight" not in check.func.__name__:
                yield pytest.param(
                    estimator, check, id=f"{type(model).__name__}-{check.func.__name__}"
                )


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make(name, **params):
    return getattr(baselines, name)(**{"n_clusters": 3, "random_state": 0, **params})


@pytest.mark.parametrize("name", NAMES)
def test_clone(name):
    model = make(name, time_limit=7.0)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(n_clusters=5).n_clusters == 5


@pytest.mark.parametrize("name", [n for n in NAMES if n != "MISOCP"])
def test_attributes(name):
    points, truth = blobs(seed=3)
    must, cannot = pairs_from(truth, 10, 12, seed=3)
    pairs = {"must_link": must}
    if name in PAIRED:
        pairs["cannot_link"] = cannot
    else:
        cannot = cannot[:0]
    params = {"n_init": 20, "shuffle": True} if name == "COPKMeans" else {}
    model = make(name, **params).fit(points, **pairs)
    labels = model.labels_
    broken = np.count_nonzero(labels[must[:, 0]] != labels[must[:, 1]])
    broken += np.count_nonzero(labels[cannot[:, 0]] == labels[cannot[:, 1]])
    assert model.violated_ == broken
    assert model.feasible_ == (broken == 0)
    if name != "PCKMeans":
        assert model.feasible_
    exact = float(exact_cost(points, np.ones(len(points)), labels))
    assert model.inertia_ == pytest.approx(exact, rel=1e-9)
    for k in np.unique(labels):
        assert np.allclose(model.cluster_centers_[k], points[labels == k].mean(axis=0))
    assert model.n_features_in_ == 2
    assert model.n_iter_ >= 1
    assert model.predict(model.cluster_centers_[:1]).shape == (1,)
    again = clone(model).fit(points, **pairs)
    assert np.array_equal(again.labels_, labels)


@pytest.mark.parametrize("name", PAIRED)
def test_more_runs_are_not_worse(name):
    problem = instance(5)
    pairs = {"must_link": problem.must_link, "cannot_link": problem.cannot_link}
    one = make(name).fit(problem.points, **pairs)
    many = make(name, n_init=8).fit(problem.points, **pairs)
    measure = "objective_" if name == "PCKMeans" else "inertia_"
    assert getattr(many, measure) <= getattr(one, measure)
    assert many.n_runs_ == 8


@pytest.mark.parametrize("name", ["COPKMeans", "EncodeKMeansPost", "BLPKMCC", "PCKMeans"])
def test_unsupported_weights_are_rejected(name):
    with pytest.raises(InputError, match="published without weights") as error:
        make(name).fit(np.eye(4), sample_weight=np.ones(4))
    assert error.value.hint


@pytest.mark.parametrize("name", ["SensitivityCoreset", "PengWeiSDP"])
def test_weights(name):
    points, _ = blobs(seed=1)
    one = make(name).fit(points, sample_weight=2.0)
    many = make(name).fit(points, sample_weight=np.full(len(points), 2.0))
    assert np.array_equal(one.labels_, many.labels_)
    assert one.inertia_ == pytest.approx(2.0 * make(name).fit(points).inertia_)
    for bad in (np.nan, [1.0], np.zeros(len(points))):
        with pytest.raises(ValueError, match="weight"):
            make(name).fit(points, sample_weight=bad)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("COPKMeans", {"n_init": 0}, "n_init: 0"),
        ("COPKMeans", {"init": "far"}, "init: 'far'"),
        ("BLPKMCC", {"distance": "cosine"}, "distance: 'cosine'"),
        ("BLPKMCC", {"assignment": "greedy"}, "assignment: 'greedy'"),
        ("BLPKMCC", {"max_iter": 1.5}, "max_iter: 1.5"),
        ("EncodeKMeansPost", {"tol": 2}, "tol: 2"),
        ("PCKMeans", {"w": -1}, "w: -1"),
        ("SensitivityCoreset", {"eps": 0}, "eps: 0"),
        ("SensitivityCoreset", {"coreset_size": 1}, "coreset_size: 1"),
        ("MISOCP", {"solver": "cplex"}, "solver: 'cplex'"),
        ("MISOCP", {"gap": -1}, "gap: -1"),
        ("PCKMeans", {"time_limit": 0}, "time_limit: 0"),
        ("PCKMeans", {"time_limit": "5"}, "time_limit: '5'"),
        ("PCKMeans", {"n_clusters": True}, "n_clusters: expected a whole number"),
        ("PCKMeans", {"w": "1"}, "w: '1'"),
        ("PCKMeans", {"n_clusters": 9}, "n_clusters=9 is more than n_samples=4"),
    ],
)
def test_invalid_parameters(name, params, message):
    with pytest.raises(InputError, match=message) as error:
        make(name, **params).fit(np.eye(4))
    assert error.value.hint


@pytest.mark.parametrize("name", [*PAIRED, "SensitivityCoreset"])
@pytest.mark.parametrize("more", [{}, {"n_init": 3}])
def test_status_at_time_limit(name, more):
    points, _ = blobs(seed=1)
    model = make(name, time_limit=1e-9, **more).fit(points)
    assert model.status_ == "time_limit"


@pytest.mark.parametrize("name", NAMES)
def test_invalid_pair_is_rejected(name):
    with pytest.raises(InputError, match="does not exist"):
        make(name).fit(np.eye(4), must_link=[(0, 4)])


@pytest.mark.parametrize("name", ["EncodeKMeansPost", "BLPKMCC"])
@pytest.mark.parametrize("assignment", ["milp", "exact"])
def test_infeasible_pairs(name, assignment):
    model = make(name, assignment=assignment, n_clusters=2)
    with pytest.raises(InfeasibleError) as error:
        model.fit(np.eye(4), cannot_link=[(0, 1), (1, 2), (0, 2)])
    assert error.value.proof.describe()
    with pytest.raises(InfeasibleError):
        model.fit(np.eye(4), must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])


def test_failed_fit_has_no_centers():
    model = make("COPKMeans", n_clusters=2).fit(**STUCK)
    with pytest.raises(CertikmeansError, match="found no labelling"):
        model.predict([[1.0]])


def test_import_is_lazy():
    code = (
        "import sys, certikmeans.baselines as b; "
        "assert not {'numba', 'sklearn', 'pyscipopt'} & set(sys.modules); "
        "b.COPKMeans; assert 'pyscipopt' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_rejected():
    with pytest.raises(AttributeError, match="DBSCAN"):
        _ = baselines.DBSCAN
