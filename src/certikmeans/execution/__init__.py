"""Who runs the tasks: this thread, threads beside it, or workers elsewhere."""

from certikmeans.execution.accepting import accepted
from certikmeans.execution.crew import Crew
from certikmeans.execution.far import Far
from certikmeans.execution.there import Shared

__all__ = ["Crew", "Far", "Shared", "accepted"]
