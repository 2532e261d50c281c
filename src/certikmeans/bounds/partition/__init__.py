"""The partition bound: parts that are small copies of the whole, bounded one by one."""

from certikmeans.bounds.partition.run import PartitionResult, partition_bound

__all__ = ["PartitionResult", "partition_bound"]
