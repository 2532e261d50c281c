"""Certainty as text, in figures and in the report."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.report.certainty import (
    box_lines,
    certainty_caption,
    certainty_lines,
    uncertain_points,
)
from certikmeans.report.html import report_html
from certikmeans.report.plot_data import project
from certikmeans.report.plots import plot_clusters


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    coordinates = ((0.0, 0.0), (4.0, 0.0), (0.0, 9.0))
    points = np.concatenate([rng.normal(place, 1.6, size=(12, 2)) for place in coordinates])
    problem = Problem.from_data(points, 3)
    result = solve(problem, jobs=1)
    return problem, result, result.certainty(0.03)


def test_fixture_has_certain_and_uncertain_points(run):
    _, _, certainty = run
    assert 0 < certainty.certain.sum() < 36


def test_text_matches_json(run):
    _, _, certainty = run
    lines = certainty_lines(certainty)
    assert f"{36 - certainty.most_elsewhere} of 36 points" in lines[1]
    assert "within 3 % of the cost" in repr(certainty)
    document = json.loads(json.dumps(certainty.to_dict(), allow_nan=False))
    assert document["n_certain"] == certainty.certain.sum()
    assert len(document["possible"]) == 36 - document["n_certain"]


def test_rings_and_boxes(run):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    problem, result, certainty = run
    axes = plot_clusters(problem, result, Figure().subplots(), certainty=certainty)
    rings = len(uncertain_points(certainty, np.arange(36)))
    assert rings == 36 - certainty.certain.sum()
    assert len(axes.collections[-1].get_offsets()) == rings
    distinguished = sum(len(family) == 1 for family in certainty.families)
    assert len(axes.patches) == distinguished > 0
    assert "ringed" in axes.get_title()
    assert not plot_clusters(problem, result, Figure().subplots()).patches


def test_report_section(run):
    problem, result, certainty = run
    assert "What is certain" in report_html(problem, result, certainty=certainty)
    assert "What is certain" not in report_html(problem, result)


def test_svg_file(run):
    pytest.importorskip("matplotlib")
    from certikmeans.report.plots import render_figure
    from certikmeans.report.trace import Trace

    problem, result, certainty = run
    plain = render_figure(problem, result, Trace(), "svg")
    marked = render_figure(problem, result, Trace(), "svg", certainty=certainty)
    assert len(marked) > len(plain)


def test_projected_boxes_contain_centers(run):
    _, _, certainty = run
    rng = np.random.default_rng(1)
    for d in (1, 2, 5):
        points = rng.normal(size=(20, d))
        boxes = np.sort(rng.normal(size=(4, d, 2)), axis=2)
        view = project(points, np.arange(20), np.zeros(20, dtype=np.int64))
        frames = view.project_boxes(boxes)
        for share in rng.random((10, d)):
            inside = boxes[:, :, 0] + share * (boxes[:, :, 1] - boxes[:, :, 0])
            drawn = view.project_centers(inside, np.arange(4))
            assert np.all(frames[:, :, 0] <= drawn + 1e-12)
            assert np.all(drawn <= frames[:, :, 1] + 1e-12)
    assert len(certainty.families) >= 1


def test_nothing_proven(run):
    problem, result, _ = run
    nothing = result.certainty(1.0)
    assert nothing.agreement == 0.0
    assert box_lines(nothing) == []
    assert "nothing is proven" in certainty_lines(nothing)[0]
    assert "nothing is proven" in certainty_caption(nothing)
    assert "ringed" not in report_html(problem, result, certainty=nothing)


def test_only_overlap_proven(run):
    problem, result, certainty = run
    some = dataclasses.replace(
        certainty,
        certain=np.zeros(36, dtype=bool),
        possible=np.ones((36, 3), dtype=bool),
        families=((0, 1, 2),),
        confusable=((0, 1, 36), (0, 2, 36), (1, 2, 36)),
        method="semidefinite overlap",
        reason="this many",
    )
    assert len(certainty_lines(some)) == 3
    assert box_lines(some) == []
    assert "ringed" not in certainty_caption(some)
    assert f"{36 - certainty.most_elsewhere} of 36 points keep their cluster" in certainty_caption(
        some
    )
    assert "ringed" not in report_html(problem, result, certainty=some)


def test_boxes_are_rounded_outward(run):
    _, _, certainty = run
    lines = box_lines(certainty, ("a", "b"))
    shown = np.array([[float(side) for side in line[16:].split(" .. ")] for line in lines[1:]])
    boxes = certainty.center_boxes.reshape(-1, 2)
    assert len(shown) == len(boxes) == 6
    assert np.all(shown[:, 0] <= boxes[:, 0])
    assert np.all(boxes[:, 1] <= shown[:, 1])
    assert np.all(np.abs(shown - boxes) <= 1e-5 * np.abs(boxes))


def test_slack_in_full_precision():
    # Labellings within 0.1 % are more than what this speaks of.
    certainty = solve(Problem.from_data([[0.0], [1.0], [5.0], [6.0]], 2)).certainty(0.00099999996)
    for text in (repr(certainty), certainty_lines(certainty)[0], certainty_caption(certainty)):
        assert "within 0.099999996 % of the cost" in text
