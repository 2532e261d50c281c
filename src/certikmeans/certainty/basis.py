"""What a run leaves behind so that certainty can be asked for later: the problem, multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem import Problem


@final
@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """The problem as stated, and where to begin. Nothing in it is trusted: all is proven again."""

    problem: Problem
    multipliers: NDArray[np.float64] | None  # per group, by smallest row; None: not known
    seed: int = 0
    n_threads: int = 1
    seconds: float = 0.0  # what the bounds took: certainty may take as long again
