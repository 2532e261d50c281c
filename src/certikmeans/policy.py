"""Which bound is asked when, and which one grows the tree: every rule with its reason.

A bound that was asked for by name is the only one. Otherwise:

1. The cluster bound closes nearly everything with few axes, at the root, in seconds
   (docs/benchmarks/root.md).
2. Where it leaves more than `SWITCH_GAP`, with at most `SWITCH_UP_TO` groups and at least
   `SWITCH_FROM_AXES` axes, the semidefinite bound is asked: axes are no obstacle to it. With few
   axes the pricing of the cluster bound always ends, and it only needs its time
   (docs/benchmarks/tree.md).

The tree is grown with the bound that reached most among those that pay in nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from certikmeans.bounds.base import AbstractBound, BoundResult
from certikmeans.bounds.registry import make_bound
from certikmeans.options import Options
from certikmeans.problem import ReducedProblem

FIRST, SECOND = "cluster", "sdp"
SWITCH_GAP = 0.01
SWITCH_UP_TO = 400
SWITCH_FROM_AXES = 6
# Where another bound waits, the first gets this share of a time limit.
SWITCH_SHARE = 0.25


@final
@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Ask this bound, for this share of the time that is left."""

    bound: AbstractBound[Any]
    share: float = 1.0
    in_a_hurry: bool = False


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
        self._forced = None if options.bound == "auto" else make_bound(options.bound)
        self._problem = problem
        # Boxes of centres mean nothing to the semidefinite bound.
        self._may_switch = (
            self._forced is None
            and options.branching != "centers"
            and problem.n_groups <= SWITCH_UP_TO
            and problem.n_axes >= SWITCH_FROM_AXES
        )

    def obstacle(self) -> str | None:
        """Why the bound that was asked for by name cannot be had; None: it can."""
        if self._forced is None:
            return None
        clause = self._forced.obstacle(self._problem)
        return None if clause is None else f"bound {self._forced.name!r}: {clause}"

    def next(self, asked: Sequence[Asked], gap: float) -> Request | None:
        """The bound to ask after these, with this gap left; None: none."""
        if not asked:
            if self._forced is not None:
                return Request(self._forced)
            share = SWITCH_SHARE if self._may_switch else 1.0
            return Request(make_bound(FIRST), share, in_a_hurry=self._may_switch)
        if self._may_switch and len(asked) == 1 and gap > SWITCH_GAP:
            return Request(make_bound(SECOND))
        return None

    def for_the_tree(self, asked: Sequence[Asked]) -> Asked:
        """The one whose bound and restart the tree goes on from; ties go to the earlier one."""
        return max(asked, key=lambda one: one.found.value)
