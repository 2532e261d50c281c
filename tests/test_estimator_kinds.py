"""Estimator and `elbow` with sets, sizes and soft pairs: every option, every error."""

from __future__ import annotations

import itertools
import signal
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from certikmeans import (
    ConstrainedKMeans,
    Constraints,
    InputError,
    check_certificate,
    elbow,
)
from certikmeans._estimator_utils import labels_within_sizes
from certikmeans.status import StopReason

POINTS = np.random.default_rng(3).normal(size=(7, 2)).round(3)


def least(points, k, feasible, price=lambda labels: 0.0):
    """Cost of the best labelling, over all of them."""
    best = np.inf
    for labels in itertools.product(range(k), repeat=len(points)):
        labels = np.array(labels)
        if feasible(labels):
            parts = [points[labels == j] for j in range(k) if (labels == j).any()]
            cost = sum(((part - part.mean(0)) ** 2).sum() for part in parts) + price(labels)
            best = min(best, cost)
    return best


def sizes(labels, k):
    return np.sort(np.bincount(labels, minlength=k))


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"size_min": 2}, lambda n: n.min() >= 2),
        ({"size_max": 3}, lambda n: n.max() <= 3),
        ({"size_min": 2, "size_max": 3}, lambda n: n.min() >= 2 and n.max() <= 3),
        ({"balanced": True}, lambda n: n.tolist() == [2, 2, 3]),
        ({"size_max": [1, 2, 4]}, lambda n: (n <= [1, 2, 4]).all()),
    ],
)
def test_sizes(settings, allowed):
    model = ConstrainedKMeans(3, random_state=0, gap=1e-6, **settings).fit(POINTS)
    assert allowed(sizes(model.labels_, 3))
    best = least(POINTS, 3, lambda labels: allowed(sizes(labels, 3)))
    assert model.inertia_ == pytest.approx(best, rel=1e-6)
    assert model.lower_bound_ <= best * (1 + 1e-12)


def test_positional_limits_as_in_k_means_constrained():
    model = ConstrainedKMeans(3, 2, 3, random_state=0)
    assert (model.size_min, model.size_max) == (2, 3)
    assert clone(model).get_params()["size_min"] == 2
    assert sizes(model.fit_predict(POINTS), 3).tolist() == [2, 2, 3]


def test_demand():
    demand = np.array([3.0, 1, 1, 1, 1, 1, 2])

    def allowed(labels):
        return np.bincount(labels, demand, 2).max() <= 6

    model = ConstrainedKMeans(2, size_max=6, random_state=0, time_limit=5)
    model.fit(POINTS, demand=demand)
    assert allowed(model.labels_)
    assert model.inertia_ == pytest.approx(least(POINTS, 2, allowed), rel=1e-6)


def test_cannot_link_groups():
    groups = [0, 0, 0, 1, 1, -1, -1]

    def allowed(labels):
        return len(set(labels[:3])) == 3 and labels[3] != labels[4]

    model = ConstrainedKMeans(3, random_state=0, gap=1e-6)
    model.fit(POINTS, cannot_link_groups=groups)
    assert allowed(model.labels_)
    assert model.inertia_ == pytest.approx(least(POINTS, 3, allowed), rel=1e-6)
    several = np.column_stack([[0, 0, -1, -1, -1, -1, -1], [-1, 0, 0, -1, -1, -1, -1]])
    model.fit(POINTS, cannot_link_groups=several)
    assert model.labels_[0] != model.labels_[1] != model.labels_[2]


def test_soft_pairs():
    must, cannot = [(0, 1, 0.7), (2, 3, 0.2)], [(4, 5, 0.9), (0, 6, 0.1)]

    def price(labels):
        return sum(p for i, j, p in must if labels[i] != labels[j]) + sum(
            p for i, j, p in cannot if labels[i] == labels[j]
        )

    model = ConstrainedKMeans(2, random_state=0, gap=1e-6)
    model.fit(POINTS, soft_must_link=must, soft_cannot_link=cannot)
    best = least(POINTS, 2, lambda labels: True, price)
    assert model.inertia_ == pytest.approx(best, rel=1e-6)
    assert model.result_.penalty == pytest.approx(price(model.labels_), abs=1e-9)
    held = Constraints.from_pairs(soft_must_link=must, soft_cannot_link=cannot, n_points=7)
    assert model.fit(POINTS, constraints=held).inertia_ == pytest.approx(best, rel=1e-6)


