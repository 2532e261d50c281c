"""Which bound is asked when, and which one grows the tree: every rule with its reason.

A bound that was asked for by name is the only one. Otherwise:

* **The floor first**, before the heuristics: one pass over the points, and a run that ends early
  has something to show.
* **Few axes** (below `FEW_AXES`): the cluster bound closes nearly everything at the root in seconds
  (docs/benchmarks/root.md). With six axes and more its pricing may not end; where it leaves more
  than `LOST` it is asked to give up soon, and the others get their turn.
* **More axes**: multipliers in closed form take a second at most and close what is well separated;
  their ascent may take longer, and has a share of the time.
  Up to `SOME_AXES` the cluster bound is tried for a moment: pricing ends where clusters are
  compact; with few groups that is known sooner than the closed form, and it goes first. Then the
  semidefinite bound, which does not mind axes but groups: the whole up to `WHOLE_UP_TO` groups,
  beyond that in parts (docs/benchmarks/highdim.md).
* **The tree** is grown with the bound that reached most among those that pay in nodes.

Shares of a time limit leave something to whoever comes next; what is not used is passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from certikmeans.bounds.base import AbstractBound, BoundResult
from certikmeans.bounds.registry import Strength, bound_with, make_bound
from certikmeans.options import Options
from certikmeans.problem import ReducedProblem

# Up to here the pricing of the cluster bound always ends; from there on it may not.
ALWAYS_ENDS = 5
FEW_AXES = 9
SOME_AXES = 20
FEW_GROUPS = 400
# Of the time that is left: an ascent of twenty axes and eight clusters took 12 s of 15, and parts
# came to nothing.
CLIMBING = 0.3
# A gap that the cluster bound and its tree do not close from.
LOST = 0.01
WHOLE_UP_TO = 700


@final
@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Ask this bound, for this share of the time that is left, if more than this gap is left."""

    bound: AbstractBound[Any]
    share: float = 1.0
    in_a_hurry: bool = False
    least_gap: float = 0.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A bound that was asked, and what it found."""

    bound: AbstractBound[Any]
    found: BoundResult


@final
class Policy:
    """Decides for one run, from the options, the reduced problem, and what was reached so far."""

    def __init__(self, options: Options, problem: ReducedProblem) -> None:
        self._problem = problem
        self._forced = None if options.bound == "auto" else make_bound(options.bound)
        self._needs_boxes = options.branching == "centers"
        self._plan = [Request(self._forced)] if self._forced is not None else self._usual()

    def obstacle(self) -> str | None:
        """Why the bound that was asked for by name cannot be had; None: it can."""
        if self._forced is None:
            return None
        clause = self._forced.obstacle(self._problem)
        return None if clause is None else f"bound {self._forced.name!r}: {clause}"

    def before_heuristics(self) -> AbstractBound[Any] | None:
        """The bound that needs no labelling, and hardly any time."""
        return None if self._forced is not None else bound_with(Strength.ONE_PASS)

    def compiled_first(self) -> AbstractBound[Any] | None:
        """The first bound of the plan that needs kernels of its own."""
        fit = (one.bound for one in self._plan if one.bound.obstacle(self._problem) is None)
        return next((bound for bound in fit if bound.kernels()), None)

    def next(self, gap: float) -> Request | None:
        """The bound to ask next, with this gap left; None: none."""
        while self._plan:
            request = self._plan.pop(0)
            if gap > request.least_gap and request.bound.obstacle(self._problem) is None:
                return request
        return None

    @property
    def left(self) -> int:
        """How many bounds of the plan have not had their turn."""
        return len(self._plan)

    def skip_to(self, left: int) -> None:
        """Leave out those that had their turn in a run before."""
        self._plan = self._plan[len(self._plan) - min(left, len(self._plan)) :]

    def named(self, name: str) -> AbstractBound[Any]:
        """The bound that was asked in a run before."""
        same = self._forced is not None and self._forced.name == name
        return self._forced if same and self._forced is not None else make_bound(name)

    def for_the_tree(self, asked: Sequence[Asked]) -> Asked | None:
        """The one that the tree goes on from: the best that pays there; ties go to the earlier."""
        fit = [
            one
            for one in asked
            if one.bound.in_nodes and (one.bound.uses_boxes or not self._needs_boxes)
        ]
        return max(fit, key=lambda one: one.found.value, default=None)

    def _usual(self) -> list[Request]:
        n_axes, n_groups = self._problem.n_axes, self._problem.n_groups
        priced, closed_form = bound_with(Strength.PRICED), bound_with(Strength.CLOSED_FORM)
        if n_axes <= ALWAYS_ENDS:
            return [Request(priced)]
        whole, parts = bound_with(Strength.WHOLE), bound_with(Strength.PARTS)
        by_matrices = [whole] if n_groups <= WHOLE_UP_TO else [parts, whole]
        if n_axes < FEW_AXES:
            return [
                Request(priced, 0.25, in_a_hurry=True),
                Request(closed_form, CLIMBING, in_a_hurry=True, least_gap=LOST),
                *(Request(bound, least_gap=LOST) for bound in by_matrices),
            ]
        first = [Request(closed_form, CLIMBING, in_a_hurry=True)]
        last = [Request(priced, in_a_hurry=True)]
        if n_axes <= SOME_AXES:
            tried = Request(priced, 0.1, in_a_hurry=True)
            first, last = [tried, *first] if n_groups <= FEW_GROUPS else [*first, tried], []
        return [*first, *(Request(bound) for bound in by_matrices), *last]
