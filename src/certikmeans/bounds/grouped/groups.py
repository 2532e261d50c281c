"""Which samples form a group. Fixed at the root."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem import ReducedProblem

Order = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A partition of the samples into groups of whole cannot-link components.

    Samples are renumbered: group ``g`` is the range ``starts[g] .. starts[g + 1] - 1``, in the
    order in which the search labels them; ``order[i]`` is the row of the problem.
    """

    problem: ReducedProblem
    order: Order  # (n,)
    starts: NDArray[np.int64]  # (n_sets + 1,)
    points: NDArray[np.float64]  # (n, d)
    weights: NDArray[np.float64]  # (n,)
    link_start: NDArray[np.int64]  # (n + 1,)
    link: NDArray[np.int64]

    @property
    def n_sets(self) -> int:
        """Number of groups."""
        return len(self.starts) - 1


def size_limit(n_axes: int, n_clusters: int) -> int:
    """The paper's largest group, ``min(162 / d - K, 10 K)``, and at least one sample.

    ``d`` is the number of axes of the reduced problem.

    >>> size_limit(4, 3), size_limit(2, 3), size_limit(50, 3)
    (30, 30, 1)
    """
    return max(1, min(162 // n_axes - n_clusters, 10 * n_clusters))


def make_groups(problem: ReducedProblem, limit: int | None = None) -> Groups:
    """Deal the cannot-link components out so that every group looks like the whole.

    A group of neighbours can be served by K centres at almost no cost, so its own optimum says
    little about the whole; a group that is a fair sample costs its share. Components are put in
    an order in which close ones follow each other (halved again and again along the longest side
    of their bounding box) and dealt out along it, each to the group with fewest samples so far.
    Components of several samples come first; one larger than the limit is a group of its own,
    and a new group is opened if no other has room. Measured: docs/concepts/grouped-bound.md.

    Inside a group the samples come farthest first: each as far as possible from those before it.
    """
    if limit is None:
        limit = size_limit(problem.n_axes, problem.n_clusters)
    components = _components(problem)
    middles = np.array([problem.points[rows].mean(axis=0) for rows in components])
    queue = [components[i] for i in near_order(middles)]
    queue.sort(key=lambda rows: len(rows) == 1)
    alone = [[rows] for rows in queue if len(rows) > limit]
    queue = [rows for rows in queue if len(rows) <= limit]
    total = sum(len(rows) for rows in queue)
    sets: list[list[NDArray[np.int64]]] = [[] for _ in range(-(-total // limit))]
    loads = np.zeros(len(sets), dtype=np.int64)
    for rows in queue:
        least = int(np.argmin(loads))
        if loads[least] + len(rows) > limit:
            least = len(sets)
            sets.append([])
            loads = np.append(loads, 0)
        sets[least].append(rows)
        loads[least] += len(rows)
    return _lay_out(problem, [np.concatenate(rows) for rows in alone + sets if rows])


def _components(problem: ReducedProblem) -> list[NDArray[np.int64]]:
    starts = problem.graph.starts
    linked = [np.arange(a, b) for a, b in pairwise(starts.tolist())]
    return linked + [np.array([i]) for i in range(problem.graph.n_linked, problem.n_groups)]


def near_order(points: NDArray[np.float64]) -> Order:
    """Order in which close points follow each other.

    >>> near_order(np.array([[3.0], [0.0], [2.0], [1.0]]))
    array([1, 3, 2, 0])
    """
    done: list[int] = []
    waiting = [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= 1:
            done.extend(rows.tolist())
            continue
        axis = int(np.argmax(np.ptp(points[rows], axis=0)))
        rows = rows[np.argsort(points[rows, axis], kind="stable")]
        half = len(rows) // 2
        waiting += [rows[half:], rows[:half]]
    return np.array(done, dtype=np.int64)


def farthest_first(points: NDArray[np.float64]) -> Order:
    """Order in which each point is as far as possible from those before it.

    >>> farthest_first(np.array([[0.0], [1.0], [10.0], [5.0]]))
    array([2, 0, 3, 1])
    """
    away = np.sum((points - points.mean(axis=0)) ** 2, axis=1)
    order = np.empty(len(points), dtype=np.int64)
    for place in range(len(points)):
        chosen = int(np.argmax(away))
        order[place] = chosen
        apart = np.sum((points - points[chosen]) ** 2, axis=1)
        away = apart if place == 0 else np.minimum(away, apart)
        away[order[: place + 1]] = -1.0
    return order


def _lay_out(problem: ReducedProblem, sets: list[NDArray[np.int64]]) -> Groups:
    order = np.concatenate([rows[farthest_first(problem.points[rows])] for rows in sets])
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.arange(len(order))
    graph = problem.graph
    degrees = np.diff(graph.indptr)[order]
    link_start = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    link = [place_of[graph.neighbors[graph.indptr[i] : graph.indptr[i + 1]]] for i in order]
    return Groups(
        problem=problem,
        order=order,
        starts=np.cumsum([0, *(len(rows) for rows in sets)]).astype(np.int64),
        points=np.ascontiguousarray(problem.points[order]),
        weights=np.ascontiguousarray(problem.weights[order]),
        link_start=link_start,
        link=np.concatenate([np.empty(0, dtype=np.int64), *link]),
    )
