"""How far rounding in presolve can move the cost of a labelling, and how to undo it safely.

Fix a labelling. With ``W`` the diagonal of weights, the cost of points ``X`` (one per row) is
``|P W^(1/2) X|_F^2`` where ``P`` projects out the cluster means: a seminorm, squared. Hence

* moving the rows by ``E`` moves the *root* of the cost by at most ``|W^(1/2) E|_F``,
* multiplying by ``Q`` on the right multiplies the root by at most ``|Q|_2``,
* raising weights by a factor of at most ``f`` raises the cost by at most ``f``,
* shifting all rows by one vector changes nothing.

None of this depends on the labelling, so it holds for the best one, and a lower bound on the
reduced problem is carried back by walking through presolve in reverse (`BoundLift.lower`).
Every number kept here is itself rounded to the safe side. ``UNIT`` is the largest relative
error of one operation; a sum or product of ``m`` of them errs by at most ``(m + 2) UNIT`` in
relative terms for any order of summation (m UNIT << 1), the 2 covering the higher-order part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from certikmeans.rounding import round_down


@final
@dataclass(frozen=True, slots=True)
class BoundLift:
    """Carries a lower bound on the reduced problem back to the problem as stated.

    Attributes
    ----------
    centring : float
        At least ``|W^(1/2) E|_F`` for the rounding of ``X - centre``.
    averaging : float
        The same for the means of must-link groups.
    turning : float
        The same for the product with the axes.
    stretch : float
        At least ``|Q|_2``, the largest singular value of the axes as computed.
    weight_factor : float
        At least the largest ratio of a computed group weight to the exact one.
    offset : float
        At most the sum of squares inside the groups, after centring.
    """

    centring: float
    averaging: float
    turning: float
    stretch: float
    weight_factor: float
    offset: float

    def lower(self, value: float) -> float:
        """Return a bound for the stated problem, given ``value`` for the reduced one.

        >>> exact = BoundLift(0.0, 0.0, 0.0, 1.0, 1.0, offset=2.0)
        >>> 6.99 < exact.lower(5.0) <= 7.0
        True
        """
        if math.isinf(value):
            return value
        root = round_down(math.sqrt(max(0.0, value) / self.weight_factor))
        root = round_down(max(0.0, root - self.turning) / self.stretch)
        root = max(0.0, root - self.averaging)
        root = round_down(math.sqrt(round_down(root * root) + self.offset))
        root = round_down(max(0.0, root - self.centring))
        return round_down(root * root)
