"""The MISOCP of the paper's equation (2), for SCIP or Gurobi.

min   sum_s w_s d_s
s.t.  -N_s (1 - b_sk) <= d_s - d_sk <= N_s (1 - b_sk)
d_sk >= |x_s - mu_k|^2
b_sk = b_tk  (must-link)     b_sk + b_tk <= 1  (cannot-link)
sum_k b_sk = 1               b binary
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.baselines._base import (
    Baseline,
    MustLinkGroups,
    RunResult,
    cost_of,
    raise_if_infeasible,
)
from certikmeans.errors import MissingExtraError
from certikmeans.options import Options, check_choice
from certikmeans.presolve.reductions import aggregate
from certikmeans.problem import Problem
from certikmeans.status import Status
from certikmeans.stop import StopSignal
from certikmeans.tolerances import relative_gap


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConicModel:
    """Data of the model; coordinates are scaled to [-1, 1] because of solver tolerances."""

    points: Floats  # (n, d)
    weights: Floats  # (n,)
    n_clusters: int
    must_links: Ints  # (m, 2)
    cannot_links: Ints  # (m, 2)
    ordered: bool  # centres ascend in their first coordinate

    @property
    def bounding_box(self) -> tuple[Floats, Floats]:
        """The box of the points: every mean lies in it."""
        return self.points.min(axis=0), self.points.max(axis=0)

    @property
    def big_m(self) -> Floats:
        """The constants N_s: no centre in the box is farther from the point, squared."""
        low, high = self.bounding_box
        farthest = np.maximum(self.points - low, high - self.points)
        squares: Floats = np.einsum("ij,ij->i", farthest, farthest)
        return squares


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConicResult:
    """Result of a solver, in units of the model."""

    labels: Ints | None
    lower_bound: float  # of the solver: floating point, not rigorous
    nodes: int
    closed: bool  # within the requested gap
    infeasible: bool = False


_TIMED_OUT = ConicResult(None, 0.0, 0, closed=False)


def solve_with_scip(model: ConicModel, gap: float, stop: StopSignal) -> ConicResult:
    """Solve by SCIP through PySCIPOpt."""
    try:
        scip: Any = import_module("pyscipopt")
    except ImportError as error:
        raise MissingExtraError(
            "solver='scip' needs PySCIPOpt", hint="pip install 'certikmeans[scip]'"
        ) from error
    program = scip.Model("misocp")
    program.hideOutput()
    chosen = _build_model(
        model,
        stop,
        variable=program.addVar,
        binary=lambda: program.addVar(vtype="B"),
        add=program.addCons,
        total=scip.quicksum,
    )
    if chosen is None:
        return _TIMED_OUT
    if stop.remaining < math.inf:
        program.setParam("limits/time", stop.remaining)
    program.setParam("limits/gap", gap)
    program.optimize()
    labels = None
    if program.getNSols() > 0:
        best = program.getBestSol()
        values = [[program.getSolVal(best, b) for b in row] for row in chosen]
        labels = np.array(values).argmax(axis=1)
    status, lower = program.getStatus(), float(program.getDualbound())
    return ConicResult(
        labels,
        max(0.0, lower) if abs(lower) < program.infinity() else 0.0,
        int(program.getNTotalNodes()),
        closed=status in ("optimal", "gaplimit"),
        infeasible=status == "infeasible",
    )


def solve_with_gurobi(model: ConicModel, gap: float, stop: StopSignal) -> ConicResult:
    """Solve by Gurobi through gurobipy."""
    try:
        gurobi: Any = import_module("gurobipy")
    except ImportError as error:
        raise MissingExtraError(
            "solver='gurobi' needs gurobipy and a licence",
            hint="pip install gurobipy, or use solver='scip'",
        ) from error
    codes = gurobi.GRB
    with gurobi.Env(params={"OutputFlag": 0}) as env, gurobi.Model(env=env) as program:
        chosen = _build_model(
            model,
            stop,
            variable=program.addVar,
            binary=lambda: program.addVar(vtype=codes.BINARY),
            add=program.addConstr,
            total=gurobi.quicksum,
        )
        if chosen is None:
            return _TIMED_OUT
        if stop.remaining < math.inf:
            program.Params.TimeLimit = stop.remaining
        program.Params.MIPGap = gap
        program.optimize()
        labels = None
        if program.SolCount > 0:
            labels = np.array([[b.X for b in row] for row in chosen]).argmax(axis=1)
        infeasible = program.Status in (codes.INFEASIBLE, codes.INF_OR_UNBD)
        lower = 0.0 if infeasible else float(program.ObjBound)
        return ConicResult(
            labels,
            max(0.0, lower) if math.isfinite(lower) else 0.0,
            int(program.NodeCount),
            closed=program.Status == codes.OPTIMAL,
            infeasible=infeasible,
        )


def _build_model(
    model: ConicModel,
    stop: StopSignal,
    *,
    variable: Callable[..., Any],
    binary: Callable[[], Any],
    add: Callable[[Any], Any],
    total: Callable[[Any], Any],
) -> list[list[Any]] | None:
    """Add the model to a solver; returns the binaries, or None if time ran out."""
    low, high = model.bounding_box
    centers = [
        [variable(lb=a, ub=b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        for _ in range(model.n_clusters)
    ]
    chosen: list[list[Any]] = []
    for point, weight, m in zip(
        model.points.tolist(), model.weights.tolist(), model.big_m.tolist(), strict=True
    ):
        if stop.reason() is not None:
            return None
        own = variable(lb=0.0, ub=m, obj=weight)
        row = [binary() for _ in centers]
        for b, center in zip(row, centers, strict=True):
            distance = variable(lb=0.0, ub=m)
            add(total((x - mu) * (x - mu) for x, mu in zip(point, center, strict=True)) <= distance)
            add(own - distance <= m * (1 - b))
            add(distance - own <= m * (1 - b))
        add(total(row) == 1)
        chosen.append(row)
    for s, t in model.must_links.tolist():
        for one, other in zip(chosen[s], chosen[t], strict=True):
            add(one == other)
    for s, t in model.cannot_links.tolist():
        for one, other in zip(chosen[s], chosen[t], strict=True):
            add(one + other <= 1)
    if model.ordered:
        for left, right in pairwise(centers):
            add(left[0] <= right[0])
    return chosen


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
        Whether centres must ascend in their first coordinate, which the paper's model does not
        require.
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
        Whether every pair is satisfied.
    violated_ : int
        Number of violated pairs.
    n_iter_ : int
        Same as ``nodes_``.
    n_features_in_ : int
        Number of features seen during `fit`.

    Raises
    ------
    InfeasibleError
        No labelling satisfies every pair; ``error.proof`` shows why.
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

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        check_choice("solver", self.solver, tuple(_SOLVERS))
        gap = Options(gap=self.gap).gap
        points, weights, offset = problem.points, problem.weights, 0.0
        must_links, cannot_links = problem.must_link, problem.cannot_link
        groups = MustLinkGroups.of(problem)
        if self.collapse and not len(groups.conflicting):
            aggregated = aggregate(points, weights, groups.of_point)
            points, weights, offset = aggregated.means, aggregated.weights, aggregated.offset
            must_links, cannot_links = must_links[:0], groups.cannot_links
        low, high = points.min(axis=0), points.max(axis=0)
        scale = float(np.max(high - low)) / 2.0 or 1.0
        model = ConicModel(
            (points - (low + high) / 2.0) / scale,
            weights,
            problem.n_clusters,
            must_links,
            cannot_links,
            bool(self.symmetry_breaking),
        )
        answer = _SOLVERS[self.solver](model, gap, stop)
        if answer.infeasible:
            raise_if_infeasible(problem)
        self.nodes_ = answer.nodes
        self.lower_bound_ = answer.lower_bound * scale * scale + offset
        self.gap_ = np.inf
        if answer.labels is None:
            return RunResult(None, answer.nodes, Status.UNKNOWN)
        labels = answer.labels
        if len(weights) < problem.n_points:
            labels = labels[groups.of_point]
        self.gap_ = relative_gap(cost_of(problem, labels), self.lower_bound_)
        return RunResult(labels, answer.nodes, Status.OPTIMAL if answer.closed else Status.FEASIBLE)
