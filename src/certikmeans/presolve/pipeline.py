"""Presolve: a row of steps from the problem as stated to the reduced one, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.graphs import build_apart_graph, edgeless_graph
from certikmeans.presolve.colouring import find_colouring
from certikmeans.presolve.infeasible import (
    InfeasibilityProof,
    explain_uncolourable,
    find_contradiction,
)
from certikmeans.presolve.must_link import collapse, must_link_groups
from certikmeans.presolve.rotation import turn_to_principal_axes
from certikmeans.presolve.steps import AbstractRestore, LeftOut, Shifted
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.graph import ApartGraph
from certikmeans.problem.rules import CannotLinks
from certikmeans.problem.tables import row_blocks
from certikmeans.rounding import UNIT, round_up
from certikmeans.stop import StopSignal

# Colouring is NP-hard; a search that has not ended by then is called undecided.
FEASIBILITY_SECONDS = 60.0
# A proof is valid at once; this long it is made smaller.
EXPLANATION_SECONDS = 20.0

Labels = NDArray[np.int64]
Pairs = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Presolved:
    """The reduced problem, a proper labelling of it, and the inverses of every step."""

    reduced: ReducedProblem
    witness: Labels | None  # (n_groups,); None: no labelling found in time
    row_of_point: Labels  # (n_points,); from n_groups on: weighs nothing, and was left out
    centre: NDArray[np.float64]  # (n_features,)
    axes: NDArray[np.float64]  # (n_features, n_axes)
    steps: tuple[AbstractRestore, ...]  # in the order they were taken

    def restore_labels(self, labels: Labels) -> Labels:
        """Labels of the original points, given labels of the groups."""
        for step in reversed(self.steps):
            labels = step.labels(labels)
        return labels

    def restore_bound(self, value: float) -> float:
        """A lower bound for the stated problem, given one for the reduced problem."""
        if math.isinf(value):
            return value
        value = max(0.0, value)
        for step in reversed(self.steps):
            value = step.bound(value)
        return value

    def reduce_bound(self, target: float) -> float:
        """A bound on the reduced problem that is good for ``target`` on the stated one."""
        value = max(0.0, target - self.reduced.offset)
        margin = 1e-15 * max(abs(target), self.reduced.offset, 1e-290)
        while self.restore_bound(value + margin) < target:
            margin *= 4.0
        return value + margin

    def reduce_labels(self, labels: Labels) -> Labels:
        """Labels of the groups, given labels of the points that respect the must-links."""
        for step in self.steps:
            labels = step.reduced_labels(labels)
        return labels

    def reduce_centers(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centres in reduced coordinates."""
        for step in self.steps:
            centers = step.reduced_points(centers)
        return centers

    @property
    def first_points(self) -> Labels:
        """Smallest original row of every group."""
        n_points = len(self.row_of_point)
        first = np.empty(int(self.row_of_point.max()) + 1, dtype=np.int64)
        first[self.row_of_point[::-1]] = np.arange(n_points - 1, -1, -1)  # the last one stands
        return first[: self.reduced.n_groups]

    def merged(self, together: Pairs, apart: Pairs) -> Presolved | None:
        """The same with more pairs, of original points that weigh something.

        None: a pair contradicts the others. Whether there is a proper labelling is left open.
        Coordinates stay as they are, so that what is known about the larger part still fits.
        """
        if len(together) == 0 and len(apart) == 0:
            return self
        before = self.reduced
        assert before.rules.only_apart  # others would be lost; whoever branches on pairs refuses
        groups = must_link_groups(before.n_groups, self.row_of_point[together])
        links = groups[np.concatenate([before.graph.edges(), self.row_of_point[apart]])]
        if (links[:, 0] == links[:, 1]).any():
            return None
        graph, row_of_group = _ordered_graph(groups, links)
        collapsed = collapse(before.points, before.weights, row_of_group)
        offset = before.offset + collapsed.offset
        reduced = _frozen(
            ReducedProblem(
                collapsed.means, collapsed.weights, CannotLinks(graph), before.n_clusters, offset
            )
        )
        n_left_out = int(self.row_of_point.max()) + 1 - before.n_groups
        rows = np.concatenate([row_of_group, reduced.n_groups + np.arange(n_left_out)])
        return Presolved(
            reduced,
            None,
            rows[self.row_of_point],
            self.centre,
            self.axes,
            (*self.steps, collapsed.restore),
        )

    def coloured(self, stop: StopSignal, seconds: float) -> Presolved | None:
        """The same with a proper labelling, if one is found in time; None: there is none."""
        found = find_colouring(self.reduced.graph, self.reduced.n_clusters, stop.within(seconds))
        return None if found.answer == "no" else replace(self, witness=found.labels)


