"""`ConstrainedKMeans` from day to day: warnings, pairs per sample, starts, files, pictures."""

from __future__ import annotations

import builtins
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certikmeans
from certikmeans.errors import InfeasibleError, InputError, MissingExtraError
from certikmeans.estimator import ConstrainedKMeans
from certikmeans.events import BoundImproved, IncumbentFound
from certikmeans.problem.constraints import Constraints
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopSignal

CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])


def blobs(per_cluster=12, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(CENTRES, per_cluster, axis=0) + rng.normal(size=(3 * per_cluster, 2))


def model(n_clusters=3, **params):
    return ConstrainedKMeans(n_clusters, **{"random_state": 0, **params})


# Warnings


def test_missed_gap_warns_with_hint():
    noise = np.random.default_rng(0).normal(size=(200, 6))
    estimator = model(6, bound="sample", gap=0.0025, node_limit=3)
    with pytest.warns(ConvergenceWarning) as heard:
        estimator.fit(noise)

    # A first run may also warn that kernels are compiled.
    caught = [one for one in heard if issubclass(one.category, ConvergenceWarning)]
    text = str(caught[0].message)
    assert estimator.status_ is Status.FEASIBLE
    assert "not 0.25 % as required" in text
    assert estimator.result_.stop_reason.sentence in text
    advice = estimator.result_.advice
    assert advice is not None
    assert advice[1:] in text
    assert caught[0].filename == __file__
    assert len(caught) == 1


def test_no_warning_if_gap_is_reached():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model().fit(blobs()).status_ is Status.OPTIMAL


@pytest.mark.parametrize("y", [[0, 1, -1] * 12, np.array([-1, 0] * 18)])
def test_partial_labels_as_y_warn(y):
    with pytest.warns(UserWarning, match="partial_labels=y"):
        model().fit(blobs(), y)


@pytest.mark.parametrize(
    "y",
    [
        None,
        [0, 1, 2] * 12,
        [-1, 1] * 18,
        [-1] * 36,
        [-2, -1, 0] * 12,
        [0.5, -1.0, 1.0] * 12,
        ["a", "-1", ""] * 12,
        [[0], [1, 2]],
        [None, 3, "x"],
    ],
)
def test_y_is_ignored(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = model().fit(blobs(), y).labels_
    np.testing.assert_array_equal(labels, model().fit(blobs()).labels_)


def test_labels_in_both_places_are_fine():
    known = [0, 1, -1] * 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(blobs(), known, partial_labels=known)


# Pairs in several ways


def test_equal_constraints_in_all_forms():
    points = blobs()
    known = np.full(36, -1)
    known[[0, 20, 30, 5]] = [7, 7, 3, 3]
    said = Constraints.from_partial_labels(known)
    expected = model().fit(points, must_link=said.must_link, cannot_link=said.cannot_link)
    texts = np.where(known < 0, "", known.astype(str))
    numbers = np.where(known < 0, np.nan, known)

    assert expected.labels_[0] == expected.labels_[20] != expected.labels_[30]
    for given in (
        {"partial_labels": known},
        {"partial_labels": known.tolist()},
        {"partial_labels": texts},
        {"partial_labels": numbers},
        {"constraints": said},
        {"groups": known, "cannot_link": said.cannot_link},
        {"constraints": Constraints(said.must_link), "cannot_link": said.cannot_link},
        {"partial_labels": known, "groups": known, "constraints": said},
    ):
        fitted = model().fit(points, **given)
        np.testing.assert_array_equal(fitted.labels_, expected.labels_)
        assert fitted.inertia_ == expected.inertia_


def test_groups_may_share_a_cluster():
    groups = np.full(36, -1)
    groups[[0, 1]], groups[[2, 3]] = 0, 1
    labels = model().fit(blobs(), groups=groups).labels_
    assert len(set(labels[:4])) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partial_labels": [0, 1]}, "partial_labels: 2 labels, but there are 36 samples"),
        ({"groups": [0] * 37}, "groups: 37 labels, but there are 36 samples"),
        ({"groups": np.zeros((36, 2))}, r"groups: labels: expected one label .* shape \(36, 2\)"),
        ({"partial_labels": 3}, "partial_labels: .*not iterable"),
        ({"constraints": [(0, 1)]}, "constraints: expected a Constraints object, got list"),
        ({"constraints": Constraints([(0, 1)], n_points=9)}, "about 9 points, but there are 36"),
        ({"constraints": Constraints([(0, 40)])}, "names point 40, but there are 36"),
        ({"groups": [0] * 36, "must_link": [(0, 40)]}, r"must_link\[0\]: pair \(0, 40\)"),
        ({"start_labels": [0, 1]}, "start_labels: expected 36"),
        ({"initial_centers": [[0.0]]}, "initial_centers: expected"),
    ],
)
def test_bad_lengths_and_kinds(given, message):
    with pytest.raises(InputError, match=message):
        model().fit(blobs(), **given)


