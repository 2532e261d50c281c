"""Presolve: steps from the original to the reduced problem, and their inverses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.constraint_model.base import Contradiction
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.errors import InputError
from certikmeans.presolve.feasibility import find_labels
from certikmeans.presolve.infeasibility_search import (
    InfeasibilityProof,
    explain_infeasible,
    find_contradiction,
    find_size_contradiction,
)
from certikmeans.presolve.postsolve import (
    Centering,
    FixedPenalty,
    PostsolveStep,
    ZeroWeightRemoval,
)
from certikmeans.presolve.reductions import (
    aggregate,
    build_model,
    must_link_groups,
    rotate_to_principal_axes,
    separate_fixed_penalty,
    split_complete_components,
)
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.arrays import iter_row_blocks
from certikmeans.problem.graph_builder import build_cannot_link_graph, edgeless_graph
from certikmeans.rounding import UNIT, round_up
from certikmeans.stop import StopSignal

# Coloring is NP-hard; a search that has not ended by then is reported as undecided.
FEASIBILITY_SECONDS = 60.0
# For reducing a proof of infeasibility, which is valid before.
EXPLANATION_SECONDS = 20.0

Labels = Ints


@final
@dataclass(frozen=True, slots=True, eq=False)
class PresolvedProblem:
    """The reduced problem, feasible labels of it, and the postsolve steps."""

    reduced: ReducedProblem
    feasible_labels: Labels | None  # (n_groups,); None if none were found in time
    group_of_point: (
        Labels  # (n_points,); n_groups or more for groups of weight 0, which are removed
    )
    center: Floats  # (n_features,)
    axes: Floats  # (n_features, n_dims)
    steps: tuple[PostsolveStep, ...]  # in the order of presolve

    def postsolve_labels(self, labels: Labels) -> Labels:
        """Labels of the original points, given labels of the groups."""
        for step in reversed(self.steps):
            labels = step.postsolve_labels(labels)
        return labels

    def postsolve_bound(self, value: float) -> float:
        """A lower bound for the original problem, given one for the reduced problem."""
        if math.isinf(value):
            return value
        value = max(0.0, value)
        for step in reversed(self.steps):
            value = step.postsolve_bound(value)
        return value

    def presolve_bound(self, target: float) -> float:
        """A bound on the reduced problem that implies ``target`` on the original one."""
        value = max(0.0, target - self.reduced.offset)
        margin = 1e-15 * max(abs(target), self.reduced.offset, 1e-290)
        while self.postsolve_bound(value + margin) < target:
            margin *= 4.0
        return value + margin

    def presolve_labels(self, labels: Labels) -> Labels:
        """Labels of the groups, given labels of the points that respect the must-links."""
        for step in self.steps:
            labels = step.presolve_labels(labels)
        return labels

    def presolve_centers(self, centers: Floats) -> Floats:
        """Centres in reduced coordinates."""
        for step in self.steps:
            centers = step.presolve_points(centers)
        return centers

    @property
    def group_representatives(self) -> Labels:
        """Smallest original row of every group."""
        n_points = len(self.group_of_point)
        first = np.empty(int(self.group_of_point.max()) + 1, dtype=np.int64)
        first[self.group_of_point[::-1]] = np.arange(
            n_points - 1, -1, -1
        )  # the last assignment counts
        return first[: self.reduced.n_groups]

    def with_pairs(self, must_link: Ints, cannot_link: Ints) -> PresolvedProblem | None:
        """The problem with more pairs, of original points of positive weight.

        None if a pair contradicts the others; otherwise feasibility is not decided. Coordinates
        stay as they are, so that warm starts of the parent remain valid.
        """
        if len(must_link) == 0 and len(cannot_link) == 0:
            return self
        before = self.reduced
        assert before.label_constraints.mergeable
        groups = must_link_groups(before.n_groups, self.group_of_point[must_link])
        links = groups[np.concatenate([before.graph.edges(), self.group_of_point[cannot_link]])]
        if (links[:, 0] == links[:, 1]).any():
            return None
        graph, row_of_group = _ordered_graph(groups, links)
        aggregated = aggregate(before.points, before.weights, row_of_group)
        try:
            constraints = before.label_constraints.merged(row_of_group, graph)
        except Contradiction:
            return None
        constraints, fixed = separate_fixed_penalty(constraints, before.n_clusters)
        offset = before.offset + aggregated.offset + max(0.0, fixed)
        reduced = ReducedProblem(
            aggregated.means, aggregated.weights, constraints, before.n_clusters, offset
        )
        n_left_out = int(self.group_of_point.max()) + 1 - before.n_groups
        rows = np.concatenate([row_of_group, reduced.n_groups + np.arange(n_left_out)])
        return PresolvedProblem(
            reduced,
            None,
            rows[self.group_of_point],
            self.center,
            self.axes,
            (*self.steps, *_penalty_step(fixed), aggregated.postsolve_step),
        )

    def with_feasible_labels(self, stop: StopSignal, seconds: float) -> PresolvedProblem | None:
        """Copy with feasible labels if found in time; None if the problem is infeasible."""
        found = find_labels(
            self.reduced.label_constraints,
            self.reduced.n_clusters,
            stop.with_time_limit(seconds),
            self.reduced.points,
        )
        return None if found.answer == "no" else replace(self, feasible_labels=found.labels)


def presolve(
    problem: Problem,
    stop: StopSignal,
    *,
    feasibility_seconds: float = FEASIBILITY_SECONDS,
    explanation_seconds: float = EXPLANATION_SECONDS,
) -> PresolvedProblem | InfeasibilityProof:
    """Aggregate, centre, rotate and order; or prove infeasibility.

    A search for feasible labels that takes longer than ``feasibility_seconds`` ends undecided;
    a proof that there are none is reduced for ``explanation_seconds``.

    Examples
    --------
    >>> problem = Problem.from_data(
    ...     [[0.0], [2.0], [9.0]], 2, must_link=[(0, 1)], cannot_link=[(1, 2)]
    ... )
    >>> done = presolve(problem, StopSignal())
    >>> done.reduced.n_groups, done.reduced.offset
    (2, 2.0)
    >>> done.postsolve_labels(done.feasible_labels)
    array([0, 0, 1])
    """
    groups = must_link_groups(problem.n_points, problem.must_link)
    contradiction = find_contradiction(problem, groups) or find_size_contradiction(problem, groups)
    if contradiction is not None:
        return contradiction
    groups, n_kept = _order_zero_weight_last(problem, groups)
    links, cliques = split_complete_components(n_kept, groups[problem.cannot_link])
    graph, group_of_point = _ordered_graph(groups, links, n_kept)
    if cliques:
        position = np.empty(n_kept, dtype=np.int64)
        position[groups] = group_of_point
        cliques = [position[one] for one in cliques]
    del groups
    constraints, fixed = build_model(problem, group_of_point, graph, cliques)

    centered, centering = _center_points(problem.points, problem.weights)
    aggregated = aggregate(centered, problem.weights, group_of_point)
    del centered  # as large as the data
    means, weights = aggregated.means[:n_kept], aggregated.weights[:n_kept]
    feasible = find_labels(
        constraints, problem.n_clusters, stop.with_time_limit(feasibility_seconds), means
    )
    if feasible.answer == "no":
        stop = stop.with_time_limit(explanation_seconds)
        return explain_infeasible(problem, group_of_point, feasible, stop)
    points, rotated = rotate_to_principal_axes(means, weights)
    steps: tuple[PostsolveStep, ...] = (
        *_penalty_step(fixed),
        centering,
        aggregated.postsolve_step,
        rotated,
    )
    if n_kept < len(aggregated.weights):
        weightless = rotated.presolve_points(aggregated.means[n_kept:])
        steps = (*steps, ZeroWeightRemoval(points, weights, weightless))
    offset = aggregated.offset + max(0.0, fixed)
    reduced = ReducedProblem(points, weights, constraints, problem.n_clusters, offset)
    return PresolvedProblem(
        reduced, feasible.labels, group_of_point, centering.center, rotated.axes, steps
    )


def _penalty_step(fixed: float) -> tuple[FixedPenalty, ...]:
    return () if fixed == 0.0 else (FixedPenalty(fixed),)


def _order_zero_weight_last(problem: Problem, groups: Labels) -> tuple[Labels, int]:
    """Number groups of weight 0 after all others; also returns the number of the others.

    A cannot-link to one of them would restrict others although it costs nothing: an error.
    """
    n_groups = int(groups.max()) + 1
    if problem.weights.all():
        return groups, n_groups
    weightless = np.bincount(groups, problem.weights, n_groups) == 0.0
    in_cannot_link = weightless[groups[problem.cannot_link]]
    if in_cannot_link.any():
        row = int(np.flatnonzero(in_cannot_link.any(axis=1))[0])
        pair = problem.cannot_link[row]
        raise InputError(
            f"cannot_link: pair ({pair[0]}, {pair[1]}) names sample "
            f"{pair[int(np.argmax(in_cannot_link[row]))]}, which has weight 0 "
            "and is not linked to a sample with weight",
            hint="the pair restricts other samples, so it cannot be left out: give the sample a "
            "positive weight, or remove its cannot-links",
        )
    position = np.empty(n_groups, dtype=np.int64)
    position[np.argsort(weightless, kind="stable")] = np.arange(n_groups)
    return position[groups], int(n_groups - weightless.sum())


def _ordered_graph(
    groups: Labels, links: Ints, n_kept: int | None = None
) -> tuple[CannotLinkGraph, Labels]:
    """The cannot-link graph of the groups, and the row of every member of a group in it.

    Groups from ``n_kept`` on have no link; they are not in the graph and keep their position.
    """
    n_groups = int(groups.max()) + 1
    n_kept = n_groups if n_kept is None else n_kept
    if len(links) == 0:  # every group keeps its position
        return edgeless_graph(n_kept), groups
    graph, order = build_cannot_link_graph(n_kept, links)
    position = np.arange(n_groups)
    position[order] = np.arange(n_kept)
    return graph, position[groups]


def _center_points(points: Floats, weights: Floats) -> tuple[Floats, Centering]:
    """Shift the weighted mean to the origin; also the weighted norm of the rounding.

    Any shift is exact in real arithmetic, and a difference is rounded once, so each
    coordinate errs by at most ``UNIT`` of itself: data far from the origin lose no accuracy.
    """
    total, mass = np.zeros(points.shape[1]), 0.0
    for rows in iter_row_blocks(points):
        total += np.sum(weights[rows, None] * points[rows], axis=0)
        mass += float(np.sum(weights[rows]))
    center = total / mass
    centered, square = np.empty_like(points), 0.0
    for rows in iter_row_blocks(points):
        centered[rows] = points[rows] - center
        square += float(np.sum(weights[rows, None] * centered[rows] * centered[rows]))
    norm = math.sqrt(square)
    return centered, Centering(center, round_up(2.0 * UNIT * round_up(norm, 2 * points.size)))
