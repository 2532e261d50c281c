"""Violated soft pairs in the summary, the report and the plot."""

from __future__ import annotations

import pytest

from certikmeans import Problem, solve
from certikmeans.report.html import report_html
from certikmeans.report.plots import plot_clusters
from certikmeans.report.summary import summarize


@pytest.fixture(scope="module")
def solved():
    """Two groups of points on a line; a soft pair of each kind is violated, and kept ones."""
    problem = Problem.from_data(
        [[0.0, 0.0], [1.0, 0.0], [20.0, 0.0], [21.0, 1.0]],
        2,
        soft_must_link=[(0, 3, 2.5), (0, 1, 4.0)],
        soft_cannot_link=[(2, 3, 0.25), (1, 2, 8.0)],
    )
    return problem, solve(problem)


def test_result_lists_the_violated_pairs(solved):
    _, result = solved
    assert [tuple(one) for one in result.violated_soft_pairs] == [
        ("must_link", 0, 3, 2.5),
        ("cannot_link", 2, 3, 0.25),
    ]
    assert result.sum_of_squares == pytest.approx(1.5)
    assert result.penalty == pytest.approx(2.75)
    assert result.cost == pytest.approx(4.25)
    assert result.gap <= 1e-3


def test_summary_states_both_parts_of_the_cost(solved):
    problem, result = solved
    text = " ".join(summarize(result, problem).split())
    assert "squared distances to the centres, 2.75" in text
    assert "violated: 1 of 2 soft must-links and 1 of 2 soft cannot-links" in text


def test_report_lists_the_violated_pairs(solved):
    problem, result = solved
    page = report_html(problem, result)
    assert "2 soft must-links and 2 soft cannot-links, 2 violated" in page
    assert "<td>must-link</td><td>0</td><td>3</td>" in page
    assert "<span>penalties</span><b>2.75" in page


def test_plot_draws_the_violated_pairs(solved):
    pytest.importorskip("matplotlib")
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    problem, result = solved
    axes = Figure().subplots()
    plot_clusters(problem, result, axes)
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "violated soft must-link (1)" in legend
    assert "violated soft cannot-link (1)" in legend
    lines = [one for one in axes.collections if isinstance(one, LineCollection)]
    assert sum(len(one.get_segments()) for one in lines) == 2
