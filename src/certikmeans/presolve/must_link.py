"""Must-link collapse: each must-link component becomes one weighted point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.presolve.steps import Joined
from certikmeans.problem.numbering import number_by_appearance
from certikmeans.rounding import UNIT, round_down, round_up


def must_link_groups(n_points: int, must_link: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the must-link components by their smallest member.

    >>> must_link_groups(5, np.array([[1, 4]]))
    array([0, 1, 2, 3, 1])
    """
    if len(must_link) == 0:
        return np.arange(n_points)
    from scipy.sparse import coo_array  # takes as long to load as a small run
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(must_link), dtype=np.int8)
    links = coo_array((ones, (must_link[:, 0], must_link[:, 1])), shape=(n_points, n_points))
    _, component = connected_components(links, directed=False)
    return number_by_appearance(component)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Collapsed:
    """Groups in place of points. Labels of points are ``labels[group_of_point]``."""

    means: NDArray[np.float64]  # (n_groups, n_features)
    weights: NDArray[np.float64]  # (n_groups,)
    group_of_point: NDArray[np.int64]  # (n_points,)
    offset: float  # sum of squares inside the groups, nearest
    offset_below: float  # at most its exact value
    averaging: float  # at least the weighted distance of the means from the exact ones
    weight_factor: float  # at least the largest ratio of a computed to an exact weight

    @property
    def restore(self) -> Joined:
        """The way back."""
        return Joined(
            self.group_of_point,
            len(self.weights),
            self.offset_below,
            self.averaging,
            self.weight_factor,
        )


def collapse(
    points: NDArray[np.float64], weights: NDArray[np.float64], group_of_point: NDArray[np.int64]
) -> Collapsed:
    """Replace every must-link component by its mean, weighted by its members.

    A feasible labelling never splits a component, so this changes the cost by the constant
    ``offset`` (paper, Lemma 3 and Theorem 1). The computed mean ``c`` of a group is not
    the exact one, ``m``; with ``W`` the group's weight and ``g = sum w_i (x_i - c)``,

        m - c = g / W   and   sum w_i |x_i - m|^2 = sum w_i |x_i - c|^2 - |g|^2 / W,

    and ``g``, recomputed from the points, bounds both errors.

    Examples
    --------
    >>> two = collapse(np.array([[0.], [2.], [9.]]), np.ones(3), np.array([0, 0, 1]))
    >>> two.means.ravel(), two.weights, two.offset
    (array([1., 9.]), array([2., 1.]), 2.0)
    """
    n_groups = int(group_of_point.max()) + 1
    sizes = np.bincount(group_of_point, minlength=n_groups)
    means = np.empty((n_groups, points.shape[1]))
    if n_groups == len(points):
        masses = np.empty(n_groups)
        means[group_of_point], masses[group_of_point] = points, weights
        return Collapsed(means, masses, group_of_point, 0.0, 0.0, 0.0, 1.0)

    masses = np.asarray(np.bincount(group_of_point, weights, n_groups), dtype=np.float64)
    # A group that weighs nothing costs nothing; it is put where it would be with equal weights.
    weightless = (masses == 0.0)[group_of_point]
    counted = np.where(weightless, 1.0, weights) if weightless.any() else weights
    divisors = np.bincount(group_of_point, counted, n_groups)
    for j, column in enumerate(points.T):
        means[:, j] = np.bincount(group_of_point, counted * column, minlength=n_groups) / divisors

    shared = sizes[group_of_point] > 1
    alone = ~shared
    means[group_of_point[alone]] = points[alone]
    masses[group_of_point[alone]] = weights[alone]

    group, weight = group_of_point[shared], weights[shared]
    away = points[shared] - means[group]
    squares = weight[:, None] * away * away
    offset = math.fsum(squares.ravel())
    pull = _residual_pull(group, weight, away, sizes, n_groups)
    largest = int(sizes.max())
    # |g|^2 / W, summed: the square of the averaging error and what the offset is too high by.
    drift = round_up(math.fsum((pull / divisors[:, None]).ravel()), largest + 8)
    whole = bool(np.all(weights == np.floor(weights)) and weights.sum() < 2.0**53)
    return Collapsed(
        means=means,
        weights=masses,
        group_of_point=group_of_point,
        offset=offset,
        offset_below=max(0.0, round_down(offset, 8) - drift),
        averaging=round_up(math.sqrt(drift)),
        weight_factor=1.0 if whole else 1.0 + (largest + 4) * 2.0 * UNIT,
    )


def _residual_pull(
    group: NDArray[np.int64],
    weight: NDArray[np.float64],
    away: NDArray[np.float64],
    sizes: NDArray[np.int64],
    n_groups: int,
) -> NDArray[np.float64]:
    """Upper bounds on the squares of the coordinates of ``g``, one row per group."""
    squared = np.empty((n_groups, away.shape[1]))
    for j, column in enumerate(away.T):
        tug = weight * column
        signed = np.abs(np.bincount(group, tug, minlength=n_groups))
        absolute = np.bincount(group, np.abs(tug), minlength=n_groups)
        squared[:, j] = (signed + (sizes + 4) * 2.0 * UNIT * absolute) ** 2
    return squared
