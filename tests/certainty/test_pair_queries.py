"""Pair queries: selection, answers, and the next round from the previous state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certikmeans import ActiveSession, InfeasibleError, InputError, Problem, Result, solve
from certikmeans.certainty.artifacts import transfer_multipliers
from certikmeans.solver.run import solve as solve_from

LINE = [[0.0], [1.0], [2.0], [5.6], [9.0], [10.0], [11.0]]


def test_single_query_for_point_between():
    (question,) = solve(Problem.from_data(LINE, 2), jobs=1).questions(slack=0.05)
    assert question.point == 3
    assert question.example in (0, 1, 2, 4, 5, 6)
    assert question.settles
    assert question.pair == (question.point, question.example)


def test_one_query_per_must_link_group():
    points = [*LINE[:3], [5.52], *LINE[4:], [5.52]]
    (question,) = solve(Problem.from_data(points, 2, must_link=[(3, 7)]), jobs=1).questions(
        slack=0.05
    )
    assert (question.point, question.points) == (3, 2)


def test_no_queries_if_all_certain():
    points = [[0.0], [1.0], [2.0], [90.0], [91.0], [92.0]]
    assert solve(Problem.from_data(points, 2), jobs=1).questions(slack=0.01) == ()


def test_queries_not_implied_by_pairs():
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(c, 1.2, size=(30, 2)) for c in (0.0, 3.0, 6.0)])
    pairs = [(0, 45), (10, 70), (31, 80)]
    problem = Problem.from_data(points, 3, cannot_link=pairs, must_link=[(1, 2), (40, 41)])
    questions = solve(problem, jobs=1).questions(20, slack=0.01)
    assert len(questions) >= 5
    assert len({question.pair for question in questions}) == len(questions)
    group = {2: 1, 41: 40}
    for question in questions:
        assert tuple(sorted(question.pair)) not in pairs
        assert question.point not in group  # the smallest point represents its group
        assert group.get(question.point, question.point) != group.get(question.example)


@pytest.mark.parametrize("together", [True, False])
def test_answers_satisfied(together):
    session = ActiveSession(Problem.from_data(LINE, 2), slack=0.05, jobs=1)
    (question,) = session.questions()
    result = session.answer([(*question.pair, together)])
    same = result.labels[question.point] == result.labels[question.example]
    assert same == together
    assert session.questions() == ()
    assert session.result.certainty(0.05).certain.all()
    again = solve(session.problem, jobs=1)
    assert again.cost == pytest.approx(result.cost)


def test_invalid_answers_rejected():
    session = ActiveSession(Problem.from_data(LINE, 2), jobs=1)
    with pytest.raises(InfeasibleError):
        session.answer([(0, 1, True), (0, 1, False)])
    for slip in ([(0, 1)], [(0, 1, "no")], [(0.5, 1, True)], [(0, 1, 2)], 5):
        with pytest.raises(InputError, match="answers"):
            session.answer(slip)
    with pytest.raises(InputError, match="does not exist"):
        session.answer([(0, 99, True)])
    assert len(session.problem.must_link) == len(session.problem.cannot_link) == 0


def test_invalid_arguments():
    result = solve(Problem.from_data(LINE, 2), jobs=1)
    for slack in (-1.0, float("nan"), 5.0, "0.1", True, None):
        with pytest.raises(InputError, match="slack"):
            result.certainty(slack)
        with pytest.raises(InputError, match="slack"):
            ActiveSession(Problem.from_data(LINE, 2), slack=slack)
    for seconds in (0.0, -1.0, float("inf"), "1"):
        with pytest.raises(InputError, match="time_limit"):
            result.certainty(time_limit=seconds)
    for most in (-1, 1.5, "3", True):
        with pytest.raises(InputError, match="questions"):
            result.questions(most)
    with pytest.raises(InputError, match="file"):
        Result.from_json(result.to_json()).certainty()
    infeasible = solve(Problem.from_data(LINE, 2, must_link=[(0, 1)], cannot_link=[(0, 1)]))
    with pytest.raises(InputError, match="labelling"):
        infeasible.certainty()


def test_transfer_multipliers():
    problem = Problem.from_data(LINE, 2)
    basis = solve(problem, jobs=1).basis
    (artifact,) = basis.bound_artifacts
    by_point = np.zeros(problem.n_points)
    by_point[basis.group_representatives] = artifact.evidence.values
    np.testing.assert_allclose(transfer_multipliers(basis, problem), by_point, atol=1e-12)
    joined = replace(problem, must_link=[(0, 2)])
    carried = transfer_multipliers(basis, joined)
    # 0 and 2 about their mean cost 2.
    assert carried[0] == pytest.approx(by_point[0] + by_point[2] - 2.0)
    assert carried[2] == 0.0
    np.testing.assert_allclose(carried[[1, 3, 4, 5, 6]], by_point[[1, 3, 4, 5, 6]], atol=1e-12)


def test_any_start_multipliers():
    problem = Problem.from_data(LINE, 2)
    plain = solve(problem, jobs=1)
    rng = np.random.default_rng(0)
    for start in (
        np.zeros(7),
        rng.normal(size=7) * 100.0,
        transfer_multipliers(plain.basis, problem),
    ):
        again = solve_from(problem, start_multipliers=start, jobs=1)
        assert again.cost == plain.cost
        assert again.lower_bound <= plain.cost
        assert again.gap <= 1e-3


def test_one_query_for_cannot_linked_pair():
    points = [*LINE[:3], [5.5], [5.6], *LINE[4:]]
    free = solve(Problem.from_data(points, 2), jobs=1).questions(slack=0.2)
    assert {3, 4} == {question.point for question in free}
    linked = Problem.from_data(points, 2, cannot_link=[(3, 4)])
    result = solve(linked, jobs=1)
    assert not result.certainty(0.2).certain[[3, 4]].any()
    (question,) = result.questions(slack=0.2)
    assert question.point in (3, 4)
    assert question.settles


def test_uncertain_representative():
    # The last point is alone in its cluster, so it represents it, and it is uncertain.
    result = solve(Problem.from_data([[0.0], [1.0], [2.0], [3.9]], 2), jobs=1)
    certainty = result.certainty(0.5)
    uncertain = np.flatnonzero(~certainty.certain)
    queried = {point for question in result.questions(slack=0.5) for point in question.pair}
    assert len(uncertain) >= 2
    assert set(uncertain.tolist()) <= queried
    pairs = [frozenset(question.pair) for question in result.questions(slack=0.5)]
    assert len(set(pairs)) == len(pairs)


def test_query_limit():
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(c, 1.2, size=(30, 2)) for c in (0.0, 3.0, 6.0)])
    result = solve(Problem.from_data(points, 3), jobs=1)
    many = result.questions(40, slack=0.01)
    assert len(many) > 5
    assert result.questions(3, slack=0.01) == many[:3]
    assert result.questions(0) == ()


def test_no_queries_if_overlap_fixes_all():
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(3, 20)) * 9.0
    points = middles[np.arange(30) % 3] + rng.normal(size=(30, 20))
    result = solve(Problem.from_data(points, 3), bound="spectral", jobs=1)
    certainty = result.certainty(1e-4)
    assert certainty.method == "spectral overlap"
    assert certainty.certain.all()
    assert certainty.families == ((0,), (1,), (2,))
    assert result.questions(slack=1e-4) == ()


def test_time_limit():
    rng = np.random.default_rng(1)
    result = solve(Problem.from_data(rng.normal(size=(400, 3)), 6), jobs=1, time_limit=0.5)
    certainty = result.certainty(time_limit=1e-6)
    assert certainty.agreement == 0.0
    assert certainty.reason


def test_unknown_answers_are_not_repeated():
    points = np.array([[0.0], [1.0], [2.0], [5.6], [9.0], [10.0], [11.0]])
    session = ActiveSession(Problem.from_data(points, 2), slack=0.05)
    first = session.questions()
    assert [one.pair for one in first] == [(3, 4)]
    before = session.result
    assert session.answer([(4, 3, None)]) is before
    assert session.questions() == ()
    assert repr(session).startswith("ActiveSession(0 must-links, 0 cannot-links, cost ")
    session.answer([(3, 4, False)])
    assert session.problem.cannot_link.tolist() == [[3, 4]]
