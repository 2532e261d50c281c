"""Nodes of the tree, their evaluation, and the interface of a branching scheme."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import BoundResult
from certikmeans.problem import ReducedProblem
from certikmeans.proof import CenterSplit, LeafProof, PairSplit
from certikmeans.stop import StopSignal

Split = CenterSplit | PairSplit
DomainT = TypeVar("DomainT")


class NodeOutcome(StrEnum):
    """Reason why a node was removed from the queue."""

    BRANCHED = "split"  # replaced by its two children
    PRUNED = "bound"  # its labellings improve the incumbent by at most the gap
    INFEASIBLE = "infeasible"  # its domain has no feasible labelling
    UNSPLITTABLE = "unsplittable"  # too small to split; its bound stays part of the lower bound


@final
@dataclass(slots=True, eq=False)
class Node(Generic[DomainT]):
    """A domain with the best lower bound known for it."""

    number: int
    parent: int
    depth: int
    domain: DomainT
    bound: float  # at most the original cost of every labelling in the domain
    leaf: LeafProof  # evidence of the bound, for this domain or one that contains it
    warm_start: Any = None
    split: Split | None = None  # chosen at its evaluation


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeTask(Generic[DomainT]):
    """Input of the evaluation of a node: plain data."""

    domain: DomainT
    depth: int
    warm_start: Any
    cutoff: float  # a bound of the original cost that prunes the node
    labels: NDArray[np.integer[Any]]  # `BranchingScheme.incumbent_payload` of the incumbent
    stop: StopSignal
    cost: float = np.inf  # original cost of the incumbent; labellings above it are useless
    max_work: float = np.inf  # units of work after which the bound ends with what it has


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeResult(Generic[DomainT]):
    """Result of the evaluation of a node; costs are those of the original problem."""

    bound: float  # infinite if the domain is empty
    leaf: LeafProof
    warm_start: Any
    split: Split | None
    labels: tuple[NDArray[np.int64], ...]  # of original points: candidates for the incumbent
    domain: DomainT  # possibly tightened
    work: float = 0.0  # units of work of the evaluation


def node_overhead(problem: ReducedProblem) -> float:
    """Return the units of work of a node besides its bound: distances, assignment, bookkeeping."""
    return 1e6 + 40.0 * problem.n_groups * problem.n_clusters * (problem.n_dims + 2)


class BranchingScheme(ABC, Generic[DomainT]):
    """Evaluates and splits domains. Schemes are plain data and can be pickled for workers."""

    name: str  # of the bound
    overhead: float  # units of work of a node besides its bound, see `node_overhead`

    @abstractmethod
    def root(self, found: BoundResult, stop: StopSignal) -> NodeResult[DomainT]:
        """Return the result of the root, given that of its bound."""

    @abstractmethod
    def compute(self, task: NodeTask[DomainT]) -> NodeResult[DomainT]:
        """Compute a bound, propose labellings, choose a split."""

    @abstractmethod
    def incumbent_payload(self, labels: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
        """Return what tasks need of the incumbent; small, since every task contains it."""

    @abstractmethod
    def children(self, domain: DomainT, split: Split) -> tuple[DomainT, DomainT]:
        """Split a domain; every labelling of it is in one of the two."""

    @abstractmethod
    def to_original(self, domain: DomainT) -> object:
        """Return the domain as published in events: without group indices."""

    @abstractmethod
    def restrict_proof(self, leaf: LeafProof, domain: DomainT, child: DomainT) -> LeafProof:
        """Return the evidence of a bound in terms of a child domain."""


def compute(scheme: BranchingScheme[DomainT], task: NodeTask[DomainT]) -> NodeResult[DomainT]:
    """Evaluate a node; the task function, with the scheme as shared data."""
    stop = task.stop.with_own_work(task.max_work)
    found = scheme.compute(replace(task, stop=stop))
    return replace(found, work=stop.work + scheme.overhead)
