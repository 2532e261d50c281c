"""A small problem whose cannot-links leave a gap at the root, whichever bound is asked."""

from __future__ import annotations

import numpy as np

from certikmeans import Problem
from certikmeans.generate import random_pairs


def entangled(seed=0):
    rng = np.random.default_rng(seed)
    points, classes = rng.uniform(size=(30, 2)), rng.integers(4, size=30)
    _, cannot = random_pairs(classes, 0, 60, seed=seed)
    return Problem.from_data(points, 4, cannot_link=cannot)
