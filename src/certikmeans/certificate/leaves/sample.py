"""The sample bound: every group pays at least its distance to the box of its centre."""

from __future__ import annotations

import math

from certikmeans.certificate.check_cases import LeafCase, require
from certikmeans.certificate.check_colouring import Colourings, least_costs, viable_colours

NAME = "sample"
CODE = 3


def check(case: LeafCase) -> None:
    """Colour every component as cheaply as possible."""
    part = case.part
    costs = least_costs(part.points, part.weights, case.low, case.high)
    value = Colourings(costs, part.edges).least()
    if value < part.needed < math.inf:
        viable = viable_colours(costs, part.edges, part.needed)
        costs[~viable] = part.needed
        value = max(value, Colourings(costs, part.edges).least())
    require(value, part)
