"""What a finished run can show: a tree of splits, and what proves the bound at every leaf.

The tree is a list in preorder: a split is followed by its first part, then by its second. So
the leaves cover the solution set by construction. Nothing here depends on how presolve numbers
groups: groups are numbered by their smallest original row, in ascending order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray


@final
@dataclass(frozen=True, slots=True)
class CenterSplit:
    """First part: a coordinate of the centre of ``cluster`` is at most ``value``; second: at least.

    Coordinates are those of `Proof`: ``(x - centre) @ axes``. Clusters are numbered so that the
    coordinates of their means along axis 0 ascend; an empty cluster lies where another one does.
    """

    cluster: int
    axis: int
    value: float


@final
@dataclass(frozen=True, slots=True)
class PairSplit:
    """First part: original points ``first`` and ``second`` share a cluster; second: they do not."""

    first: int
    second: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class MatrixMultipliers:
    """Multipliers of the semidefinite bound: of entries of ``Z``, and of cuts of three groups."""

    entries: NDArray[np.float64]  # (n, n) symmetric; >= 0, of any sign on cannot-links
    cuts: NDArray[np.int64]  # (m, 3): s, t, u; u = -1 for a pair cut
    amounts: NDArray[np.float64]  # (m,) >= 0

    @classmethod
    def none(cls, n_groups: int) -> MatrixMultipliers:
        """All zero."""
        no_cuts = np.empty((0, 3), dtype=np.int64)
        return cls(np.zeros((n_groups, n_groups)), no_cuts, np.empty(0))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A part that was not split, and why no labelling in it is cheaper than the bound.

    ``bound`` names the method: ``cluster`` (with ``multipliers``, one per group of the part),
    ``sdp`` (with a ``matrix`` of them), ``sample``, ``one cluster``, ``grouped``, ``infeasible``
    (the part is empty) or ``trivial``.
    """

    bound: str
    multipliers: NDArray[np.float64] | None = None
    matrix: MatrixMultipliers | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """Evidence for ``lower_bound``, in terms of the problem as stated."""

    lower_bound: float
    centre: NDArray[np.float64]  # (n_features,)
    axes: NDArray[np.float64]  # (n_features, n_axes): nearly orthonormal columns
    nodes: tuple[CenterSplit | PairSplit | Leaf, ...]  # preorder
