"""Group problems as mixed-integer programs for SCIP: a slow reference solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.errors import MissingExtraError
from certikmeans.kernels.grouped.solve import Chunk, GroupSolutions, SearchLimits
from certikmeans.stop import StopSignal

MARGIN = 1e-5  # subtracted from a value, relative to its scale, because of SCIP's tolerances
PRECISION = 1e-8  # feasibility tolerance of SCIP


def solve_chunk(chunk: Chunk, nu: Floats, labels: Ints, limits: SearchLimits) -> GroupSolutions:
    """Solve the groups of ``chunk`` with linear terms ``nu``; ``labels`` are not used."""
    n_sets = len(chunk.starts) - 1
    solutions = GroupSolutions(
        values=np.full(n_sets, np.inf),
        bounds=np.full(n_sets, -np.inf),
        centers=np.broadcast_to(0.5 * (chunk.lower + chunk.upper), nu.shape).copy(),
        masses=np.zeros(nu.shape[:2]),
        nodes=np.zeros(n_sets, dtype=np.int64),
        labels=np.full(len(labels), -1),
    )
    stop = StopSignal(limits.seconds if np.isfinite(limits.seconds) else None)
    for g in range(n_sets):
        _solve_group(chunk, g, nu[g], limits._replace(seconds=stop.remaining), solutions)
    return solutions


def _solve_group(
    chunk: Chunk, g: int, nu: Floats, limits: SearchLimits, solutions: GroupSolutions
) -> None:
    rows = range(int(chunk.starts[g]), int(chunk.starts[g + 1]))
    scale = _scale(chunk, rows)
    model, centers, choices = _model(chunk, rows, nu / scale, scale)
    model.setParam("limits/gap", limits.relative_tolerance)
    model.setParam("limits/totalnodes", limits.node_limit)
    if np.isfinite(limits.seconds):
        model.setParam("limits/time", limits.seconds)
    model.optimize()
    solutions.nodes[g] = model.getNTotalNodes()
    if model.getStatus() == "infeasible":
        solutions.bounds[g] = np.inf
        return
    size = 1.0 + float(np.sum(np.abs(nu) * (np.abs(chunk.lower) + np.abs(chunk.upper)))) / scale
    # The minimum of the linear term over the box is a valid bound.
    corner = float(np.sum(np.minimum(nu * chunk.lower, nu * chunk.upper)))
    solutions.bounds[g] = max(corner, (model.getDualbound() - MARGIN * size) * scale)
    if model.getNSols() == 0:
        return
    best = model.getBestSol()
    for s in rows:
        k = max(choices[s], key=lambda k: model.getSolVal(best, choices[s][k]))
        solutions.labels[s] = k
        solutions.masses[g, k] += chunk.weights[s]
    found = np.array([[model.getSolVal(best, one) for one in row] for row in centers])
    solutions.centers[g] = np.clip(found, chunk.lower, chunk.upper)
    own = solutions.labels[rows.start : rows.stop]
    away = chunk.points[rows.start : rows.stop] - solutions.centers[g][own]
    squares = chunk.weights[rows.start : rows.stop] @ np.sum(away * away, axis=1)
    solutions.values[g] = float(squares + np.sum(nu * solutions.centers[g]))


def _scale(chunk: Chunk, rows: range) -> float:
    """Upper bound on the cost of the samples, so that scaled costs are at most 1."""
    points, weights = chunk.points[rows.start : rows.stop], chunk.weights[rows.start : rows.stop]
    below = np.abs(points[:, None, :] - chunk.lower)
    above = np.abs(points[:, None, :] - chunk.upper)
    farthest = np.sum(np.maximum(below, above) ** 2, axis=2).max(axis=1)
    return float(weights @ farthest) or 1.0


def _model(
    chunk: Chunk, rows: range, nu: Floats, scale: float
) -> tuple[Any, list[list[Any]], dict[int, dict[int, Any]]]:
    """The paper's program: big-M rows switch on the squared distance to the chosen centre.

    A row is ``cost_s >= w_s |x_s - mu_k|^2 - N (1 - b_sk)``, with N the largest squared distance
    from the sample to the box of k, so that the row holds wherever ``b_sk`` is zero.
    """
    pyscipopt = _pyscipopt()
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("randomization/randomseedshift", 0)
    model.setParam("parallel/maxnthreads", 1)
    model.setParam("numerics/feastol", PRECISION)
    n_clusters, n_dims = chunk.lower.shape
    centers = [
        [
            model.addVar(lb=float(chunk.lower[k, j]), ub=float(chunk.upper[k, j]))
            for j in range(n_dims)
        ]
        for k in range(n_clusters)
    ]
    choices: dict[int, dict[int, Any]] = {}
    costs = []
    for s in rows:
        cost = model.addVar(lb=0.0)
        costs.append(cost)
        choices[s] = {k: model.addVar(vtype="B") for k in range(n_clusters) if chunk.allowed[s, k]}
        model.addCons(pyscipopt.quicksum(choices[s].values()) == 1)
        weight = float(chunk.weights[s]) / scale
        for k, chosen in choices[s].items():
            x = [float(v) for v in chunk.points[s]]
            far = sum(
                max(abs(x[j] - chunk.lower[k, j]), abs(x[j] - chunk.upper[k, j])) ** 2
                for j in range(n_dims)
            )
            squares = pyscipopt.quicksum(
                (centers[k][j] - x[j]) * (centers[k][j] - x[j]) for j in range(n_dims)
            )
            big = 1.000001 * weight * float(far)
            model.addCons(weight * squares - cost + big * chosen <= big)
        for t in chunk.link[chunk.link_start[s] : chunk.link_start[s + 1]]:
            for k in choices.get(int(t), {}):
                if int(t) < s and k in choices[s]:
                    model.addCons(choices[s][k] + choices[int(t)][k] <= 1)
    linear = pyscipopt.quicksum(
        float(nu[k, j]) * centers[k][j] for k in range(n_clusters) for j in range(n_dims)
    )
    model.setObjective(pyscipopt.quicksum(costs) + linear, "minimize")
    return model, centers, choices


def _pyscipopt() -> Any:
    try:
        import pyscipopt
    except ImportError as error:
        raise MissingExtraError(
            "the reference solver for group problems needs PySCIPOpt",
            hint="pip install 'certikmeans[scip]'",
        ) from error
    return pyscipopt
