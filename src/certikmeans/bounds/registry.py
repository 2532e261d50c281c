"""Registry of lower bounds by name.

A new bound is one entry here; choices of options, hints and contract tests follow from it. Modules
are imported only when a bound is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

from certikmeans.errors import InputError

if TYPE_CHECKING:
    from certikmeans.bounds.base import LowerBound


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """Location of a bound (module:class, relative to this package) and a short summary."""

    home: str
    summary: str


BOUNDS: dict[str, Entry] = {
    "cluster": Entry("cluster:ClusterBound", "Lagrangian over clusters, priced exactly"),
    "grouped": Entry("grouped:GroupedBound", "the paper's Lagrangian over groups of samples"),
    "partition": Entry("partition:PartitionBound", "parts of the points, each by itself"),
    "sample": Entry("sample:BoxBound", "distances to the boxes of the centres"),
    "sdp": Entry("sdp:SdpBound", "semidefinite relaxation with cuts"),
    "sets": Entry(
        "set_assignment:SetAssignmentBound", "linear assignments between cannot-link sets"
    ),
    "soft": Entry("soft_pairs:SoftPairBound", "semidefinite relaxation with proven sizes"),
    "spectral": Entry("spectral:SpectralBound", "a few eigenvalues: any number of points and axes"),
}


def make_bound(name: str, **settings: Any) -> LowerBound[Any]:
    """Make the bound of this name; ``settings`` go to its constructor.

    >>> make_bound("sample").uses_center_boxes
    True
    """
    if name not in BOUNDS:
        raise InputError(f"bound: {name!r} is unknown", hint=f"choose one of {', '.join(BOUNDS)}")
    module, _, kind = BOUNDS[name].home.partition(":")
    made: LowerBound[Any] = getattr(import_module(f"certikmeans.bounds.{module}"), kind)(**settings)
    return made
