"""`ConstrainedKMeans`: scikit-learn's own checks, an exhaustive oracle, weights, routing."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import certikmeans
from certikmeans.errors import CertikmeansError, InfeasibleError, InputError
from certikmeans.estimator import ConstrainedKMeans
from certikmeans.problem import Problem
from certikmeans.solver import run
from certikmeans.status import Status, StopReason

# What `fit` warns about is tested in test_estimator_everyday.py.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# scikit-learn's check -> why it cannot pass. Empty: they all do.
EXPECTED_FAILED_CHECKS: dict[str, str] = {}


# Checks fit noise, whose gap a tree does not close: a few nodes exercise it.
@parametrize_with_checks(
    [
        ConstrainedKMeans(node_limit=5),
        ConstrainedKMeans(n_clusters=3, bound="sample", n_jobs=1, node_limit=9),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILED_CHECKS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        "check_transformer_get_feature_names_out",
        "check_get_feature_names_out_error",
        "check_set_output_transform",
        "check_n_features_in_after_fitting",
        "check_estimators_unfitted",
        "check_fit_check_is_fitted",
    ],
)
def test_further_scikit_learn_checks(check):
    # Run for scikit-learn's own estimators only, so called by name here.
    getattr(estimator_checks, check)("ConstrainedKMeans", ConstrainedKMeans(n_clusters=2))


@pytest.mark.parametrize(
    "check",
    [
        "check_dataframe_column_names_consistency",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
    ],
)
def test_scikit_learn_checks_with_pandas(check):
    pytest.importorskip("pandas")
    getattr(estimator_checks, check)("ConstrainedKMeans", ConstrainedKMeans(n_clusters=2))


def blobs(n_per_cluster=15, seed=0):
    """Three blobs in the plane, with their true labels."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3), n_per_cluster)
    return np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[truth] + rng.normal(
        size=(len(truth), 2)
    ), truth


def model(n_clusters=3, **params):
    """Build an estimator that repeats itself."""
    return ConstrainedKMeans(n_clusters, **{"random_state": 0, "n_jobs": 1, **params})


def respects(labels, must_link, cannot_link):
    """Whether no pair is broken."""
    return all(labels[i] == labels[j] for i, j in must_link) and all(
        labels[i] != labels[j] for i, j in cannot_link
    )


def exact_cost(points, weights, labels):
    """Weighted sum of squares about the means, in rational arithmetic."""
    total = Fraction(0)
    for k in set(labels):
        rows = [i for i, label in enumerate(labels) if label == k and weights[i] > 0]
        mass = sum((Fraction(weights[i]) for i in rows), Fraction(0))
        for j in range(points.shape[1]):
            values = [(Fraction(weights[i]), Fraction(float(points[i, j]))) for i in rows]
            if rows:
                mean = sum(w * x for w, x in values) / mass
                total += sum(w * (x - mean) ** 2 for w, x in values)
    return total


def exact_optimum(points, weights, n_clusters, must_link, cannot_link):
    """Least cost over every labelling that respects the pairs; None if there is none."""
    costs = [
        exact_cost(points, weights, labels)
        for labels in itertools.product(range(n_clusters), repeat=len(points))
        if labels[0] == 0 and respects(labels, must_link, cannot_link)
    ]
    return min(costs, default=None)


def random_pairs(rng, n_points, count):
    """Return distinct random pairs; they may form cycles, cliques and contradictions."""
    every = list(itertools.combinations(range(n_points), 2))
    return [every[i] for i in rng.choice(len(every), size=count, replace=False)]


def draw_estimate(seed, wanted):
    """Data of six points for which ``wanted(weights, cannot_link, optimum)`` holds."""
    rng = np.random.default_rng(seed)
    for _ in range(1_000):
        n_points, n_clusters = 6, int(rng.integers(2, 4))
        points = rng.integers(0, 4, size=(n_points, 2)) + (1e6 if seed % 3 == 0 else 0.0)
        weights = rng.integers(1 if seed % 2 else 0, 4, size=n_points).astype(float)
        weights[:3] += 1.0
        pairs = random_pairs(rng, n_points, 4)
        must_link, cannot_link = pairs[:1], pairs[1:]
        optimum = exact_optimum(points, weights, n_clusters, must_link, cannot_link)
        if wanted(weights, cannot_link, optimum):
            named = {"must_link": must_link, "cannot_link": cannot_link, "sample_weight": weights}
            return points, n_clusters, named, optimum
    raise AssertionError("nothing to test in 1,000 draws")


