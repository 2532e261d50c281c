"""`warm_up` goes through everything that compiles."""

from __future__ import annotations

import pytest

import certikmeans
from certikmeans import InputError, warming
from certikmeans.options import BOUNDS


@pytest.fixture
def solved(monkeypatch):
    """Every problem solved, with its settings and its result."""
    runs = []
    solve = warming.solve

    def listening(problem, **options):
        result = solve(problem, **options)
        runs.append((problem, options, result))
        return result

    monkeypatch.setattr(warming, "solve", listening)
    return runs


def test_every_bound_is_taken_into_a_tree_and_every_kind_of_pairs_is_solved(solved):
    certikmeans.warm_up()
    kinds = {(bool(len(p.must_link)), bool(len(p.cannot_link))) for p, _, _ in solved}
    assert kinds == {(False, False), (True, False), (False, True), (True, True)}
    runs = [(options["bound"], options["branching"], result) for _, options, result in solved[5:]]
    assert {bound for bound, _, _ in runs} == set(BOUNDS) - {"auto"}
    branched = {(bound, branching) for bound, branching, result in runs if result.nodes > 1}
    assert {("cluster", "pairs"), ("cluster", "centers"), ("sdp", "pairs")} <= branched
    assert {("grouped", "centers"), ("sample", "centers")} <= branched


def test_the_checker_is_warmed_and_accepts(monkeypatch):
    verdicts = []
    check = warming.check_certificate
    monkeypatch.setattr(
        warming, "check_certificate", lambda *a, **k: verdicts.append(check(*a, **k))
    )
    certikmeans.warm_up(bounds=[])
    assert [verdict.accepted for verdict in verdicts] == [True]


def test_some_bounds_alone(solved):
    certikmeans.warm_up(bounds=["sample"])
    assert {options.get("bound", "auto") for _, options, _ in solved} == {"auto", "sample"}


def test_a_bound_that_is_not_there_is_refused_before_anything_is_solved(solved):
    with pytest.raises(InputError, match="bound"):
        certikmeans.warm_up(bounds=["cluster", "best"])
    assert not solved
