"""Interior-point solution of the SDP relaxation with clarabel: accurate, and slow beyond n = 60."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np
from scipy.sparse import coo_array, csc_matrix, vstack

from certikmeans._types import Floats, Ints
from certikmeans.bounds.sdp.model import MatrixMultipliers, SdpModel, Triples, cut_table
from certikmeans.errors import MissingExtraError
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class InteriorPointSolution:
    """Solution returned by clarabel; the objective is for comparison only."""

    multipliers: MatrixMultipliers
    z: Floats
    objective: float


def load_clarabel() -> Any:
    """Import clarabel."""
    try:
        return import_module("clarabel")
    except ImportError as error:
        raise MissingExtraError(
            "solver='clarabel' needs clarabel",
            hint="pip install 'certikmeans[sdp]', or use solver='admm', which needs nothing",
        ) from error


def solve_interior_point(model: SdpModel, cuts: Triples, stop: StopSignal) -> InteriorPointSolution:
    """Solve with all entries non-negative and the given cuts; K >= 2.

    The variables are the upper triangle of M, column by column, with ``sqrt(2)`` off the diagonal:
    the scaling of clarabel's semidefinite cone.
    """
    clarabel = load_clarabel()
    n = model.n_groups
    rows, columns = _triangle(n)
    diagonal = rows == columns
    svec_scale = np.where(diagonal, 1.0, math.sqrt(2.0))
    scale = np.outer(model.sqrt_weights, model.sqrt_weights)
    costs = (model.costs / scale / model.total)[rows, columns] * svec_scale

    zero_entries = np.flatnonzero(model.zero_mask[rows, columns])
    free = np.flatnonzero(~diagonal & ~model.zero_mask[rows, columns])
    size = len(rows)
    row_sums = _row_sums(model.sqrt_weights, rows, columns, svec_scale)
    trace = csc_matrix(diagonal.astype(np.float64)[None, :])
    cut_rows = _cut_rows(model, cuts, scale, rows, columns)
    blocks = [
        row_sums,
        _selection_rows(zero_entries, size, 1.0),
        trace,
        _selection_rows(free, size, -1.0),
        cut_rows,
        _selection_rows(np.arange(size), size, -1.0),
    ]
    rhs = np.zeros(sum(block.shape[0] for block in blocks))
    rhs[:n] = model.sqrt_weights
    rhs[n + len(zero_entries)] = model.n_clusters
    cones = [
        clarabel.ZeroConeT(n + len(zero_entries)),
        clarabel.NonnegativeConeT(1 + len(free) + len(cuts)),
        clarabel.PSDTriangleConeT(n),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    if stop.remaining < math.inf:
        settings.time_limit = max(stop.remaining, 1e-3)
    no_quadratic = csc_matrix((size, size))
    constraints = csc_matrix(vstack(blocks))
    solution = clarabel.DefaultSolver(
        no_quadratic, costs, constraints, rhs, cones, settings
    ).solve()

    dual = np.array(solution.z)
    dual_zero, dual_free, dual_cuts = np.split(
        dual[n : n + len(zero_entries) + 1 + len(free) + len(cuts)],
        [len(zero_entries), len(zero_entries) + 1 + len(free)],
    )
    entries = np.zeros(size)
    entries[zero_entries] = -dual_zero
    entries[free] = dual_free[1:]
    matrix = _matrix(entries / svec_scale, rows, columns, n)
    multipliers = MatrixMultipliers(
        model.total * scale * matrix, cuts, model.total * model.mass * np.maximum(dual_cuts, 0.0)
    )
    z = _matrix(np.array(solution.x) / svec_scale, rows, columns, n) / scale
    return InteriorPointSolution(multipliers, z, float(solution.obj_val) * model.total)


def _triangle(n: int) -> tuple[Ints, Ints]:
    """Rows and columns of the upper triangle, column by column."""
    columns, rows = np.tril_indices(n)
    return rows, columns


def _selection_rows(entry_indices: Ints, size: int, factor: float) -> csc_matrix:
    count = len(entry_indices)
    values = np.full(count, factor)
    return csc_matrix(coo_array((values, (np.arange(count), entry_indices)), shape=(count, size)))


def _row_sums(
    v: Floats,
    rows: Ints,
    columns: Ints,
    svec_scale: Floats,
) -> csc_matrix:
    """Rows of ``M v``."""
    entry_indices = np.arange(len(rows))
    off = rows != columns
    values = np.concatenate([v[columns] / svec_scale, (v[rows] / svec_scale)[off]])
    where = (
        np.concatenate([rows, columns[off]]),
        np.concatenate([entry_indices, entry_indices[off]]),
    )
    return csc_matrix(coo_array((values, where), shape=(len(v), len(rows))))


def _cut_rows(
    model: SdpModel,
    cuts: Triples,
    scale: Floats,
    rows: Ints,
    columns: Ints,
) -> csc_matrix:
    """Rows of the cuts in terms of M, times the mass."""
    n = model.n_groups
    table = cut_table(cuts, n)
    number = np.zeros(n * n, dtype=np.int64)
    number[rows * n + columns] = np.arange(len(rows))
    entry_indices = number[table.entry_indices]
    off = rows != columns
    factors = table.factors * model.mass / scale.ravel()[table.entry_indices]
    factors = np.where(off[entry_indices], factors / math.sqrt(2.0), factors)
    cut_numbers = np.repeat(np.arange(len(cuts)), 4)
    shape = (len(cuts), len(rows))
    return csc_matrix(
        coo_array((factors.ravel(), (cut_numbers, entry_indices.ravel())), shape=shape)
    )


def _matrix(values: Floats, rows: Ints, columns: Ints, n: int) -> Floats:
    matrix = np.zeros((n, n))
    matrix[rows, columns] = values
    matrix[columns, rows] = values
    return matrix
