"""`Result` as a value: one line, a small table, and back from JSON."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from certikmeans.errors import InputError
from certikmeans.problem import Problem
from certikmeans.result import Result
from certikmeans.solver.run import solve
from certikmeans.status import Status


def solved(n_clusters=3, **settings):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(24, 2)) + 6.0 * rng.integers(3, size=(24, 1))
    pairs = {"must_link": [(0, 1)], "cannot_link": [(1, 2)]}
    return solve(Problem.from_data(points, n_clusters, **pairs), **settings)


def infeasible():
    pairs = {"must_link": [(0, 1)], "cannot_link": [(0, 1)]}
    return solve(Problem.from_data([[0.0], [1.0], [2.0]], 2, **pairs))


def test_cost_is_shown_without_rounding_errors():
    result = solve(Problem.from_data([[0.0], [5.0]], 1))
    assert result.cost > 12.5
    assert "cost 12.5," in repr(result)
    assert "12.5 (squared distances" in result.summary()


def test_json_there_and_back_loses_no_digit():
    result = solved(keep_proof=True)
    back = Result.from_json(result.to_json())

    assert result.proof is not None
    for field in dataclasses.fields(Result):
        expected, got = getattr(result, field.name), getattr(back, field.name)
        if field.name in ("proof", "basis"):
            assert got is None
        elif isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
        else:
            assert got == expected, field.name
    assert back.gap == result.gap
    assert back.to_json() == result.to_json()


def test_infeasible_result_from_json():
    result = infeasible()
    back = Result.from_json(result.to_json().encode())

    assert result.infeasibility is not None
    assert back.infeasibility is None
    assert back.status is Status.INFEASIBLE
    assert back.labels is None
    assert back.cost == back.lower_bound == np.inf


def test_extra_keys_of_the_command_line_are_passed_over():
    result = solved()
    document = {**result.to_dict(), "options": {"gap": 0.1}, "points_counted_from": 0}
    assert Result.from_json(json.dumps(document)).to_json() == result.to_json()


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "{}", '{"status": "splendid"}', '{"status": "optimal"}', "3"]
)
def test_other_text_is_refused(text):
    with pytest.raises(InputError, match="not the JSON of a result"):
        Result.from_json(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"cost": ' + "9" * 5_000 + "}", '{"status": "' + "x" * 100_000 + '"}']
)
def test_whatever_the_text_holds_the_refusal_is_short(text):
    with pytest.raises(InputError, match="not the JSON of a result") as refused:
        Result.from_json(text)
    assert len(str(refused.value)) < 500


def test_missing_and_wrong_values_are_refused():
    document = solved().to_dict()
    del document["seed"]
    with pytest.raises(InputError, match="no 'seed'"):
        Result.from_json(json.dumps(document))
    with pytest.raises(InputError):
        Result.from_json(json.dumps({**solved().to_dict(), "labels": ["a"]}))


def test_text_is_rounded_to_the_safe_side():
    result = dataclasses.replace(
        solved(), cost=10.000000000001, lower_bound=9.9949999999999, seconds={"total": 2.0}
    )
    assert repr(result) == (
        "Result(status optimal, stopped by gap_reached, cost 10.00000001, "
        "lower bound 9.994999999, gap 0.0501 %, size 24 points in 3 clusters, time 2.00 s)"
    )
    assert repr(infeasible()).startswith(
        "Result(status infeasible, stopped by proven_infeasible, size 3 points in 2 clusters, time "
    )


def test_table_for_notebooks():
    page = solved()._repr_html_()
    assert page.startswith("<table>")
    assert page.count("<tr>") == 7
    assert "optimal" in page


def test_problem_in_one_line():
    problem = Problem.from_data(np.eye(3), 2, must_link=[(0, 1)], weights=[1, 2, 1])
    assert repr(problem) == (
        "Problem(3 points, 3 features, 2 clusters, 1 must-link, 0 cannot-links, weighted)"
    )
