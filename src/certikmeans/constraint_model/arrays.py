"""All constraints between groups as plain arrays, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certikmeans.constraint_model.model import LabelConstraints


class ConstraintArrays(NamedTuple):
    """Pairs, sets and sizes over ``n`` groups; arrays of absent kinds are empty.

    A pair is listed at both ends. Its bonus for being together is ``-inf`` for a hard cannot-link,
    negative for a soft cannot-link and positive for a soft must-link.
    """

    pair_indptr: NDArray[np.int64]  # (n + 1,)
    pair_neighbors: NDArray[np.int32]  # ascending within a group
    pair_bonus: NDArray[np.float64]
    set_indptr: NDArray[np.int64]  # (n_sets + 1,)
    set_members: NDArray[np.int32]  # at most one of a set in every cluster
    group_set_indptr: NDArray[np.int64]  # (n + 1,)
    group_sets: NDArray[np.int32]
    demand: NDArray[np.float64]  # (n,), or empty: no limits
    size_limits: NDArray[np.float64]  # (2,): lowest and highest sum of the demands of a cluster
    cut_of: NDArray[np.int32]  # (n,): size cut of every group or -1; empty without cuts
    cut_free: NDArray[np.float64]  # (n_cuts,): members that are free
    cut_price: NDArray[np.float64]  # (n_cuts,): price of every further one, >= 0


def size_bounds(
    label_constraints: LabelConstraints, limits: tuple[float, float] | None = None
) -> NDArray[np.float64]:
    """Limits on the sum of the demands of a cluster, for kernels.

    Parameters
    ----------
    label_constraints : LabelConstraints
        Constraints between reduced groups.
    limits : (lower, upper), optional
        Limits of the cluster; by default the smallest lower and the largest upper limit of all
        clusters. They are widened by the rounding error of sums of demands, so that every labelling
        accepted by `SizeLimits.satisfied_by` has admissible clusters.
    """
    sizes = label_constraints.sizes
    if sizes is None:
        return np.array([-np.inf, np.inf])
    low, high = (sizes.lower.min(), sizes.upper.max()) if limits is None else limits
    slack = 2.0 * sizes.tolerance  # that of the sums compared, and that of the comparison
    return np.array([max(low - slack, 0.0), high + slack])


def constraint_arrays(label_constraints: LabelConstraints) -> ConstraintArrays:
    """Arrays of all constraints on one cluster, with the loosest limits of its size."""
    n = label_constraints.cannot_links.n_vertices
    indptr, neighbors, bonus = _pairs(label_constraints, n)
    sets, sizes = label_constraints.sets, label_constraints.sizes
    if sets is None:
        nothing = np.empty(0, dtype=np.int32)
        set_arrays = np.zeros(1, dtype=np.int64), nothing, np.zeros(n + 1, dtype=np.int64), nothing
    else:
        set_arrays = (
            sets.indptr, sets.members.astype(np.int32), sets.group_indptr,
            sets.group_sets.astype(np.int32),
        )  # fmt: skip
    demand = np.empty(0) if sizes is None else np.ascontiguousarray(sizes.demand)
    bounds = size_bounds(label_constraints)
    no_cuts = np.empty(0, dtype=np.int32), np.empty(0), np.empty(0)
    return ConstraintArrays(indptr, neighbors, bonus, *set_arrays, demand, bounds, *no_cuts)


def _pairs(
    label_constraints: LabelConstraints, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Compressed rows of the pairs; one that is hard and soft is hard."""
    graph, soft = label_constraints.cannot_links, label_constraints.soft
    if soft is None:
        neighbors = graph.neighbors.astype(np.int32)
        return graph.indptr.astype(np.int64), neighbors, np.full(len(neighbors), -np.inf)
    hard = graph.edges()
    ends = np.concatenate([hard, soft.pairs])
    bonus = np.concatenate([np.full(len(hard), -np.inf), soft.bonus])
    _, first = np.unique(ends[:, 0] * np.int64(n) + ends[:, 1], return_index=True)
    ends, bonus = ends[first], bonus[first]
    tails = np.concatenate([ends[:, 0], ends[:, 1]])
    heads = np.concatenate([ends[:, 1], ends[:, 0]])
    order = np.lexsort((heads, tails))
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=n), out=indptr[1:])
    return indptr, heads[order].astype(np.int32), np.concatenate([bonus, bonus])[order]
