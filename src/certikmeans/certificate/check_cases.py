"""A leaf to be checked: the part it stands for, its evidence, and what may be spent on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import Floats, Ints
from certikmeans.certificate.check_parts import Part, Stated
from certikmeans.certificate.check_pricing import Limits
from certikmeans.certificate.format import Reason, Refusal


@final
@dataclass(slots=True, eq=False)
class Work:
    """What has been done so far, for all leaves together."""

    limits: Limits
    boxes: int = 0
    matrices: float = 0.0  # sum of the cubes of their orders
    known: dict[int, float] = field(default_factory=dict)  # what a row proves about the whole

    def add_matrix(self, order: int) -> None:
        """Count a matrix; refuse where there are too many."""
        self.matrices += float(order) ** 3
        if self.matrices > self.limits.matrix_work:
            raise Refusal(Reason.LIMIT, "too many large matrices")


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafCase:
    """One leaf. Boxes are those of the centres, within the box that holds all points."""

    stated: Stated
    whole: Part  # the groups at the root of the tree
    part: Part  # the groups of this leaf: the same object where no pairs were added
    labels: Ints | None  # of the points
    lower_bound: float  # as claimed, about the points
    low: Floats  # (n_clusters, n_axes)
    high: Floats
    cut_low: NDArray[np.bool_]  # (n_clusters, n_axes): where the tree has put a wall
    cut_high: NDArray[np.bool_]
    number: int  # of the row of evidence; -1: there is none
    row: Floats | None
    work: Work

    def evidence(self) -> Floats:
        """Return the row, which has to be there."""
        if self.row is None:
            raise Refusal(Reason.BOUND, "there are no multipliers")
        return self.row


def require(value: float, part: Part) -> None:
    """Refuse a value, proven about the groups of a part, that is not enough."""
    if not value >= part.needed:  # written so that NaN is not enough
        raise Refusal(Reason.BOUND, f"proven {value!r} of {part.needed!r} (reduced)")
