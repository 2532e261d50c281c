"""The assignment step as a binary linear program, through scipy's branch and cut (HiGHS)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from certikmeans.baselines._groups import Groups

# The solver's tolerances are absolute: costs are scaled so that the dearest label costs this.
_SCALE = 1e4
_INFEASIBLE = 2


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProgramAnswer:
    """Labels of the groups, or why there are none."""

    labels: NDArray[np.int64] | None
    infeasible: bool = False  # the solver says that no labels exist; else there was no time


def cheapest_labels(
    costs: NDArray[np.float64],
    groups: Groups,
    *,
    fill: bool = False,
    seconds: float = math.inf,
) -> ProgramAnswer:
    """Labels of least total cost that respect the cannot-links.

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
    Components of the cannot-link graph share nothing, so one whose cheapest labels respect its
    pairs is solved by them, and only the others enter the program: the same optimum, much
    smaller. If that leaves a cluster empty that must not be, all linked groups enter, and of the
    free ones the ``2 K + 1`` that are cheapest to move, for each cluster. More are not needed:
    in an optimum at most K free groups are not in their cheapest cluster and at most K are
    alone in it, so one of the ``2 K + 1`` can take the place of any that was left out.

    Examples
    --------
    >>> from certikmeans.problem import Problem
    >>> problem = Problem.from_data([[0.0], [1.0], [2.0]], 2, cannot_link=[(0, 1)])
    >>> table = np.array([[0.0, 9.0], [1.0, 2.0], [1.0, 5.0]])
    >>> cheapest_labels(table, Groups.of(problem)).labels
    array([0, 1, 0])
    """
    n_clusters = costs.shape[1]
    if len(groups.contradicted) or (fill and groups.n_groups < n_clusters):
        return ProgramAnswer(None, infeasible=True)
    labels: NDArray[np.int64] = costs.argmin(axis=1)
    clashes = labels[groups.apart[:, 0]] == labels[groups.apart[:, 1]]
    if clashes.any():
        stuck = np.zeros(int(groups.component.max()) + 1, dtype=np.bool_)
        stuck[groups.component[groups.apart[clashes, 0]]] = True
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
    return ProgramAnswer(labels)


def _fillers(costs: NDArray[np.float64], groups: Groups) -> NDArray[np.int64]:
    """Groups that may have to leave their cheapest cluster so that none stays empty."""
    n_clusters = costs.shape[1]
    linked = np.zeros(groups.n_groups, dtype=np.bool_)
    linked[groups.apart] = True
    free = np.flatnonzero(~linked)
    chosen = linked
    regret = costs[free] - costs[free].min(axis=1, keepdims=True)
    for k in range(n_clusters):
        chosen[free[np.argsort(regret[:, k], kind="stable")[: 2 * n_clusters + 1]]] = True
    return np.flatnonzero(chosen)


def _solve(
    costs: NDArray[np.float64],
    groups: Groups,
    labels: NDArray[np.int64],
    chosen: NDArray[np.int64],
    empty: NDArray[np.int64],
    seconds: float,
) -> ProgramAnswer:
    """Relabel the ``chosen`` groups by a program; clusters ``empty`` must get one of them."""
    n_chosen, n_clusters = len(chosen), costs.shape[1]
    place = np.full(groups.n_groups, -1)
    place[chosen] = np.arange(n_chosen)
    ends = place[groups.apart]
    ends = ends[(ends >= 0).all(axis=1)]
    size = n_chosen * n_clusters
    ones, columns = np.ones(size), np.arange(size)
    one_each = coo_array((ones, (columns // n_clusters, columns)), shape=(n_chosen, size))
    constraints = [LinearConstraint(one_each.tocsr(), 1.0, 1.0)]
    if len(ends):
        rows = np.arange(len(ends) * n_clusters)
        pairs = ends[rows // n_clusters] * n_clusters + (rows % n_clusters)[:, None]
        both = (np.repeat(rows, 2), pairs.ravel())
        apart = coo_array((np.ones(2 * len(rows)), both), shape=(len(rows), size))
        constraints.append(LinearConstraint(apart.tocsr(), -np.inf, 1.0))
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
        return ProgramAnswer(None, infeasible=answer.status == _INFEASIBLE)
    found = labels.copy()
    found[chosen] = answer.x.reshape(n_chosen, n_clusters).argmax(axis=1)
    proper = (found[groups.apart[:, 0]] != found[groups.apart[:, 1]]).all()
    filled_all = not len(empty) or np.isin(empty, found[chosen]).all()
    return ProgramAnswer(found if proper and filled_all else None)
