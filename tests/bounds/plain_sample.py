"""The sample bound without sample determination: what the checker of certificates repeats."""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.base import Setting
from certikmeans.bounds.sample import SampleBound
from certikmeans.stop import StopSignal


def plain_sample(reduced, assigner, part):
    bound = SampleBound()
    state = bound.prepare(Setting(reduced, assigner, keep_proof=True))
    return bound.evaluate(state, part, np.inf, StopSignal()).value
