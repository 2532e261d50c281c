"""Group subproblems as picklable tasks, and their compiled solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.sample_groups import SampleGroups
from certikmeans.kernels.grouped.solve import Chunk, GroupSolutions, SearchLimits, solve_groups
from certikmeans.problem.domain import Domain

CHUNK_SIZE = 4  # groups; the stop signal is checked between chunks


__all__ = [
    "Chunk",
    "ChunkSolver",
    "GroupSolutions",
    "SearchLimits",
    "concatenate",
    "make_chunks",
    "solve_chunk",
]

ChunkSolver = Callable[
    [Chunk, NDArray[np.float64], NDArray[np.int64], SearchLimits], GroupSolutions
]


def make_chunks(
    groups: SampleGroups, domain: Domain, allowed: NDArray[np.bool_], nearest: NDArray[np.float64]
) -> list[Chunk]:
    """Divide the groups into tasks, independently of the number of workers."""
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
                allowed=allowed[a:b],
                nearest=nearest[a:b],
                lower=domain.lower,
                upper=domain.upper,
            )
        )
    return chunks


def concatenate(solutions: list[GroupSolutions]) -> GroupSolutions:
    """Concatenate the solutions of all chunks."""
    if len(solutions) == 1:
        return solutions[0]
    return GroupSolutions(*(np.concatenate(parts) for parts in zip(*solutions, strict=True)))


def solve_chunk(
    chunk: Chunk, nu: NDArray[np.float64], labels: NDArray[np.int64], limits: SearchLimits
) -> GroupSolutions:
    """Solve the groups of ``chunk`` with linear terms ``nu``, starting from ``labels``."""
    n_sets = len(chunk.starts) - 1
    solutions = GroupSolutions(
        values=np.empty(n_sets),
        bounds=np.empty(n_sets),
        centers=np.empty_like(nu),
        masses=np.empty(nu.shape[:2]),
        nodes=np.empty(n_sets, dtype=np.int64),
        labels=labels.copy(),
    )
    solve_groups(chunk, nu, limits, solutions)
    return solutions
