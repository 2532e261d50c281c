"""What a lower bound promises. To add one, keep the promise in a file of its own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.errors import BoundError
from certikmeans.incumbent import CandidateCluster, IncumbentView
from certikmeans.parallel import RemoteExecutor
from certikmeans.problem import ReducedProblem
from certikmeans.problem.domain import Domain
from certikmeans.proof import LeafProof
from certikmeans.stop import StopSignal

State = TypeVar("State")
Labels = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FractionalSolution:
    """What a relaxation would choose: clusters, each taken to a part. For branching rules."""

    members: NDArray[np.uint8]  # (m, n_groups)
    centers: NDArray[np.float64]  # (m, n_axes)
    weights: NDArray[np.float64]  # (m,), > 0; about K in all
    clusters: tuple[tuple[int, ...], ...]  # (m,): which clusters it may stand for


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundInput:
    """What a bound is prepared for: a problem, and how the answer will be used."""

    problem: ReducedProblem
    assigner: AbstractAssigner  # exact assignment, for the same problem
    gap: float = 1e-3  # the relative gap asked for: sets the size of steps, proves nothing
    seed: int = 0
    keep_proof: bool = False  # claim only what the checker of certificates can repeat
    multipliers: NDArray[np.float64] | None = None  # (n_groups,): to begin with, where known
    multipliers_proven: bool = (
        False  # the multipliers were proven for this problem: no need to look around
    )


def no_progress(**done: int) -> None:
    """Tell nobody what was done."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundContext:
    """What a bound has at the root, and not in a node, which may be on another machine.

    Attributes
    ----------
    news : News
        What is known, and where to tell more.
    executor : concurrent.futures.Executor, optional
        Threads. The bound is alone: it may use them.
    n_threads : int
        How many tasks it runs at a time.
    recombine : callable
        Looks for a better labelling among clusters, the best first; tells it to the news.
    time_boxed : bool
        Whether another bound waits: give up soon where nothing moves.
    far : Far, optional
        Workers elsewhere, for tasks that are worth the journey.
    kept : object
        Where a run before has left this bound: the last that it told to ``keep``. None: nowhere.
    keep : callable
        Told, at moments when all fits together, a function that returns what the bound needs to
        go on from there: plain data and objects of this package. A bound that takes no longer
        than a coffee need not care.
    on_work : callable
        Told what was done, by the names of its arguments (``boxes=40``), as often as one likes.
    """

    incumbent: IncumbentView
    executor: Executor | None = None
    improve_incumbent: Callable[[Sequence[CandidateCluster]], None] = lambda clusters: None
    n_threads: int = 1
    time_boxed: bool = False
    remote: RemoteExecutor | None = None
    kept: Any = None
    keep: Callable[[Callable[[], Any]], None] = lambda state: None
    progress: Callable[..., None] = no_progress


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundResult:
    """A proven value and what a sceptic needs to prove it again.

    Attributes
    ----------
    value : float
        At most the cost of every feasible labelling of the part, rounding included;
        infinite if the part has none.
    leaf : Leaf
        The kind of proof, and its evidence.
    restart : object
        What the same bound may start from on a part of this part. Only speed depends on it.
    centers : tuple of ndarray of shape (n_clusters, n_axes)
        Centres that the relaxation suggests, for the upper bound.
    mixture : Mixture, optional
        The relaxation's own solution, where it has one: for the choice of a split.
    pair : tuple of two int, optional
        Groups that should be decided next, together or apart, where the bound has compared some.
    viable : ndarray of shape (n_groups, n_clusters), optional
        Where the value is about labellings below the cutoff alone, which groups they can have in
        which clusters.
    numbers : mapping
        How much work it was.
    """

    value: float
    leaf: LeafProof
    warm_start: Any = None
    centers: tuple[NDArray[np.float64], ...] = ()
    fractional: FractionalSolution | None = None
    pair: tuple[int, int] | None = None
    allowed: NDArray[np.bool_] | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if math.isnan(self.value):  # what compares with nothing must not count as a bound
            raise BoundError(
                f"the {self.leaf.kind} bound is not a number",
                hint="this is a bug in certikmeans: please report it with the data and the seed",
            )


class LowerBound(ABC, Generic[State]):
    """One way of bounding a part of the solution set from below. Concrete bounds are final.

    ``setup`` runs once per problem and may be slow; its result is read-only and shared
    between workers. ``compute`` runs once per part and keeps nothing. It may end early when
    its value reaches ``cutoff``, or when ``stop`` asks for it: what it returns is valid then
    too, only weaker. Bounds see a part (a box per centre), never a node of a tree. Nobody asks
    for the name of a bound, but for what it can do:

    Attributes
    ----------
    uses_center_boxes : bool
        Whether boxes of centres make it stronger. If not, it is of no use where centres are split.
    has_fractional_solution : bool
        Whether its results have a mixture, which says what pair of groups is in doubt.
    certifiable : bool
        Whether certificates can hold what it proves.
    usable_in_tree : bool
        Whether it pays in the nodes of a tree; if not, it is for the root alone.
    """

    name: ClassVar[str]
    uses_center_boxes: ClassVar[bool] = True
    has_fractional_solution: ClassVar[bool] = False
    certifiable: ClassVar[bool] = True
    usable_in_tree: ClassVar[bool] = True

    def unsupported_reason(self, problem: ReducedProblem) -> str | None:
        """Why the bound cannot be had for this problem, in a clause; None: it can."""
        return None

    def min_rounding_loss(self, problem: ReducedProblem) -> float:
        """Return what this bound takes off for rounding at the least.

        Where that is as much as a labelling costs, there is no point in asking.
        """
        return 0.0

    def kernels(self) -> Sequence[Any]:
        """Return the compiled functions that an evaluation calls and that take long to compile.

        A run that finds none of them on disk has them compiled while it is busy with other things.
        """
        return ()

    def rehearse(self, inputs: BoundInput) -> None:
        """Call what only large problems need on a tiny one, so that it is compiled."""

    @abstractmethod
    def setup(self, inputs: BoundInput) -> State:
        """Compute once what every evaluation shares."""

    @abstractmethod
    def compute(
        self,
        state: State,
        domain: Domain,
        cutoff: float,
        stop: StopSignal,
        warm_start: Any = None,
        ctx: BoundContext | None = None,
    ) -> BoundResult:
        """Bound the reduced cost, ``offset`` not included, of every labelling in ``domain``.

        ``warm_start`` is what this bound returned for a part that contains this one, or None.
        ``ctx`` is given where the part is the whole, at the beginning of a run.
        """

    def map_warm_start(
        self,
        warm_start: Any,
        before: ReducedProblem,
        after: ReducedProblem,
        joined: Labels,
        centers: NDArray[np.float64],
    ) -> Any:
        """Return a restart for a problem in which group s is part of ``joined[s]``.

        ``after`` may also have more cannot-links; ``centers`` are those of a good labelling of
        it. None: there is no use for the old restart.
        """
        return None
