"""The paper's bound: Lagrangian decomposition over groups of samples."""

from certikmeans.bounds.grouped.bound import GroupedBound

__all__ = ["GroupedBound"]
