"""Contract of lower bounds, and stall detection. A new bound implements it in its own file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints, Mask
from certikmeans.assignment import AbstractAssigner
from certikmeans.errors import BoundError
from certikmeans.incumbent import CandidateCluster, IncumbentView, NullIncumbent
from certikmeans.parallel import TaskPool
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import LeafProof
from certikmeans.stop import StopSignal

Model = TypeVar("Model")
Labels = Ints


@final
@dataclass(frozen=True, slots=True, eq=False)
class FractionalSolution:
    """Solution of a relaxation: clusters with fractional weights. For branching rules."""

    members: NDArray[np.uint8]  # (m, n_groups)
    centers: Floats  # (m, n_axes)
    weights: Floats  # (m,), > 0; about K in all
    clusters: tuple[tuple[int, ...], ...]  # (m,): which clusters it may stand for


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundInput:
    """Reduced problem and settings that a bound is set up with."""

    problem: ReducedProblem
    assigner: AbstractAssigner  # exact assignment, for the same problem
    gap: float = 1e-3  # relative gap required: sets the size of steps, proves nothing
    seed: int = 0
    keep_proof: bool = False  # claim only what the verifier of certificates can repeat


@dataclass(frozen=True, eq=False)
class BoundContext:
    """Environment of one call of `LowerBound.compute`.

    The default is that of a node of the tree: no incumbent, one thread, nothing reported. A run
    passes a subclass at the root.

    Attributes
    ----------
    stop : StopSignal
        Checked between steps. A bound that ends because of it returns ``finished=False``.
    at_root : bool
        Whether the domain is the whole problem: effort that pays once per run is allowed.
    incumbent : IncumbentView
        Best labelling and bound of the run.
    pool : TaskPool
        Runs tasks of the bound; the bound is its only user meanwhile.
    time_boxed : bool
        Whether another bound is scheduled after this one: end early without progress.
    name : str
        Name of the bound, to which reported values are credited.
    """

    stop: StopSignal = field(default_factory=StopSignal)
    at_root: bool = False
    incumbent: IncumbentView = field(default_factory=NullIncumbent)
    pool: TaskPool = field(default_factory=TaskPool)
    time_boxed: bool = False
    name: str = ""

    def report(self, value: float | None = None, *, work: float = 0.0, **counts: int) -> None:
        """Report a proven value of the whole problem, work done, or both.

        Parameters
        ----------
        value : float, optional
            Proven lower bound of the whole problem.
        work : float
            Units of work since the last report. Counted where the state of the bound is
            consistent, so that a run that stops at a work limit can continue from there.
        **counts : int
            Progress by name, for display (``boxes=40``).
        """
        if work:
            self.stop.add_work(work)
        if value is not None and self.at_root:
            self.incumbent.update_bound(value, self.name)

    def checkpoint(self, warm_start: Any) -> None:
        """Provide a state from which `compute` can continue.

        It is encoded, or ignored, before this method returns: it may share arrays with the
        computation. Short-running bounds need not call it.
        """

    def improve_incumbent(self, clusters: Sequence[CandidateCluster]) -> None:
        """Search for a better labelling made of clusters, given in order of preference."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundResult:
    """A proven value and the evidence from which the verifier derives it again.

    Attributes
    ----------
    value : float
        At most the cost of every feasible labelling in the domain, rounding included;
        infinite if there is none.
    leaf : LeafProof
        Kind of proof, and its evidence.
    warm_start : object
        State from which the same bound continues on the same domain, or starts on a subset of
        it. Only speed depends on it.
    centers : tuple of ndarray of shape (n_clusters, n_axes)
        Centres that the relaxation suggests, for the upper bound.
    fractional : FractionalSolution, optional
        Solution of the relaxation, for the branching rule.
    pair : tuple of two int, optional
        Pair of groups to branch on, if the bound has compared some.
    allowed : ndarray of shape (n_groups, n_clusters), optional
        Clusters that a group can be in, in labellings below the cutoff, if the value is about
        those alone.
    numbers : mapping
        Statistics.
    finished : bool
        False if the bound ended because of ``ctx.stop`` and could be raised further.
    """

    value: float
    leaf: LeafProof
    warm_start: Any = None
    centers: tuple[Floats, ...] = ()
    fractional: FractionalSolution | None = None
    pair: tuple[int, int] | None = None
    allowed: Mask | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)
    finished: bool = True

    def __post_init__(self) -> None:
        if math.isnan(self.value):  # compares as neither above nor below a cutoff
            raise BoundError(
                f"the {self.leaf.kind} bound is not a number",
                hint="this is a bug in certikmeans: please report it with the data and the seed",
            )


