"""Bound schedule: which bound runs at the root, with how much work, and which one the tree uses.

A bound chosen by name is the only one, without a work limit. Otherwise the schedule is a portfolio:

* **The eigenvalue bound first**, before the heuristics: one pass over the points, so that a run
  that ends early has a bound.
* **Few dimensions** (up to ``max_dims_pricing``): the cluster bound alone. Its pricing always
  ends there, and it closes nearly every gap at the root in seconds (docs/benchmarks/root.md).
* **More dimensions**: several bounds in turn, each with a work limit that grows by ``growth`` from
  turn to turn; the bound with the least limit is next. The cluster bound converges if clusters are
  compact. The spectral bound takes a second at most and closes the gap of well separated clusters.
  The semidefinite bound closes most other gaps: of the whole problem up to ``max_groups_sdp``
  groups, and as the partition bound with more (docs/benchmarks/highdim.md).
* **Other constraints than pairs.** Of the bounds for many dimensions only the semidefinite bound of
  the whole problem takes account of cluster sizes: up to ``max_groups_whole`` groups the spectral
  and the partition bound, whose gap is the price of the sizes at least, have no turn. With few
  dimensions it comes beside the cluster bound where a large gap is left: its size cuts close gaps
  that the other cannot. The bound by matchings of cannot-link sets comes first where it applies.
  With soft pairs the semidefinite bound proves sizes of clusters first (`bounds.soft_pairs`).
* **A bound clearly below the best one waits**: after its first turn, a bound that leaves more than
  ``wait_ratio`` times the gap of the best one gets its next turn when no other is left.
* **Later stages**: the semidefinite bound of the whole problem after the partition bound, and in
  many dimensions the cluster bound, run when the bounds of the stage before have finished.
* **The last one left** has no work limit, unless it plans by it (`LowerBound.plans_by_work`).
* **The tree** uses the bound that reached most among those that are useful in nodes.

Limits are counted in work, not in seconds: a run without a time limit repeats, and what it has
reached at any time is what a run with a time limit would have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from certikmeans.bounds.base import BoundResult, LowerBound
from certikmeans.bounds.registry import make_bound
from certikmeans.options import Options
from certikmeans.problem import ReducedProblem
from certikmeans.stop import UNITS_PER_SECOND


@final
@dataclass(frozen=True, slots=True)
class ScheduleParams:
    """Settings of the schedule.

    Attributes
    ----------
    max_dims_pricing : int
        Dimensions up to which the pricing of the cluster bound always ends.
    max_dims_cluster_first, max_dims_cluster : int
        Dimensions below which the cluster bound comes first, and up to which it comes early.
    max_groups_cluster_first : int
        Groups up to which it comes before the spectral bound there.
    max_groups_sdp : int
        Groups up to which the semidefinite bound runs without the partition bound before it.
    max_groups_whole : int
        Groups up to which only bounds that take account of cluster sizes run, if these are limited.
    min_gap : float
        With fewer than ``max_dims_cluster_first`` dimensions: the gap that the cluster bound
        and its tree close better than the others.
    first_work : float
        Work limit of the first turn of a bound, unless it needs more (`LowerBound.min_work`).
    growth : float
        Ratio of the work limits of two turns.
    wait_ratio : float
        Ratio of the gaps above which a bound waits for better ones.
    """

    max_dims_pricing: int = 5
    max_dims_cluster_first: int = 9
    max_dims_cluster: int = 20
    max_groups_cluster_first: int = 400
    max_groups_sdp: int = 700
    max_groups_whole: int = 2_500
    min_gap: float = 0.01
    first_work: float = 0.25 * UNITS_PER_SECOND
    growth: float = 3.0
    wait_ratio: float = 2.0

    def __post_init__(self) -> None:
        if not (self.first_work > 0.0 and self.growth > 1.0 and self.wait_ratio >= 1.0):
            raise ValueError("first_work must be positive, growth above 1, wait_ratio at least 1")


@final
@dataclass(slots=True, eq=False)
class ScheduledBound:
    """A bound of the portfolio and what it has reached."""

    bound: LowerBound[Any]
    min_gap: float = 0.0  # not run below this gap
    work_limit: float = math.inf  # of the next turn
    value: float = -math.inf
    turns: int = 0
    finished: bool = False
    stage: int = 0  # runs when all bounds of earlier stages have finished
    model: Any = field(default=None, repr=False)  # made by `LowerBound.setup` before the first turn
    warm_start: Any = field(default=None, repr=False)  # from which the next turn continues


@final
@dataclass(frozen=True, slots=True, eq=False)
class TurnState:
    """State of one bound of the portfolio between two turns, for checkpoints."""

    name: str
    work_limit: float
    value: float
    turns: int
    finished: bool
    warm_start: Any


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundRun:
    """A bound and its last result."""

    bound: LowerBound[Any]
    found: BoundResult


@final
class BoundSchedule:
    """Schedule of one run, from the options, the reduced problem and the values reached so far."""

    def __init__(
        self, options: Options, problem: ReducedProblem, params: ScheduleParams | None = None
    ) -> None:
        self._problem = problem
        self._params = ScheduleParams() if params is None else params
        self._chosen = None if options.bound == "auto" else make_bound(options.bound)
        self._needs_boxes = options.branching == "centers"
        entries = self._portfolio() if self._chosen is None else [ScheduledBound(self._chosen)]
        self._entries = [one for one in entries if one.bound.unsupported_reason(problem) is None]
        if options.keep_proof and self._chosen is None:
            self._entries = [one for one in self._entries if one.bound.certifiable]

    def unsupported_reason(self) -> str | None:
        """Return why the bound chosen by name is not available for this problem, or None."""
        if self._chosen is None:
            return None
        clause = self._chosen.unsupported_reason(self._problem)
        return None if clause is None else f"bound {self._chosen.name!r}: {clause}"

    def before_heuristics(self) -> LowerBound[Any] | None:
        """Return the bound that needs no labelling and hardly any time, or None."""
        return None if self._chosen is not None else make_bound("spectral")

    def first_compiled(self) -> LowerBound[Any] | None:
        """Return the first bound of the portfolio that needs kernels of its own, or None."""
        bounds = (one.bound for one in self._entries)
        return next((bound for bound in bounds if bound.kernels_for(self._problem)), None)

    def next(self, gap: float, cutoff: float) -> ScheduledBound | None:
        """Return the bound to run next at the current gap, or None.

        Parameters
        ----------
        gap : float
            Relative gap of the run.
        cutoff : float
            Bound on the reduced cost that closes the gap.
        """
        left = [one for one in self._entries if not one.finished and gap > one.min_gap]
        if not left:
            return None
        stage = min(one.stage for one in left)
        left = [one for one in left if one.stage == stage]
        best = max(one.value for one in self._entries)
        near = [one for one in left if one.turns == 0 or not self._waits(one, best, cutoff)]
        entry = min(near or left, key=lambda one: one.work_limit)
        if len(left) == 1 and not entry.bound.plans_by_work:
            entry.work_limit = math.inf
        return entry

    def _waits(self, entry: ScheduledBound, best: float, cutoff: float) -> bool:
        """Whether a bound leaves much more of the gap than the best one."""
        return cutoff - entry.value > self._params.wait_ratio * max(0.0, cutoff - best)

    def record(self, entry: ScheduledBound, found: BoundResult) -> None:
        """Record the result of a turn."""
        entry.turns += 1
        entry.work_limit *= self._params.growth
        entry.value = max(entry.value, found.value)
        entry.finished, entry.warm_start = found.finished, found.warm_start

    def to_state(self) -> tuple[TurnState, ...]:
        """Return the state of every bound of the portfolio."""
        return tuple(
            TurnState(
                one.bound.name, one.work_limit, one.value, one.turns, one.finished, one.warm_start
            )
            for one in self._entries
        )

    def restore(self, state: Sequence[TurnState]) -> None:
        """Continue from the state of an earlier run."""
        for saved in state:
            entry = self.entry_of(saved.name)
            if entry is not None:
                entry.work_limit, entry.value = saved.work_limit, saved.value
                entry.turns, entry.finished = saved.turns, saved.finished
                entry.warm_start = saved.warm_start

    def find(self, name: str) -> LowerBound[Any]:
        """Return the bound of this name, as the schedule has made it."""
        same = (one.bound for one in self._entries if one.bound.name == name)
        return next(same, None) or make_bound(name)

    def entry_of(self, name: str) -> ScheduledBound | None:
        """Return the entry of the bound of this name, or None."""
        return next((one for one in self._entries if one.bound.name == name), None)

    def tree_bound(self, runs: Sequence[BoundRun]) -> BoundRun | None:
        """Return the best result that the tree can start from; ties go to the earlier one."""
        usable = [
            one
            for one in runs
            if one.bound.usable_in_tree and (one.bound.uses_center_boxes or not self._needs_boxes)
        ]
        return max(usable, key=lambda one: one.found.value, default=None)

    def _portfolio(self) -> list[ScheduledBound]:
        """Return the bounds of the portfolio; of equal work limits, the first comes first."""
        params, n_dims, n_groups = self._params, self._problem.n_dims, self._problem.n_groups
        constraints = self._problem.label_constraints
        sized = constraints.sizes is not None and n_groups <= params.max_groups_whole
        if n_dims <= params.max_dims_pricing:
            beside = [self._entry("sdp", params.min_gap)] if sized else []
            return [self._entry("cluster"), *beside]
        few_dims = n_dims < params.max_dims_cluster_first
        min_gap = params.min_gap if few_dims else 0.0
        early = [] if sized else [self._entry("spectral", min_gap)]
        if constraints.sets is not None:
            early.append(self._entry("sets", min_gap))
        unweighted = bool((self._problem.weights == 1.0).all())
        if constraints.soft is not None and unweighted and n_groups <= params.max_groups_sdp:
            late = [self._entry("soft", min_gap), self._entry("sdp", min_gap, stage=1)]
        elif sized or n_groups <= params.max_groups_sdp:
            late = [self._entry("sdp", min_gap)]
        else:
            late = [self._entry("partition", min_gap), self._entry("sdp", min_gap, stage=1)]
        if n_dims > params.max_dims_cluster:
            return [*early, *late, self._entry("cluster", stage=2)]
        if few_dims or n_groups <= params.max_groups_cluster_first:
            return [self._entry("cluster"), *early, *late]
        return [*early, self._entry("cluster"), *late]

    def _entry(self, name: str, min_gap: float = 0.0, stage: int = 0) -> ScheduledBound:
        bound = make_bound(name)
        work_limit = max(self._params.first_work, bound.min_work(self._problem))
        return ScheduledBound(bound, min_gap, work_limit, stage=stage)
