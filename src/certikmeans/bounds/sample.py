"""The sample bound: sum of the least distances of points to the boxes of the centres.

Also the cost of a set about one centre in a box, which other bounds use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from certikmeans._types import Floats, Mask
from certikmeans.assignment import AbstractAssigner
from certikmeans.bounds.assignment_fixing import AssignmentFixing
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.kernels.box_costs import box_costs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import LeafProof
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal


def cost_about_single_center(
    points: Floats,
    weights: Floats,
    lower: Floats | float = -np.inf,
    upper: Floats | float = np.inf,
) -> float:
    """Lower bound on ``min over c in the box of sum w |x - c|^2``; by default all of space.

    Along one axis, with ``c`` any number in the interval and ``g = sum w (x - c)``, moving by
    ``t`` changes the cost by ``W t^2 - 2 g t``, which is at least ``- r^2 / W`` where ``r`` is the
    component of ``g`` that points into the interval. ``g`` errs by less than
    ``(m + 4) EPS sum w |x - c|`` and the sum of squares by its ``m d + 4`` roundings.

    >>> round(cost_about_single_center(np.array([[0.0], [2.0]]), np.ones(2)), 9)
    2.0
    >>> round(cost_about_single_center(np.array([[0.0], [2.0]]), np.ones(2), 2.0, 3.0), 9)
    4.0
    """
    mass = float(weights.sum())
    center = np.clip(weights @ points / mass, lower, upper)
    away = points - center
    weighted = weights[:, None] * away
    error = 2.0 * (len(points) + 8) * EPS
    slope = weighted.sum(axis=0)
    slope_error = error * np.abs(weighted).sum(axis=0)
    upward = np.where(center < upper, np.maximum(slope + slope_error, 0.0), 0.0)
    downward = np.where(center > lower, np.maximum(slope_error - slope, 0.0), 0.0)
    max_decrease = float(np.sum(np.maximum(upward, downward) ** 2)) / mass * (1.0 + error)
    square = float(np.sum(weighted * away)) * (1.0 - 2.0 * (away.size + 8) * EPS)
    return max(0.0, square - max_decrease)


# Components with cycles of up to so many groups are coloured exactly by the checker.
MAX_VERIFIED_CYCLIC_COMPONENT = 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoxBoundState:
    """Data shared by all evaluations."""

    problem: ReducedProblem
    assigner: AbstractAssigner
    fixing: AssignmentFixing
    keep_proof: bool
    checkable: bool  # whether the checker colours every component as we do


@final
class BoxBound(LowerBound[BoxBoundState]):
    """Sum over cannot-link components of their cheapest feasible labelling at ``d_min``.

    Valid because a centre inside its box is at least ``d_min`` away from a point, and the
    components share nothing but the centres. Weak, but cheap, and as the boxes shrink it
    converges to the cost, which is what the convergence theorem of the paper needs.

    With a cutoff, pairs of group and cluster that no labelling below it can use are removed first
    (`AssignmentFixing`), and groups with one cluster left share its centre (`fixed_groups_bound`).
    The value is then at most the cutoff: it says nothing about labellings that cost more. Where a
    proof is kept, only what the checker of certificates repeats is done: no pairs are removed, and
    cannot-links of components with cycles that are too large for it are left out.
    """

    name: ClassVar[str] = "sample"

    def setup(self, inputs: BoundInput) -> BoxBoundState:
        """Plan the components."""
        problem, graph = inputs.problem, inputs.problem.graph
        cyclic = np.diff(graph.starts)[graph.n_extra_edges > 0]
        return BoxBoundState(
            problem,
            inputs.assigner,
            AssignmentFixing(problem, inputs.assigner, use_dominance=True),
            inputs.keep_proof,
            bool((cyclic <= MAX_VERIFIED_CYCLIC_COMPONENT).all()),
        )

    def compute(
        self,
        model: BoxBoundState,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: Any = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        middle = 0.5 * (domain.lower + domain.upper)
        if model.keep_proof:
            value, allowed = self._verifiable_bound(model, domain, ctx.stop), domain.allowed
        else:
            value, allowed = self._bound_with_fixing(model, domain, cutoff, ctx.stop)
        return BoundResult(
            max(0.0, value), LeafProof(self.name), centers=(middle,), allowed=allowed
        )

    def _verifiable_bound(self, state: BoxBoundState, domain: Domain, stop: StopSignal) -> float:
        costs = min_box_costs(state.problem, domain)
        if domain.allowed is not None:
            costs[~domain.allowed] = np.inf
        if not state.checkable:
            return bound_without_links(costs)
        return float(state.assigner.assign_costs(costs, stop=stop).lower_bound)

    def _bound_with_fixing(
        self, state: BoxBoundState, domain: Domain, cutoff: float, stop: StopSignal
    ) -> tuple[float, Mask]:
        """The value, and who may still be where in labellings below the cutoff."""
        result = state.fixing.apply(domain, cutoff, stop)
        value = result.lower_bound
        if result.n_fixed > 0 and value < cutoff:
            left = Domain(domain.lower, domain.upper, result.allowed)
            value = max(value, fixed_groups_bound(state.problem, state.assigner, left, stop))
        return min(cutoff, value), result.allowed


def min_box_costs(problem: ReducedProblem, domain: Domain) -> Floats:
    """``w_s d_min(x_s, M_k)^2`` for every group and cluster, rounded down."""
    costs = np.empty((problem.n_groups, problem.n_clusters))
    box_costs(problem.points, problem.weights, domain.lower, domain.upper, False, costs)
    return costs


def bound_without_links(costs: Floats) -> float:
    """At most the cost of every labelling at these costs, whatever the cannot-links.

    The sum is rounded once, and again by the factor that makes up for it.
    """
    return math.fsum(costs.min(axis=1).tolist()) * (1.0 - 4.0 * EPS)


def fixed_groups_bound(
    problem: ReducedProblem, assigner: AbstractAssigner, domain: Domain, stop: StopSignal
) -> float:
    """Lower bound on the cost, about any centres in the boxes, of every allowed feasible labelling.

    A group with one allowed cluster is fixed to it. The fixed groups of a cluster have one common
    centre in its box, not one each: their cost is a quadratic in that centre, minimised over the
    box in closed form. The others contribute ``d_min``. The error of the sample bound is of first
    order in the size of the box, that of this bound of second order, and it is exact if all groups
    are fixed: so the tree is finite.

    Examples
    --------
    >>> from certikmeans.assignment import make_assigner
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.presolve.pipeline import presolve
    >>> done = presolve(Problem.from_data([[0.0], [2.0], [8.0]], 2), StopSignal())
    >>> whole = Domain.root(done.reduced)
    >>> low = done.reduced.points[:, 0] < 2.0
    >>> domain = Domain(whole.lower, whole.upper, np.stack([low, ~low], axis=1))
    >>> assigner = make_assigner(done.reduced, done.feasible_labels)
    >>> round(fixed_groups_bound(done.reduced, assigner, domain, StopSignal()), 6)
    2.0
    """
    assert domain.allowed is not None
    fixed = domain.allowed.sum(axis=1) == 1
    costs = np.where(domain.allowed, min_box_costs(problem, domain), np.inf)
    costs[fixed] = np.where(domain.allowed[fixed], 0.0, np.inf)
    rest = assigner.assign_costs(costs, stop=stop).lower_bound
    total = 0.0
    cluster = np.argmax(domain.allowed, axis=1)
    for k in range(problem.n_clusters):
        members = fixed & (cluster == k)
        if members.any():
            total += cost_about_single_center(
                problem.points[members], problem.weights[members], domain.lower[k], domain.upper[k]
            )
    return max(0.0, rest + total * (1.0 - 2.0 * problem.n_clusters * EPS)) * (1.0 - 2.0 * EPS)
