"""Least cost of the clusters of one group of samples, centres free in boxes. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit


class Sums(NamedTuple):
    """Weight, moment, sum of squares and size of every cluster: all a least cost depends on."""

    mass: np.ndarray  # (K,)
    moment: np.ndarray  # (K, d)
    square: np.ndarray  # (K,)
    count: np.ndarray  # type: ignore[assignment]  # (K,) int64


@njit(cache=True, nogil=True)
def new_sums(n_clusters, n_axes):
    """Clusters without members."""
    return Sums(
        np.zeros(n_clusters),
        np.zeros((n_clusters, n_axes)),
        np.zeros(n_clusters),
        np.zeros(n_clusters, np.int64),
    )


@njit(cache=True, nogil=True)
def clear_sums(sums):
    """Take all members out."""
    sums.mass[:] = 0.0
    sums.moment[:] = 0.0
    sums.square[:] = 0.0
    sums.count[:] = 0


@njit(cache=True, nogil=True)
def add_member(
    sums,  # INOUT
    k,
    point,  # IN   (d,)
    weight,
):
    """Put one sample into cluster ``k``."""
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
def sum_up(
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
