"""From a leaf of the tree to the case that its kind of proof has to decide."""

from __future__ import annotations

import time
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import Floats, Ints
from certikmeans.certificate.check_cases import LeafCase, Work
from certikmeans.certificate.check_parts import Cuts, Part, Stated, collapse
from certikmeans.certificate.check_pricing import Limits
from certikmeans.certificate.format import Reason, Refusal
from certikmeans.certificate.leaves import KINDS


@final
class LeafChecker:
    """Checks leaves one after the other; counts the work over all of them."""

    def __init__(
        self, stated: Stated, root: Part, labels: Ints | None, lower_bound: float, limits: Limits
    ) -> None:
        self._stated, self._root = stated, root
        self._labels, self._lower_bound = labels, lower_bound
        self._work = Work(limits)

    @property
    def boxes(self) -> int:
        """Boxes looked at so far."""
        return self._work.boxes

    def check(self, code: int, cuts: Cuts, number: int, row: Floats | None) -> None:
        """Return if the leaf is proven, else raise `Refusal`; ``number`` is that of the row."""
        if self._lower_bound <= 0.0:
            return  # no cost is negative
        if time.monotonic() > self._work.limits.deadline:
            raise Refusal(Reason.LIMIT, "not proven within the time allowed")
        part = self._root
        if any(link.paired for link in cuts.links()):
            part = collapse(self._stated, cuts, self._lower_bound)
        if part.contradictory or part.needed <= 0.0:
            return  # no labelling at all; or what the groups cost inside is enough
        low, high = cuts.boxes(self._stated.n_clusters, part.points.shape[1])
        # Means of points are where points are; an empty cluster sits on another one.
        floor, ceiling = part.points.min(axis=0), part.points.max(axis=0)
        cut_low, cut_high = low > floor, high < ceiling
        low, high = np.maximum(low, floor), np.minimum(high, ceiling)
        if np.any(low > high):
            return  # no centres, so no labelling
        KINDS[code].check(
            LeafCase(
                self._stated,
                self._root,
                part,
                self._labels,
                self._lower_bound,
                low,
                high,
                cut_low,
                cut_high,
                number,
                row,
                self._work,
            )
        )
