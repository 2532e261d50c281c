"""What is true of every labelling that is nearly as good as the one found."""

from certikmeans.certainty.artifacts import SolveArtifacts
from certikmeans.certainty.report import Certainty

__all__ = ["Certainty", "SolveArtifacts"]
