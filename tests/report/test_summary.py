"""Entries of the summary, and their validity."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import solve
from certikmeans.events import PresolveDone
from certikmeans.problem import Problem
from certikmeans.report.summary import proven_statement, summarize
from certikmeans.result import Result
from certikmeans.status import Status, StopReason
from tests.report.examples import make_result

SQUARE = Problem.from_data(
    [[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]],
    n_clusters=2,
    must_link=[(0, 1)],
    cannot_link=[(1, 2), (1, 3)],
)
GOOD = [0, 0, 1, 1]


def line(text: str, label: str) -> str:
    """Return the entry called ``label``, its lines joined."""
    entry = re.search(rf"^{label} .*(?:\n .*)*", text, flags=re.MULTILINE)
    assert entry is not None, f"no entry {label!r} in\n{text}"
    return " ".join(entry.group().split())


def test_all_entries():
    text = summarize(
        make_result(SQUARE, GOOD),
        SQUARE,
        presolve=PresolveDone(0.1, 4, 3, 2, 1, 3),
        requested_gap=1e-3,
        agreement=0.5,
    )
    assert "The labelling respects every constraint" in line(text, "Status")
    assert line(text, "Cost").startswith("Cost 1 (")
    assert line(text, "Lower bound").startswith("Lower bound 0.8 (sample bound)")
    assert line(text, "Gap") == "Gap 20 % (requested: 0.1 %)"
    assert line(text, "Clusters") == "Clusters 2 clusters, number of points: 2, 2"
    assert line(text, "Pairs") == "Pairs 1 must-link and 2 cannot-links, all respected"
    assert line(text, "Agreement").startswith("Agreement adjusted Rand index 0.5000")
    assert "3 groups in 2 dimensions, 1 component of cannot-linked" in line(text, "Input")
    assert line(text, "Time") == "Time 2.00 s (presolve 0.10 s, bounds 0.40 s, heuristics 1.50 s)"
    assert max(map(len, text.splitlines())) <= 88
    assert text.isascii()


@pytest.mark.parametrize(
    ("labels", "claim"),
    [
        ([0, 1, 1, 1], "1 of 1 must-link and 2 of 2 cannot-links"),
        ([0, 0, 0, 1], "1 of 2 cannot-links"),
    ],
)
def test_violated_pairs_counted(labels, claim):
    pairs = line(summarize(make_result(SQUARE, labels), SQUARE), "Pairs")
    assert "BROKEN" in pairs
    assert claim in pairs
    assert "respected" not in pairs


@pytest.mark.parametrize("bound", [0.1, 0.3, 2 / 3, 0.7, 0.999, np.nextafter(1.0, 0.0)])
def test_stated_excess_is_valid(bound):
    result = make_result(SQUARE, GOOD, lower_bound=float(bound))
    shown = re.search(r"at most (\S+) % more", proven_statement(result))
    assert shown is not None
    allowed = Fraction(result.lower_bound) * (1 + Fraction(shown.group(1)) / 100)
    assert allowed >= Fraction(result.cost)


def test_weights_mentioned():
    equal, heavy = (
        Problem.from_data(SQUARE.points, 2, weights=weights) for weights in ([1] * 4, [1, 1, 1, 2])
    )
    assert "(squared distances" in line(summarize(make_result(equal, GOOD), equal), "Cost")
    assert "(weighted squared" in line(summarize(make_result(heavy, GOOD), heavy), "Cost")


def test_zero_bound():
    result = make_result(SQUARE, GOOD, lower_bound=0.0)
    assert "nothing about the distance" in line(summarize(result, SQUARE), "Proven")


def test_closed_gap():
    result = make_result(SQUARE, GOOD, lower_bound=1.0, status=Status.OPTIMAL)
    assert "this one is optimal" in line(summarize(result, SQUARE), "Proven")


def test_no_cost_without_labels():
    for changes in (
        {},
        {
            "status": Status.INFEASIBLE,
            "stop_reason": StopReason.PROVEN_INFEASIBLE,
            "lower_bound": np.inf,
        },
    ):
        result = make_result(SQUARE, None, **changes)
        text = summarize(result, SQUARE)
        assert "Cost" not in text
        assert "Gap" not in text
        assert result.status.sentence.split(";")[0] in line(text, "Status")


def test_many_and_empty_clusters():
    problem = Problem.from_data(np.arange(40.0).reshape(-1, 1), 20)
    text = line(summarize(make_result(problem, np.arange(40) // 4), problem), "Clusters")
    assert text.endswith(", ..., 0 (10 clusters empty)")


def test_result_summary():
    result = solve(SQUARE)
    text = result.summary()
    assert line(text, "Pairs") == "Pairs 1 must-link and 2 cannot-links, all respected"
    assert text == summarize(result, SQUARE)
    read = Result.from_json(result.to_json())
    assert line(read.summary(), "Pairs") == "Pairs 1 must-link and 2 cannot-links"
    assert line(read.summary(), "Cost") == line(text, "Cost")
