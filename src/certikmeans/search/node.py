"""A node of the tree, and what a worker says about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import BoundResult
from certikmeans.proof import CenterSplit, Leaf, PairSplit
from certikmeans.stop import StopSignal

Split = CenterSplit | PairSplit
Part = TypeVar("Part")


class Door(StrEnum):
    """How a node leaves the tree. Each leaves by one door, once."""

    SPLIT = "split"  # replaced by its two parts
    BOUND = "bound"  # no labelling in it beats the incumbent by more than the gap
    INFEASIBLE = "infeasible"  # no labelling in it
    UNSPLITTABLE = "unsplittable"  # too small to split; its bound counts to the end


@final
@dataclass(slots=True, eq=False)
class Node(Generic[Part]):
    """A part of the solution set with the best bound known for it."""

    number: int
    parent: int
    depth: int
    part: Part
    bound: float  # at most the cost, as stated, of every labelling in the part
    leaf: Leaf  # what proves the bound: for this part, or for a larger one
    restart: Any = None
    split: Split | None = None  # how to split it, chosen when it was bounded


@final
@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[Part]):
    """What a worker needs to bound a part: plain data."""

    part: Part
    depth: int
    restart: Any
    target: float  # a bound of this much, as stated, closes the part
    labels: NDArray[np.integer[Any]]  # `AbstractWorker.needed` of the best labelling
    stop: StopSignal
    cost: float = np.inf  # of the best labelling, as stated: whatever costs more is of no use


@final
@dataclass(frozen=True, slots=True, eq=False)
class Answer(Generic[Part]):
    """What a worker found: a bound in terms of the problem as stated, and what helps to go on."""

    bound: float  # infinite: the part is empty
    leaf: Leaf
    restart: Any
    split: Split | None
    labels: tuple[NDArray[np.int64], ...]  # of the original points: candidates for the incumbent
    part: Part  # perhaps tightened


class AbstractWorker(ABC, Generic[Part]):
    """Bounds parts and splits them. Workers are plain data and may be sent elsewhere."""

    name: str  # of the bound

    @abstractmethod
    def root(self, found: BoundResult, stop: StopSignal) -> Answer[Part]:
        """Answer for the whole, given what the bound has found about it."""

    @abstractmethod
    def evaluate(self, task: Task[Part]) -> Answer[Part]:
        """Bound a part, suggest labellings, choose how to split it."""

    @abstractmethod
    def needed(self, labels: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
        """What tasks have to know of the best labelling; small, since it travels with each."""

    @abstractmethod
    def parts(self, part: Part, split: Split) -> tuple[Part, Part]:
        """Split; together the two hold every labelling of the part."""

    @abstractmethod
    def stated(self, part: Part) -> object:
        """The part for the eyes of others: without numbers of groups."""

    @abstractmethod
    def inherited(self, leaf: Leaf, part: Part, child: Part) -> Leaf:
        """What proved the bound of a part, in terms of one of its parts."""


def evaluate(worker: AbstractWorker[Part], task: Task[Part]) -> Answer[Part]:
    """Bound a part, wherever this is; the worker, with all the data, is there already."""
    return worker.evaluate(task)
