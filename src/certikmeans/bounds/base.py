"""What a lower bound promises. To add one, keep the promise in a file of its own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import BoundError
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

State = TypeVar("State")
Part = TypeVar("Part", contravariant=True)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """What a relaxation would choose: clusters, each taken to a part. For branching rules."""

    members: NDArray[np.uint8]  # (m, n_groups)
    centers: NDArray[np.float64]  # (m, n_axes)
    weights: NDArray[np.float64]  # (m,), > 0; about K in all
    clusters: tuple[tuple[int, ...], ...]  # (m,): which clusters it may stand for


@final
@dataclass(frozen=True, slots=True)
class BoundResult:
    """A proven value and what a sceptic needs to prove it again.

    Attributes
    ----------
    value : float
        At most the cost of every feasible labelling of the part, rounding included;
        infinite if the part has none.
    evidence : dict
        ``bound``, the name of the method, and plain data: enough to repeat the proof.
    restart : object
        What the same bound may start from on a part of this part. Only speed depends on it.
    centers : tuple of ndarray of shape (n_clusters, n_axes)
        Centres that the relaxation suggests, for the upper bound.
    mixture : Mixture, optional
        The relaxation's own solution, where it has one: for the choice of a split.
    """

    value: float
    evidence: dict[str, Any]
    restart: Any = None
    centers: tuple[NDArray[np.float64], ...] = ()
    mixture: Mixture | None = None

    def __post_init__(self) -> None:
        if math.isnan(self.value):  # what compares with nothing must not count as a bound
            raise BoundError(
                f"the {self.evidence['bound']} bound is not a number",
                hint="this is a bug in certikmeans: please report it with the data and the seed",
            )


class AbstractBound(ABC, Generic[State, Part]):
    """One way of bounding a part of the solution set from below. Concrete bounds are final.

    ``prepare`` runs once per solve and may be slow; its result is read-only and shared
    between workers. ``evaluate`` runs once per part and keeps nothing. It may end early when
    its value reaches ``cutoff``, or when ``stop`` asks for it: what it returns is valid then
    too, only weaker. Bounds see a part (a box per centre, say), never a node of a tree.
    """

    name: ClassVar[str]

    @abstractmethod
    def prepare(self, problem: ReducedProblem) -> State:
        """Compute once what every evaluation shares."""

    @abstractmethod
    def evaluate(
        self, state: State, part: Part, cutoff: float, stop: StopSignal, restart: Any = None
    ) -> BoundResult:
        """Bound the reduced cost, ``offset`` not included, of every labelling in ``part``.

        ``restart`` is what this bound returned for a part that contains this one, or None.
        """