def test_constraints_of_all_arguments_are_combined():
    held = Constraints(
        cannot_link=[(0, 1)], n_points=7, cannot_link_groups=[0, -1, 0, -1, -1, -1, -1]
    )
    model = ConstrainedKMeans(3, random_state=0).fit(
        POINTS,
        constraints=held,
        cannot_link_groups=[-1, 5, 5, -1, -1, -1, -1],
        soft_must_link=[(3, 4, 100.0)],
        must_link=[(5, 6)],
    )
    labels = model.labels_
    assert len(set(labels[:3])) == 3
    assert labels[3] == labels[4]
    assert labels[5] == labels[6]


@pytest.mark.parametrize(
    ("settings", "given", "message", "hint"),
    [
        ({"size_min": 0.2}, {}, "size_min: 0.2 is not a number of points", "for example 1"),
        ({"size_max": 2.5}, {}, "size_max: 2.5 is not a number of points", "whole number"),
        ({"size_max": [1, 2]}, {}, "size_max: 2 numbers for 3 clusters", "one per cluster"),
        ({"size_min": -1}, {}, "size_min: -1 of cluster 0 is not a size", "0 or more"),
        ({"size_min": "few"}, {}, "size_min: not a number", "number"),
        ({"size_min": 3, "size_max": 2}, {}, "size_min: 3 exceeds size_max", "at most"),
        ({"balanced": True, "size_min": 2}, {}, "balanced: it sets size_min", "leave out"),
        ({"balanced": True}, {"demand": [1] * 7}, "balanced: it counts samples", "sums"),
        ({}, {"demand": [1] * 7 + [2]}, "demand: expected shape (7,)", "one number per point"),
        ({}, {"demand": [2] * 7}, "demand: there is no limit", "size_min or size_max"),
        ({"size_max": 9}, {"demand": [-1] * 7}, "demand: row 0 is -1", "from 0"),
        ({}, {"cannot_link_groups": [0, 1]}, "cannot_link_groups: 2 numbers for 7", "one whole"),
        ({}, {"cannot_link_groups": [0.5] * 7}, "cannot_link_groups: row 0 is 0.5", "one whole"),
        ({}, {"soft_must_link": [(0, 1)]}, "soft_must_link: expected three columns", "penalty"),
        ({}, {"soft_must_link": [(0, 9, 1)]}, "soft_must_link[0]: (0, 9)", "0 to 6"),
        ({}, {"soft_cannot_link": [(0, 1, -1)]}, "soft_cannot_link[0]: the penalty", "other list"),
        ({}, {"soft_cannot_link": [(0, 1, np.nan)]}, "the penalty is nan", "0 or more"),
    ],
)
def test_errors(settings, given, message, hint):
    with pytest.raises(InputError) as caught:
        ConstrainedKMeans(3, **settings).fit(POINTS, **given)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_predict_ignores_the_sizes_of_fit():
    model = ConstrainedKMeans(3, balanced=True, random_state=0).fit(POINTS)
    assert model.predict(POINTS[:1]).shape == (1,)
    assert model.predict(np.vstack([POINTS] * 2)).shape == (14,)


@pytest.mark.parametrize("seed", range(6))
def test_predict_within_sizes(seed):
    rng = np.random.default_rng(seed)
    costs = rng.random((6, 3)).round(2)
    low, high = rng.integers(0, 3, size=3), rng.integers(2, 5, size=3)

    def total(labels):
        return costs[np.arange(6), labels].sum()

    every = (np.array(labels) for labels in itertools.product(range(3), repeat=6))
    within = [
        labels
        for labels in every
        if (np.bincount(labels, minlength=3) >= low).all()
        and (np.bincount(labels, minlength=3) <= high).all()
    ]
    assert within
    found = labels_within_sizes(costs, low, high)
    assert total(found) == pytest.approx(min(map(total, within)))
    assert (np.bincount(found, minlength=3) <= high).all()
    assert (np.bincount(found, minlength=3) >= low).all()


