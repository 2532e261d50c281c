"""The cluster bound: a Lagrangian bound whose subproblem lives in R^d, whatever K."""

from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.starts import ClusterRestart

__all__ = ["ClusterBound", "ClusterRestart"]
