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
@dataclass(frozen=True, slots=True, eq=False)
class ScheduledBound:
    """Ask this bound, for this share of the time that is left, if more than this gap is left."""

    bound: LowerBound[Any]
    time_fraction: float = 1.0
    time_boxed: bool = False
    min_gap: float = 0.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundRun:
    """A bound that was asked, and what it found."""

    bound: LowerBound[Any]
    found: BoundResult


@final
class BoundSchedule:
    """Decides for one run, from the options, the reduced problem, and what was reached so far."""

    def __init__(self, options: Options, problem: ReducedProblem) -> None:
        self._problem = problem
        self._forced = None if options.bound == "auto" else make_bound(options.bound)
        self._needs_boxes = options.branching == "centers"
        self._plan = [ScheduledBound(self._forced)] if self._forced is not None else self._usual()

    def unsupported_reason(self) -> str | None:
        """Why the bound that was asked for by name cannot be had; None: it can."""
        if self._forced is None:
            return None
        clause = self._forced.unsupported_reason(self._problem)
        return None if clause is None else f"bound {self._forced.name!r}: {clause}"

    def initial_bound_of_schedule(self) -> LowerBound[Any] | None:
        """The bound that needs no labelling, and hardly any time."""
        return None if self._forced is not None else bound_with(Strength.ONE_PASS)

    def compiled_first(self) -> LowerBound[Any] | None:
        """The first bound of the plan that needs kernels of its own."""
        fit = (
            one.bound for one in self._plan if one.bound.unsupported_reason(self._problem) is None
        )
        return next((bound for bound in fit if bound.kernels()), None)

    def next(self, gap: float) -> ScheduledBound | None:
        """The bound to ask next, with this gap left; None: none."""
        while self._plan:
            scheduled = self._plan.pop(0)
            if (
                gap > scheduled.min_gap
                and scheduled.bound.unsupported_reason(self._problem) is None
            ):
                return scheduled
        return None

    @property
    def left(self) -> int:
        """How many bounds of the plan have not had their turn."""
        return len(self._plan)

    def skip_to(self, left: int) -> None:
        """Leave out those that had their turn in a run before."""
        self._plan = self._plan[len(self._plan) - min(left, len(self._plan)) :]

    def named(self, name: str) -> LowerBound[Any]:
        """The bound that was asked in a run before."""
        same = self._forced is not None and self._forced.name == name
        return self._forced if same and self._forced is not None else make_bound(name)

    def tree_bound(self, asked: Sequence[BoundRun]) -> BoundRun | None:
        """The one that the tree goes on from: the best that pays there; ties go to the earlier."""
        fit = [
            one
            for one in asked
            if one.bound.usable_in_tree and (one.bound.uses_center_boxes or not self._needs_boxes)
        ]
        return max(fit, key=lambda one: one.found.value, default=None)

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