@pytest.mark.parametrize("seed", range(8))
def test_predict_within_demands(seed):
    rng = np.random.default_rng(seed)
    costs = rng.random((6, 3))
    demand = rng.integers(0, 4, size=6) if seed % 2 else rng.uniform(0.0, 2.0, size=6)
    low, high = 0.2 * demand.sum(), 0.5 * demand.sum()

    def fits(labels):
        sums = np.bincount(labels, demand, minlength=3)
        return (sums >= low - 1e-9).all() and (sums <= high + 1e-9).all()

    every = (np.array(labels) for labels in itertools.product(range(3), repeat=6))
    within = [costs[np.arange(6), labels].sum() for labels in every if fits(labels)]
    if not within:
        with pytest.raises(InputError, match="fit"):
            labels_within_sizes(costs, low, high, demand)
    else:
        found = labels_within_sizes(costs, low, high, demand)
        assert fits(found)
        assert costs[np.arange(6), found].sum() <= 1.3 * min(within)


def test_predict_with_demand():
    model = ConstrainedKMeans(3, random_state=0).fit(POINTS)
    demand = [3.0, 1.0, 1.0, 1.0, 1.0, 2.0]
    labels = model.predict(POINTS[:6], size_min=3, size_max=3, demand=demand)
    assert np.bincount(labels, demand).tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(InputError, match="no limit"):
        model.predict(POINTS[:6], demand=demand)
    with pytest.raises(InputError, match="demand: expected shape"):
        model.predict(POINTS[:6], size_max=5, demand=demand[:3])


def test_predict_with_limits_that_do_not_fit():
    model = ConstrainedKMeans(3, random_state=0).fit(POINTS)
    assert sizes(model.predict(POINTS[:6], size_min=2, size_max=2), 3).tolist() == [2, 2, 2]
    with pytest.raises(InputError, match="7 samples do not fit into 3 clusters") as caught:
        model.predict(POINTS, size_max=2)
    assert "nearest centres" in caught.value.hint


def test_warning_about_empty_clusters():
    with pytest.warns(ConvergenceWarning, match="2 of n_clusters=3 clusters are used"):
        ConstrainedKMeans(3, random_state=0).fit([[0.0], [0.0], [1.0], [1.0]])


def test_elbow_with_sizes_keeps_bounds_apart():
    """With a least size the optimal cost may increase with K, so bounds do not carry over."""
    points = np.array([[0.0], [0.1], [9.0], [9.1], [9.2], [9.3]])
    found = elbow(points, [2, 3], size_min=2, gap=1e-6)
    for k, low, cost in zip([2, 3], found.lower_bound, found.inertia, strict=True):
        best = least(points, k, lambda labels, k=k: sizes(labels, k).min() >= 2)
        assert low <= best * (1 + 1e-12)
        assert cost == pytest.approx(best, rel=1e-6)
    assert sizes(elbow(points, [3], balanced=True).results[0].labels, 3).tolist() == [2, 2, 2]
    with pytest.raises(InputError, match="size_max: expected one number"):
        elbow(points, [2, 3], size_max=[3, 3])


def _interrupt_at_once(event):
    signal.raise_signal(signal.SIGINT)


def test_interrupt_before_there_is_a_labelling():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ConstrainedKMeans(3, callbacks=[_interrupt_at_once]).fit(POINTS)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt_at_first_incumbent(event):
    if type(event).__name__ == "IncumbentFound":
        signal.raise_signal(signal.SIGINT)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need this thread"
)
def test_interrupt_keeps_the_labelling():
    points = np.random.default_rng(0).normal(size=(300, 8))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = ConstrainedKMeans(6, random_state=0, callbacks=[_interrupt_at_first_incumbent])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(points)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.result_.stop_reason is StopReason.INTERRUPTED
    assert model.labels_.shape == (300,)
    assert 0.0 <= model.lower_bound_ <= model.inertia_


def test_limits_of_clusters_in_any_order(tmp_path):
    """Clusters are renumbered by their centres; certificate and start labels still fit."""
    settings = {"size_max": [1, 2, 4], "random_state": 0}
    model = ConstrainedKMeans(3, keep_proof=True, **settings).fit(POINTS)
    verdict = check_certificate(POINTS, model.write_certificate(tmp_path / "proof"))
    assert verdict, verdict.message
    again = ConstrainedKMeans(3, **settings).fit(POINTS, start_labels=model.labels_)
    assert again.inertia_ <= model.inertia_
