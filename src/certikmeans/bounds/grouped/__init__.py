"""The paper's bound: samples in groups, each with its own copy of the centres."""

from certikmeans.bounds.grouped.bound import GroupedBound

__all__ = ["GroupedBound"]
