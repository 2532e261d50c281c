"""Presolve: from the problem as stated to the reduced one, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.presolve.cannot_link import build_apart_graph
from certikmeans.presolve.colouring import find_colouring
from certikmeans.presolve.infeasible import (
    InfeasibilityProof,
    explain_uncolourable,
    find_contradiction,
)
from certikmeans.presolve.lift import BoundLift
from certikmeans.presolve.must_link import collapse, must_link_groups
from certikmeans.presolve.rotation import turn_to_principal_axes
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.rounding import UNIT, round_up
from certikmeans.stop import StopSignal

# Colouring is NP-hard; a search that has not ended by then is called undecided.
FEASIBILITY_SECONDS = 60.0
# A proof is valid at once; this long it is made smaller.
EXPLANATION_SECONDS = 20.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Presolved:
    """The reduced problem, a proper labelling of it, and the inverses of every step."""

    reduced: ReducedProblem
    witness: NDArray[np.int64] | None  # (n_groups,); None: no labelling found in time
    row_of_point: NDArray[np.int64]  # (n_points,)
    centre: NDArray[np.float64]  # (n_features,)
    axes: NDArray[np.float64]  # (n_features, n_axes)
    lift: BoundLift

    def restore_labels(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels of the original points, given labels of the groups."""
        return labels[self.row_of_point]

    def restore_bound(self, value: float) -> float:
        """A lower bound for the stated problem, given one for the reduced problem."""
        return self.lift.lower(value)

    def reduce_bound(self, target: float) -> float:
        """A bound on the reduced problem that is good for ``target`` on the stated one."""
        value = max(0.0, target - self.reduced.offset)
        margin = 1e-15 * max(abs(target), self.reduced.offset, 1e-290)
        while self.restore_bound(value + margin) < target:
            margin *= 4.0
        return value + margin

    def reduce_labels(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels of the groups, given labels of the points that respect the must-links."""
        reduced = np.empty(self.reduced.n_groups, dtype=np.int64)
        reduced[self.row_of_point] = labels
        return reduced

    def reduce_centers(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centres in reduced coordinates."""
        return np.ascontiguousarray((centers - self.centre) @ self.axes)


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
    graph, order = build_apart_graph(int(groups.max()) + 1, groups[problem.cannot_link])
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    row_of_point = position[groups]

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

    centre, centred, centring = _centre(problem.points, problem.weights)
    collapsed = collapse(centred, problem.weights, row_of_point)
    turned = turn_to_principal_axes(collapsed.means, collapsed.weights)
    for array in (turned.points, collapsed.weights):
        array.flags.writeable = False
    reduced = ReducedProblem(
        turned.points, collapsed.weights, graph, problem.n_clusters, collapsed.offset
    )
    lift = BoundLift(
        centring=centring,
        averaging=collapsed.averaging,
        turning=turned.turning,
        stretch=turned.stretch,
        weight_factor=collapsed.weight_factor,
        offset=collapsed.offset_below,
    )
    return Presolved(reduced, colouring.labels, row_of_point, centre, turned.axes, lift)


def _centre(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Shift the weighted mean to the origin; also the weighted norm of the rounding.

    Any shift is exact in real arithmetic, and a difference is rounded once, so each
    coordinate errs by at most ``UNIT`` of itself: data far from the origin lose nothing.
    """
    centre = np.average(points, axis=0, weights=weights)
    centred = points - centre
    norm = math.sqrt(float(np.sum(weights[:, None] * centred * centred)))
    return centre, centred, round_up(2.0 * UNIT * round_up(norm, 2 * points.size))
