"""Options of a run: one definition for Python, the command line and the documentation."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, final

from certikmeans._jit.background_compiler import available_cores as available_cores
from certikmeans._numbers import fraction, plain_number, whole_number
from certikmeans.bounds.registry import BOUNDS as REGISTERED
from certikmeans.errors import Argument, InputError, Message
from certikmeans.stop import UNITS_PER_SECOND

BOUNDS = ("auto", *REGISTERED)
BRANCHINGS = ("auto", "centers", "pairs")
SELECTIONS = ("best", "depth", "mixed")
DEFAULT_GAP = 1e-3
DEFAULT_NODE_LIMIT = 5_000_000
TREE_SECONDS_WITHOUT_LIMIT = 10.0  # of work, on one core


@final
@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run, validated.

    The descriptions below are the help texts of the command line; the metadata of a field adds
    what the command line needs beyond them (``certikmeans.cli.parameters``).

    Parameters
    ----------
    gap : float
        Stop when ``(cost - lower_bound) / cost`` is at most this; at least 0, below 1. May have a
        percent sign: 0.1%.
    time_limit : float or None
        Wall time for the whole run, in seconds. Without it the run ends by itself: bounds are
        raised as long as that pays, then the tree is searched for about ten seconds of work.
    bound : {"auto", "cluster", "grouped", "partition", "sample", "sdp", "sets", "soft", "spectral"}
        Lower bound to compute.
    branching : {"auto", "centers", "pairs"}
        How to branch when the bound does not close the gap at the root.
    jobs : int or None
        Number of threads; by default one per available core. The result does not depend on it.
    seed : int
        Seed of all random choices.
    node_limit : int or None
        Largest number of nodes in the branch-and-bound tree. Without a time limit and a node
        limit, the tree is searched for about ten seconds of work.
    selection : {"best", "depth", "mixed"}
        Which open node to branch on next.
    keep_proof : bool
        Keep what a certificate needs.

    Examples
    --------
    >>> Options(gap=-1)
    Traceback (most recent call last):
    ...
    certikmeans.errors.InputError: gap: -1 is not a number of at least 0 and below 1
    hint: 0.001 requests a proof within 0.1 %
    """

    gap: float = field(
        default=DEFAULT_GAP,
        metadata={
            "metavar": "G",
            "panel": "Limits",
            "environment": "CERTIKMEANS_GAP",
            "more": "Rounding keeps bound and cost about 1e-9 % "
            "apart, so 0 requests the best provable bound and normally ends with exit code 1.",
        },
    )
    time_limit: float | None = field(
        default=None,
        metadata={"metavar": "S", "panel": "Limits", "environment": "CERTIKMEANS_TIME_LIMIT"},
    )
    bound: str = field(
        default="auto", metadata={"metavar": "NAME", "panel": "Proof", "choices": BOUNDS}
    )
    branching: str = field(
        default="auto", metadata={"metavar": "NAME", "panel": "Proof", "choices": BRANCHINGS}
    )
    jobs: int | None = field(
        default=None,
        metadata={
            "metavar": "N",
            "panel": "Limits",
            "environment": "CERTIKMEANS_JOBS",
            "more": "-1 is the default.",
        },
    )
    seed: int = field(
        default=0,
        metadata={"metavar": "N", "panel": "Limits", "environment": "CERTIKMEANS_SEED"},
    )
    node_limit: int | None = field(default=None, metadata={"metavar": "N", "panel": "Limits"})
    selection: str = field(
        default="best", metadata={"metavar": "NAME", "panel": "Proof", "choices": SELECTIONS}
    )
    keep_proof: bool = False  # no option of the command line: --certificate sets it

    def __post_init__(self) -> None:
        put = object.__setattr__
        gap = fraction(self.gap, "gap")
        if not 0.0 <= gap < 1.0:
            raise InputError(
                Message(
                    Argument("gap"), f": {self.gap!r} is not a number of at least 0 and below 1"
                ),
                hint="0.001 requests a proof within 0.1 %",
            )
        put(self, "gap", gap)
        if self.time_limit is not None:
            limit = plain_number(self.time_limit)
            if not 0.0 < limit < math.inf:
                raise InputError(
                    Message(
                        Argument("time_limit"),
                        f": {self.time_limit!r} is not a positive number of seconds",
                    ),
                    hint="leave it out for no limit",
                )
            put(self, "time_limit", limit)
        check_choice("bound", self.bound, BOUNDS)
        check_choice("branching", self.branching, BRANCHINGS)
        check_choice("selection", self.selection, SELECTIONS)
        if self.node_limit is not None:
            put(self, "node_limit", whole_number("node_limit", self.node_limit, least=1))
        if self.jobs is not None:
            put(self, "jobs", whole_number("jobs", self.jobs, least=1))
        put(self, "seed", whole_number("seed", self.seed, least=0))

    @property
    def max_nodes(self) -> int:
        """Largest number of nodes in the tree."""
        return DEFAULT_NODE_LIMIT if self.node_limit is None else self.node_limit

    @property
    def max_tree_work(self) -> float:
        """Largest number of units of work in the tree, counted and not timed: runs repeat.

        >>> Options().max_tree_work, Options(time_limit=60.0).max_tree_work
        (10000000000.0, inf)
        """
        limited = self.time_limit is not None or self.node_limit is not None
        return math.inf if limited else TREE_SECONDS_WITHOUT_LIMIT * UNITS_PER_SECOND

    def changed(self, **changes: Any) -> Options:
        """Return a copy with some options changed; reject unknown names."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in names:
                raise TypeError(f"{name!r} is not an option; the options are {', '.join(names)}")
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain data, for JSON."""
        return dataclasses.asdict(self)

    @property
    def n_threads(self) -> int:
        """Number of threads to use."""
        return self.jobs if self.jobs is not None else available_cores()


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Reject a value that is not one of ``known``."""
    if value not in known:
        raise InputError(
            Message(Argument(name), f": {value!r} is unknown"),
            hint=f"choose one of {', '.join(known)}",
        )
