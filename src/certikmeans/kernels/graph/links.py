"""A graph for compiled code."""

from typing import NamedTuple

import numpy as np


class Links(NamedTuple):
    """The neighbours of ``v`` are ``neighbors[indptr[v] : indptr[v + 1]]``, in both directions."""

    indptr: np.ndarray  # (n + 1,) int64
    neighbors: np.ndarray  # int64
