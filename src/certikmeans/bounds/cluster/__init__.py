"""The cluster bound: a Lagrangian bound whose subproblem lives in R^d, whatever K."""

from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.initial_point import ClusterWarmStart

__all__ = ["ClusterBound", "ClusterWarmStart"]
