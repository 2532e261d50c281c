"""The sample bound: every point as close to its centre's box as it can be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.bounds.base import AbstractBound, BoundResult, Root, Setting
from certikmeans.bounds.determination import SampleDetermination
from certikmeans.bounds.one_centre import cost_about_one_centre
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Leaf
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

# Components with cycles of up to so many groups are coloured exactly by the checker.
CHECKED_CYCLES = 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class SampleState:
    """What every evaluation shares."""

    problem: ReducedProblem
    assigner: AbstractAssigner
    determination: SampleDetermination
    keep_proof: bool
    checkable: bool  # whether the checker colours every component as we do


@final
class SampleBound(AbstractBound[SampleState]):
    """Sum over cannot-link components of their cheapest proper labelling at ``d_min``.

    Valid because a centre inside its box is at least ``d_min`` away from a point, and the
    components share nothing but the centres. Weak, but cheap, and as the boxes shrink it
    converges to the cost, which is what the convergence theorem of the paper needs.

    With a cutoff, pairs of group and cluster that no labelling below it can use are removed first
    (`SampleDetermination`), and groups with one cluster left share its centre (`settled_bound`).
    The value is then at most the cutoff: it says nothing about labellings that cost more. Where a
    proof is kept, only what the checker of certificates repeats is done: no pairs are removed, and
    cannot-links of components with cycles that are too large for it are left out.
    """

    name: ClassVar[str] = "sample"

    def prepare(self, setting: Setting) -> SampleState:
        """Plan the components."""
        problem, graph = setting.problem, setting.problem.graph
        cyclic = np.diff(graph.starts)[graph.extra_edges > 0]
        return SampleState(
            problem,
            setting.assigner,
            SampleDetermination(problem, setting.assigner, forced=True),
            setting.keep_proof,
            bool((cyclic <= CHECKED_CYCLES).all()),
        )

    def evaluate(
        self,
        state: SampleState,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
        root: Root | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""
        middle = 0.5 * (part.lower + part.upper)
        if state.keep_proof:
            value, viable = self._repeatable(state, part, stop), part.viable
        else:
            value, viable = self._determined(state, part, cutoff, stop)
        return BoundResult(max(0.0, value), Leaf(self.name), centers=(middle,), viable=viable)

    def _repeatable(self, state: SampleState, part: Subproblem, stop: StopSignal) -> float:
        costs = least_costs(state.problem, part)
        if part.viable is not None:
            costs[~part.viable] = np.inf
        if not state.checkable:
            return without_links(costs)
        return float(state.assigner.assign_costs(costs, stop=stop).lower)

    def _determined(
        self, state: SampleState, part: Subproblem, cutoff: float, stop: StopSignal
    ) -> tuple[float, NDArray[np.bool_]]:
        """The value, and who may still be where in labellings below the cutoff."""
        determined = state.determination.determine(part, cutoff, stop)
        value = determined.lower
        if determined.n_fixed > 0 and value < cutoff:
            left = Subproblem(part.lower, part.upper, determined.viable)
            value = max(value, settled_bound(state.problem, state.assigner, left, stop))
        return min(cutoff, value), determined.viable


def least_costs(problem: ReducedProblem, part: Subproblem) -> NDArray[np.float64]:
    """``w_s d_min(x_s, M_k)^2`` for every group and cluster, rounded down.

    A difference, its square, the sum over the axes and the weight round at most
    ``n_axes + 4`` times, each by EPS/2 in relative terms, and all terms are positive.
    """
    points, weights = problem.points, problem.weights
    costs = np.zeros((problem.n_groups, problem.n_clusters))
    for k in range(problem.n_clusters):
        for j in range(problem.n_axes):
            below = part.lower[k, j] - points[:, j]
            above = points[:, j] - part.upper[k, j]
            outside = np.maximum(np.maximum(below, above), 0.0)
            costs[:, k] += outside * outside
        costs[:, k] *= weights
    return costs * (1.0 - (problem.n_axes + 6) * EPS)


def without_links(costs: NDArray[np.float64]) -> float:
    """At most the cost of every labelling at these costs, whatever the cannot-links.

    The sum is rounded once, and again by the factor that makes up for it.
    """
    return math.fsum(costs.min(axis=1).tolist()) * (1.0 - 4.0 * EPS)


def settled_bound(
    problem: ReducedProblem, assigner: AbstractAssigner, part: Subproblem, stop: StopSignal
) -> float:
    """At most the cost, about any centres in the boxes, of every proper viable labelling.

    A group with one viable cluster left is in it. The settled groups of a cluster pay for one
    common centre in its box, not each for its own: their cost is a quadratic in that centre,
    minimised over the box in closed form. The others pay ``d_min``. Where the sample bound is
    off by the first order in the size of the box, this one is off by the second, and where all
    groups are settled it is exact: so the tree ends.

    Examples
    --------
    >>> from certikmeans.assignment import assigner_for
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.presolve.pipeline import presolve
    >>> done = presolve(Problem.from_data([[0.0], [2.0], [8.0]], 2), StopSignal())
    >>> whole = Subproblem.root(done.reduced)
    >>> low = done.reduced.points[:, 0] < 2.0
    >>> part = Subproblem(whole.lower, whole.upper, np.stack([low, ~low], axis=1))
    >>> assigner = assigner_for(done.reduced, done.witness)
    >>> round(settled_bound(done.reduced, assigner, part, StopSignal()), 6)
    2.0
    """
    assert part.viable is not None
    settled = part.viable.sum(axis=1) == 1
    costs = np.where(part.viable, least_costs(problem, part), np.inf)
    costs[settled] = np.where(part.viable[settled], 0.0, np.inf)
    rest = assigner.assign_costs(costs, stop=stop).lower
    total = 0.0
    cluster = np.argmax(part.viable, axis=1)
    for k in range(problem.n_clusters):
        members = settled & (cluster == k)
        if members.any():
            total += cost_about_one_centre(
                problem.points[members], problem.weights[members], part.lower[k], part.upper[k]
            )
    return max(0.0, rest + total * (1.0 - 2.0 * problem.n_clusters * EPS)) * (1.0 - 2.0 * EPS)
