"""K = 1: there is one labelling, and its cost is compared."""

from __future__ import annotations

import numpy as np

from certikmeans.certificate.check_arithmetic import EPS, scatter
from certikmeans.certificate.check_domains import LeafContext
from certikmeans.certificate.format import Reason, Rejection

NAME = "one cluster"
CODE = 4


def check(ctx: LeafContext) -> None:
    """Compute the cost of all points in one cluster."""
    original = ctx.original
    if original.n_clusters != 1:
        raise Rejection(Reason.BOUND, "there is more than one cluster")
    labels = np.zeros(len(original.points), dtype=np.int64)
    cost = scatter(original.points, original.weights, labels, 1).below
    if ctx.domain.constraints is not None:
        cost += ctx.domain.constraints.fixed_penalty * (1.0 - EPS)
        cost *= 1.0 - EPS
    if not cost >= ctx.lower_bound:
        raise Rejection(Reason.BOUND, f"one cluster costs {cost!r}, less than claimed")
