"""One Lloyd step under cannot-links: cheapest proper labels for fixed centres, and their sums.

Work is cut into chunks that depend on the problem alone. Each chunk writes its own row of sums and
rows are added in order, so the result is the same for any number of threads.
"""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.assignment.component import LEFT, clashes, next_clash, solve_component
from certikmeans.kernels.distance import squared_distance
from certikmeans.kernels.lloyd.nearest import nearest_centers

BLOCK = 512

# A row of sums: n_clusters * n_features weighted sums, n_clusters masses, then these three.
COST, SHORTFALL, CHANGED, EXTRAS = 0, 1, 2, 3


class Geometry(NamedTuple):
    """The points, and how they are cut into chunks that do not split a component."""

    points: np.ndarray  # (n_groups, n_features)
    columns: np.ndarray  # (n_features, n_groups) the same, transposed
    weights: np.ndarray  # (n_groups,)
    chunk_vertex: np.ndarray  # (n_chunks + 1,) first vertex
    chunk_component: np.ndarray  # (n_chunks + 1,) first component
    chunk_cycle: np.ndarray  # (n_chunks + 1,) first of ``cycles``
    cycles: np.ndarray  # (n_slots,) components with cycles, ascending
    longest_chunk: int
    largest_component: int
    largest_table: int


class StepScratch(NamedTuple):
    """Scratch of a step, one chunk at a time; and the components that it leaves to a search."""

    now: np.ndarray  # (longest_chunk,) int64 labels
    best: np.ndarray  # (longest_chunk,) squared distances to their centres
    unary: np.ndarray  # (largest_component, n_clusters)
    entries: np.ndarray  # (largest_table,)
    pending: np.ndarray  # (n_slots,) bool


@njit(cache=True, nogil=True)
def fill_unary(
    geometry,  # IN
    first,  # IN  first vertex
    centers,  # IN
    unary,  # OUT  (m, n_clusters) float64 weighted squared distances
):
    """Cost of every label for vertices ``first .. first + m - 1``."""
    for v in range(unary.shape[0]):
        for k in range(unary.shape[1]):
            distance = squared_distance(geometry.points, first + v, centers, k)
            unary[v, k] = geometry.weights[first + v] * distance


@njit(cache=True, nogil=True)
def _accumulate(geometry, first, distances, row, n_clusters, before, now):
    """Add up one chunk; ``before`` holds its labels so far and gets those of ``now``."""
    points, weights = geometry.points, geometry.weights
    n_features = points.shape[1]
    masses = n_clusters * n_features
    extras = masses + n_clusters
    for i in range(row.size):
        row[i] = 0.0
    cost, changed = 0.0, 0
    for i in range(now.size):
        k, w = now[i], weights[first + i]
        for j in range(n_features):
            row[k * n_features + j] += w * points[first + i, j]
        row[masses + k] += w
        cost += w * distances[i]
        changed += before[i] != k
        before[i] = k
    row[extras + COST] = cost
    row[extras + CHANGED] = changed


@njit(cache=True, nogil=True)
def _next_nearest(geometry, vertex, centers, taken):
    """Nearest centre other than ``taken``, and its squared distance."""
    least, label = np.inf, -1
    for k in range(centers.shape[0]):
        if k != taken:
            away = squared_distance(geometry.points, vertex, centers, k)
            if away < least:
                least, label = away, k
    return label, least


@njit(cache=True, nogil=True)
def _settle_pair(geometry, first, offset, centers, best, now):
    """Relabel two linked vertices with one nearest centre: the one that loses less moves on.

    Most components are pairs. Sums are compared, not differences, so that rounding stays
    relative as in `trees.solve_tree`.
    """
    weights, u, v = geometry.weights, first - offset, first + 1 - offset
    label_u, away_u = _next_nearest(geometry, first, centers, now[u])
    label_v, away_v = _next_nearest(geometry, first + 1, centers, now[v])
    first_moves = weights[first] * away_u + weights[first + 1] * best[v]
    second_moves = weights[first] * best[u] + weights[first + 1] * away_v
    if first_moves < second_moves:
        now[u], best[u] = label_u, away_u
    else:
        now[v], best[v] = label_v, away_v


@njit(cache=True, nogil=True)
def _settle(geometry, layout, component, offset, centers, scratch):
    """Relabel one component. Returns its shortfall."""
    first, last = layout.graph.starts[component], layout.graph.starts[component + 1]
    own, costs = scratch.now[first - offset : last - offset], scratch.unary[: last - first]
    fill_unary(geometry, first, centers, costs)
    status, shortfall = solve_component(layout, component, costs, scratch.entries, own)
    if status == LEFT:
        scratch.pending[layout.graph.slot[component]] = True
    for v in range(first, last):
        scratch.best[v - offset] = squared_distance(geometry.points, v, centers, own[v - first])
    return shortfall


