"""A conversation: questions about pairs, answers, and a new answer to the whole each time."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, final

import numpy as np

from certikmeans.certainty.basis import carried_multipliers
from certikmeans.certainty.questions import Question
from certikmeans.certainty.wanted import checked_slack
from certikmeans.errors import InfeasibleError, InputError
from certikmeans.options import Options
from certikmeans.problem import Problem
from certikmeans.result import Result
from certikmeans.solver import solve
from certikmeans.status import Status


@final
class Conversation:
    """Ask for the pairs that decide most, take the answers, and go on from what is known.

    Every round starts from the labelling (or, where an answer rules it out, from its centres) and
    from the multipliers of the round before.

    Parameters
    ----------
    problem : Problem
        Points, K, and the pairs known so far.
    slack : float
        Labellings that cost this share more than ours are alternatives worth asking about.
    options : Options, optional
        As for `solve`.
    **changes
        Settings that differ from ``options``.

    Examples
    --------
    >>> points = [[0.0], [1.0], [2.0], [5.6], [9.0], [10.0], [11.0]]
    >>> talk = Conversation(Problem.from_data(points, n_clusters=2), slack=0.05)
    >>> [question.pair for question in talk.questions()]
    [(3, 4)]
    >>> talk.answer([(3, 4, False)]).labels
    array([0, 0, 0, 0, 1, 1, 1])
    >>> talk.questions()
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
        self._slack = checked_slack(slack)
        self.problem = problem
        self.result = self._solved(problem, None)

    def questions(self, most: int = 10) -> tuple[Question, ...]:
        """Return at most so many pairs, those that decide most first. None left: all is certain."""
        return self.result.questions(most, slack=self._slack)

    def answer(self, answers: Iterable[tuple[int, int, bool]]) -> Result:
        """Take ``(i, j, together)`` for some pairs, and solve again.

        Raises
        ------
        InputError
            If an answer is none. Then nothing is taken.
        InfeasibleError
            If the answers contradict each other or the pairs before; then they are not taken.
        """
        told = _checked(answers)
        must = [(i, j) for i, j, together in told if together]
        cannot = [(i, j) for i, j, together in told if not together]
        problem = replace(
            self.problem,
            must_link=_more(self.problem.must_link, must),
            cannot_link=_more(self.problem.cannot_link, cannot),
        )
        result = self._solved(problem, self.result)
        if result.status is Status.INFEASIBLE:
            assert result.infeasibility is not None
            raise InfeasibleError(
                "the answers contradict each other, or the pairs before",
                proof=result.infeasibility,
                hint="the proof says which: print(error.proof.describe())",
            )
        self.problem, self.result = problem, result
        return result

    def _solved(self, problem: Problem, before: Result | None) -> Result:
        if before is None or before.labels is None or before.centers is None:
            return solve(problem, self._options)
        start: dict[str, Any] = {}
        known = None if before.basis is None else carried_multipliers(before.basis, problem)
        pairs = before.labels[problem.must_link], before.labels[problem.cannot_link]
        if (pairs[0][:, 0] == pairs[0][:, 1]).all() and (pairs[1][:, 0] != pairs[1][:, 1]).all():
            start = {"start_labels": before.labels}
        elif np.isfinite(before.centers).all():
            start = {"start_centers": before.centers}
        return solve(problem, self._options, start_multipliers=known, **start)


def _checked(answers: Any) -> list[tuple[int, int, bool]]:
    """Answers as numbers; a text or half a point is a slip, not an answer."""
    told = list(answers) if isinstance(answers, Iterable) else [answers]
    checked = []
    for row in told:
        try:
            first, second, together = row
            if not (isinstance(together, bool | np.bool_) or together in (0, 1)):
                raise TypeError
            checked.append((operator.index(first), operator.index(second), bool(together)))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"answers: {row!r} is not (point, point, together)",
                hint="answer([(3, 7, True)]): points 3 and 7 belong together",
            ) from error
    return checked


def _more(pairs: Any, new: list[tuple[int, int]]) -> Any:
    return np.concatenate([pairs, np.array(new, dtype=np.int64).reshape(-1, 2)])
