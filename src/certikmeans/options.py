"""Every setting of a run: frozen, and range-checked here."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass
from typing import Any, final

from certikmeans._numbers import plain_number, whole_number
from certikmeans.bounds.registry import BOUNDS as REGISTERED
from certikmeans.errors import InputError

BOUNDS = ("auto", *REGISTERED)
BRANCHINGS = ("auto", "centers", "pairs")
SELECTIONS = ("best", "depth", "mixed")
DEFAULT_GAP = 1e-3
DEFAULT_NODE_LIMIT = 5_000_000


@final
@dataclass(frozen=True, slots=True)
class Options:
    """How to run.

    Parameters
    ----------
    gap : float
        Stop when ``(cost - lower_bound) / cost`` is at most this.
    time_limit : float or None
        Wall time for the whole run, in seconds. None: no limit.
    bound : {"auto", "cluster", "grouped", "partition", "sample", "sdp", "spectral"}
        Which lower bound to compute.
    branching : {"auto", "centers", "pairs"}
        How to split when the bound does not close the gap at the root.
    jobs : int or None
        Number of threads; None: one per available core. The answer does not depend on it.
    seed : int
        Every random choice follows from it.
    node_limit : int
        Nodes of the tree to bound at most.
    selection : {"best", "depth", "mixed"}
        Which open node is split next.
    keep_proof : bool
        Keep what a certificate needs.

    Examples
    --------
    >>> Options(gap=-1)
    Traceback (most recent call last):
    ...
    certikmeans.errors.InputError: gap: -1 is not a number of at least 0 and below 1
    hint: 0.001 asks for a proof within 0.1 %
    """

    gap: float = DEFAULT_GAP
    time_limit: float | None = None
    bound: str = "auto"
    branching: str = "auto"
    jobs: int | None = None
    seed: int = 0
    node_limit: int = DEFAULT_NODE_LIMIT
    selection: str = "best"
    keep_proof: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        gap = plain_number(self.gap)
        if not 0.0 <= gap < 1.0:
            raise InputError(
                f"gap: {self.gap!r} is not a number of at least 0 and below 1",
                hint="0.001 asks for a proof within 0.1 %",
            )
        put(self, "gap", gap)
        if self.time_limit is not None:
            limit = plain_number(self.time_limit)
            if not 0.0 < limit < math.inf:
                raise InputError(
                    f"time limit: {self.time_limit!r} is not a positive number of seconds",
                    hint="leave it out for no limit",
                )
            put(self, "time_limit", limit)
        check_choice("bound", self.bound, BOUNDS)
        check_choice("branching", self.branching, BRANCHINGS)
        check_choice("selection", self.selection, SELECTIONS)
        put(self, "node_limit", whole_number("node limit", self.node_limit, least=1))
        if self.jobs is not None:
            put(self, "jobs", whole_number("jobs", self.jobs, least=1))
        put(self, "seed", whole_number("seed", self.seed, least=0))

    def changed(self, **changes: Any) -> Options:
        """Return a copy with some settings changed; unknown ones are refused."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in names:
                raise TypeError(f"{name!r} is no setting of a run; there are {', '.join(names)}")
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return dataclasses.asdict(self)

    @property
    def n_threads(self) -> int:
        """Number of threads to use."""
        return self.jobs if self.jobs is not None else available_cores()


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse a word that is not one of ``known``."""
    if value not in known:
        raise InputError(f"{name}: {value!r} is unknown", hint=f"choose one of {', '.join(known)}")
