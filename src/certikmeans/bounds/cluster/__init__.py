"""The cluster bound: a Lagrangian bound whose subproblem lives in R^d, whatever K."""

from certikmeans.bounds.cluster.bound import ClusterBound, ClusterRestart

__all__ = ["ClusterBound", "ClusterRestart"]
