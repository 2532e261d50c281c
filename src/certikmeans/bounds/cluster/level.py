"""Moving with few cuts: project the best position on "every cut reaches the level"."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.aim import Aim
from certikmeans.bounds.cluster.model import CutModel
from certikmeans.bounds.cluster.mover import AbstractMover, Effort, Position
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]

# What a round may take. A few cuts per round converge as well, and cost less.
EFFORT = Effort(
    new_cuts=12,
    column_starts=8,
    sampled_starts=24,
    work=2e7,
    boxes_per_start=200.0,
    most_starts=400,
)
# Level: this far from the best position so far to the goal; less after a round that led nowhere,
# more after one that did; and less than that towards what the cuts allow, if that is lower.
FARTHEST, NEAREST, SHORTER, LONGER = 1.0, 0.5, 0.8, 1.1
BELOW_CEILING = 0.6


@final
class LevelMover(AbstractMover):
    """The level is the goal itself, not a step towards it, while it can be reached.

    A projection that is infeasible proves that no multipliers in the box reach the level.
    """

    stays_in_box: ClassVar[bool] = True
    converged: ClassVar[float] = 0.1
    worth_waiting: ClassVar[float] = 0.25

    def __init__(self, model: CutModel) -> None:
        self.ceiling = np.inf
        self._model = model
        self._counts = model.cuts.counts
        self._level = np.inf
        self._reach = FARTHEST

    def effort(self) -> Effort:
        """Always the same."""
        return EFFORT

    def least_worth(self, known: float, total: float, aim: Aim) -> float:
        """What the level leaves to a cluster; with several families, what is known already."""
        if len(self._counts) > 1:
            return known
        return float((total - min(self._level, aim.level)) / self._counts[0])

    def see(self, excess: float, added: int) -> None:
        """Nothing: the projection sees the cuts."""

    def judge(self, closer: bool) -> None:
        """Reach farther after a success."""
        if closer:
            self._reach = min(LONGER * self._reach, FARTHEST)
        else:
            self._reach = max(SHORTER * self._reach, NEAREST)

    def move(self, at: Position, aim: Aim, stop: StopSignal) -> Vector:
        """Project on the level; lower it when the cuts themselves say that it is too high."""
        least, best = self.converged * aim.unit, at.value
        while True:
            self._level = best + self._reach * (aim.level - best)
            if self.ceiling < aim.level:
                reach = min(self._reach, BELOW_CEILING)
                self._level = min(self._level, best + reach * max(self.ceiling - best, least))
            tolerance = 0.1 * max(min(aim.unit, self._level - best), 0.1 * least)
            moved = self._model.project(at.best, self._level, tolerance)
            if not moved.infeasible(self._level):
                break
            self.ceiling = min(self.ceiling, moved.ceiling)
            if self.ceiling - best <= least:
                break
        self._model.forget_oldest()
        return moved.position
