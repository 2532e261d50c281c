"""What a finished run can show: a tree of splits, and what proves the bound at every leaf.

The tree is a list in preorder: a split is followed by its first part, then by its second. So
the leaves cover the solution set by construction. Nothing here depends on how presolve numbers
groups: groups are numbered by their smallest original row, in ascending order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints


@final
@dataclass(frozen=True, slots=True)
class CenterSplit:
    """First part: a coordinate of the centre of ``cluster`` is at most ``value``; second: at least.

    Coordinates are those of `Proof`: ``(x - center) @ axes``. Clusters are numbered so that the
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


class AbstractEvidence(ABC):
    """Dual information from which the verifier re-derives a bound. Concrete classes are final.

    A bound without any (because the checker finds out by itself, or cannot) has none.

    Attributes
    ----------
    slack : float
        The share of the scatter of the points by which solver and checker may come to different
        values, because they round differently. A certificate claims so much less.
    certainty_max_groups : float
        Groups up to which certainty can be derived from it, so that it is kept with the result.
    """

    slack: ClassVar[float] = 0.0
    certainty_max_groups: ClassVar[float] = 0

    @abstractmethod
    def renumbered(self, order: Ints) -> AbstractEvidence:
        """Return the same with group ``order[i]`` as group i."""

    @abstractmethod
    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> AbstractEvidence:
        """Return the same for a part in which group s has become part of ``group_of[s]``.

        ``inside`` is, up to rounding, the sum of squares that joining puts inside each of the new
        groups. Evidence about the whole, which its checker takes as such, stays as it is.
        """

    @abstractmethod
    def row(self) -> Floats:
        """Return the numbers as the checker of the same name reads them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class GroupMultipliers(AbstractEvidence):
    """One multiplier per group: the cluster bound's."""

    certainty_max_groups: ClassVar[float] = math.inf

    values: Floats  # (n_groups,)

    def renumbered(self, order: Ints) -> GroupMultipliers:
        """Return the same with group ``order[i]`` as group i."""
        return GroupMultipliers(self.values[order])

    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> GroupMultipliers:
        """Multipliers of groups that have become one add up, less what it costs inside.

        Then the value of the joined group for every centre is the sum of those of its members.
        """
        total = np.bincount(group_of, self.values, n_groups).astype(np.float64)
        return GroupMultipliers(total - np.maximum(inside, 0.0))

    def row(self) -> Floats:
        """Return the multipliers."""
        return self.values


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafProof:
    """A part that was not split, and why no labelling in it is cheaper than the bound.

    ``kind`` says how that is shown, and which checker reads the evidence: the name of a bound, or
    ``one cluster``, ``infeasible`` (the part is empty), ``trivial`` (no cost is negative).
    """

    kind: str
    evidence: AbstractEvidence | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """Evidence for ``lower_bound``, in terms of the problem as stated."""

    lower_bound: float
    center: Floats  # (n_features,)
    axes: Floats  # (n_features, n_axes): nearly orthonormal columns
    nodes: tuple[CenterSplit | PairSplit | LeafProof, ...]  # preorder
