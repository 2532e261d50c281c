"""Pairs that contradict each other: found all at once, with a smallest set to remove."""

from certikmeans.problem.noise.diagnosis import Broken, Clash, Diagnosis, diagnose

__all__ = ["Broken", "Clash", "Diagnosis", "diagnose"]
