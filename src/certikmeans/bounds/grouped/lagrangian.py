"""The Lagrangian bound of one part, as a function of the multipliers."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.chunks import Answers, Chunk, ChunkSolver, Effort, join
from certikmeans.bounds.grouped.groups import Groups
from certikmeans.bounds.grouped.rounding import group_errors, lagrangian_below, sample_magnitudes
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal


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
        executor: Executor | None,
        stop: StopSignal,
    ) -> None:
        self._chunks = chunks
        self._solve = solve
        self._effort = effort
        self._executor = executor
        self._stop = stop
        self._part = part
        self._starts = groups.starts
        self._reach = np.maximum(np.abs(part.lower), np.abs(part.upper))
        self._magnitudes = sample_magnitudes(
            groups.points, groups.weights, groups.starts, self._reach
        )
        self.group_weights = np.add.reduceat(groups.weights, groups.starts[:-1])

    def evaluate(self, nu: NDArray[np.float64], labels: NDArray[np.int64]) -> Evaluated:
        """The proven value at ``nu``. Labels are where the searches start from."""
        answers = self._answers(nu, labels)
        if np.isinf(answers.bounds).any():
            return Evaluated(np.inf, nu, answers)
        errors = group_errors(self._magnitudes, self._starts, nu, self._reach)
        return Evaluated(lagrangian_below(answers.bounds, errors, nu, self._reach), nu, answers)

    def _answers(self, nu: NDArray[np.float64], labels: NDArray[np.int64]) -> Answers:
        """Answers for all groups, in their order whoever ran them."""
        tasks = []
        effort = replace(self._effort, seconds=self._stop.remaining)
        first, row = 0, 0
        for chunk in self._chunks:
            last, end = first + len(chunk.starts) - 1, row + len(chunk.points)
            tasks.append((chunk, nu[first:last], labels[row:end], effort))
            first, row = last, end
        if self._executor is None or len(tasks) == 1:
            return join(
                [
                    self._solve(*task) if self._stop.cause() is None else self._unsolved(*task)
                    for task in tasks
                ]
            )
        futures = [self._executor.submit(self._solve, *task) for task in tasks]
        answers = []
        for future, task in zip(futures, tasks, strict=True):
            stopped = self._stop.cause() is not None and future.cancel()
            answers.append(self._unsolved(*task) if stopped else future.result())
        return join(answers)

    def _unsolved(
        self,
        chunk: Chunk,
        nu: NDArray[np.float64],
        labels: NDArray[np.int64],
        effort: Effort,
    ) -> Answers:
        """What holds without solving: squares are not negative, a linear term has its corner."""
        n_sets = len(nu)
        lower, upper = self._part.lower, self._part.upper
        return Answers(
            values=np.full(n_sets, np.inf),
            bounds=np.minimum(nu * lower, nu * upper).sum(axis=(1, 2)),
            centers=np.tile(0.5 * (lower + upper), (n_sets, 1, 1)),
            masses=np.zeros(nu.shape[:2]),
            nodes=np.zeros(n_sets, dtype=np.int64),
            labels=labels,
        )
