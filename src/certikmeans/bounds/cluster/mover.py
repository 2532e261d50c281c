"""Where the multipliers go next: what every way of moving them promises to the bundle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.aim import Aim
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Effort:
    """What the ascents of a round may be."""

    new_cuts: int
    column_starts: int  # from the clusters that are worth most
    sampled_starts: int  # from some of the groups
    work: float  # coordinates that all of them may touch, about
    boxes_per_start: float  # before an exact pricing: one start per so many boxes of the last one,
    most_starts: int  # but no more than so many


@final
@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """Where the bundle stands when it asks to be moved."""

    here: Vector  # variables of the space
    best: Vector  # the best so far, by the model
    value: float  # of the model at the best


class AbstractMover(ABC):
    """Moves multipliers to where the cuts known so far promise more. Concrete ones are final.

    ``ceiling`` is the most that the model can give, as far as it is known: infinite at first.
    Nothing that is proven rests on it; it says when to look for a better labelling, or to split.
    """

    stays_in_box: ClassVar[bool]  # whether multipliers keep to the ranges of the labelling
    # A best position this close to the ceiling is as high as it gets: in units of the gap asked
    # for, and as a part of what will be missing where the goal is out of reach: a split gains more.
    converged: ClassVar[float]
    worth_waiting: ClassVar[float]
    ceiling: float

    @abstractmethod
    def effort(self) -> Effort:
        """How hard the next ascents may try."""

    @abstractmethod
    def least_worth(self, known: float, total: float, aim: Aim) -> float:
        """What a cluster has to be worth to become a cut.

        ``known`` is the largest known worth in its family, ``total`` the sum of all multipliers.
        """

    @abstractmethod
    def see(self, excess: float, added: int) -> None:
        """Take note of the last ascents: the largest worth beyond what was known, and new cuts."""

    @abstractmethod
    def judge(self, closer: bool) -> None:
        """Take note of whether the last move led to the best position so far."""

    @abstractmethod
    def move(self, at: Position, aim: Aim, stop: StopSignal) -> Vector:
        """Return the next position."""
