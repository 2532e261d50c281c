"""A smaller problem drawn from a large one, to find good centres cheaply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem import ApartGraph, CannotLinks, ReducedProblem


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Part of a reduced problem. ``rows[i]`` is the row of the whole that row ``i`` stands for."""

    problem: ReducedProblem
    rows: NDArray[np.int64]


def draw_sample(problem: ReducedProblem, size: int, rng: np.random.Generator) -> Sample:
    """Draw about ``size`` groups: whole cannot-link components, and free groups.

    Components are kept or left as a whole, so the sample has the cannot-links of its groups
    and stays in component order. A component larger than the sample is left out.
    """
    graph = problem.graph
    share = size / problem.n_groups
    component_sizes = np.diff(graph.starts)
    kept = (rng.random(graph.n_components) < share) & (component_sizes <= size)
    linked = np.flatnonzero(np.repeat(kept, component_sizes))
    n_free = problem.n_groups - graph.n_linked
    free = graph.n_linked + np.flatnonzero(rng.random(n_free) < share)
    rows = np.concatenate([linked, free])
    if len(rows) < problem.n_clusters:
        rows = np.arange(problem.n_groups)
        kept = np.ones(graph.n_components, dtype=bool)
    points, weights = np.ascontiguousarray(problem.points[rows]), problem.weights[rows]
    # Kernels are compiled once more for arrays that may be written to.
    points.flags.writeable = weights.flags.writeable = False
    sample = ReducedProblem(
        points=points,
        weights=weights,
        rules=CannotLinks(_part_of(graph, rows, kept)),
        n_clusters=problem.n_clusters,
        offset=0.0,
    )
    return Sample(sample, rows)


def _part_of(graph: ApartGraph, rows: NDArray[np.int64], kept: NDArray[np.bool_]) -> ApartGraph:
    """The graph on ``rows``: the kept components, renumbered one after the other, then the rest."""
    position = np.full(graph.n_vertices + 1, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    degrees = np.diff(graph.indptr)
    entries = np.repeat(position[:-1] >= 0, degrees)
    sizes = np.diff(graph.starts)[kept]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    parents = graph.parents[rows[: starts[-1]]]
    return ApartGraph(
        n_vertices=len(rows),
        indptr=np.concatenate([[0], np.cumsum(degrees[rows])]).astype(np.int64),
        neighbors=position[graph.neighbors[entries]],
        starts=starts,
        parents=position[parents],  # a root's -1 reads the last entry, which is -1
        extra_edges=graph.extra_edges[kept],
    )