def presolve(
    problem: Problem,
    stop: StopSignal,
    *,
    feasibility_seconds: float = FEASIBILITY_SECONDS,
    explanation_seconds: float = EXPLANATION_SECONDS,
) -> Presolved | InfeasibilityProof:
    """Collapse, centre, turn, order; or show why no labelling can exist.

    A search for a proper labelling that takes longer than ``feasibility_seconds`` is called
    undecided; a proof that there is none is made smaller for ``explanation_seconds``.

    Examples
    --------
    >>> problem = Problem.from_data(
    ...     [[0.0], [2.0], [9.0]], 2, must_link=[(0, 1)], cannot_link=[(1, 2)]
    ... )
    >>> done = presolve(problem, StopSignal())
    >>> done.reduced.n_groups, done.reduced.offset
    (2, 2.0)
    >>> done.restore_labels(done.witness)
    array([0, 0, 1])
    """
    groups = must_link_groups(problem.n_points, problem.must_link)
    contradiction = find_contradiction(problem, groups)
    if contradiction is not None:
        return contradiction
    groups, n_kept = _weightless_last(problem, groups)
    graph, row_of_point = _ordered_graph(groups, groups[problem.cannot_link], n_kept)
    del groups

    colouring = find_colouring(graph, problem.n_clusters, stop.within(feasibility_seconds))
    if colouring.answer == "no":
        return explain_uncolourable(
            problem,
            row_of_point,
            graph,
            problem.n_clusters,
            colouring.component,
            stop.within(explanation_seconds),
            witness=colouring.witness,
        )

    centred, shifted = _centre(problem.points, problem.weights)
    collapsed = collapse(centred, problem.weights, row_of_point)
    del centred  # as large as the data: make room for the next one
    means, weights = collapsed.means[:n_kept], collapsed.weights[:n_kept]
    points, turned = turn_to_principal_axes(means, weights)
    steps: tuple[AbstractRestore, ...] = (shifted, collapsed.restore, turned)
    if n_kept < len(collapsed.weights):
        weightless = turned.reduced_points(collapsed.means[n_kept:])
        steps = (*steps, LeftOut(points, weights, weightless))
    reduced = _frozen(
        ReducedProblem(points, weights, CannotLinks(graph), problem.n_clusters, collapsed.offset)
    )
    return Presolved(reduced, colouring.labels, row_of_point, shifted.centre, turned.axes, steps)


def _frozen(reduced: ReducedProblem) -> ReducedProblem:
    for array in (reduced.points, reduced.weights):
        array.flags.writeable = False
    return reduced


def _weightless_last(problem: Problem, groups: Labels) -> tuple[Labels, int]:
    """Number groups that weigh nothing behind all others; also how many there are of those.

    A cannot-link to one of them would restrict others although it costs nothing: refused.
    """
    n_groups = int(groups.max()) + 1
    if problem.weights.all():
        return groups, n_groups
    weightless = np.bincount(groups, problem.weights, n_groups) == 0.0
    touched = weightless[groups[problem.cannot_link]]
    if touched.any():
        row = int(np.flatnonzero(touched.any(axis=1))[0])
        pair = problem.cannot_link[row]
        raise InputError(
            f"cannot_link: pair ({pair[0]}, {pair[1]}) names sample "
            f"{pair[int(np.argmax(touched[row]))]}, which has weight 0 "
            "and is not linked to a sample with weight",
            hint="the pair restricts other samples, so it cannot be left out: give the sample a "
            "positive weight, or remove its cannot-links",
        )
    place = np.empty(n_groups, dtype=np.int64)
    place[np.argsort(weightless, kind="stable")] = np.arange(n_groups)
    return place[groups], int(n_groups - weightless.sum())


def _ordered_graph(
    groups: Labels, links: Pairs, n_kept: int | None = None
) -> tuple[ApartGraph, Labels]:
    """The cannot-link graph of the groups, and the row of every member of a group in it.

    Groups from ``n_kept`` on have no link; they are no part of the graph and keep their place.
    """
    n_groups = int(groups.max()) + 1
    n_kept = n_groups if n_kept is None else n_kept
    if len(links) == 0:  # every group keeps its place
        return edgeless_graph(n_kept), groups
    graph, order = build_apart_graph(n_kept, links)
    position = np.arange(n_groups)
    position[order] = np.arange(n_kept)
    return graph, position[groups]


def _centre(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Shifted]:
    """Shift the weighted mean to the origin; also the weighted norm of the rounding.

    Any shift is exact in real arithmetic, and a difference is rounded once, so each
    coordinate errs by at most ``UNIT`` of itself: data far from the origin lose nothing.
    """
    total, mass = np.zeros(points.shape[1]), 0.0
    for rows in row_blocks(points):
        total += np.sum(weights[rows, None] * points[rows], axis=0)
        mass += float(np.sum(weights[rows]))
    centre = total / mass
    centred, square = np.empty_like(points), 0.0
    for rows in row_blocks(points):
        centred[rows] = points[rows] - centre
        square += float(np.sum(weights[rows, None] * centred[rows] * centred[rows]))
    norm = math.sqrt(square)
    return centred, Shifted(centre, round_up(2.0 * UNIT * round_up(norm, 2 * points.size)))
