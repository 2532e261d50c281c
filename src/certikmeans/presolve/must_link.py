"""Must-link collapse: each must-link component becomes one weighted point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.graph.union import number_components
from certikmeans.kernels.groups import Groups, cost_inside, fill_groups
from certikmeans.presolve.steps import Joined
from certikmeans.problem.tables import row_blocks
from certikmeans.rounding import UNIT, round_down, round_up


def must_link_groups(n_points: int, must_link: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the must-link components by their smallest member.

    >>> must_link_groups(5, np.array([[1, 4]]))
    array([0, 1, 2, 3, 1])
    """
    if len(must_link) == 0:
        return np.arange(n_points)
    component = np.empty(n_points, dtype=np.int64)
    number_components(must_link, component)
    return component


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
    n_points, n_features = points.shape
    if n_groups == n_points:
        means, masses = np.empty((n_groups, n_features)), np.empty(n_groups)
        means[group_of_point], masses[group_of_point] = points, weights
        return Collapsed(means, masses, group_of_point, 0.0, 0.0, 0.0, 1.0)

    groups = Groups(
        means=np.zeros((n_groups, n_features)),
        masses=np.zeros(n_groups),
        sizes=np.zeros(n_groups, dtype=np.int64),
    )
    fill_groups(points, weights, group_of_point, groups)
    offset, drift = cost_inside(points, weights, group_of_point, groups)
    largest = int(groups.sizes.max())
    # |g|^2 / W, summed: the square of the averaging error and what the offset is too high by.
    drift = round_up(drift, largest + 12)
    whole = weights.sum() < 2.0**53 and all(
        np.array_equal(weights[rows], np.floor(weights[rows])) for rows in row_blocks(weights)
    )
    return Collapsed(
        means=groups.means,
        weights=groups.masses,
        group_of_point=group_of_point,
        offset=offset,
        offset_below=max(0.0, round_down(offset, 12) - drift),
        averaging=round_up(math.sqrt(drift)),
        weight_factor=1.0 if whole else 1.0 + (largest + 4) * 2.0 * UNIT,
    )
