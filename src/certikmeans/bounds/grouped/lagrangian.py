"""The Lagrangian bound of one part, as a function of the multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.chunks import Answers, Chunk, ChunkSolver, Effort, join
from certikmeans.bounds.grouped.group_error import group_errors, lagrangian_below, sample_magnitudes
from certikmeans.bounds.grouped.groups import Groups
from certikmeans.execution import Crew, Shared
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal

Task = tuple[int, NDArray[np.float64], NDArray[np.int64], Effort]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """The bound at one choice of multipliers."""

    value: float  # proven
    nu: NDArray[np.float64]  # (G, K, d)
    answers: Answers


@final
class Lagrangian:
    """Solves all groups for given multipliers and adds up what is proven."""

    def __init__(
        self,
        groups: Groups,
        part: Subproblem,
        chunks: list[Chunk],
        solve: ChunkSolver,
        effort: Effort,
        crew: Crew,
        stop: StopSignal,
    ) -> None:
        self._chunks = chunks
        self._solve = solve
        self._effort = effort
        self._crew = crew
        self._shared = Shared(tuple(chunks))  # tasks name one of them
        self._stop = stop
        self._starts = groups.starts
        self._reach = np.maximum(np.abs(part.lower), np.abs(part.upper))
        self._magnitudes = sample_magnitudes(
            groups.points, groups.weights, groups.starts, self._reach
        )
        self.group_weights = np.add.reduceat(groups.weights, groups.starts[:-1])

    def evaluate(self, nu: NDArray[np.float64], labels: NDArray[np.int64]) -> Evaluated:
        """The proven value at ``nu``. Labels are where the searches start from."""
        answers = self._answers(nu, labels)
        if np.isposinf(answers.bounds).any():
            return Evaluated(np.inf, nu, answers)
        errors = group_errors(self._magnitudes, self._starts, nu, self._reach)
        return Evaluated(lagrangian_below(answers.bounds, errors, nu, self._reach), nu, answers)

    def _answers(self, nu: NDArray[np.float64], labels: NDArray[np.int64]) -> Answers:
        """Answers for all groups, in their order whoever ran them."""
        tasks = []
        effort = self._effort._replace(seconds=self._stop.remaining)
        first, row = 0, 0
        for number, chunk in enumerate(self._chunks):
            last, end = first + len(chunk.starts) - 1, row + len(chunk.points)
            tasks.append((number, nu[first:last], labels[row:end], effort))
            first, row = last, end
        solve = partial(_solve_in_time, solve=self._solve, stop=self._stop)
        return join(self._crew.map(solve, tasks, shared=self._shared, stop=self._stop))


def _solve_in_time(
    chunks: tuple[Chunk, ...], task: Task, solve: ChunkSolver, stop: StopSignal
) -> Answers:
    """Solve a few groups, or say what holds without solving when time is up.

    Squares are not negative, and a linear term is least at a corner of the box.
    """
    number, nu, labels, effort = task
    chunk = chunks[number]
    if stop.cause() is None:
        return solve(chunk, nu, labels, effort)
    n_sets = len(nu)
    return Answers(
        values=np.full(n_sets, np.inf),
        bounds=np.minimum(nu * chunk.lower, nu * chunk.upper).sum(axis=(1, 2)),
        centers=np.tile(0.5 * (chunk.lower + chunk.upper), (n_sets, 1, 1)),
        masses=np.zeros(nu.shape[:2]),
        nodes=np.zeros(n_sets, dtype=np.int64),
        labels=labels,
    )