def test_metadata_is_split_with_samples():
    order = np.random.default_rng(2).permutation(36)
    points = blobs()[order]
    truth = np.repeat([0, 1, 2], 12)[order]
    known = np.where(np.arange(36) % 2 == 0, truth, -1)
    folds = KFold(4)
    with sklearn.config_context(enable_metadata_routing=True):
        requested = model().set_fit_request(partial_labels=True, groups=True)
        scores = cross_validate(
            requested,
            points,
            cv=folds,
            params={"partial_labels": known, "groups": known.tolist()},
            return_estimator=True,
        )
        search = GridSearchCV(
            model().set_fit_request(partial_labels=True), {"n_clusters": [3, 4]}, cv=3
        ).fit(points, partial_labels=known)
    for fitted, (train, _) in zip(scores["estimator"], folds.split(points), strict=True):
        some = np.flatnonzero(known[train] >= 0)
        same = known[train][some][:, None] == known[train][some]
        labels = fitted.labels_[some]
        assert len(fitted.labels_) == 27
        assert not same.all()
        np.testing.assert_array_equal(labels[:, None] == labels, same)
    assert search.best_estimator_.result_.n_cannot_link == 3


def test_pipeline_passes_metadata():
    points = blobs()
    known = np.where(np.arange(36) % 9 == 0, np.arange(36) // 12, -1)
    start = np.arange(36) // 12
    said = {"partial_labels": known, "constraints": Constraints([(0, 1)]), "start_labels": start}
    with sklearn.config_context(enable_metadata_routing=True):
        requested = model().set_fit_request(**dict.fromkeys(said, True))
        fitted = make_pipeline(StandardScaler(), requested).fit(points, **said)[-1]
    assert fitted.result_.n_cannot_link == 3
    assert fitted.labels_[0] == fitted.labels_[1]


# Starts, executors, stopping


def test_result_not_worse_than_start():
    points = blobs()
    start = np.arange(36) % 3
    sources = []

    def listen(event):
        if isinstance(event, IncumbentFound):
            sources.append(event.source)

    fitted = model(callbacks=[listen]).fit(points, start_labels=start)
    assert sources[0] == "start labels"
    assert fitted.status_ is Status.OPTIMAL
    again = model().fit(points, initial_centers=CENTRES)
    assert again.inertia_ == pytest.approx(fitted.inertia_, rel=1e-3)


class CountingExecutor(ThreadPoolExecutor):
    submitted = 0

    def submit(self, *args, **kwargs):
        self.submitted += 1
        return super().submit(*args, **kwargs)


def test_executor_is_used():
    points = np.random.default_rng(0).normal(size=(3_000, 2))  # enough for several threads
    with CountingExecutor(2) as executor, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        remote = model(4, bound="cluster").fit(points, executor=executor)
        here = model(4, bound="cluster").fit(points)
    assert executor.submitted > 0
    assert remote.lower_bound_ == here.lower_bound_


def test_stop_signal_ends_fit():
    stop = StopSignal()
    points = np.random.default_rng(0).normal(size=(300, 8))

    def interrupt(event):
        if isinstance(event, IncumbentFound | BoundImproved):
            stop.interrupt()

    with pytest.warns(ConvergenceWarning, match="the run was interrupted"):
        fitted = model(6, callbacks=[interrupt]).fit(points, stop=stop)
    assert fitted.result_.stop_reason is StopReason.INTERRUPTED
    assert len(fitted.labels_) == 300


# Files and pictures


def test_certificate_is_accepted(tmp_path):
    points = blobs()
    weights = np.linspace(1.0, 2.0, 36)
    path = tmp_path / "proof.certificate"
    fitted = model(keep_proof=True).fit(
        points, partial_labels=[0, 1, *[-1] * 34], must_link=[(0, 5)], sample_weight=weights
    )
    fitted.write_certificate(path)
    verdict = certikmeans.check_certificate(
        points,
        path.read_bytes(),
        must_link=[(0, 5)],
        cannot_link=[(0, 1)],
        weights=weights,
        n_clusters=3,
    )
    assert verdict.accepted, verdict.message
    assert verdict.cost == pytest.approx(fitted.inertia_)
    assert verdict.lower_bound == pytest.approx(fitted.lower_bound_, rel=1e-6)
    again = tmp_path / "again.certificate"
    pickle.loads(pickle.dumps(fitted)).write_certificate(str(again))
    assert again.read_bytes() == path.read_bytes()
    with pytest.raises(InputError, match="could not be written"):
        fitted.write_certificate(tmp_path / "nowhere" / "proof")


def test_no_certificate_without_a_proof(tmp_path):
    with pytest.raises(InputError, match="keep_proof=True"):
        model().fit(blobs()).write_certificate(tmp_path / "proof.certificate")
    assert not list(tmp_path.iterdir())


def test_html_report(tmp_path):
    path = tmp_path / "fit.html"
    fitted = model().fit(blobs(), cannot_link=[(0, 1)])
    fitted.report(path, title="Three <blobs>")
    page = path.read_text(encoding="utf-8")

    assert "Three &lt;blobs&gt;" in page
    assert "cannot-link" in page
    assert "Progress" in page  # the curves: the trace was kept
    assert "keep_proof" in page
    with pytest.raises(InputError, match="could not be written"):
        fitted.report(tmp_path / "nowhere" / "fit.html")
    with pytest.raises(InputError, match=r"a page of HTML\nhint: name it fit\.html"):
        fitted.report(tmp_path / "fit")


def test_traceback_of_contradictions_is_short():
    """A notebook shows every frame with its source, before the message."""
    pairs = {"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]}
    with pytest.raises(InfeasibleError) as caught:
        model().fit(blobs(), **pairs)
    assert [entry.name for entry in caught.traceback][1:] == ["fit"]
    assert caught.value.__suppress_context__


def test_tables_for_notebooks(tmp_path):
    fitted = model(keep_proof=True).fit(blobs())
    verdict = certikmeans.check_certificate(
        blobs(), fitted.write_certificate(tmp_path / "proof.certificate")
    )
    certainty = fitted.result_.certainty(0.02)
    (question, *_) = fitted.result_.questions(slack=0.2)
    found = certikmeans.elbow(blobs(), [1, 2])
    shown = [one._repr_html_() for one in (fitted.result_, verdict, certainty, question, found)]
    words = ["lower bound", "accepted", "of 36 points", "in the same cluster?", "K</th>"]
    for text, word in zip(shown, words, strict=True):
        assert text.startswith("<table>")
        assert word in text


def test_plot():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    fitted = model().fit(blobs(), must_link=[(0, 1)])
    _, axes = pyplot.subplots()
    assert fitted.plot(axes) is axes
    assert axes.get_title().startswith("3 clusters, cost ")
    assert fitted.plot(ax=None) is not axes
    line = model(2).fit(blobs()[:, :1]).plot()
    assert "the vertical axis only separates" in line.get_title()
    pyplot.close("all")


def test_pictures_without_matplotlib_name_the_extra(monkeypatch):
    fitted = model().fit(blobs())
    load = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"certikmeans\[plot\]"):
        fitted.plot()


def test_nothing_to_show_before_fit(tmp_path):
    with pytest.raises(NotFittedError):
        model().plot()
    for method in ("report", "write_certificate"):
        with pytest.raises(NotFittedError):
            getattr(model(), method)(tmp_path / "file")


# What it says, and whether it can be copied


def test_verbose_says_how_it_goes(capsys):
    model().fit(blobs())
    assert capsys.readouterr() == ("", "")
    model(verbose=1).fit(blobs())
    said = capsys.readouterr()
    assert said.out == ""
    assert "finished, optimal" in said.err


def test_every_parameter_can_be_cloned():
    requested = model(keep_proof=True, verbose=1)
    assert clone(requested).get_params() == requested.get_params()
    fitted = requested.fit(blobs(), stop=StopSignal())
    assert not any(isinstance(value, threading.Thread) for value in vars(fitted).values())
    assert clone(fitted).get_params() == requested.get_params()


def test_feature_names_reach_the_picture(monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("agg")
    frame = pandas.DataFrame(blobs(), columns=["height", "width"])
    assert model().fit(frame).plot().get_xlabel() == "height"
