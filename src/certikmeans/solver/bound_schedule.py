"""Which bound is asked when, and which one grows the tree: every rule with its reason.

A bound that was asked for by name is the only one. Otherwise:

* **The floor first**, before the heuristics: one pass over the points, and a run that ends early
  has something to show.
* **Few axes** (below `MAX_DIMS_CLUSTER_FIRST`): the cluster bound closes nearly everything at the root in seconds
  (docs/benchmarks/root.md). With six axes and more its pricing may not end; where it leaves more
  than `UNPROMISING_GAP` it is asked to give up soon, and the others get their turn.
* **More axes**: multipliers in closed form take a second at most and close what is well separated;
  their ascent may take longer, and has a share of the time.
  Up to `MAX_DIMS_CLUSTER_TRIED` the cluster bound is tried for a moment: pricing ends where clusters are
  compact; with few groups that is known sooner than the closed form, and it goes first. Then the
  semidefinite bound, which does not mind axes but groups: the whole up to `MAX_GROUPS_FULL_SDP` groups,
  beyond that in parts (docs/benchmarks/highdim.md).
* **The tree** is grown with the bound that reached most among those that pay in nodes.

Shares of a time limit leave something to whoever comes next; what is not used is passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from certikmeans.bounds.base import BoundResult, LowerBound
from certikmeans.bounds.registry import Strength, bound_with, make_bound
from certikmeans.options import Options
from certikmeans.problem import ReducedProblem

# Up to here the pricing of the cluster bound always ends; from there on it may not.
MAX_DIMS_PRICING_TERMINATES = 5
MAX_DIMS_CLUSTER_FIRST = 9
MAX_DIMS_CLUSTER_TRIED = 20
MAX_GROUPS_CLUSTER_FIRST = 400
# Of the time that is left: an ascent of twenty axes and eight clusters took 12 s of 15, and parts
# came to nothing.
ASCENT_TIME_FRACTION = 0.3
# A gap that the cluster bound and its tree do not close from.
UNPROMISING_GAP = 0.01
MAX_GROUPS_FULL_SDP = 700


@final
@dataclass(slots=True, eq=False)
class ScheduledBound:
    """A bound of the schedule and its progress."""

    bound: LowerBound[Any]
    time_fraction: float = 1.0  # of the time left when its turn comes
    time_boxed: bool = False
    min_gap: float = 0.0  # not run below this gap
    finished: bool = False
    warm_start: Any = None  # from which it continues


@final
@dataclass(frozen=True, slots=True, eq=False)
class TurnState:
    """State of one bound of the schedule, for checkpoints."""

    name: str
    finished: bool
    warm_start: Any


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundRun:
    """A bound that was computed at the root, and its result."""

    bound: LowerBound[Any]
    found: BoundResult


@final
class BoundSchedule:
    """Schedule of one run, from the options and the reduced problem."""

    def __init__(self, options: Options, problem: ReducedProblem) -> None:
        self._problem = problem
        self._chosen = None if options.bound == "auto" else make_bound(options.bound)
        self._needs_boxes = options.branching == "centers"
        plan = [ScheduledBound(self._chosen)] if self._chosen is not None else self._usual()
        self._entries = [entry for entry in plan if entry.bound.unsupported_reason(problem) is None]

    def unsupported_reason(self) -> str | None:
        """Return why the bound chosen by name is not available for this problem, or None."""
        if self._chosen is None:
            return None
        clause = self._chosen.unsupported_reason(self._problem)
        return None if clause is None else f"bound {self._chosen.name!r}: {clause}"

    def before_heuristics(self) -> LowerBound[Any] | None:
        """Return the bound that needs no labelling and hardly any time, or None."""
        return None if self._chosen is not None else bound_with(Strength.ONE_PASS)

    def first_compiled(self) -> LowerBound[Any] | None:
        """Return the first bound of the schedule that needs kernels of its own, or None."""
        return next((one.bound for one in self._entries if one.bound.kernels()), None)

    def next(self, gap: float) -> ScheduledBound | None:
        """Return the bound to run next at the current gap, or None."""
        for entry in self._entries:
            if entry.finished:
                continue
            if gap > entry.min_gap:
                return entry
            entry.finished = True
        return None

    def record(self, entry: ScheduledBound, found: BoundResult) -> None:
        """Note the result of a turn: each bound has one."""
        entry.finished, entry.warm_start = True, None

    def to_state(self) -> tuple[TurnState, ...]:
        """Return the state of every bound of the schedule."""
        return tuple(
            TurnState(one.bound.name, one.finished, one.warm_start) for one in self._entries
        )

    def restore(self, state: Sequence[TurnState]) -> None:
        """Continue from the state of an earlier run."""
        for entry, saved in zip(self._entries, state, strict=True):
            entry.finished, entry.warm_start = saved.finished, saved.warm_start

    def find(self, name: str) -> LowerBound[Any]:
        """Return the bound of this name, as the schedule has made it."""
        same = (one.bound for one in self._entries if one.bound.name == name)
        return next(same, None) or make_bound(name)

    def tree_bound(self, runs: Sequence[BoundRun]) -> BoundRun | None:
        """Return the best result that the tree can start from; ties go to the earlier one."""
        usable = [
            one
            for one in runs
            if one.bound.usable_in_tree and (one.bound.uses_center_boxes or not self._needs_boxes)
        ]
        return max(usable, key=lambda one: one.found.value, default=None)

    def _usual(self) -> list[ScheduledBound]:
        n_dims, n_groups = self._problem.n_dims, self._problem.n_groups
        priced, closed_form = bound_with(Strength.PRICED), bound_with(Strength.CLOSED_FORM)
        if n_dims <= MAX_DIMS_PRICING_TERMINATES:
            return [ScheduledBound(priced)]
        whole, parts = bound_with(Strength.WHOLE), bound_with(Strength.PARTS)
        by_matrices = [whole] if n_groups <= MAX_GROUPS_FULL_SDP else [parts, whole]
        if n_dims < MAX_DIMS_CLUSTER_FIRST:
            return [
                ScheduledBound(priced, 0.25, time_boxed=True),
                ScheduledBound(
                    closed_form, ASCENT_TIME_FRACTION, time_boxed=True, min_gap=UNPROMISING_GAP
                ),
                *(ScheduledBound(bound, min_gap=UNPROMISING_GAP) for bound in by_matrices),
            ]
        first = [ScheduledBound(closed_form, ASCENT_TIME_FRACTION, time_boxed=True)]
        last = [ScheduledBound(priced, time_boxed=True)]
        if n_dims <= MAX_DIMS_CLUSTER_TRIED:
            tried = ScheduledBound(priced, 0.1, time_boxed=True)
            first, last = (
                [tried, *first] if n_groups <= MAX_GROUPS_CLUSTER_FIRST else [*first, tried],
                [],
            )
        return [*first, *(ScheduledBound(bound) for bound in by_matrices), *last]
