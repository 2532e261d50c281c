"""The box bound without assignment fixing, as the verifier recomputes it."""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.sample import BoxBound


def box_bound_value(reduced, assigner, domain):
    bound = BoxBound()
    state = bound.setup(BoundInput(reduced, assigner, keep_proof=True))
    return bound.compute(state, domain, np.inf, BoundContext()).value