def parts_weightless_points(weights, cannot_link):
    return any(weights[i] == 0 for pair in cannot_link for i in pair)


@pytest.mark.parametrize("seed", range(10))
def test_no_labelling_is_an_error(seed):
    points, n_clusters, named, _ = draw_estimate(
        seed, lambda w, pairs, best: best is None and not parts_weightless_points(w, pairs)
    )
    with pytest.raises(InfeasibleError):
        model(n_clusters).fit(points, **named)


@pytest.mark.parametrize("seed", range(0, 10, 2))
def test_cannot_link_to_weightless_point_is_rejected(seed):
    points, n_clusters, named, _ = draw_estimate(
        seed, lambda w, pairs, best: best is not None and parts_weightless_points(w, pairs)
    )
    with pytest.raises(InputError):
        model(n_clusters).fit(points, **named)


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_enumeration(seed):
    points, n_clusters, named, optimum = draw_estimate(
        seed, lambda w, pairs, best: best is not None and not parts_weightless_points(w, pairs)
    )
    must_link, cannot_link, weights = named.values()
    estimator = model(n_clusters).fit(points, **named)

    assert respects(estimator.labels_, must_link, cannot_link)
    cost = exact_cost(points, weights, estimator.labels_.tolist())
    assert Fraction(estimator.lower_bound_) <= optimum <= cost <= Fraction(estimator.inertia_)
    assert float(cost - optimum) <= 1e-6 * float(optimum)
    assert estimator.gap_ == estimator.result_.gap


def test_pairs_override_the_geometry():
    points, truth = blobs()
    estimator = model().fit(points, must_link=[(0, 20)], cannot_link=[(1, 2), (2, 3), (1, 3)])

    labels = estimator.labels_
    assert labels[0] == labels[20]
    assert len({labels[1], labels[2], labels[3]}) == 3
    assert adjusted_rand_score(truth, labels) > 0.7
    # New samples are not bound by pairs: each goes to the nearest centre.
    distances = np.linalg.norm(points[:, None] - estimator.cluster_centers_, axis=2)
    np.testing.assert_array_equal(estimator.predict(points), distances.argmin(axis=1))
    np.testing.assert_allclose(estimator.transform(points), distances)


def test_without_pairs_it_is_k_means():
    points, _ = blobs()
    reference = KMeans(3, n_init=20, random_state=0).fit(points)
    estimator = model().fit(points)

    assert estimator.inertia_ == pytest.approx(reference.inertia_, rel=1e-9)
    assert adjusted_rand_score(reference.labels_, estimator.labels_) == 1.0
    assert estimator.score(points) == pytest.approx(reference.score(points), rel=1e-9)
    np.testing.assert_array_equal(estimator.predict(points), estimator.labels_)


def test_fitted_attributes():
    points, _ = blobs()
    estimator = model().fit(points.astype(np.float32), must_link=np.array([[0, 1]]))

    assert estimator.n_features_in_ == 2
    assert estimator.cluster_centers_.shape == (3, 2)
    assert estimator.cluster_centers_.dtype == np.float64
    assert estimator.labels_.dtype.kind == "i"
    assert estimator.status_ in (Status.OPTIMAL, Status.FEASIBLE)
    assert 0.0 <= estimator.lower_bound_ <= estimator.inertia_
    assert estimator.n_iter_ >= 0
    assert estimator.result_.n_must_link == 1
    assert estimator.result_.seed == 0
    np.testing.assert_array_equal(estimator.result_.labels, estimator.labels_)
    np.testing.assert_array_equal(estimator.result_.centers, estimator.cluster_centers_)
    assert json.loads(estimator.result_.to_json())["labels"] == estimator.labels_.tolist()
    assert list(estimator.get_feature_names_out()) == [f"constrainedkmeans{k}" for k in range(3)]
    restored = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(restored.labels_, estimator.labels_)


def test_numbering_does_not_depend_on_the_order_of_samples():
    points, _ = blobs()
    order = np.random.default_rng(1).permutation(len(points))
    straight, mixed = model().fit(points), model().fit(points[order])

    np.testing.assert_allclose(mixed.cluster_centers_, straight.cluster_centers_)
    np.testing.assert_array_equal(mixed.labels_, straight.labels_[order])


