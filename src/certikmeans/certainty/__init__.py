"""Statements that hold for every labelling within a relative slack of the incumbent cost."""

from certikmeans.certainty.artifacts import SolveArtifacts
from certikmeans.certainty.report import Certainty

__all__ = ["Certainty", "SolveArtifacts"]