@njit(cache=True, nogil=True)
def _settle_clashes(geometry, layout, chunk, centers, scratch):
    """Relabel the components of a chunk that clash. Returns their summed shortfall."""
    starts, now = layout.graph.starts, scratch.now
    offset = geometry.chunk_vertex[chunk]
    c, last_component = geometry.chunk_component[chunk], geometry.chunk_component[chunk + 1]
    v, last = starts[c], starts[last_component]
    total = 0.0
    for i in range(geometry.chunk_cycle[chunk], geometry.chunk_cycle[chunk + 1]):
        cycle = geometry.cycles[i]
        if clashes(layout.graph, cycle, now[starts[cycle] - offset : starts[cycle + 1] - offset]):
            total += _settle(geometry, layout, cycle, offset, centers, scratch)
    while True:
        v = next_clash(layout.graph, v, last, now, offset)
        if v == last:
            return total
        while starts[c + 1] <= v:
            c += 1
        v = starts[c + 1]
        if starts[c + 1] - starts[c] == 2:
            _settle_pair(geometry, starts[c], offset, centers, scratch.best, now)
        elif layout.graph.slot[c] < 0:
            total += _settle(geometry, layout, c, offset, centers, scratch)


@njit(cache=True, nogil=True)
def assign_chunks(
    first_chunk,  # IN
    last_chunk,  # IN  one past the last
    geometry,  # IN
    layout,  # IN  None without cannot-links: the solvers are not compiled then
    centers,  # IN  (n_clusters, n_features) float64, finite
    labels,  # IN/OUT  (n_groups,) int64 any numbers; the new labels
    rows,  # OUT  (n_chunks, .) sums of every chunk
    pending,  # OUT  (n_slots,) bool: set where a search is needed (labels clash), else untouched
):
    """Cheapest proper labels for these centres, with the sums that give the next ones."""
    n_clusters, n_features = centers.shape
    scratch = StepScratch(
        np.empty(geometry.longest_chunk, np.int64),
        np.empty(geometry.longest_chunk),
        np.empty((geometry.largest_component, n_clusters)),
        np.empty(geometry.largest_table),
        pending,
    )
    now, best, distances = scratch.now, scratch.best, np.empty(BLOCK)
    for chunk in range(first_chunk, last_chunk):
        start, stop = geometry.chunk_vertex[chunk], geometry.chunk_vertex[chunk + 1]
        for first in range(start, stop, BLOCK):
            last = min(first + BLOCK, stop)
            nearest_centers(
                geometry.columns,
                first,
                centers,
                distances[: last - first],
                best[first - start : last - start],
                now[first - start : last - start],
            )
        shortfall = 0.0
        if layout is not None:
            shortfall = _settle_clashes(geometry, layout, chunk, centers, scratch)
        row = rows[chunk]
        _accumulate(geometry, start, best, row, n_clusters, labels[start:stop], now[: stop - start])
        row[n_clusters * (n_features + 1) + SHORTFALL] = shortfall


@njit(cache=True, nogil=True)
def sum_chunks(
    first_chunk,  # IN
    last_chunk,  # IN  one past the last
    geometry,  # IN
    centers,  # IN  (n_clusters, n_features)
    labels,  # IN  (n_groups,) int64
    before,  # IN/OUT  (n_groups,) int64 labels that count as unchanged; become ``labels``
    rows,  # OUT  (n_chunks, .)
):
    """Sums and cost of given labels about given centres, chunk by chunk as `assign_chunks`."""
    best = np.empty(geometry.longest_chunk)
    for chunk in range(first_chunk, last_chunk):
        start, stop = geometry.chunk_vertex[chunk], geometry.chunk_vertex[chunk + 1]
        for i in range(start, stop):
            best[i - start] = squared_distance(geometry.points, i, centers, labels[i])
        _accumulate(
            geometry, start, best, rows[chunk], centers.shape[0], before[start:stop],
            labels[start:stop],
        )  # fmt: skip


@njit(cache=True, nogil=True)
def add_rows(
    rows,  # IN   (n_chunks, .) float64
    total,  # OUT  (.,) float64
):
    """Add the rows in order."""
    for i in range(total.size):
        total[i] = 0.0
    for chunk in range(rows.shape[0]):
        for i in range(total.size):
            total[i] += rows[chunk, i]