def test_fewer_distinct_points_than_clusters():
    points = np.array([[0.0], [0.0], [0.0], [5.0], [5.0]])
    estimator = model(4).fit(points)

    assert estimator.inertia_ == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(estimator.transform(points)).all()
    # Empty clusters come last, so a tie never sends a sample to one of them.
    assert set(estimator.predict(points)) <= set(estimator.labels_)


def test_distances_far_from_the_origin():
    points, _ = blobs()
    near, far = model().fit(points), model().fit(points + 1e8)

    np.testing.assert_array_equal(far.predict(points + 1e8), near.predict(points))
    np.testing.assert_allclose(far.transform(points + 1e8), near.transform(points), atol=1e-6)


def test_score_weighs_the_samples():
    points, _ = blobs()
    estimator = model().fit(points)
    weights = np.arange(len(points), dtype=float)
    squared = estimator.transform(points).min(axis=1) ** 2

    assert estimator.score(points, sample_weight=weights) == pytest.approx(-weights @ squared)
    assert estimator.score(points, sample_weight=2.0) == pytest.approx(-2.0 * squared.sum())
    with pytest.raises(InputError, match="row 0 is -1"):
        estimator.score(points[:1], sample_weight=[-1.0])


def test_more_samples_than_a_block_of_distances():
    points, _ = blobs()
    estimator = model().fit(points)
    many = np.random.default_rng(0).normal(size=(70_000, 2))

    distances = estimator.transform(many)
    for rows in (slice(0, 5), slice(32_766, 32_770), slice(69_995, 70_000)):
        np.testing.assert_array_equal(distances[rows], estimator.transform(many[rows]))


# Samples of weight 0

RIM = [(2, 3), (3, 4), (4, 5), (5, 6), (6, 2)]


def test_weight_zero_is_the_same_as_absent():
    points, _ = blobs()
    weights = np.tile([1.0, 0.0, 2.0], len(points) // 3)
    kept = np.flatnonzero(weights)
    number = np.cumsum(weights > 0) - 1
    pairs = [(0, 18), (2, 15)]
    renumbered = [(number[i], number[j]) for i, j in pairs]

    zeros = model().fit(points, cannot_link=pairs, sample_weight=weights)
    absent = model().fit(points[kept], cannot_link=renumbered, sample_weight=weights[kept])

    assert zeros.inertia_ == absent.inertia_
    assert zeros.lower_bound_ == absent.lower_bound_
    np.testing.assert_array_equal(zeros.cluster_centers_, absent.cluster_centers_)
    np.testing.assert_array_equal(zeros.labels_[kept], absent.labels_)
    left_out = np.flatnonzero(weights == 0)
    np.testing.assert_array_equal(zeros.labels_[left_out], zeros.predict(points)[left_out])
    assert zeros.result_.n_points == len(zeros.result_.labels) == len(points)


def test_weight_zero_connects_its_group():
    points = np.array([[0.0], [0.1], [9.0], [9.1], [4.0]])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    # 0 and 3 meet only through sample 4; its cannot-link with 1 is one of theirs.
    estimator = model(2).fit(
        points, must_link=[(0, 4), (4, 3)], cannot_link=[(4, 1)], sample_weight=weights
    )

    labels = estimator.labels_
    assert labels[0] == labels[4] == labels[3] != labels[1]
    assert estimator.result_.n_must_link == 2


def test_group_without_weight_stays_together():
    points = np.array([[0.0], [1.0], [9.0], [10.0], [0.4], [7.0]])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    apart = model(2).fit(points, sample_weight=weights)
    together = model(2).fit(points, must_link=[(4, 5)], sample_weight=weights)

    assert apart.labels_[4] != apart.labels_[5]
    assert together.labels_[4] == together.labels_[5] == together.labels_[0]
    assert together.inertia_ == apart.inertia_


def test_cannot_link_of_weightless_group_is_rejected():
    with pytest.raises(InputError, match=r"pair \(0, 2\) names sample 2, which has weight 0"):
        model(2).fit(
            [[0.0], [1.0], [2.0]], cannot_link=[(0, 1), (2, 0)], sample_weight=[1.0, 1.0, 0.0]
        )


@pytest.mark.parametrize(
    ("n_clusters", "must_link", "cannot_link"),
    [
        (2, [(2, 0), (0, 5)], [(2, 5)]),
        (2, [], [(3, 4), (4, 5), (3, 5)]),
        (2, [(2, 0), (0, 6)], [(2, 3), (3, 4), (4, 5), (5, 1), (1, 6)]),
        (3, [(6, 7), (7, 0)], [*RIM, *((1, i) for i in range(2, 7))]),
    ],
    ids=["must-link path", "clique", "odd cycle", "wheel"],
)
def test_infeasible_with_weight_zero_names_given_rows(n_clusters, must_link, cannot_link):
    points = np.arange(8.0)[:, None]
    weights = np.ones(8)
    weights[[0, 7]] = 0.0
    with pytest.raises(InfeasibleError) as caught:
        model(n_clusters).fit(
            points, must_link=must_link, cannot_link=cannot_link, sample_weight=weights
        )
    stated = Problem.from_data(points, n_clusters, must_link=must_link, cannot_link=cannot_link)
    assert caught.value.proof.check(stated)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.0, 0.0, 0.0], "all weights are zero"),
        ([1.0, -2.0, 1.0], "row 1 is -2.0"),
        ([1.0, 1.0], r"expected shape \(3,\), got \(2,\)"),
        ([1.0, np.nan, 1.0], "sample_weight contains NaN"),
        ([1.0, 1e60, 0.0], "row 1 is 1e\\+60"),
        ([0.0, 0.0, 1.0], "n_clusters=2 is more than samples of positive weight=1"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        model(2).fit([[0.0], [1.0], [2.0]], sample_weight=weights)


# What cannot be fitted


def test_infeasible_pairs_raise_with_the_proof():
    with pytest.raises(InfeasibleError) as caught:
        model(2).fit([[0.0], [1.0], [2.0]], must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])

    assert caught.value.proof.describe() in str(caught.value)
    assert "hint:" in str(caught.value)


