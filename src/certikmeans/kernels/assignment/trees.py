"""Dynamic programming on trees: messages from the leaves up, labels from the root down."""

import numpy as np

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def pass_message(
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0
    vertex,  # IN
    parent,  # IN
):
    """Add to each label of ``parent`` the least cost of ``vertex`` among the other labels.

    That is its best value, except for the label where the best sits, which gets the second best:
    O(n_labels) instead of a minimum per pair of labels.
    """
    best, second, where = np.inf, np.inf, -1
    for k in range(unary.shape[1]):
        value = unary[vertex, k]
        if value < best:
            best, second, where = value, best, k
        elif value < second:
            second = value
    for k in range(unary.shape[1]):
        unary[parent, k] += second if k == where else best


@njit(cache=True, nogil=True)
def cheapest_label(
    costs,  # IN  (n_labels,) float64
    taken,  # IN  a label that may not be used, or -1
):
    """Lowest label of least cost other than ``taken``; finite only if some cost is."""
    best, where = np.inf, -1
    for k in range(costs.size):
        if k != taken and (where < 0 or costs[k] < best):
            best, where = costs[k], k
    return where


@njit(cache=True, nogil=True)
def solve_tree(
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0, inf = forbidden; becomes messages
    parents,  # IN   (n_vertices,) int64 parent's number plus ``first``, -1 for the root; ascending
    first,  # IN   number of the root in ``parents``
    labels,  # OUT  (n_vertices,) int64 a cheapest proper labelling
):
    """Least cost of a proper labelling of a tree; inf if there is none.

    Only sums and minima of nonnegative numbers: the value returned is at most the rounded cost of
    every proper labelling, and each cost passes through fewer than ``n_vertices`` additions.
    """
    n = unary.shape[0]
    for v in range(n - 1, 0, -1):
        pass_message(unary, v, parents[v] - first)
    nothing = parents[0]
    for v in range(n):
        taken = labels[parents[v] - first] if v > 0 else nothing
        labels[v] = cheapest_label(unary[v], taken)
    return unary[0, labels[0]]
