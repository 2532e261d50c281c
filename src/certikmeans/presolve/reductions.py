"""Reductions of presolve: must-link aggregation, constraints of the groups, principal axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from certikmeans._types import Floats, Ints, Mask
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets, sets_of_columns
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.model import ConstraintModel, LabelConstraints
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.kernels.costs import GroupMeans, aggregate_groups, within_group_cost
from certikmeans.kernels.graph import number_components
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.presolve.postsolve import MustLinkMerge, Rotation
from certikmeans.problem import Problem
from certikmeans.problem.arrays import column_ranges, distinct, iter_row_blocks
from certikmeans.problem.data import size_limits
from certikmeans.rounding import UNIT, round_down, round_up


def must_link_groups(n_points: int, must_link: Ints) -> Ints:
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
class AggregatedPoints:
    """Must-link groups as weighted points. Labels of points are ``labels[group_of_point]``."""

    means: Floats  # (n_groups, n_features)
    weights: Floats  # (n_groups,)
    group_of_point: Ints  # (n_points,)
    offset: float  # sum of squares inside the groups, computed
    offset_lower_bound: float  # at most its exact value
    mean_error: float  # at least the weighted distance of the means from the exact ones
    weight_factor: float  # at least the largest ratio of a computed to an exact weight

    @property
    def postsolve_step(self) -> MustLinkMerge:
        """The inverse step."""
        return MustLinkMerge(
            self.group_of_point,
            len(self.weights),
            self.offset_lower_bound,
            self.mean_error,
            self.weight_factor,
        )


def aggregate(points: Floats, weights: Floats, group_of_point: Ints) -> AggregatedPoints:
    """Replace every must-link component by its mean, weighted by its members.

    A feasible labelling never splits a component, so this changes the cost by the constant
    ``offset`` (paper, Lemma 3 and Theorem 1). The computed mean ``c`` of a group is not
    the exact one, ``m``; with ``W`` the group's weight and ``g = sum w_i (x_i - c)``,

        m - c = g / W   and   sum w_i |x_i - m|^2 = sum w_i |x_i - c|^2 - |g|^2 / W,

    and ``g``, recomputed from the points, bounds both errors.

    Examples
    --------
    >>> two = aggregate(np.array([[0.], [2.], [9.]]), np.ones(3), np.array([0, 0, 1]))
    >>> two.means.ravel(), two.weights, two.offset
    (array([1., 9.]), array([2., 1.]), 2.0)
    """
    n_groups = int(group_of_point.max()) + 1
    n_points, n_features = points.shape
    if n_groups == n_points:
        means, masses = np.empty((n_groups, n_features)), np.empty(n_groups)
        means[group_of_point], masses[group_of_point] = points, weights
        return AggregatedPoints(means, masses, group_of_point, 0.0, 0.0, 0.0, 1.0)

    groups = GroupMeans(
        means=np.zeros((n_groups, n_features)),
        masses=np.zeros(n_groups),
        sizes=np.zeros(n_groups, dtype=np.int64),
    )
    aggregate_groups(points, weights, group_of_point, groups)
    offset, drift = within_group_cost(points, weights, group_of_point, groups)
    largest = int(groups.sizes.max())
    # Sum of |g|^2 / W: the square of the averaging error, and the excess of the offset.
    drift = round_up(drift, largest + 12)
    whole = weights.sum() < 2.0**53 and all(
        np.array_equal(weights[rows], np.floor(weights[rows])) for rows in iter_row_blocks(weights)
    )
    return AggregatedPoints(
        means=groups.means,
        weights=groups.masses,
        group_of_point=group_of_point,
        offset=offset,
        offset_lower_bound=max(0.0, round_down(offset, 12) - drift),
        mean_error=round_up(math.sqrt(drift)),
        weight_factor=1.0 if whole else 1.0 + (largest + 4) * 2.0 * UNIT,
    )


# Principal axes: boxes fit the data, and null directions are removed.


def rotate_to_principal_axes(points: Floats, weights: Floats) -> tuple[Floats, Rotation]:
    """Rotate centred points to their weighted principal axes, largest first.

    Distances do not change, except that directions in which the points do not differ by more
    than rounding are dropped: that lowers distances, so bounds remain valid.
    At least one axis is kept.

    Examples
    --------
    >>> points, rotated = rotate_to_principal_axes(np.array([[-1., -1.], [1., 1.]]), np.ones(2))
    >>> np.round(np.abs(points), 6)
    array([[1.414214],
           [1.414214]])
    """
    n_features = points.shape[1]
    with one_blas_thread():  # products of blocks: 100 times slower with two on a busy machine
        axes = _principal_axes(points, weights)
        rotated = np.ascontiguousarray(points @ axes)
    n_dims = axes.shape[1]
    square = 0.0
    for rows in iter_row_blocks(points):
        square += float(np.sum(weights[rows, None] * points[rows] * points[rows]))
    norm = round_up(math.sqrt(square), 2 * points.size)
    # |axes^T axes - I|_F, with the rounding of its own evaluation, bounds |axes|_2^2 - 1.
    defect = float(np.linalg.norm(axes.T @ axes - np.eye(n_dims)))
    defect = round_up(defect + (n_features + 4) * 2.0 * UNIT * (n_dims + 1))
    stretch = round_up(math.sqrt(1.0 + defect))
    # |fl(xQ) - xQ| <= (d + 2) UNIT |x| | |Q| |_F, and | |Q| |_F <= sqrt(axes) * stretch.
    rounding_error = round_up((n_features + 2) * 2.0 * UNIT * math.sqrt(n_dims) * stretch * norm)
    return rotated, Rotation(axes, rounding_error, stretch)


def _principal_axes(points: Floats, weights: Floats) -> Floats:
    low, high = column_ranges(points)
    scale, heaviest = float(max(-low.min(), high.max())), float(weights.max())
    if scale == 0.0:
        return np.eye(points.shape[1], 1)

    def scaled(rows: slice) -> Floats:
        return points[rows] * (np.sqrt(weights[rows] / heaviest)[:, None] / scale)

    if points.shape[1] <= points.shape[0]:
        gram = sum(scaled(rows).T @ scaled(rows) for rows in iter_row_blocks(points))
        variances, axes = np.linalg.eigh(gram)
        variances, axes = variances[::-1], axes[:, ::-1]
    else:
        _, singular, right = np.linalg.svd(scaled(slice(None)), full_matrices=False)
        variances, axes = singular**2, right.T
    # The covariance is known to rounding only, so smaller variances are noise in `variances`.
    squares = np.zeros(axes.shape[1])
    for rows in iter_row_blocks(points):
        squares += np.sum((scaled(rows) @ axes) ** 2, axis=0)
    spread = np.sqrt(squares)
    noise = 8.0 * points.shape[1] * UNIT * math.sqrt(float(max(variances[0], 0.0)))
    kept = np.flatnonzero(spread > noise)
    if len(kept) == 0:
        kept = np.array([0])
    axes = axes[:, kept]
    largest = np.argmax(np.abs(axes), axis=0)
    signs = np.where(axes[largest, np.arange(axes.shape[1])] < 0.0, -1.0, 1.0)
    return np.ascontiguousarray(axes * signs)


# Complete components of cannot-links become sets if they have more edges than a spanning forest by
# at least this many in all: pricing by forests handles a few, and sets handle any number.
MIN_EXTRA_EDGES = 40


def split_complete_components(n_groups: int, links: Ints) -> tuple[Ints, list[Ints]]:
    """Separate the components of cannot-links in which every two groups are linked.

    Returns the other links, and the groups of every complete component of three or more.

    >>> links, sets = split_complete_components(12, np.array([[0, 1]]))
    >>> len(links), sets
    (1, [])
    """
    if len(links) < MIN_EXTRA_EDGES:
        return links, []
    ends = np.sort(links, axis=1)
    key = distinct(ends[:, 0] * np.int64(n_groups) + ends[:, 1])
    ends = np.stack([key // n_groups, key % n_groups], axis=1)
    matrix = coo_array((np.ones(len(ends), dtype=np.int8), ends.T), shape=(n_groups, n_groups))
    n_components, component = connected_components(matrix, directed=False)
    sizes = np.bincount(component, minlength=n_components)
    n_edges = np.bincount(component[ends[:, 0]], minlength=n_components)
    complete = (sizes >= 3) & (n_edges == sizes * (sizes - 1) // 2)
    if int((n_edges - sizes + 1)[complete].sum()) < MIN_EXTRA_EDGES:
        return links, []
    order = np.argsort(component, kind="stable")
    parts = np.split(order, np.cumsum(sizes)[:-1])
    sets = [parts[c].astype(np.int64) for c in np.flatnonzero(complete)]
    return ends[~complete[component[ends[:, 0]]]], sets


def build_model(
    problem: Problem, row_of_point: Ints, graph: CannotLinkGraph, cliques: list[Ints]
) -> tuple[LabelConstraints, float]:
    """Model of all constraints between reduced groups; ``cliques`` are sets of rows.

    Returns the penalty that every labelling pays, too: it is not in the model.
    """
    n_groups = graph.n_vertices
    sets = [row_of_point[rows] for rows in sets_of_columns(problem.cannot_link_groups)]
    model = ConstraintModel.of(
        graph,
        CannotLinkSets.of(n_groups, [*sets, *cliques]),
        _size_limits(problem, row_of_point, n_groups),
        _soft_pairs(problem, row_of_point, n_groups),
    )
    return separate_fixed_penalty(model, problem.n_clusters)


def _size_limits(problem: Problem, row_of_point: Ints, n_groups: int) -> SizeLimits | None:
    if not problem.has_sizes:
        return None
    return size_limits(problem).merged(row_of_point, n_groups)


def _soft_pairs(problem: Problem, row_of_point: Ints, n_groups: int) -> SoftPairs | None:
    if not problem.has_soft_pairs:
        return None
    must, cannot = problem.soft_must_link, problem.soft_cannot_link
    pairs = row_of_point[np.concatenate([must.pairs, cannot.pairs])]
    bonus = np.concatenate([must.penalties, -cannot.penalties])
    constant = math.fsum(must.penalties.tolist())
    return SoftPairs.of(n_groups, pairs, bonus, constant, 2.0**-52 * constant)


def separate_fixed_penalty(
    constraints: LabelConstraints, n_clusters: int
) -> tuple[LabelConstraints, float]:
    """Separate the penalty that every labelling pays: returns the rest, and a lower bound on it.

    Groups with a cannot-link or in a common set are never together. With one cluster all are.
    """
    soft = constraints.soft
    if soft is None:
        return constraints, 0.0
    graph, family = constraints.cannot_links, constraints.sets
    if n_clusters == 1:
        everything = SoftPairs.of(
            1, np.zeros_like(soft.pairs), soft.bonus, soft.constant, soft.error
        )
        left, fixed = None, 0.0
        if everything is not None:
            left, fixed = everything.split_fixed(np.zeros(0, dtype=np.bool_))
    else:
        left, fixed = soft.split_fixed(_separated(soft.pairs, graph, family))
    return ConstraintModel.of(graph, family, constraints.sizes, left), fixed


def _separated(pairs: Ints, graph: CannotLinkGraph, family: CannotLinkSets | None) -> Mask:
    """Whether the groups of each pair, ``first < second``, have a cannot-link or a common set."""
    n = np.int64(graph.n_vertices)
    edges = graph.edges()
    found = np.isin(pairs[:, 0] * n + pairs[:, 1], edges[:, 0] * n + edges[:, 1])
    if family is not None:
        for row in np.flatnonzero(np.diff(family.group_indptr)[pairs].all(axis=1)):
            found[row] |= bool(np.isin(pairs[row, 1], family.excluded_partners(int(pairs[row, 0]))))
    return found