def test_no_labelling_in_time_raises(monkeypatch):
    solved = run.solve

    def out_of_time(problem, **options):
        return dataclasses.replace(
            solved(problem, **options),
            labels=None,
            centers=None,
            status=Status.UNKNOWN,
            stop_reason=StopReason.TIME_LIMIT,
        )

    monkeypatch.setattr(run, "solve", out_of_time)
    with pytest.raises(CertikmeansError, match="the time limit was reached") as caught:
        model(2).fit([[0.0], [1.0], [2.0]])
    assert "time_limit" in caught.value.hint


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 4}, "n_clusters=4 is more than n_samples=3"),
        ({"n_clusters": 0}, "n_clusters: 0 is not between"),
        ({"n_clusters": 1.5}, "whole number"),
        ({"gap": -1.0}, "gap"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"bound": "magic"}, "bound: 'magic' is unknown"),
        ({"branching": "magic"}, "branching: 'magic' is unknown"),
        ({"n_clusters": True}, "n_clusters: expected a whole number, got True"),
        ({"time_limit": "5"}, "time_limit: '5' is not a positive number"),
        ({"n_jobs": 0}, "^n_jobs: 0"),
        ({"n_jobs": "2"}, "^n_jobs: '2'"),
        ({"random_state": -1}, "[Ss]eed"),
        ({"random_state": "x"}, "RandomState"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        model(**{"n_clusters": 2, **params}).fit([[0.0], [1.0], [2.0]])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"must_link": [(0, 3)]}, r"must_link\[0\]: pair \(0, 3\) names a point.*\n.*subtract 1$"),
        ({"cannot_link": [(1, 1)]}, "links a point to itself"),
        ({"cannot_link": [0, 1]}, "expected pairs"),
    ],
)
def test_bad_pairs(pairs, message):
    with pytest.raises(InputError, match=message):
        model(2).fit([[0.0], [1.0], [2.0]], **pairs)


def test_sparse_and_unfitted():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model(2).fit(csr_array(np.eye(3)))
    for method in ("predict", "transform", "score"):
        with pytest.raises(NotFittedError):
            getattr(model(2), method)([[0.0]])


# Randomness, threads, callbacks


