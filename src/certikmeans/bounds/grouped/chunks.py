"""A few groups as one task: picklable, so that any executor can run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.groups import Groups
from certikmeans.problem.subproblem import Subproblem

CHUNK_SIZE = 4  # groups; the stop signal is asked between chunks


@final
@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive groups in one part, samples renumbered from zero."""

    starts: NDArray[np.int64]  # (n_sets + 1,)
    points: NDArray[np.float64]  # (n, d)
    weights: NDArray[np.float64]  # (n,)
    link_start: NDArray[np.int64]  # (n + 1,)
    link: NDArray[np.int64]
    viable: NDArray[np.bool_]  # (n, K)
    nearest: NDArray[np.float64]  # (n, K) squared distances to the boxes, rounded down
    lower: NDArray[np.float64]  # (K, d)
    upper: NDArray[np.float64]  # (K, d)


@final
@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to try: counted, so that results repeat bit for bit.

    ``seconds`` is what the stop signal leaves, for a solver that cannot be asked to end: SCIP.
    """

    relative_tolerance: float  # branches this close to the best labelling are not followed
    quick_limit: int  # nodes without dolls, before the search with dolls begins
    node_limit: int  # nodes per group in all
    seconds: float = np.inf


@final
@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What was found for consecutive groups."""

    values: NDArray[np.float64]  # (n_sets,) value of the labels; inf if none were found
    bounds: NDArray[np.float64]  # (n_sets,) lower bounds; inf if there is no labelling
    centers: NDArray[np.float64]  # (n_sets, K, d)
    masses: NDArray[np.float64]  # (n_sets, K)
    nodes: NDArray[np.int64]  # (n_sets,)
    labels: NDArray[np.int64]  # (n,) -1 where none were found


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
    return Answers(
        *(
            np.concatenate([getattr(one, name) for one in answers])
            for name in ("values", "bounds", "centers", "masses", "nodes", "labels")
        )
    )
