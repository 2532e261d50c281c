"""The paper's mixed-integer cone program, solved as a whole by a general solver."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from certikmeans.baselines._base import Baseline, Outcome, cost_of
from certikmeans.baselines._conic import ConicModel, solve_with_gurobi, solve_with_scip
from certikmeans.baselines._groups import Groups, raise_if_infeasible
from certikmeans.options import Options, check_choice
from certikmeans.presolve.must_link import collapse
from certikmeans.problem import Problem
from certikmeans.status import Status
from certikmeans.stop import StopSignal
from certikmeans.tolerances import relative_gap

_SOLVERS = {"scip": solve_with_scip, "gurobi": solve_with_gurobi}


@final
class MISOCP(Baseline):
    """Equation (2) of the SDC-GBB paper by SCIP, the open stand-in for CPLEX, or by Gurobi.

    One binary per point and cluster, a squared distance bounded by a cone, big-M rows between
    them. Exact in principle; in practice the relaxation is weak and only small problems close.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. Some may end up empty.
    solver : {"scip", "gurobi"}, default="scip"
        SCIP comes with the extra ``certikmeans[scip]``; Gurobi is used if you have it.
    gap : float, default=1e-3
        Relative gap at which the solver stops, by its own definition.
    symmetry_breaking : bool, default=False
        Whether centres must ascend in their first coordinate. The paper's model does not ask.
    collapse : bool, default=False
        Whether must-link groups become weighted points first, instead of equations.
    time_limit : float, optional
        Wall time for `fit`, in seconds, building the model included. None: no limit.
    random_state : None
        Not used: the solvers are deterministic. Here because all baselines have it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. All -1 if none was found in time.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters; NaN without labels.
    inertia_ : float
        Sum of squares about the means; infinite without labels.
    lower_bound_ : float
        The solver's dual bound. Computed in floating point with tolerances: not rigorous, unlike
        that of `ConstrainedKMeans`.
    gap_ : float
        ``(inertia_ - lower_bound_) / inertia_``, at least 0; infinite without labels.
    status_ : Status
        ``"optimal"`` if the solver says so, ``"feasible"``, or ``"unknown"`` without labels.
    nodes_ : int
        Nodes of the solver's tree.
    feasible_ : bool
        Whether every pair is respected.
    violated_ : int
        Number of broken pairs.
    n_iter_ : int
        Same as ``nodes_``.
    n_features_in_ : int
        Number of features seen during `fit`.

    Raises
    ------
    InfeasibleError
        No labelling respects every pair; ``error.proof`` shows why.
    MissingExtraError
        The solver is not installed.

    Notes
    -----
    The paper does not give N. Here it is, per point, the largest squared distance to the box of
    the data, which all means lie in: the smallest constant that is surely valid. The data are
    centred and scaled to [-1, 1] before they are handed over.

    References
    ----------
    P. Chumpitaz-Flores, M. Duong, C. Heredia, K. Hua. A scalable global optimization algorithm
    for constrained clustering. arXiv 2510.22519, equation (2).

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = MISOCP(n_clusters=2).fit(X, must_link=[(1, 2)])
    >>> round(model.inertia_, 3), model.status_
    (48.667, <Status.OPTIMAL: 'optimal'>)
    """

    _takes_weights: ClassVar[bool] = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        solver: str = "scip",
        gap: float = 1e-3,
        symmetry_breaking: bool = False,
        collapse: bool = False,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.solver = solver
        self.gap = gap
        self.symmetry_breaking = symmetry_breaking
        self.collapse = collapse
        self.time_limit = time_limit
        self.random_state = random_state

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> Outcome:
        check_choice("solver", self.solver, tuple(_SOLVERS))
        gap = Options(gap=self.gap).gap
        points, weights, offset = problem.points, problem.weights, 0.0
        together, apart = problem.must_link, problem.cannot_link
        groups = Groups.of(problem)
        if self.collapse and not len(groups.contradicted):
            collapsed = collapse(points, weights, groups.of_point)
            points, weights, offset = collapsed.means, collapsed.weights, collapsed.offset
            together, apart = together[:0], groups.apart
        low, high = points.min(axis=0), points.max(axis=0)
        scale = float(np.max(high - low)) / 2.0 or 1.0
        model = ConicModel(
            (points - (low + high) / 2.0) / scale,
            weights,
            problem.n_clusters,
            together,
            apart,
            bool(self.symmetry_breaking),
        )
        answer = _SOLVERS[self.solver](model, gap, stop)
        if answer.infeasible:
            raise_if_infeasible(problem)
        self.nodes_ = answer.nodes
        self.lower_bound_ = answer.lower * scale * scale + offset
        self.gap_ = np.inf
        if answer.labels is None:
            return Outcome(None, answer.nodes, Status.UNKNOWN)
        labels = answer.labels
        if len(weights) < problem.n_points:
            labels = labels[groups.of_point]
        self.gap_ = relative_gap(cost_of(problem, labels), self.lower_bound_)
        return Outcome(labels, answer.nodes, Status.OPTIMAL if answer.closed else Status.FEASIBLE)
