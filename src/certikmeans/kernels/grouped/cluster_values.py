"""Cluster costs over boxes and an initial labelling of one sample group. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit


class Sums(NamedTuple):
    """Sufficient statistics of the clusters: weight, moment, sum of squares and size."""

    mass: np.ndarray  # (K,)
    moment: np.ndarray  # (K, d)
    square: np.ndarray  # (K,)
    count: np.ndarray  # type: ignore[assignment]  # (K,) int64


@njit(cache=True, nogil=True)
def new_sums(n_clusters, n_dims):
    """Clusters without members."""
    return Sums(
        np.zeros(n_clusters),
        np.zeros((n_clusters, n_dims)),
        np.zeros(n_clusters),
        np.zeros(n_clusters, np.int64),
    )


@njit(cache=True, nogil=True)
def clear_sums(sums):
    """Remove all members."""
    sums.mass[:] = 0.0
    sums.moment[:] = 0.0
    sums.square[:] = 0.0
    sums.count[:] = 0


@njit(cache=True, nogil=True)
def add_member(
    sums,  # IN/OUT
    k,
    point,  # IN   (d,)
    weight,
):
    """Add one sample to cluster ``k``."""
    squares = 0.0
    for j in range(point.size):
        pull = weight * point[j]
        sums.moment[k, j] += pull
        squares += pull * point[j]
    sums.mass[k] += weight
    sums.square[k] += squares
    sums.count[k] += 1


@njit(cache=True, nogil=True)
def best_coordinate(mass, moment, pull, low, high):
    """Minimiser of ``mass m^2 - 2 moment m + pull m`` in ``[low, high]``."""
    if mass <= 0.0:
        if pull == 0.0:
            return min(max(0.5 * (low + high), low), high)
        return high if pull < 0.0 else low
    return min(max((moment - 0.5 * pull) / mass, low), high)


@njit(cache=True, nogil=True)
def cluster_value(
    mass,
    moment,  # IN   (d,)
    square,
    share,
    nu,  # IN   (d,)
    low,  # IN   (d,)
    high,  # IN   (d,)
):
    """``min over m in the box of  sum w |x - m|^2 + share nu.m``, in closed form."""
    total = square
    for j in range(moment.size):
        pull = share * nu[j]
        m = best_coordinate(mass, moment[j], pull, low[j], high[j])
        total += (mass * m - 2.0 * moment[j] + pull) * m
    return total


@njit(cache=True, nogil=True)
def value_with(
    sums,  # IN
    k,
    point,  # IN   (d,)
    weight,
    share,
    nu,  # IN   (d,)
    low,  # IN   (d,)
    high,  # IN   (d,)
):
    """Value of cluster ``k`` after one more sample, without touching ``sums``."""
    mass = sums.mass[k] + weight
    total = sums.square[k]
    squares, rest = 0.0, 0.0
    for j in range(point.size):
        pull = share * nu[j]
        gain = weight * point[j]
        moment = sums.moment[k, j] + gain
        squares += gain * point[j]
        m = best_coordinate(mass, moment, pull, low[j], high[j])
        rest += (mass * m - 2.0 * moment + pull) * m
    return (total + squares) + rest


@njit(cache=True, nogil=True)
def best_centers(
    sums,  # IN
    nu,  # IN   (K, d)
    lower,  # IN   (K, d)
    upper,  # IN   (K, d)
    centers,  # OUT  (K, d)
):
    """Minimising centre of every cluster; returns the value they attain."""
    total = 0.0
    for k in range(lower.shape[0]):
        for j in range(lower.shape[1]):
            centers[k, j] = best_coordinate(
                sums.mass[k], sums.moment[k, j], nu[k, j], lower[k, j], upper[k, j]
            )
        total += cluster_value(
            sums.mass[k], sums.moment[k], sums.square[k], 1.0, nu[k], lower[k], upper[k]
        )
    return total


@njit(cache=True, nogil=True)
def compute_sums(
    points,  # IN   (m, d)
    weights,  # IN   (m,)
    labels,  # IN   (m,)
    start,
    end,
    sums,  # OUT
):
    """Sums of the samples ``start .. end - 1`` under ``labels``."""
    clear_sums(sums)
    for i in range(start, end):
        add_member(sums, labels[i], points[i], weights[i])


@njit(cache=True, nogil=True)
def total_value(sums, share, nu, lower, upper):
    """Sum of the values of all clusters."""
    total = 0.0
    for k in range(lower.shape[0]):
        total += cluster_value(
            sums.mass[k], sums.moment[k], sums.square[k], share, nu[k], lower[k], upper[k]
        )
    return total


@njit(cache=True, nogil=True)
def least_addition(
    points,  # IN   (m, d)
    i,
    center,  # IN   (K, d) minimisers of the clusters so far, inside the boxes
    k,
    ratio,
    lower,  # IN   (K, d)
    upper,  # IN   (K, d)
):
    """What sample ``i``, per unit of weight, must add to cluster ``k``. See `grouped.search`.

    The minimum over ``m`` in the box of ``ratio / (1 - ratio) |m - center|^2 + |point - m|^2``.
    Arrays come whole: a view per call would cost more than the arithmetic.
    """
    total = 0.0
    for j in range(points.shape[1]):
        x, c = points[i, j], center[k, j]
        m = c + (1.0 - ratio) * (x - c)
        if m < lower[k, j]:
            m = lower[k, j]
        elif m > upper[k, j]:
            m = upper[k, j]
        else:
            total += ratio * (x - c) * (x - c)
            continue
        total += ratio / (1.0 - ratio) * (m - c) * (m - c) + (x - m) * (x - m)
    return total


# Initial labelling of one group.

MAX_SWEEPS = 20


@njit(cache=True, nogil=True)
def is_feasible(group, labels):
    """Whether ``labels`` uses allowed clusters only and keeps every cannot-link."""
    for i in range(labels.size):
        if labels[i] < 0 or not group.allowed[i, labels[i]]:
            return False
        for e in range(group.link_start[i], group.link_start[i + 1]):
            if labels[group.link[e]] == labels[i]:
                return False
    return True


@njit(cache=True, nogil=True)
def _may_take(i, k, group, labels):
    if not group.allowed[i, k]:
        return False
    for e in range(group.link_start[i], group.link_start[i + 1]):
        if labels[group.link[e]] == k:
            return False
    return True


@njit(cache=True, nogil=True)
def label_greedily(
    group,  # IN
    sums,  # OUT
    labels,  # OUT  (m,)
):
    """Greedy labels; False if a sample has no allowed cluster left."""
    clear_sums(sums)
    labels[:] = -1
    for i in range(labels.size):
        chosen, least = -1, np.inf
        for k in range(group.lower.shape[0]):
            if not _may_take(i, k, group, labels):
                continue
            cost = added_cost(i, k, group, sums, 1.0)
            if cost < least:
                chosen, least = k, cost
        if chosen < 0:
            return False
        labels[i] = chosen
        add_member(sums, chosen, group.points[i], group.weights[i])
    return True


@njit(cache=True, nogil=True)
def added_cost(i, k, group, sums, share):
    """What sample ``i`` adds to cluster ``k``."""
    low, high, nu = group.lower[k], group.upper[k], group.nu[k]
    before = cluster_value(sums.mass[k], sums.moment[k], sums.square[k], share, nu, low, high)
    return value_with(sums, k, group.points[i], group.weights[i], share, nu, low, high) - before


@njit(cache=True, nogil=True)
def improve_labels(
    group,  # IN
    sums,  # OUT  of the labels on return
    labels,  # IN/OUT (m,) feasible
):
    """Move single samples while the value decreases; returns the value of the labels."""
    compute_sums(group.points, group.weights, labels, np.int64(0), labels.size, sums)
    for _ in range(MAX_SWEEPS):
        moved = False
        for i in range(labels.size):
            current = labels[i]
            _remove(sums, current, group.points[i], group.weights[i])
            chosen, least = current, added_cost(i, current, group, sums, 1.0)
            least -= 1e-12 * abs(least)
            for k in range(group.lower.shape[0]):
                if k != current and _may_take(i, k, group, labels):
                    cost = added_cost(i, k, group, sums, 1.0)
                    if cost < least:
                        chosen, least = k, cost
            labels[i] = chosen
            add_member(sums, chosen, group.points[i], group.weights[i])
            moved = moved or chosen != current
        if not moved:
            break
    # Removals accumulate rounding: the value returned comes from recomputed sums.
    compute_sums(group.points, group.weights, labels, np.int64(0), labels.size, sums)
    return total_value(sums, 1.0, group.nu, group.lower, group.upper)


@njit(cache=True, nogil=True)
def _remove(sums, k, point, weight):
    for j in range(point.size):
        sums.moment[k, j] -= weight * point[j]
        sums.square[k] -= weight * point[j] * point[j]
    sums.mass[k] -= weight
    sums.count[k] -= 1
    if sums.count[k] == 0:
        sums.mass[k] = 0.0
        sums.square[k] = 0.0
        sums.moment[k] = 0.0
