"""The cluster bound: a Lagrangian bound whose subproblem lives in R^d, whatever K."""

from certikmeans.bounds.cluster.bound import ClusterProof, cluster_bound
from certikmeans.bounds.cluster.bundle import BundleStatistics, Outcome
from certikmeans.bounds.cluster.plugin import ClusterBound
from certikmeans.bounds.cluster.pricing import Column

__all__ = ["BundleStatistics", "ClusterBound", "ClusterProof", "Column", "Outcome", "cluster_bound"]
