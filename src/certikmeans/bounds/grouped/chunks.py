"""A few groups as one task: picklable, so that any executor can run it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.groups import Groups
from certikmeans.kernels.grouped.task import Answers, Chunk, Effort
from certikmeans.problem.subproblem import Subproblem

CHUNK_SIZE = 4  # groups; the stop signal is asked between chunks


__all__ = ["Answers", "Chunk", "ChunkSolver", "Effort", "join", "make_chunks"]

ChunkSolver = Callable[[Chunk, NDArray[np.float64], NDArray[np.int64], Effort], Answers]


def make_chunks(
    groups: Groups, part: Subproblem, viable: NDArray[np.bool_], nearest: NDArray[np.float64]
) -> list[Chunk]:
    """Cut the groups into tasks; their number does not depend on who runs them."""
    chunks = []
    for first in range(0, groups.n_sets, CHUNK_SIZE):
        starts = groups.starts[first : first + CHUNK_SIZE + 1]
        a, b = int(starts[0]), int(starts[-1])
        links = groups.link_start[a : b + 1]
        chunks.append(
            Chunk(
                starts=starts - a,
                points=groups.points[a:b],
                weights=groups.weights[a:b],
                link_start=links - links[0],
                link=groups.link[links[0] : links[-1]] - a,
                viable=viable[a:b],
                nearest=nearest[a:b],
                lower=part.lower,
                upper=part.upper,
            )
        )
    return chunks


def join(answers: list[Answers]) -> Answers:
    """Put the answers of all chunks one behind the other."""
    if len(answers) == 1:
        return answers[0]
    return Answers(*(np.concatenate(parts) for parts in zip(*answers, strict=True)))
