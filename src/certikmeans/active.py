"""Active constraint acquisition: pair queries, answers and warm-started re-solves."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any, final

import numpy as np

from certikmeans._numbers import cost_text, count, whole_number
from certikmeans.certainty.artifacts import transfer_multipliers
from certikmeans.certainty.pair_queries import PairQuery
from certikmeans.certainty.report import validate_slack
from certikmeans.errors import InfeasibleError, InputError
from certikmeans.options import Options
from certikmeans.problem import Problem
from certikmeans.result import Result
from certikmeans.solver.run import solve
from certikmeans.status import Status


@final
class ActiveSession:
    """Query the most informative pairs, add the answers as constraints, and solve again.

    Every solve is warm-started from the previous labelling (or, if an answer makes it infeasible,
    from its centres) and from the previous multipliers.

    Parameters
    ----------
    problem : Problem
        Points, number of clusters, and the pairs known so far.
    slack : float
        Labellings whose cost exceeds ours by at most this fraction count as alternatives.
    options : Options, optional
        As for `solve`.
    **changes
        Options that differ from ``options``.

    Attributes
    ----------
    problem : Problem
        The problem with all answers so far.
    result : Result
        Its result; `questions` and `answer` are about it.

    Examples
    --------
    >>> points = [[0.0], [1.0], [2.0], [5.6], [9.0], [10.0], [11.0]]
    >>> session = ActiveSession(Problem.from_data(points, n_clusters=2), slack=0.05)
    >>> [question.pair for question in session.questions()]
    [(3, 4)]
    >>> session.answer([(3, 4, False)]).labels
    array([0, 0, 0, 0, 1, 1, 1])
    >>> session.questions()
    ()
    """

    def __init__(
        self,
        problem: Problem,
        *,
        slack: float = 1e-3,
        options: Options | None = None,
        **changes: Any,
    ) -> None:
        self._options = (Options() if options is None else options).changed(**changes)
        self._slack = validate_slack(slack)
        self._unknown: set[tuple[int, int]] = set()
        self.problem = problem
        self.result = self._solve(problem, None)

    def __repr__(self) -> str:
        must, cannot = len(self.problem.must_link), len(self.problem.cannot_link)
        return (
            f"ActiveSession({count(must, 'must-link')}, {count(cannot, 'cannot-link')}, "
            f"cost {cost_text(self.result.cost)})"
        )

    def questions(self, most: int = 10) -> tuple[PairQuery, ...]:
        """Return at most ``most`` pairs, the most informative first.

        Empty if all is certain, or if the expert does not know the remaining answers.
        """
        wanted = whole_number("questions", most, least=0)
        found = self.result.questions(wanted + len(self._unknown), slack=self._slack)
        open_pairs = (one for one in found if tuple(sorted(one.pair)) not in self._unknown)
        return tuple(islice(open_pairs, wanted))

    def answer(self, answers: Iterable[tuple[int, int, bool | None]]) -> Result:
        """Add answers ``(i, j, together)`` as constraints, and solve again.

        With None in place of ``together`` the answer is not known: the pair is not queried again.

        Raises
        ------
        InputError
            If an answer is not valid; then no answer is added.
        InfeasibleError
            If the answers contradict each other or earlier pairs; then no answer is added.
        """
        rows = _validate_answers(answers)
        must = [(i, j) for i, j, together in rows if together is True]
        cannot = [(i, j) for i, j, together in rows if together is False]
        unknown = {(min(i, j), max(i, j)) for i, j, together in rows if together is None}
        if not must and not cannot:
            self._unknown |= unknown
            return self.result
        problem = replace(
            self.problem,
            must_link=_append_pairs(self.problem.must_link, must),
            cannot_link=_append_pairs(self.problem.cannot_link, cannot),
        )
        result = self._solve(problem, self.result)
        if result.status is Status.INFEASIBLE:
            assert result.infeasibility is not None
            raise InfeasibleError(
                "the answers contradict each other or earlier pairs",
                proof=result.infeasibility,
                hint="print(error.proof.describe()) shows which pairs contradict each other",
            )
        self._unknown |= unknown
        self.problem, self.result = problem, result
        return result

    def _solve(self, problem: Problem, previous: Result | None) -> Result:
        if previous is None or previous.labels is None or previous.centers is None:
            return solve(problem, self._options)
        start: dict[str, Any] = {}
        multipliers = (
            None if previous.basis is None else transfer_multipliers(previous.basis, problem)
        )
        pairs = previous.labels[problem.must_link], previous.labels[problem.cannot_link]
        if (pairs[0][:, 0] == pairs[0][:, 1]).all() and (pairs[1][:, 0] != pairs[1][:, 1]).all():
            start = {"start_labels": previous.labels}
        elif np.isfinite(previous.centers).all():
            start = {"initial_centers": previous.centers}
        return solve(problem, self._options, start_multipliers=multipliers, **start)


def _validate_answers(answers: Any) -> list[tuple[int, int, bool | None]]:
    """Return the answers as integers and booleans or None; reject anything else."""
    rows = list(answers) if isinstance(answers, Iterable) else [answers]
    checked: list[tuple[int, int, bool | None]] = []
    for row in rows:
        try:
            first, second, together = row
            if not (
                together is None or isinstance(together, bool | np.bool_) or together in (0, 1)
            ):
                raise TypeError
            known = None if together is None else bool(together)
            checked.append((operator.index(first), operator.index(second), known))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"answers: {row!r} is not (point, point, together)",
                hint="answer([(3, 7, True)]) states that points 3 and 7 share a cluster",
            ) from error
    return checked


def _append_pairs(pairs: Any, new: list[tuple[int, int]]) -> Any:
    return np.concatenate([pairs, np.array(new, dtype=np.int64).reshape(-1, 2)])
