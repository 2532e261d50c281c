"""State of a run: the only object that changes while the stages work on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import BoundResult
from certikmeans.checkpoint.file import BestKnown
from certikmeans.errors import WorkerError
from certikmeans.events import BoundImproved, CheckpointOpportunity, IncumbentFound
from certikmeans.kernels.costs import labels_cost
from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import Problem
from certikmeans.problem.arrays import canonical_labels
from certikmeans.proof import Proof
from certikmeans.result import Attempt
from certikmeans.solver.bound_schedule import BoundRun, BoundSchedule, TurnState
from certikmeans.solver.context import SolveContext
from certikmeans.tolerances import check_bound, gap_reached, relative_gap

Labels = Ints

# Source of the bound that needs no computation: no cost is negative, and the cost inside groups.
TRIVIAL = "trivial"


def add_penalty(sum_of_squares: float, penalty: float) -> float:
    """Sum of two nonnegative numbers, rounded up."""
    if penalty == 0.0:
        return sum_of_squares
    return math.nextafter(sum_of_squares + penalty, math.inf)


class ResumableTree(Protocol):
    """A tree search whose state can be saved."""

    nodes: int

    def state(self) -> Any:
        """Return the state from which another search continues."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SolverSnapshot:
    """Progress of a run, beside incumbent and lower bound, from which another run continues.

    Everything else follows from the problem, the options and the seed.
    """

    heuristics_done: bool
    heuristics: Any  # state of the heuristics, unless they are done
    bound_runs: tuple[tuple[str, BoundResult], ...]  # finished bounds by name, with their results
    attempts: tuple[Attempt, ...]
    schedule: tuple[TurnState, ...]  # progress and warm start of every bound
    tree: Any  # TreeState or None


