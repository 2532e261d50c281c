"""Pairs that contradict each other: found all at once, with a smallest set to remove."""

from certikmeans.problem.conflicts.diagnosis import BrokenCannotLink, Conflict, Diagnosis, diagnose

__all__ = ["BrokenCannotLink", "Conflict", "Diagnosis", "diagnose"]
