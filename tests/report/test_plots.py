"""Figures of inputs of every shape, and captions about subsamples."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from certikmeans.errors import InputError, MissingExtraError
from certikmeans.problem import Problem
from certikmeans.report import plots
from certikmeans.report.plot_data import (
    COLORS,
    MARKERS,
    cluster_color,
    cluster_marker,
    project,
    subsample_pairs,
    subsample_points,
)
from certikmeans.report.trace import Trace
from certikmeans.status import Status, StopReason
from tests.report.examples import make_result, make_trace

PNG = b"\x89PNG\r\n\x1a\n"


def blobs(n_points: int, n_features: int, n_clusters: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_points) % n_clusters
    return rng.normal(size=(n_points, n_features)) + 5.0 * labels[:, None], labels


@pytest.mark.parametrize(
    ("n_points", "n_features", "n_clusters"),
    [(1, 1, 1), (1, 3, 1), (2, 2, 2), (30, 1, 3), (60, 4, 80 // 4), (30, 400, 3), (1, 400, 1)],
)
def test_figure_of_any_shape(n_points, n_features, n_clusters):
    points, labels = blobs(n_points, n_features, n_clusters)
    pairs = [(0, 1)] if n_points > 1 else []
    problem = Problem.from_data(points, n_clusters, cannot_link=pairs)
    result = make_result(problem, labels)
    assert plots.render_figure(problem, result, make_trace(result)).startswith(PNG)


@pytest.mark.parametrize("scale", [0.0, 1e-60, 1e55])
def test_figure_of_extreme_points(scale):
    points, labels = blobs(12, 2, 2)
    problem = Problem.from_data(scale * points, 2)
    result = make_result(problem, labels)
    assert plots.render_figure(problem, result, make_trace(result)).startswith(PNG)


def test_figure_without_labels_or_events():
    points, labels = blobs(12, 2, 2)
    problem = Problem.from_data(points, 2, must_link=[(0, 1)], cannot_link=[(0, 1)])
    infeasible = make_result(
        problem,
        None,
        status=Status.INFEASIBLE,
        stop_reason=StopReason.PROVEN_INFEASIBLE,
        lower_bound=np.inf,
    )
    assert plots.render_figure(problem, infeasible, make_trace(infeasible)).startswith(PNG)
    assert plots.render_figure(problem, make_result(problem, labels), Trace()).startswith(PNG)


def captions(monkeypatch, problem, result) -> str:
    notes: list[str] = []
    monkeypatch.setattr(plots, "_caption", lambda figure, found: notes.extend(found))
    assert plots.render_figure(problem, result, make_trace(result)).startswith(PNG)
    return "; ".join(notes)


def test_subsample_in_caption(monkeypatch):
    points, labels = blobs(100_000, 2, 3)
    ends = np.arange(90_000).reshape(-1, 3)
    problem = Problem.from_data(points, 3, cannot_link=ends[:, :2])
    note = captions(monkeypatch, problem, make_result(problem, labels))
    assert note == "20,000 of 100,000 points drawn; 300 of 30,000 pairs drawn"


def test_no_caption_without_subsample(monkeypatch):
    points, labels = blobs(100, 2, 3)
    problem = Problem.from_data(points, 3, cannot_link=[(0, 1)], must_link=[(0, 3)])
    assert captions(monkeypatch, problem, make_result(problem, labels)) == ""


@pytest.mark.parametrize(
    ("n_must", "n_cannot", "shown"),
    [(10, 5, (10, 5)), (1000, 5, (295, 5)), (5, 1000, (5, 295)), (400, 400, (150, 150))],
)
def test_subsample_of_pairs(n_must, n_cannot, shown):
    points, _ = blobs(2001, 2, 3)
    line = np.stack([np.arange(2000), np.arange(1, 2001)], axis=1)
    problem = Problem.from_data(points, 3, must_link=line[:n_must], cannot_link=line[:n_cannot])
    must, cannot = subsample_pairs(problem, np.random.default_rng(0))
    assert (len(must), len(cannot)) == shown


def test_subsample_contains_pairs():
    pairs = np.array([[0, 99_999], [17, 4711]])
    shown = subsample_points(100_000, pairs, np.random.default_rng(0), plots.MAX_POINTS)
    assert len(np.unique(shown)) == len(shown) == plots.MAX_POINTS
    assert np.isin(pairs, shown).all()


def test_projection_of_planar_data():
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(20, 2)) * (3.0, 1.0)
    turned = plane @ np.linalg.qr(rng.normal(size=(5, 5)))[0][:2] + 7.0
    view = project(turned, np.arange(20), None)
    assert not view.is_one_dimensional
    expected = np.linalg.norm(plane[:, None] - plane[None], axis=2)
    drawn = np.linalg.norm(view.coordinates[:, None] - view.coordinates[None], axis=2)
    np.testing.assert_allclose(drawn, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(view.project_centers(turned[:2], np.arange(2)), view.coordinates[:2])


def test_two_features_not_projected():
    points, labels = blobs(12, 2, 2)
    view = project(points, np.arange(12), labels, ("sepal length", "cost in $"))
    assert view.axis_names == ("sepal length", "cost in $")
    np.testing.assert_array_equal(view.coordinates, points)
    np.testing.assert_array_equal(view.project_centers(points[:3], np.arange(3)), points[:3])
    problem = Problem.from_data(points, 2)
    result = make_result(problem, labels)
    names = ("$x^$", "y")  # not a formula
    assert plots.render_figure(problem, result, make_trace(result), "png", names).startswith(PNG)
    assert project(points, np.arange(12), labels).axis_names == ("first feature", "second feature")
    one = project(points[:, :1], np.arange(12), labels, ("height",))
    assert one.axis_names[0] == "height, centred"


def test_format_by_suffix():
    points, labels = blobs(12, 2, 2)
    problem = Problem.from_data(points, 2)
    result = make_result(problem, labels)
    for name, start in (("a.png", PNG), ("b.svg", b"<?xml"), ("c.pdf", b"%PDF")):
        file_format = plots.figure_format(Path(name))
        made = plots.render_figure(problem, result, make_trace(result), file_format)
        assert made.startswith(start)
    with pytest.raises(InputError, match="cannot be written as"):
        plots.figure_format(Path("a.gif"))


def test_matplotlib_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"certikmeans\[plot\]"):
        plots.require_matplotlib()


def test_pyplot_not_imported():
    points, labels = blobs(12, 2, 2)
    problem = Problem.from_data(points, 2)
    result = make_result(problem, labels)
    before = "matplotlib.pyplot" in sys.modules
    plots.render_figure(problem, result, make_trace(result))
    assert ("matplotlib.pyplot" in sys.modules) == before


def lab(colour: str) -> np.ndarray:
    """Return CIELAB coordinates, in which distances are perceptual."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = to_xyz @ linear / (0.9505, 1.0, 1.089)
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def test_colors_and_markers_distinct():
    assert len({cluster_color(k) for k in range(10)}) == 10
    assert len({cluster_marker(k) for k in range(10)}) == 10
    for first in range(len(COLORS)):
        for second in range(first):
            distance = np.linalg.norm(lab(COLORS[first]) - lab(COLORS[second]))
            assert distance > 18.0, (COLORS[first], COLORS[second])
    both = {(cluster_color(k), cluster_marker(k)) for k in range(len(COLORS) * len(MARKERS))}
    assert len(both) == len(COLORS) * len(MARKERS)


def test_percent_axis(monkeypatch):
    from matplotlib.figure import Figure

    points, labels = blobs(60, 2, 3)
    problem = Problem.from_data(points, 3)
    result = make_result(problem, labels)
    seen = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: seen.append(figure))
    plots.render_figure(problem, result, make_trace(result))
    seen[0].canvas.draw()
    right = seen[0].axes[1].child_axes[0]
    assert right.get_ylabel().startswith("below the best cost, in %")
    low, high = right.get_ylim()
    assert max(low, high) > 20.0 > min(low, high)  # the bound is 20 % below


def test_figure_without_trace(monkeypatch):
    from matplotlib.figure import Figure

    points, labels = blobs(12, 2, 2)
    problem = Problem.from_data(points, 2)
    seen = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: seen.append(figure))
    plots.render_figure(problem, make_result(problem, labels), Trace())
    assert [text.get_text() for text in seen[0].axes[1].texts] == ["nothing was recorded"]
