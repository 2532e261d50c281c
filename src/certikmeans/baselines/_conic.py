"""The MISOCP of the paper's equation (2), stated once and handed to SCIP or Gurobi.

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
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import MissingExtraError
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConicModel:
    """The data of the model; coordinates within [-1, 1], where solvers' tolerances make sense."""

    points: NDArray[np.float64]  # (n, d)
    weights: NDArray[np.float64]  # (n,)
    n_clusters: int
    together: NDArray[np.int64]  # (m, 2)
    apart: NDArray[np.int64]  # (m, 2)
    ordered: bool  # centres ascend in their first coordinate

    @property
    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The box of the points: every mean lies in it."""
        return self.points.min(axis=0), self.points.max(axis=0)

    @property
    def reaches(self) -> NDArray[np.float64]:
        """The constants N_s: no centre in the box is farther from the point, squared."""
        low, high = self.corners
        farthest = np.maximum(self.points - low, high - self.points)
        squares: NDArray[np.float64] = np.einsum("ij,ij->i", farthest, farthest)
        return squares


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConicAnswer:
    """What a solver says, in units of the model."""

    labels: NDArray[np.int64] | None
    lower: float  # the solver's dual bound: floating point, not rigorous
    nodes: int
    closed: bool  # within the gap asked for
    infeasible: bool = False


_NO_TIME = ConicAnswer(None, 0.0, 0, closed=False)


def solve_with_scip(model: ConicModel, gap: float, stop: StopSignal) -> ConicAnswer:
    """Solve by SCIP through PySCIPOpt."""
    try:
        scip: Any = import_module("pyscipopt")
    except ImportError as error:
        raise MissingExtraError(
            "solver='scip' needs PySCIPOpt", hint="pip install 'certikmeans[scip]'"
        ) from error
    program = scip.Model("misocp")
    program.hideOutput()
    chosen = _state(
        model,
        stop,
        variable=program.addVar,
        binary=lambda: program.addVar(vtype="B"),
        add=program.addCons,
        total=scip.quicksum,
    )
    if chosen is None:
        return _NO_TIME
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
    return ConicAnswer(
        labels,
        max(0.0, lower) if abs(lower) < program.infinity() else 0.0,
        int(program.getNTotalNodes()),
        closed=status in ("optimal", "gaplimit"),
        infeasible=status == "infeasible",
    )


def solve_with_gurobi(model: ConicModel, gap: float, stop: StopSignal) -> ConicAnswer:
    """Solve by Gurobi through gurobipy, for those who have it."""
    try:
        gurobi: Any = import_module("gurobipy")
    except ImportError as error:
        raise MissingExtraError(
            "solver='gurobi' needs gurobipy and a licence",
            hint="pip install gurobipy, or use solver='scip'",
        ) from error
    codes = gurobi.GRB
    with gurobi.Env(params={"OutputFlag": 0}) as env, gurobi.Model(env=env) as program:
        chosen = _state(
            model,
            stop,
            variable=program.addVar,
            binary=lambda: program.addVar(vtype=codes.BINARY),
            add=program.addConstr,
            total=gurobi.quicksum,
        )
        if chosen is None:
            return _NO_TIME
        if stop.remaining < math.inf:
            program.Params.TimeLimit = stop.remaining
        program.Params.MIPGap = gap
        program.optimize()
        labels = None
        if program.SolCount > 0:
            labels = np.array([[b.X for b in row] for row in chosen]).argmax(axis=1)
        infeasible = program.Status in (codes.INFEASIBLE, codes.INF_OR_UNBD)
        lower = 0.0 if infeasible else float(program.ObjBound)
        return ConicAnswer(
            labels,
            max(0.0, lower) if math.isfinite(lower) else 0.0,
            int(program.NodeCount),
            closed=program.Status == codes.OPTIMAL,
            infeasible=infeasible,
        )


def _state(
    model: ConicModel,
    stop: StopSignal,
    *,
    variable: Callable[..., Any],
    binary: Callable[[], Any],
    add: Callable[[Any], Any],
    total: Callable[[Any], Any],
) -> list[list[Any]] | None:
    """State the model in a solver's own words; returns the binaries, or None without time."""
    low, high = model.corners
    centers = [
        [variable(lb=a, ub=b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        for _ in range(model.n_clusters)
    ]
    chosen: list[list[Any]] = []
    for point, weight, reach in zip(
        model.points.tolist(), model.weights.tolist(), model.reaches.tolist(), strict=True
    ):
        if stop.cause() is not None:
            return None
        own = variable(lb=0.0, ub=reach, obj=weight)
        row = [binary() for _ in centers]
        for b, center in zip(row, centers, strict=True):
            distance = variable(lb=0.0, ub=reach)
            add(total((x - mu) * (x - mu) for x, mu in zip(point, center, strict=True)) <= distance)
            add(own - distance <= reach * (1 - b))
            add(distance - own <= reach * (1 - b))
        add(total(row) == 1)
        chosen.append(row)
    for s, t in model.together.tolist():
        for one, other in zip(chosen[s], chosen[t], strict=True):
            add(one == other)
    for s, t in model.apart.tolist():
        for one, other in zip(chosen[s], chosen[t], strict=True):
            add(one + other <= 1)
    if model.ordered:
        for left, right in pairwise(centers):
            add(left[0] <= right[0])
    return chosen
