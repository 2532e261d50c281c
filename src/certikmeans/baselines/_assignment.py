"""Optimal assignment to fixed centers: as a binary program (HiGHS) or by dynamic programming."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from certikmeans._estimator_utils import raise_infeasible
from certikmeans._types import Floats, Ints
from certikmeans.assignment import AbstractAssigner, make_assigner
from certikmeans.baselines._base import MustLinkGroups, raise_if_infeasible
from certikmeans.presolve.infeasibility_proofs import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.arrays import squared_distances
from certikmeans.stop import StopSignal

# HiGHS has absolute tolerances: costs are scaled so that the most expensive label costs this.
_SCALE = 1e4
_INFEASIBLE = 2


@final
@dataclass(frozen=True, slots=True, eq=False)
class MilpResult:
    """Labels of the groups, if found."""

    labels: Ints | None
    infeasible: bool = False  # reported by the solver; otherwise the time ran out


def cheapest_labels(
    costs: Floats,
    groups: MustLinkGroups,
    *,
    fill: bool = False,
    seconds: float = math.inf,
) -> MilpResult:
    """Labels of least total cost that satisfy the cannot-links.

    Parameters
    ----------
    costs : ndarray of shape (n_groups, n_clusters)
        Cost of every group in every cluster.
    groups : Groups
    fill : bool
        Whether every cluster must get a group.
    seconds : float
        Time limit. The best labels found by then are returned, if any.

    Notes
    -----
    Components of the cannot-link graph are independent, so one whose cheapest labels satisfy its
    pairs is solved by them, and only the others enter the program: the same optimum, much
    smaller. If that leaves a cluster empty that must not be, all linked groups enter, and of the
    free ones the ``2 K + 1`` that are cheapest to move, for each cluster. More are not needed:
    in an optimum at most K free groups are not in their cheapest cluster and at most K are
    alone in it, so one of the ``2 K + 1`` can replace any that was left out.

    Examples
    --------
    >>> from certikmeans.problem import Problem
    >>> problem = Problem.from_data([[0.0], [1.0], [2.0]], 2, cannot_link=[(0, 1)])
    >>> table = np.array([[0.0, 9.0], [1.0, 2.0], [1.0, 5.0]])
    >>> cheapest_labels(table, MustLinkGroups.of(problem)).labels
    array([0, 1, 0])
    """
    n_clusters = costs.shape[1]
    if len(groups.conflicting) or (fill and groups.n_groups < n_clusters):
        return MilpResult(None, infeasible=True)
    labels: Ints = costs.argmin(axis=1)
    clashes = labels[groups.cannot_links[:, 0]] == labels[groups.cannot_links[:, 1]]
    if clashes.any():
        stuck = np.zeros(int(groups.component.max()) + 1, dtype=np.bool_)
        stuck[groups.component[groups.cannot_links[clashes, 0]]] = True
        chosen = np.flatnonzero(stuck[groups.component])
        answer = _solve(costs, groups, labels, chosen, np.empty(0, dtype=np.int64), seconds)
        if answer.labels is None:
            return answer
        labels = answer.labels
    if fill and np.bincount(labels, minlength=n_clusters).min() == 0:
        chosen = _fillers(costs, groups)
        fixed = np.ones(groups.n_groups, dtype=np.bool_)
        fixed[chosen] = False
        there = np.bincount(labels[fixed], minlength=n_clusters)
        return _solve(costs, groups, labels, chosen, np.flatnonzero(there == 0), seconds)
    return MilpResult(labels)


def _fillers(costs: Floats, groups: MustLinkGroups) -> Ints:
    """Groups that may have to leave their cheapest cluster to fill an empty one."""
    n_clusters = costs.shape[1]
    linked = np.zeros(groups.n_groups, dtype=np.bool_)
    linked[groups.cannot_links] = True
    free = np.flatnonzero(~linked)
    chosen = linked
    regret = costs[free] - costs[free].min(axis=1, keepdims=True)
    for k in range(n_clusters):
        chosen[free[np.argsort(regret[:, k], kind="stable")[: 2 * n_clusters + 1]]] = True
    return np.flatnonzero(chosen)


def _solve(
    costs: Floats,
    groups: MustLinkGroups,
    labels: Ints,
    chosen: Ints,
    empty: Ints,
    seconds: float,
) -> MilpResult:
    """Relabel the ``chosen`` groups by a program; clusters ``empty`` must get one of them."""
    n_chosen, n_clusters = len(chosen), costs.shape[1]
    place = np.full(groups.n_groups, -1)
    place[chosen] = np.arange(n_chosen)
    ends = place[groups.cannot_links]
    ends = ends[(ends >= 0).all(axis=1)]
    size = n_chosen * n_clusters
    ones, columns = np.ones(size), np.arange(size)
    one_each = coo_array((ones, (columns // n_clusters, columns)), shape=(n_chosen, size))
    constraints = [LinearConstraint(one_each.tocsr(), 1.0, 1.0)]
    if len(ends):
        rows = np.arange(len(ends) * n_clusters)
        pairs = ends[rows // n_clusters] * n_clusters + (rows % n_clusters)[:, None]
        both = (np.repeat(rows, 2), pairs.ravel())
        cannot_links = coo_array((np.ones(2 * len(rows)), both), shape=(len(rows), size))
        constraints.append(LinearConstraint(cannot_links.tocsr(), -np.inf, 1.0))
    if len(empty):
        filled = coo_array((ones, (columns % n_clusters, columns)), shape=(n_clusters, size))
        constraints.append(LinearConstraint(filled.tocsr()[empty], 1.0, np.inf))
    extra = costs[chosen] - costs[chosen].min(axis=1, keepdims=True)
    dearest = float(extra.max())
    options = {"mip_rel_gap": 0.0}
    if seconds < math.inf:
        options["time_limit"] = max(seconds, 1e-3)
    answer = milp(
        extra.ravel() * (_SCALE / dearest if dearest > 0.0 else 1.0),
        integrality=ones,
        bounds=Bounds(0, 1),
        constraints=constraints,
        options=options,
    )
    if answer.x is None:
        return MilpResult(None, infeasible=answer.status == _INFEASIBLE)
    found = labels.copy()
    found[chosen] = answer.x.reshape(n_chosen, n_clusters).argmax(axis=1)
    proper = (found[groups.cannot_links[:, 0]] != found[groups.cannot_links[:, 1]]).all()
    filled_all = not len(empty) or np.isin(empty, found[chosen]).all()
    return MilpResult(found if proper and filled_all else None)


# Optimal assignment to fixed centres: by a binary program or by `certikmeans.assignment`.

DISTANCES = ("euclidean", "squared")
ASSIGNMENTS = ("milp", "exact")


@final
class OptimalAssignment:
    """Cheapest labels that satisfy the pairs, for given centres.

    Parameters
    ----------
    problem : Problem
    distance : {"euclidean", "squared"}
        Cost of a point in a cluster: its distance from the centre, or the squared distance.
    method : {"milp", "exact"}
        ``"milp"``: a binary program. ``"exact"``: `certikmeans.assignment`, which finds
        labels of the same cost by dynamic programming, much faster.
    fill : bool
        Whether every cluster must get a point.
    stop : StopSignal
    """

    def __init__(
        self, problem: Problem, *, distance: str, method: str, fill: bool, stop: StopSignal
    ) -> None:
        self._problem = problem
        self._distance = distance
        self._fill = fill
        self._stop = stop
        self._explained = False
        self.groups = MustLinkGroups.of(problem)
        self._assigner: AbstractAssigner | None = None
        self._row_of_group = np.empty(0, dtype=np.int64)
        if method == "exact":
            done = presolve(problem, stop)
            if isinstance(done, InfeasibilityProof):
                raise_infeasible(done)
            if done.feasible_labels is not None:
                self._assigner = make_assigner(done.reduced, done.feasible_labels)
                self._row_of_group = np.empty(self.groups.n_groups, dtype=np.int64)
                self._row_of_group[self.groups.of_point] = done.group_of_point

    def distances(self, centers: Floats) -> Floats:
        """Cost of every point in every cluster."""
        table = squared_distances(self._problem.points, centers)
        return np.sqrt(table, out=table) if self._distance == "euclidean" else table

    def total(self, centers: Floats, labels: Ints) -> float:
        """Cost of labels of the points about ``centers``."""
        away = self._problem.points - centers[labels]
        squares = np.einsum("ij,ij->i", away, away)
        return float(np.sqrt(squares).sum() if self._distance == "euclidean" else squares.sum())

    def labels(self, centers: Floats) -> Ints | None:
        """Labels of the points; None if infeasible or out of time.

        Raises
        ------
        InfeasibleError
            The pairs contradict each other.
        """
        found = self._assign_groups(self.groups.total(self.distances(centers)))
        if found.infeasible and not self._explained:
            raise_if_infeasible(self._problem)
            self._explained = True
        return None if found.labels is None else found.labels[self.groups.of_point]

    def _assign_groups(self, costs: Floats) -> MilpResult:
        if self._assigner is not None:
            table = np.empty_like(costs)
            table[self._row_of_group] = costs
            found = self._assigner.assign_costs(table, stop=self._stop).labels[self._row_of_group]
            if not self._fill or np.bincount(found, minlength=costs.shape[1]).min() > 0:
                return MilpResult(found)
        seconds = self._stop.remaining
        return cheapest_labels(costs, self.groups, fill=self._fill, seconds=seconds)
