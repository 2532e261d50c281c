"""Nodes of the tree, tasks and results of their evaluation, and the interface of a branching scheme."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import BoundResult
from certikmeans.proof import CenterSplit, LeafProof, PairSplit
from certikmeans.stop import StopSignal

Split = CenterSplit | PairSplit
DomainT = TypeVar("DomainT")


class NodeOutcome(StrEnum):
    """How a node leaves the tree. Each leaves by one door, once."""

    BRANCHED = "split"  # replaced by its two parts
    PRUNED = "bound"  # no labelling in it beats the incumbent by more than the gap
    INFEASIBLE = "infeasible"  # no labelling in it
    UNSPLITTABLE = "unsplittable"  # too small to split; its bound counts to the end


@final
@dataclass(slots=True, eq=False)
class Node(Generic[DomainT]):
    """A part of the solution set with the best bound known for it."""

    number: int
    parent: int
    depth: int
    domain: DomainT
    bound: float  # at most the cost, as stated, of every labelling in the part
    leaf: LeafProof  # what proves the bound: for this part, or for a larger one
    warm_start: Any = None
    split: Split | None = None  # how to split it, chosen when it was bounded


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeTask(Generic[DomainT]):
    """What a worker needs to bound a part: plain data."""

    domain: DomainT
    depth: int
    warm_start: Any
    cutoff: float  # a bound of this much, as stated, closes the part
    labels: NDArray[np.integer[Any]]  # `BranchingScheme.incumbent_payload` of the best labelling
    stop: StopSignal
    cost: float = np.inf  # of the best labelling, as stated: whatever costs more is of no use


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeResult(Generic[DomainT]):
    """What a worker found: a bound in terms of the problem as stated, and what helps to go on."""

    bound: float  # infinite: the part is empty
    leaf: LeafProof
    warm_start: Any
    split: Split | None
    labels: tuple[NDArray[np.int64], ...]  # of the original points: candidates for the incumbent
    domain: DomainT  # perhaps tightened


class BranchingScheme(ABC, Generic[DomainT]):
    """Bounds parts and splits them. Workers are plain data and may be sent elsewhere."""

    name: str  # of the bound

    @abstractmethod
    def root(self, found: BoundResult, stop: StopSignal) -> NodeResult[DomainT]:
        """Answer for the whole, given what the bound has found about it."""

    @abstractmethod
    def compute(self, task: NodeTask[DomainT]) -> NodeResult[DomainT]:
        """Bound a part, suggest labellings, choose how to split it."""

    @abstractmethod
    def incumbent_payload(self, labels: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
        """What tasks have to know of the best labelling; small, since it travels with each."""

    @abstractmethod
    def children(self, domain: DomainT, split: Split) -> tuple[DomainT, DomainT]:
        """Split; together the two hold every labelling of the part."""

    @abstractmethod
    def to_original(self, domain: DomainT) -> object:
        """The part for the eyes of others: without numbers of groups."""

    @abstractmethod
    def restrict_proof(self, leaf: LeafProof, domain: DomainT, child: DomainT) -> LeafProof:
        """What proved the bound of a part, in terms of one of its parts."""


def compute(scheme: BranchingScheme[DomainT], task: NodeTask[DomainT]) -> NodeResult[DomainT]:
    """Bound a part, wherever this is; the worker, with all the data, is there already."""
    return scheme.compute(task)
