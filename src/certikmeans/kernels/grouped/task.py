"""What the solvers of group problems are given, and what they answer."""

from typing import NamedTuple

import numpy as np


class Chunk(NamedTuple):
    """Consecutive groups in one part, samples renumbered from zero."""

    starts: np.ndarray  # (G + 1,) samples of group g are starts[g] .. starts[g + 1] - 1
    points: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    link_start: np.ndarray  # (n + 1,)
    link: np.ndarray  # cannot-links, both directions, inside groups
    viable: np.ndarray  # (n, K) bool
    nearest: np.ndarray  # (n, K) squared distances to the boxes, rounded down
    lower: np.ndarray  # (K, d)
    upper: np.ndarray  # (K, d)


class Effort(NamedTuple):
    """How hard to try: counted, so that results repeat bit for bit.

    ``seconds`` is what the stop signal leaves, for a solver that cannot be asked to end: SCIP.
    """

    relative_tolerance: float  # branches this close to the best labelling are not followed
    quick_limit: int  # nodes without dolls, before the search with dolls begins
    node_limit: int  # nodes per group in all
    seconds: float = np.inf


class Answers(NamedTuple):
    """What was found for consecutive groups."""

    values: np.ndarray  # (G,) value of the labels; infinite if none were found
    bounds: np.ndarray  # (G,) at most the minimum; infinite if there is no labelling
    centers: np.ndarray  # (G, K, d) minimising centres of the labels
    masses: np.ndarray  # (G, K) weight of the clusters
    nodes: np.ndarray  # (G,) int64
    labels: np.ndarray  # (n,) int64, -1 where none were found