class LowerBound(ABC, Generic[Model]):
    """A method that bounds the cost of all labellings in a domain from below.

    ``setup`` runs once per problem and may be slow; its result is read-only and shared between
    workers. ``compute`` runs once per domain and keeps no state. It may end early when its value
    reaches ``cutoff`` or when ``ctx.stop`` requires it: the value returned is valid then too, only
    weaker. Bounds know domains (a box per centre), not nodes of a tree. Other code selects bounds
    by these attributes, never by name:

    Attributes
    ----------
    uses_center_boxes : bool
        Whether boxes of centres make it stronger. If not, branching on centres does not help it.
    has_fractional_solution : bool
        Whether its results have a fractional solution, from which a pair to branch on follows.
    certifiable : bool
        Whether certificates can hold its proofs.
    usable_in_tree : bool
        Whether it is useful in the nodes of a tree; if not, it is for the root only.
    plans_by_work : bool
        Whether it plans its computation by the work limit, and so needs one.
    """

    name: ClassVar[str]
    uses_center_boxes: ClassVar[bool] = True
    has_fractional_solution: ClassVar[bool] = False
    certifiable: ClassVar[bool] = True
    usable_in_tree: ClassVar[bool] = True
    plans_by_work: ClassVar[bool] = False

    def unsupported_reason(self, problem: ReducedProblem) -> str | None:
        """Clause that says why the bound cannot handle this problem, or None if it can."""
        return None

    def min_work(self, problem: ReducedProblem) -> float:
        """Return the units of work below which a turn at the root proves little."""
        return 0.0

    def min_rounding_loss(self, problem: ReducedProblem) -> float:
        """Return the least amount that this bound subtracts for rounding.

        Where that is as much as a labelling costs, computing the bound is pointless.
        """
        return 0.0

    def kernels(self) -> Sequence[Any]:
        """Return the compiled functions of `compute` that take long to compile.

        If none of them is cached on disk, a run compiles them in the background.
        """
        return ()

    def kernels_for(self, problem: ReducedProblem) -> Sequence[Any]:
        """Return those that the bound calls for a problem; by default all of `kernels`."""
        return self.kernels()

    def rehearse(self, inputs: BoundInput) -> None:
        """Call kernels that only large problems need on a tiny one, to compile them."""

    @abstractmethod
    def setup(self, inputs: BoundInput) -> Model:
        """Compute what all calls of `compute` share."""

    @abstractmethod
    def compute(
        self,
        model: Model,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: Any = None,
    ) -> BoundResult:
        """Bound the reduced cost, ``offset`` not included, of every labelling in ``domain``.

        Parameters
        ----------
        model : object
            Result of `setup`.
        domain : Domain
            Labellings to bound.
        cutoff : float
            Value at which the computation may stop.
        ctx : BoundContext
            Stop signal, incumbent, task pool; receives progress.
        warm_start : object, optional
            ``BoundResult.warm_start`` or a checkpoint of this bound for a domain that contains
            this one. At the root, the state of a call that was stopped makes this one continue
            there, as if it had not been stopped.
        """

    def warm_start_from_multipliers(self, multipliers: Floats) -> Any:
        """Return a warm start from one multiplier per group, or None if the bound has none."""
        return None

    def node_warm_start(self, warm_start: Any) -> Any:
        """Return the part of a warm start of the root that nodes of a tree need."""
        return warm_start

    def map_warm_start(
        self,
        warm_start: Any,
        before: ReducedProblem,
        after: ReducedProblem,
        joined: Labels,
        centers: Floats,
    ) -> Any:
        """Return a warm start for a problem in which group s is merged into ``joined[s]``.

        ``after`` may also have more cannot-links; ``centers`` are those of a good labelling of
        it. Return None if the old warm start is of no use.
        """
        return None


@final
class StallDetector:
    """Detects that the distance to a target no longer shrinks.

    Progress means that the distance falls below ``ratio`` times a reference value. There are two
    rules for when progress is due:

    * within ``window`` units of work of the last progress, for steps of similar cost, such as
      the rounds of a bundle (default);
    * at ``window`` units of work and at every doubling since, for searches whose total cost is
      unknown, such as a search over boxes (``doubling=True``).

    Runs that count work instead of time are repeatable.

    Examples
    --------
    >>> detector = StallDetector(0.5, window=2)
    >>> [detector.stalled(distance) for distance in [8, 3, 2, 2, 2]]
    [False, False, False, False, True]
    """

    def __init__(self, ratio: float, window: float, *, doubling: bool = False) -> None:
        if not 0.0 < ratio <= 1.0:
            raise ValueError(f"ratio is {ratio}, has to be in (0, 1]")
        self._ratio = ratio
        self._window = window
        self._doubling = doubling
        self._work = 0.0
        self._due = window
        self._reference = math.inf

    def stalled(self, distance: float, work: float | None = None) -> bool:
        """Whether progress is overdue at this distance.

        ``work`` is the total so far; by default the number of calls.
        """
        self._work = self._work + 1.0 if work is None else work
        if self._doubling:
            if self._work < self._due:
                return False
            failed = distance > self._ratio * self._reference
            self._reference, self._due = distance, 2.0 * self._work
            return failed
        if distance < self._ratio * self._reference:
            self._reference, self._due = distance, self._work + self._window
        return self._work > self._due
