"""K = 1: there is one labelling, and its cost is compared."""

from __future__ import annotations

import numpy as np

from certikmeans.certificate.check_arithmetic import scatter
from certikmeans.certificate.check_cases import LeafCase
from certikmeans.certificate.format import Reason, Refusal

NAME = "one cluster"
CODE = 4


def check(case: LeafCase) -> None:
    """Compute the cost of everybody together."""
    stated = case.stated
    if stated.n_clusters != 1:
        raise Refusal(Reason.BOUND, "there is more than one cluster")
    everyone = np.zeros(len(stated.points), dtype=np.int64)
    cost = scatter(stated.points, stated.weights, everyone, 1).below
    if not cost >= case.lower_bound:
        raise Refusal(Reason.BOUND, f"one cluster costs {cost!r}, less than claimed")
