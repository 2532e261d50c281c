"""The group problems by combinatorial branch and bound over labels, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.chunks import Answers, Chunk, Effort
from certikmeans.kernels.grouped.solve import solve_groups


def solve_chunk(
    chunk: Chunk, nu: NDArray[np.float64], labels: NDArray[np.int64], effort: Effort
) -> Answers:
    """Solve the groups of ``chunk`` with linear terms ``nu``, starting from ``labels``."""
    n_sets = len(chunk.starts) - 1
    answers = Answers(
        values=np.empty(n_sets),
        bounds=np.empty(n_sets),
        centers=np.empty_like(nu),
        masses=np.empty(nu.shape[:2]),
        nodes=np.empty(n_sets, dtype=np.int64),
        labels=labels.copy(),
    )
    solve_groups(chunk, nu, effort, answers)
    return answers
