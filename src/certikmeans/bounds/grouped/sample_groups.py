"""Partition of the samples into groups, fixed at the root."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.kernels.grouped.preprocessing import order_farthest_first
from certikmeans.problem import ReducedProblem

# Runs of at most this many points are not divided further.
LEAF_SIZE = 4
# Components larger than this, and than three times the limit, are divided.
MAX_UNCUT_COMPONENT = 100


@final
@dataclass(frozen=True, slots=True, eq=False)
class SampleGroups:
    """A partition of the samples into groups of whole cannot-link components.

    Samples are renumbered: group ``g`` is the range ``starts[g] .. starts[g + 1] - 1``, in the
    order in which the search labels them; ``order[i]`` is the row of the problem.
    """

    problem: ReducedProblem
    order: Ints  # (n,)
    starts: Ints  # (n_sets + 1,)
    points: Floats  # (n, d)
    weights: Floats  # (n,)
    link_start: Ints  # (n + 1,)
    link: Ints

    @property
    def n_sets(self) -> int:
        """Number of groups."""
        return len(self.starts) - 1


def size_limit(n_dims: int, n_clusters: int) -> int:
    """The paper's largest group, ``min(162 / d - K, 10 K)``, and at least one sample.

    ``d`` is the number of axes of the reduced problem.

    >>> size_limit(4, 3), size_limit(2, 3), size_limit(50, 3)
    (30, 30, 1)
    """
    return max(1, min(162 // n_dims - n_clusters, 10 * n_clusters))


def make_sample_groups(problem: ReducedProblem, limit: int | None = None) -> SampleGroups:
    """Distribute the cannot-link components so that every group resembles the whole data.

    K centres fit a group of neighbours at almost no cost, so its optimum contributes little; a
    representative group contributes its share of the cost. Components are put in a spatial order
    (recursive bisection along the longest side of the bounding box) and distributed along it,
    each to the group with fewest samples so far.
    Components of several samples come first; one larger than the limit is a group of its own,
    and a new group is opened if no other has room. Measured: docs/concepts/grouped-bound.md.
    A component of several times the limit is too large to search: it is divided into runs of its
    breadth-first order, and the cannot-links between them are dropped, which is a relaxation.

    Inside a group the samples are in farthest-first order.
    """
    if limit is None:
        limit = size_limit(problem.n_dims, problem.n_clusters)
    starts = _split_large(
        problem.label_constraints.component_starts(), max(MAX_UNCUT_COMPONENT, 3 * limit), limit
    )
    sizes = np.diff(starts)
    centroids = np.add.reduceat(problem.points, starts[:-1], axis=0) / sizes[:, None]
    queue = spatial_order(centroids)
    queue = queue[np.argsort(sizes[queue] == 1, kind="stable")]
    oversized = [[int(c)] for c in queue if sizes[c] > limit]
    queue = queue[sizes[queue] <= limit]
    sets: list[list[int]] = [[] for _ in range(-(-int(sizes[queue].sum()) // limit))]
    loads = [(0, g) for g in range(len(sets))]  # heap: fewest samples first, ties by number
    for component in queue.tolist():
        size = int(sizes[component])
        load, least = loads[0] if loads else (limit, 0)
        if load + size > limit:
            least = len(sets)
            sets.append([component])
            heapq.heappush(loads, (size, least))
        else:
            sets[least].append(component)
            heapq.heapreplace(loads, (load + size, least))
    chosen = [components for components in oversized + sets if components]
    return _build_groups(problem, [_rows(starts, components) for components in chosen])


def _split_large(starts: Ints, most: int, size: int) -> Ints:
    """Divide components of more than ``most`` rows into runs of ``size``."""
    large = np.flatnonzero(np.diff(starts) > most)
    cuts = [np.arange(starts[c] + size, starts[c + 1], size) for c in large]
    return np.sort(np.concatenate([starts, *cuts]))


def _rows(starts: Ints, components: list[int]) -> Ints:
    return np.concatenate([np.arange(starts[c], starts[c + 1]) for c in components])


def spatial_order(points: Floats) -> Ints:
    """Spatial order by recursive bisection.

    >>> spatial_order(np.array([[3.0], [0.0], [2.0], [1.0]]))
    array([1, 3, 2, 0])
    """
    order = np.arange(len(points))
    starts = np.array([0])
    while True:  # all runs of a level at once: sort along the widest axis, then halve
        sizes = np.diff(np.append(starts, len(points)))
        run = np.repeat(np.arange(len(starts)), sizes)
        here = points[order]
        spans = np.maximum.reduceat(here, starts) - np.minimum.reduceat(here, starts)
        keys = here[np.arange(len(points)), np.argmax(spans, axis=1)[run]]
        order = order[np.lexsort((keys, run))]
        large = sizes > LEAF_SIZE
        if not large.any():
            return order
        starts = np.sort(np.concatenate([starts, starts[large] + sizes[large] // 2]))


def farthest_first(points: Floats) -> Ints:
    """Farthest-first order.

    >>> farthest_first(np.array([[0.0], [1.0], [10.0], [5.0]]))
    array([2, 0, 3, 1])
    """
    order = np.empty(len(points), dtype=np.int64)
    order_farthest_first(points, order)
    return order


def _build_groups(problem: ReducedProblem, sets: list[Ints]) -> SampleGroups:
    order = np.concatenate([rows[farthest_first(problem.points[rows])] for rows in sets])
    position_of = np.empty(len(order), dtype=np.int64)
    position_of[order] = np.arange(len(order))
    graph = problem.graph
    degrees = np.diff(graph.indptr)[order]
    link_start = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    # Entry e of row i of the new order is entry e of row order[i] of the old one.
    shift = np.repeat(graph.indptr[order] - link_start[:-1], degrees)
    link = position_of[graph.neighbors[np.arange(len(shift)) + shift]]
    set_of = np.repeat(np.arange(len(sets)), [len(rows) for rows in sets])
    inside = set_of[link] == np.repeat(set_of, degrees)  # False only where a component was divided
    kept = np.bincount(np.repeat(np.arange(len(order)), degrees)[inside], minlength=len(order))
    link_start = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return SampleGroups(
        problem=problem,
        order=order,
        starts=np.cumsum([0, *(len(rows) for rows in sets)]).astype(np.int64),
        points=np.ascontiguousarray(problem.points[order]),
        weights=np.ascontiguousarray(problem.weights[order]),
        link_start=link_start,
        link=link[inside],
    )
