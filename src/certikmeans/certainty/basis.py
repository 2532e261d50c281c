"""What a run leaves behind so that certainty can be asked for later: the problem, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem import Problem
from certikmeans.proof import AbstractEvidence


@final
@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """The problem as stated, and where to begin. Nothing in it is trusted: all is proven again."""

    problem: Problem
    evidence: tuple[AbstractEvidence, ...] = ()  # about the whole; groups numbered by presolve
    first_points: NDArray[np.int64] | None = None  # of those groups: whether they are the same
    seed: int = 0
    n_threads: int = 1
    seconds: float = 0.0  # what the bounds took: certainty may take as long again