def test_seed_is_used_as_given_and_drawn_otherwise():
    points, _ = blobs()
    state = np.random.RandomState(3)

    assert model(random_state=7).fit(points).result_.seed == 7
    assert model(random_state=np.int64(7)).fit(points).result_.seed == 7
    drawn = model(random_state=state)
    assert drawn.fit(points).result_.seed != drawn.fit(points).result_.seed
    again = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
    assert model(random_state=np.random.RandomState(3)).fit(points).result_.seed == again
    np.random.seed(5)  # noqa: NPY002
    first = model(random_state=None).fit(points).result_.seed
    np.random.seed(5)  # noqa: NPY002
    assert model(random_state=None).fit(points).result_.seed == first


def test_independent_of_number_of_threads():
    points, _ = blobs()
    fits = [model(n_jobs=jobs).fit(points, must_link=[(0, 20)]) for jobs in (1, 2, None, -1, -99)]
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fitted.labels_, fits[0].labels_)
        np.testing.assert_array_equal(fitted.cluster_centers_, fits[0].cluster_centers_)
        assert fitted.inertia_ == fits[0].inertia_


def test_callbacks_hear_the_run():
    events = []
    model(callbacks=[events.append]).fit(blobs()[0])

    assert type(events[-1]).__name__ == "Finished"


# Inside scikit-learn


def test_clone_and_set_params():
    original = model(5, gap=0.01, time_limit=3.0)
    copy = clone(original).set_params(n_clusters=2)

    assert copy.get_params() == {**original.get_params(), "n_clusters": 2}
    assert not hasattr(clone(model().fit(blobs()[0])), "labels_")


def test_fit_methods_agree():
    points, _ = blobs()
    pairs = {"must_link": [(0, 20)], "cannot_link": [(1, 2)]}
    fitted = model().fit(points, **pairs)

    np.testing.assert_array_equal(model().fit_predict(points, **pairs), fitted.labels_)
    np.testing.assert_array_equal(model().fit_transform(points, **pairs), fitted.transform(points))


def test_pipeline_with_metadata_routing():
    points, _ = blobs()
    scaled = StandardScaler().fit_transform(points)
    extras = {
        "must_link": [(0, 20)],
        "cannot_link": [(1, 2)],
        "sample_weight": np.linspace(1.0, 2.0, len(points)),
    }
    direct = model().fit(scaled, **extras)

    with sklearn.config_context(enable_metadata_routing=True):
        estimator = model().set_fit_request(must_link=True, cannot_link=True, sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, estimator).fit(points, **extras)
        labels = clone(pipeline).fit_predict(points, **extras)
        distances = clone(pipeline).fit_transform(points, **extras)

    np.testing.assert_array_equal(pipeline[-1].labels_, direct.labels_)
    np.testing.assert_array_equal(labels, direct.labels_)
    np.testing.assert_allclose(distances, direct.transform(scaled))
    np.testing.assert_array_equal(pipeline.predict(points), direct.predict(scaled))


def test_pipeline_without_routing_takes_prefixed_pairs():
    points, _ = blobs()
    pipeline = make_pipeline(StandardScaler(), model())
    labels = pipeline.fit_predict(points, constrainedkmeans__cannot_link=[(0, 1)])

    assert labels[0] != labels[1]


def test_grid_search():
    points, _ = blobs()
    search = GridSearchCV(model(), {"n_clusters": [1, 2, 3]}, cv=3).fit(
        np.random.default_rng(0).permutation(points)
    )
    assert search.best_params_ == {"n_clusters": 3}


def test_dataframe_in_and_out():
    pandas = pytest.importorskip("pandas")
    points, _ = blobs()
    frame = pandas.DataFrame(points, columns=["height", "width"])
    estimator = model().set_output(transform="pandas").fit(frame)

    assert list(estimator.feature_names_in_) == ["height", "width"]
    out = estimator.transform(frame)
    assert list(out.columns) == list(estimator.get_feature_names_out())
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[["width", "height"]])


# The package around it


def test_import_does_not_load_the_compiler():
    code = "import sys, certikmeans.estimator; print('numba' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert run.stdout.strip() == "False"


def test_public_name():
    assert certikmeans.ConstrainedKMeans is ConstrainedKMeans
    # `fit` imports the solver's module, which must not take the place of the function.
    certikmeans.ConstrainedKMeans(2, random_state=0).fit([[0.0], [1.0], [2.0]])
    problem = certikmeans.Problem.from_data([[0.0], [1.0], [2.0]], 2)
    assert certikmeans.solve(problem, seed=0).status in (Status.OPTIMAL, Status.FEASIBLE)
