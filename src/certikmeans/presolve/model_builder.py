"""Constraints of the reduced groups, from those of the points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets, sets_of_columns
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.model import ConstraintModel, LabelConstraints
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.problem import Problem
from certikmeans.problem.arrays import distinct
from certikmeans.problem.data import size_limits

Ints = NDArray[np.int64]

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


def _separated(
    pairs: Ints, graph: CannotLinkGraph, family: CannotLinkSets | None
) -> NDArray[np.bool_]:
    """Whether the groups of each pair, ``first < second``, have a cannot-link or a common set."""
    n = np.int64(graph.n_vertices)
    edges = graph.edges()
    found = np.isin(pairs[:, 0] * n + pairs[:, 1], edges[:, 0] * n + edges[:, 1])
    if family is not None:
        for row in np.flatnonzero(np.diff(family.group_indptr)[pairs].all(axis=1)):
            found[row] |= bool(np.isin(pairs[row, 1], family.excluded_partners(int(pairs[row, 0]))))
    return found
