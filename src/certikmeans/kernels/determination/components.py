"""What the kernels of sample determination pass on."""

from typing import NamedTuple

import numpy as np


class Components(NamedTuple):
    """Components of the cannot-link graph, and the vertices to enumerate in each. Read only."""

    indptr: np.ndarray  # (n + 1,) int64
    neighbors: np.ndarray  # int64
    starts: np.ndarray  # (n_components + 1,) int64 first vertex
    parents: np.ndarray  # (n_linked,) int64 breadth-first parent, -1 at a root
    component: np.ndarray  # (n_linked,) int64 component of every vertex
    fixed_start: np.ndarray  # (n_components + 1,) int64
    fixed: np.ndarray  # int64 vertices to enumerate, by component
    exact: np.ndarray  # (n_components,) bool: enumerating them leaves a tree


class Totals(NamedTuple):
    """Least costs of the components, and of everything."""

    marginals: np.ndarray  # (n_linked, n_clusters) with each vertex in each cluster
    least: np.ndarray  # (n_components,)
    total: float  # sum of all least costs
    known: float  # another lower bound on that sum, or -inf
    labels: np.ndarray  # (n_groups,) int64 a labelling of finite cost, if ``known`` is finite
    scale: float  # size of the sums that all these come from


class Limits(NamedTuple):
    """What a cost is compared with, and how far it may err."""

    cutoff: float
    ceilings: np.ndarray  # (n_components + n_free,) remove what costs more in its component
    error: float  # relative
    tiny: float  # absolute
