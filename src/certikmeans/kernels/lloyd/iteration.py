"""Lloyd iterations under cannot-links: nearest centers, assignment step, whole runs. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.assignment import DEFERRED, has_conflict, next_conflict, solve_component
from certikmeans.kernels.costs import squared_distance


@njit(cache=True, nogil=True)
def squared_distances(
    columns,  # IN   (n_features, n) float64
    first,  # IN   first point
    center,  # IN   (n_features,) float64
    out,  # OUT  (m,) float64, for points first .. first + m - 1
):
    """Squared distances to one centre as sums of squared differences, in a fixed order.

    Each is correct to a factor ``1 + (n_features + 2) eps``: only squares are added.
    """
    n_features, m = columns.shape[0], out.size
    last = first + m
    x0, c0 = columns[0, first:last], center[0]
    j = 1
    if n_features == 2:
        x1, c1 = columns[1, first:last], center[1]
        for i in range(m):
            a, b = x0[i] - c0, x1[i] - c1
            out[i] = a * a + b * b
        return
    for i in range(m):
        a = x0[i] - c0
        out[i] = a * a
    while j + 4 <= n_features:
        x0, c0 = columns[j, first:last], center[j]
        x1, c1 = columns[j + 1, first:last], center[j + 1]
        x2, c2 = columns[j + 2, first:last], center[j + 2]
        x3, c3 = columns[j + 3, first:last], center[j + 3]
        for i in range(m):
            a, b, c, d = x0[i] - c0, x1[i] - c1, x2[i] - c2, x3[i] - c3
            out[i] += (a * a + b * b) + (c * c + d * d)
        j += 4
    while j < n_features:
        x0, c0 = columns[j, first:last], center[j]
        for i in range(m):
            a = x0[i] - c0
            out[i] += a * a
        j += 1


@njit(cache=True, nogil=True)
def nearest_centers(
    columns,  # IN   (n_features, n) float64
    first,  # IN   first point
    centers,  # IN   (n_clusters, n_features) float64
    distances,  # OUT  (m,) float64, scratch
    best,  # OUT  (m,) float64 squared distance to the nearest centre
    labels,  # OUT  (m,) int64 nearest centre, the lowest number on a tie
):
    """Nearest centre of points ``first .. first + m - 1``."""
    m = best.size
    squared_distances(columns, first, centers[0], best)
    for i in range(m):
        labels[i] = 0
    for k in range(1, centers.shape[0]):
        squared_distances(columns, first, centers[k], distances)
        for i in range(m):
            closer = distances[i] < best[i]
            best[i] = distances[i] if closer else best[i]
            labels[i] = k if closer else labels[i]


# One Lloyd step under cannot-links: cheapest feasible labels for fixed centres, and their sums.
#
# Chunks depend on the problem alone. Each writes its own row of sums, and rows are added in order,
# so the result is the same for any number of threads.

BLOCK = 512

# A row of sums: n_clusters * n_features weighted sums, n_clusters masses, then these three.
COST, SHORTFALL, CHANGED, EXTRAS = 0, 1, 2, 3


class Geometry(NamedTuple):
    """The points, and their partition into chunks that do not split a component."""

    points: np.ndarray  # (n_groups, n_features)
    columns: np.ndarray  # (n_features, n_groups) the same, transposed
    weights: np.ndarray  # (n_groups,)
    chunk_vertex: np.ndarray  # (n_chunks + 1,) first vertex
    chunk_component: np.ndarray  # (n_chunks + 1,) first component
    chunk_cycle: np.ndarray  # (n_chunks + 1,) first of ``cycles``
    cycles: np.ndarray  # (n_cyclic,) components with cycles, ascending
    longest_chunk: int
    largest_component: int
    largest_table: int


class StepScratch(NamedTuple):
    """Scratch arrays of a step for one chunk, and the components deferred to a search."""

    new_labels: np.ndarray  # (longest_chunk,) int64 labels
    best: np.ndarray  # (longest_chunk,) squared distances to their centres
    unary: np.ndarray  # (largest_component, n_clusters)
    entries: np.ndarray  # (largest_table,)
    pending: np.ndarray  # (n_cyclic,) bool


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
def _accumulate(geometry, first, distances, row, n_clusters, old_labels, new_labels):
    """Add up one chunk; ``old_labels`` holds its labels so far and gets those of ``new_labels``."""
    points, weights = geometry.points, geometry.weights
    n_features = points.shape[1]
    masses = n_clusters * n_features
    extras = masses + n_clusters
    for i in range(row.size):
        row[i] = 0.0
    cost, changed = 0.0, 0
    for i in range(new_labels.size):
        k, w = new_labels[i], weights[first + i]
        for j in range(n_features):
            row[k * n_features + j] += w * points[first + i, j]
        row[masses + k] += w
        cost += w * distances[i]
        changed += old_labels[i] != k
        old_labels[i] = k
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
def _relabel_pair(geometry, first, offset, centers, best, new_labels):
    """Relabel two linked vertices with the same nearest centre; the cheaper one moves.

    Most components are pairs. Sums are compared, not differences, so that rounding stays
    relative as in `solve_tree`.
    """
    weights, u, v = geometry.weights, first - offset, first + 1 - offset
    label_u, away_u = _next_nearest(geometry, first, centers, new_labels[u])
    label_v, away_v = _next_nearest(geometry, first + 1, centers, new_labels[v])
    first_moves = weights[first] * away_u + weights[first + 1] * best[v]
    second_moves = weights[first] * best[u] + weights[first + 1] * away_v
    if first_moves < second_moves:
        new_labels[u], best[u] = label_u, away_u
    else:
        new_labels[v], best[v] = label_v, away_v


@njit(cache=True, nogil=True)
def _relabel_component(geometry, layout, component, offset, centers, scratch):
    """Relabel one component. Returns its shortfall."""
    first, last = layout.graph.starts[component], layout.graph.starts[component + 1]
    own, costs = scratch.new_labels[first - offset : last - offset], scratch.unary[: last - first]
    fill_unary(geometry, first, centers, costs)
    status, shortfall = solve_component(layout, component, costs, scratch.entries, own)
    if status == DEFERRED:
        scratch.pending[layout.graph.cyclic_component[component]] = True
    for v in range(first, last):
        scratch.best[v - offset] = squared_distance(geometry.points, v, centers, own[v - first])
    return shortfall


@njit(cache=True, nogil=True)
def _repair_conflicts(geometry, layout, chunk, centers, scratch):
    """Relabel the components of a chunk in conflict. Returns their summed shortfall."""
    starts, new_labels = layout.graph.starts, scratch.new_labels
    offset = geometry.chunk_vertex[chunk]
    c, last_component = geometry.chunk_component[chunk], geometry.chunk_component[chunk + 1]
    v, last = starts[c], starts[last_component]
    total = 0.0
    for i in range(geometry.chunk_cycle[chunk], geometry.chunk_cycle[chunk + 1]):
        cycle = geometry.cycles[i]
        if has_conflict(
            layout.graph, cycle, new_labels[starts[cycle] - offset : starts[cycle + 1] - offset]
        ):
            total += _relabel_component(geometry, layout, cycle, offset, centers, scratch)
    while True:
        v = next_conflict(layout.graph, v, last, new_labels, offset)
        if v == last:
            return total
        while starts[c + 1] <= v:
            c += 1
        v = starts[c + 1]
        if starts[c + 1] - starts[c] == 2:
            _relabel_pair(geometry, starts[c], offset, centers, scratch.best, new_labels)
        elif layout.graph.cyclic_component[c] < 0:
            total += _relabel_component(geometry, layout, c, offset, centers, scratch)


@njit(cache=True, nogil=True)
def assign_chunks(
    first_chunk,  # IN
    last_chunk,  # IN  one past the last
    geometry,  # IN
    layout,  # IN  None without cannot-links, so that the solvers are not compiled
    centers,  # IN  (n_clusters, n_features) float64, finite
    labels,  # IN/OUT  (n_groups,) int64 any numbers; the new labels
    rows,  # OUT  (n_chunks, .) sums of every chunk
    pending,  # OUT  (n_cyclic,) bool: set where a search is needed, else untouched
):
    """Cheapest feasible labels for these centres, with the sums that give the next ones."""
    n_clusters, n_features = centers.shape
    scratch = StepScratch(
        np.empty(geometry.longest_chunk, np.int64),
        np.empty(geometry.longest_chunk),
        np.empty((geometry.largest_component, n_clusters)),
        np.empty(geometry.largest_table),
        pending,
    )
    new_labels, best, distances = scratch.new_labels, scratch.best, np.empty(BLOCK)
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
                new_labels[first - start : last - start],
            )
        shortfall = 0.0
        if layout is not None:
            shortfall = _repair_conflicts(geometry, layout, chunk, centers, scratch)
        row = rows[chunk]
        _accumulate(
            geometry, start, best, row, n_clusters, labels[start:stop], new_labels[: stop - start]
        )
        row[n_clusters * (n_features + 1) + SHORTFALL] = shortfall


@njit(cache=True, nogil=True)
def sum_chunks(
    first_chunk,  # IN
    last_chunk,  # IN  one past the last
    geometry,  # IN
    centers,  # IN  (n_clusters, n_features)
    labels,  # IN  (n_groups,) int64
    old_labels,  # IN/OUT  (n_groups,) int64 previous labels; become ``labels``
    rows,  # OUT  (n_chunks, .)
):
    """Sums and cost of given labels about given centres, chunk by chunk as `assign_chunks`."""
    best = np.empty(geometry.longest_chunk)
    for chunk in range(first_chunk, last_chunk):
        start, stop = geometry.chunk_vertex[chunk], geometry.chunk_vertex[chunk + 1]
        for i in range(start, stop):
            best[i - start] = squared_distance(geometry.points, i, centers, labels[i])
        _accumulate(
            geometry, start, best, rows[chunk], centers.shape[0], old_labels[start:stop],
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


# Whole Lloyd runs in compiled code, and the parts that a threaded run shares with them.

CONTINUE, CONVERGED, STALLED = 0, 1, 2


@njit(cache=True, nogil=True)
def move_to_means(
    total,  # IN  sums, as from `add_rows`
    centers,  # IN/OUT  (n_clusters, n_features); an empty cluster keeps its centre
):
    """Move the centres to the means. Returns the number of empty clusters."""
    n_clusters, n_features = centers.shape
    empty = 0
    for k in range(n_clusters):
        mass = total[n_clusters * n_features + k]
        if mass > 0.0:
            for j in range(n_features):
                centers[k, j] = total[k * n_features + j] / mass
        else:
            empty += 1
    return empty


@njit(cache=True, nogil=True)
def _farthest_group(geometry, centers, labels):
    """Group of largest weighted squared distance in a cluster of two or more; -1 if all are 0."""
    n_members = np.zeros(centers.shape[0], np.int64)
    for i in range(labels.size):
        n_members[labels[i]] += 1
    farthest, largest = -1, 0.0
    for i in range(labels.size):
        if n_members[labels[i]] > 1:
            away = squared_distance(geometry.points, i, centers, labels[i])
            if geometry.weights[i] * away > largest:
                farthest, largest = i, geometry.weights[i] * away
    return farthest


@njit(cache=True, nogil=True)
def update_centers(
    geometry,  # IN
    labels,  # IN/OUT  (n_groups,) int64; changed only to fill an empty cluster
    rows,  # IN/OUT  sums by chunk
    total,  # IN/OUT  sums of ``labels``
    centers,  # IN/OUT  (n_clusters, n_features)
):
    """Move the centres to the means and assign the farthest group to every empty cluster.

    The move lowers the cost by the distance of that group, and keeps the labels feasible: the
    cluster has no other members. If every group coincides with its centre, it stays empty.
    """
    n_clusters, n_features = centers.shape
    for _ in range(move_to_means(total, centers)):
        group = _farthest_group(geometry, centers, labels)
        if group < 0:
            return
        k = 0
        while total[n_clusters * n_features + k] > 0.0:
            k += 1
        labels[group] = k
        for chunk in range(rows.shape[0]):
            sum_chunks(chunk, chunk + 1, geometry, centers, labels, labels, rows)
        add_rows(rows, total)
        move_to_means(total, centers)


@njit(cache=True, nogil=True)
def finish_iteration(
    geometry,  # IN
    iteration,  # IN  number of this iteration, from 1
    previous,  # IN  cost of the iteration before
    tolerance,  # IN  relative decrease below which the run stops
    rows,  # IN/OUT  sums by chunk, as `assign_chunks` left them
    total,  # OUT  their sum
    labels,  # IN/OUT
    centers,  # IN/OUT
):
    """Finish a Lloyd iteration: ``(action, cost of the labels about the old centres)``."""
    extras = centers.shape[0] * (centers.shape[1] + 1)
    add_rows(rows, total)
    cost = total[extras + COST]
    if iteration > 1 and total[extras + CHANGED] == 0.0:
        return CONVERGED, cost
    update_centers(geometry, labels, rows, total, centers)
    # Labels can alternate between equal costs: continue only after a decrease.
    stalled = iteration > 1 and cost >= previous - tolerance * previous
    return STALLED if stalled else CONTINUE, cost


@njit(cache=True, nogil=True)
def lloyd(
    geometry,  # IN
    layout,  # IN  without cores that need a search; None without cannot-links
    max_iterations,  # IN  at least 1
    tolerance,  # IN
    labels,  # IN/OUT  (n_groups,) int64 any numbers; the final labels
    centers,  # IN/OUT  (n_clusters, n_features); their means
):
    """Alternate cheapest feasible labels and means until convergence.

    Returns ``(cost, iterations)``, the cost of the final labels about the final centres.
    """
    n_chunks = geometry.chunk_vertex.size - 1
    width = centers.shape[0] * (centers.shape[1] + 1) + EXTRAS
    rows, total = np.empty((n_chunks, width)), np.empty(width)
    pending = np.empty(geometry.cycles.size, np.bool_)
    cost, iteration, action = np.inf, 0, CONTINUE
    while action == CONTINUE and iteration < max_iterations:
        iteration += 1
        for chunk in range(n_chunks):
            assign_chunks(chunk, chunk + 1, geometry, layout, centers, labels, rows, pending)
        action, cost = finish_iteration(
            geometry, iteration, cost, tolerance, rows, total, labels, centers
        )
    if action != CONVERGED:
        for chunk in range(n_chunks):
            sum_chunks(chunk, chunk + 1, geometry, centers, labels, labels, rows)
        add_rows(rows, total)
        cost = total[width - EXTRAS + COST]
    return cost, iteration
