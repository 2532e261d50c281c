"""The sample bound with the groups that are settled sharing their centre.

A group with one viable cluster left is in it. The settled groups of a cluster pay for one common
centre in its box, not each for its own: their cost is a quadratic in that centre, minimised over
the box in closed form. The others pay ``d_min`` as before. Where the sample bound is off by the
first order in the size of the box, this one is off by the second, and where all groups are settled
it is exact: so the tree ends.
"""

from __future__ import annotations

import numpy as np

from certikmeans.assignment import Assigner
from certikmeans.bounds.one_centre import cost_about_one_centre
from certikmeans.bounds.sample import least_costs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal


def settled_bound(
    problem: ReducedProblem, assigner: Assigner, part: Subproblem, stop: StopSignal
) -> float:
    """At most the cost, about any centres in the boxes, of every proper viable labelling.

    Examples
    --------
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.presolve.pipeline import presolve
    >>> done = presolve(Problem.from_data([[0.0], [2.0], [8.0]], 2), StopSignal())
    >>> whole = Subproblem.root(done.reduced)
    >>> low = done.reduced.points[:, 0] < 2.0
    >>> part = Subproblem(whole.lower, whole.upper, np.stack([low, ~low], axis=1))
    >>> assigner = Assigner(done.reduced, done.witness)
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