@final
class SolveState:
    """Incumbent, lower bound and progress of a run.

    Costs and bounds are those of the original problem; costs are evaluated here, rounded up.

    Parameters
    ----------
    problem : Problem
    ctx : SolveContext
    saved : SolverSnapshot, optional
        Progress of an earlier run to continue from.
    """

    def __init__(
        self, problem: Problem, ctx: SolveContext, saved: SolverSnapshot | None = None
    ) -> None:
        self.problem = problem
        self._ctx = ctx
        self._cost = math.inf
        self._labels: Labels | None = None
        self._centers: Floats | None = None
        self._iterations = 0
        self._deferred: tuple[Labels, int] | None = None
        self._lower_bound = 0.0
        self._bound_source = TRIVIAL
        # Progress
        self.saved = saved
        self.heuristics_done = saved is not None and saved.heuristics_done
        self.heuristics = None if saved is None else saved.heuristics
        self.bound_runs: list[BoundRun] = []
        self.attempts: list[Attempt] = [] if saved is None else list(saved.attempts)
        self.schedule: BoundSchedule | None = None
        self.tree: ResumableTree | None = None
        self._final_snapshot: SolverSnapshot | None = None
        # Outcome
        self.presolved: PresolvedProblem | None = None
        self.infeasibility: InfeasibilityProof | None = None
        self.failure: WorkerError | None = None
        self.node_limit_reached = False
        self.rounding_dominates = False  # a bound was skipped: its rounding error exceeds the cost
        self.proof: Proof | None = None

    # Incumbent and lower bound.

    @property
    def cost(self) -> float:
        """Cost of the incumbent, rounded up; infinite while there is none."""
        return self._cost

    @property
    def labels(self) -> Labels | None:
        """Labels of the incumbent, numbered by first appearance."""
        return self._labels

    @property
    def centers(self) -> Floats | None:
        """Centres of the incumbent."""
        return self._centers

    @property
    def iterations(self) -> int:
        """Assignment steps of the search that found the incumbent."""
        return self._iterations

    @property
    def lower_bound(self) -> float:
        """Best proven lower bound, rounded down."""
        return self._lower_bound

    @property
    def bound_source(self) -> str:
        """Method that proved the lower bound."""
        return self._bound_source

    @property
    def gap(self) -> float:
        """Relative gap between cost and lower bound."""
        return relative_gap(self._cost, self._lower_bound)

    @property
    def gap_closed(self) -> bool:
        """Whether the required gap is proven."""
        return gap_reached(self._cost, self._lower_bound, self._ctx.options.gap)

    @property
    def finished(self) -> bool:
        """Whether the gap is closed or the run has to stop."""
        return self._ctx.stop.reason() is not None or self.gap_closed

    def update_incumbent(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Replace the incumbent by a feasible labelling if that costs less."""
        numbered = canonical_labels(labels)
        cost, centers = self._evaluate(numbered)
        if not cost < self._cost:
            return
        self._cost, self._labels, self._centers = cost, numbered, centers
        self._iterations = iterations
        check_bound(cost, self._lower_bound, self._bound_source)
        self._ctx.events.emit(IncumbentFound(self._ctx.events.seconds, cost, source))

    def _evaluate(self, labels: Labels) -> tuple[float, Floats]:
        problem = self.problem
        centers = np.empty((problem.n_clusters, problem.n_features))
        cost = float(labels_cost(problem.points, problem.weights, labels, centers))
        return add_penalty(cost, problem.penalty(labels)), centers

    def cost_parts(self) -> tuple[float, float]:
        """Sum of squares and penalty of the incumbent, each rounded up."""
        if self._labels is None:
            return math.inf, 0.0
        problem = self.problem
        centers = np.empty((problem.n_clusters, problem.n_features))
        squares = float(labels_cost(problem.points, problem.weights, self._labels, centers))
        return squares, problem.penalty(self._labels)

    def defer_incumbent(self, labels: Labels, iterations: int) -> None:
        """Keep a labelling for the end of the run.

        A resumed tree continues with the incumbent it had, so that its results do not change.
        """
        self._deferred = labels, iterations

    def apply_deferred(self, source: str) -> None:
        """Update the incumbent with the deferred labelling."""
        if self._deferred is not None:
            self.update_incumbent(self._deferred[0], source, self._deferred[1])
            self._deferred = None

    def update_bound(self, value: float, source: str) -> None:
        """Raise the lower bound to a proven value if that is higher."""
        check_bound(self._cost, value, source)
        if value > self._lower_bound:
            self._lower_bound, self._bound_source = value, source
            self._ctx.events.emit(BoundImproved(self._ctx.events.seconds, value, source))

    def reduced_view(self, presolved: PresolvedProblem) -> ReducedView:
        """Return the state in terms of the groups that presolve has made."""
        return ReducedView(self, presolved)

    # Progress and checkpoints.

    @property
    def saved_tree(self) -> Any:
        """State of the tree to continue with, if there is one."""
        return None if self.saved is None else self.saved.tree

    def set_schedule(self, schedule: BoundSchedule) -> None:
        """Attach the schedule, and restore it and the results of bounds from the earlier run."""
        self.schedule = schedule
        if self.saved is not None and self.saved.schedule:
            schedule.restore(self.saved.schedule)
            self.bound_runs = [
                BoundRun(schedule.find(name), found) for name, found in self.saved.bound_runs
            ]

    def record_run(self, run: BoundRun, attempt: Attempt) -> None:
        """Store the result of a bound; of several results of a bound, the best one."""
        self.attempts.append(attempt)
        for number, one in enumerate(self.bound_runs):
            if one.bound.name == run.bound.name:
                if run.found.value >= one.found.value:
                    self.bound_runs[number] = run
                return
        self.bound_runs.append(run)

    def freeze(self) -> None:
        """Fix the snapshot: the run is about to end, and the next one continues from here."""
        self._final_snapshot = self.snapshot()

    def save_heuristics(self, heuristics: Any) -> None:
        """Store the state of the heuristics."""
        self.heuristics = heuristics
        self.checkpoint()

    def best_known(self) -> BestKnown:
        """Incumbent, deferred or not, and lower bound."""
        nodes = 1 if self.tree is None else self.tree.nodes
        labels, iterations = self._labels, self._iterations
        if self._deferred is not None and self._evaluate(self._deferred[0])[0] < self._cost:
            labels, iterations = self._deferred
        return BestKnown(labels, iterations, self._lower_bound, self._bound_source, nodes)

    def snapshot(self) -> SolverSnapshot:
        """Return the progress of the run; valid until the run continues."""
        if self._final_snapshot is not None:
            return self._final_snapshot
        return SolverSnapshot(
            heuristics_done=self.heuristics_done,
            heuristics=None if self.heuristics_done else self.heuristics,
            bound_runs=tuple((run.bound.name, run.found) for run in self.bound_runs),
            attempts=tuple(self.attempts),
            schedule=() if self.schedule is None else self.schedule.to_state(),
            tree=self.saved_tree if self.tree is None else self.tree.state(),
        )

    def checkpoint(self, *, last: bool = False) -> None:
        """Emit the event at which a checkpoint may be written: the state is consistent now."""
        self._ctx.events.emit(
            CheckpointOpportunity(self._ctx.events.seconds, self.best_known, self.snapshot, last)
        )


@final
class ReducedView:
    """State in terms of the reduced problem: labels of groups, costs without the offset."""

    def __init__(self, state: SolveState, presolved: PresolvedProblem) -> None:
        self._state = state
        self._presolved = presolved

    def labels(self) -> Labels:
        """Return the incumbent; there is one after the heuristics."""
        assert self._state.labels is not None
        labels = self._presolved.presolve_labels(self._state.labels)
        return self._presolved.reduced.label_constraints.aligned(labels)

    def update_incumbent(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Update the incumbent with a feasible labelling of the groups."""
        self._state.update_incumbent(self._presolved.postsolve_labels(labels), source, iterations)

    def update_bound(self, value: float, source: str) -> None:
        """Raise the lower bound to a proven bound of the whole problem."""
        self._state.update_bound(self._presolved.postsolve_bound(value), source)

    def gap_reached(self) -> bool:
        """Whether the required gap is proven."""
        return self._state.gap_closed
