"""Whole Lloyd runs in compiled code, and the pieces that a threaded run shares with them."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.distance import squared_distance
from certikmeans.kernels.lloyd.step import (
    CHANGED,
    COST,
    EXTRAS,
    add_rows,
    assign_chunks,
    sum_chunks,
)

GO_ON, SETTLED, STALLED = 0, 1, 2


@njit(cache=True, nogil=True)
def move_to_means(
    total,  # IN  sums, as `step.add_rows` gives them
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
    """Move the centres to the means and give every empty cluster the worst placed group.

    The move lowers the cost by the distance of that group, and keeps the labels proper: nobody
    is in the cluster it goes to. If every group sits on its centre, the cluster stays empty.
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
def advance(
    geometry,  # IN
    iteration,  # IN  number of this iteration, from 1
    previous,  # IN  cost of the iteration before
    tolerance,  # IN  relative decrease below which the run stops
    rows,  # IN/OUT  sums by chunk, as `assign_chunks` left them
    total,  # OUT  their sum
    labels,  # IN/OUT
    centers,  # IN/OUT
):
    """Finish a Lloyd iteration: ``(what to do, cost of the labels about the old centres)``."""
    extras = centers.shape[0] * (centers.shape[1] + 1)
    add_rows(rows, total)
    cost = total[extras + COST]
    if iteration > 1 and total[extras + CHANGED] == 0.0:
        return SETTLED, cost
    update_centers(geometry, labels, rows, total, centers)
    # Labels can go back and forth between equal costs: only a decrease may go on.
    stalled = iteration > 1 and cost >= previous - tolerance * previous
    return STALLED if stalled else GO_ON, cost


@njit(cache=True, nogil=True)
def lloyd(
    geometry,  # IN
    layout,  # IN  without cores that take a search; None without cannot-links
    max_iterations,  # IN  at least 1
    tolerance,  # IN
    labels,  # IN/OUT  (n_groups,) int64 any numbers; the final labels
    centers,  # IN/OUT  (n_clusters, n_features); their means
):
    """Alternate cheapest proper labels and means until they settle.

    Returns ``(cost, iterations)``, the cost of the final labels about the final centres.
    """
    n_chunks = geometry.chunk_vertex.size - 1
    width = centers.shape[0] * (centers.shape[1] + 1) + EXTRAS
    rows, total = np.empty((n_chunks, width)), np.empty(width)
    pending = np.empty(geometry.cycles.size, np.bool_)
    cost, iteration, action = np.inf, 0, GO_ON
    while action == GO_ON and iteration < max_iterations:
        iteration += 1
        for chunk in range(n_chunks):
            assign_chunks(chunk, chunk + 1, geometry, layout, centers, labels, rows, pending)
        action, cost = advance(geometry, iteration, cost, tolerance, rows, total, labels, centers)
    if action != SETTLED:
        for chunk in range(n_chunks):
            sum_chunks(chunk, chunk + 1, geometry, centers, labels, labels, rows)
        add_rows(rows, total)
        cost = total[width - EXTRAS + COST]
    return cost, iteration
