"""The partition bound: parts that are small copies of the whole, each bounded by itself."""

from certikmeans.bounds.partition.bound import PartitionBound
from certikmeans.bounds.partition.run import PartitionResult, PartProof, partition_bound

__all__ = ["PartProof", "PartitionBound", "PartitionResult", "partition_bound"]
