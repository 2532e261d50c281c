"""The same relaxation for clarabel, an interior-point solver: accurate, and slow beyond n = 60."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_matrix, vstack

from certikmeans.bounds.sdp.cuts import Triples, cut_table
from certikmeans.bounds.sdp.model import Matrix, SdpModel
from certikmeans.bounds.sdp.multipliers import MatrixMultipliers
from certikmeans.errors import MissingExtraError
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class InteriorAnswer:
    """What clarabel ended with; its objective is for comparison only."""

    multipliers: MatrixMultipliers
    z: Matrix
    objective: float


def load_clarabel() -> Any:
    """Import the solver, or say how to get it."""
    try:
        return import_module("clarabel")
    except ImportError as error:
        raise MissingExtraError(
            "solver='clarabel' needs clarabel",
            hint="pip install 'certikmeans[sdp]', or use solver='admm', which needs nothing",
        ) from error


def solve_interior(model: SdpModel, cuts: Triples, stop: StopSignal) -> InteriorAnswer:
    """Solve with all entries non-negative and the given cuts; K >= 2.

    The variables are the upper triangle of M, column by column, with ``sqrt(2)`` off the diagonal,
    as clarabel wants a semidefinite cone.
    """
    clarabel = load_clarabel()
    n = model.n_groups
    rows, columns = _triangle(n)
    diagonal = rows == columns
    stretch = np.where(diagonal, 1.0, math.sqrt(2.0))
    scale = np.outer(model.roots, model.roots)
    costs = (model.costs / scale / model.total)[rows, columns] * stretch

    apart = np.flatnonzero(model.fixed[rows, columns])
    free = np.flatnonzero(~diagonal & ~model.fixed[rows, columns])
    size = len(rows)
    row_sums = _row_sums(model.roots, rows, columns, stretch)
    trace = csc_matrix(diagonal.astype(np.float64)[None, :])
    cut_rows = _cut_rows(model, cuts, scale, rows, columns)
    blocks = [
        row_sums, _picked(apart, size, 1.0), trace, _picked(free, size, -1.0), cut_rows,
        _picked(np.arange(size), size, -1.0),
    ]  # fmt: skip
    right = np.zeros(sum(block.shape[0] for block in blocks))
    right[:n] = model.roots
    right[n + len(apart)] = model.n_clusters
    cones = [
        clarabel.ZeroConeT(n + len(apart)),
        clarabel.NonnegativeConeT(1 + len(free) + len(cuts)),
        clarabel.PSDTriangleConeT(n),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    if stop.remaining < math.inf:
        settings.time_limit = max(stop.remaining, 1e-3)
    nothing = csc_matrix((size, size))
    program = csc_matrix(vstack(blocks))
    answer = clarabel.DefaultSolver(nothing, costs, program, right, cones, settings).solve()

    dual = np.array(answer.z)
    on_apart, on_free, on_cuts = np.split(
        dual[n : n + len(apart) + 1 + len(free) + len(cuts)],
        [len(apart), len(apart) + 1 + len(free)],
    )
    entries = np.zeros(size)
    entries[apart] = -on_apart
    entries[free] = on_free[1:]
    matrix = _matrix(entries / stretch, rows, columns, n)
    multipliers = MatrixMultipliers(
        model.total * scale * matrix, cuts, model.total * model.mass * np.maximum(on_cuts, 0.0)
    )
    z = _matrix(np.array(answer.x) / stretch, rows, columns, n) / scale
    return InteriorAnswer(multipliers, z, float(answer.obj_val) * model.total)


def _triangle(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the upper triangle, column by column."""
    columns, rows = np.tril_indices(n)
    return rows, columns


def _picked(places: NDArray[np.int64], size: int, factor: float) -> csc_matrix:
    count = len(places)
    values = np.full(count, factor)
    return csc_matrix(coo_array((values, (np.arange(count), places)), shape=(count, size)))


def _row_sums(
    v: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    stretch: NDArray[np.float64],
) -> csc_matrix:
    """``M v``."""
    places = np.arange(len(rows))
    off = rows != columns
    values = np.concatenate([v[columns] / stretch, (v[rows] / stretch)[off]])
    where = (np.concatenate([rows, columns[off]]), np.concatenate([places, places[off]]))
    return csc_matrix(coo_array((values, where), shape=(len(v), len(rows))))


def _cut_rows(
    model: SdpModel,
    cuts: Triples,
    scale: Matrix,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> csc_matrix:
    """The cuts in terms of M, times the mass."""
    n = model.n_groups
    table = cut_table(cuts, n)
    number = np.zeros(n * n, dtype=np.int64)
    number[rows * n + columns] = np.arange(len(rows))
    places = number[table.places]
    off = rows != columns
    factors = table.factors * model.mass / scale.ravel()[table.places]
    factors = np.where(off[places], factors / math.sqrt(2.0), factors)
    lines = np.repeat(np.arange(len(cuts)), 4)
    shape = (len(cuts), len(rows))
    return csc_matrix(coo_array((factors.ravel(), (lines, places.ravel())), shape=shape))


def _matrix(
    values: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64], n: int
) -> Matrix:
    matrix = np.zeros((n, n))
    matrix[rows, columns] = values
    matrix[columns, rows] = values
    return matrix
