"""The spectral floor: what no labelling can do without, at any n and any d.

With weights w, ``v = sqrt(w)``, W their sum, ``y_s = v_s (x_s - c)`` for **any** c, and M the
matrix of a labelling (``v_s v_t / W_k`` for two groups of one cluster of weight W_k, else 0),

    cost = sum_s |y_s|^2 - <Y Y^T, M>,      M = v v^T / W + N,

N a projection of rank at most ``m = min(K, n) - 1`` with ``N v = 0``. Hence (Ding and He, 2004)

    cost >= tr Y^T Y - |Y^T v|^2 / W - (sum of the m largest eigenvalues of Y Y^T).

The non-zero eigenvalues of ``Y Y^T`` are those of ``Y^T Y``; the smaller of both is used.

**Rounding.** ``Y^T Y`` errs entrywise by ``g h_i h_j`` (`gram`), in norm by ``g sum h_j^2``; its
diagonal and so the trace t by ``g t``; ``|y_j^T v|`` by ``g h_j sqrt(W)``, which is doubled for W's
own rounding. The n x n matrix: rows of d terms, ``g = (d + 16) EPS``. Eigenvalues: see `eigen`.
"""

from __future__ import annotations

import math

import numpy as np

from certikmeans.bounds.spectral.eigen import GENEROUS, largest_sum
from certikmeans.bounds.spectral.evidence import Floats
from certikmeans.bounds.spectral.gram import Frame, Gram, axes_gram
from certikmeans.execution.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS

LEAST_VALUE = 1e-200  # of scaled data: below that nothing is claimed


def spectral_floor(problem: ReducedProblem) -> float:
    """At most the reduced cost of every labelling; one pass over the points.

    Examples
    --------
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.stop import StopSignal
    >>> square = [[0.0, 0.0], [0.0, 2.0], [9.0, 0.0], [9.0, 2.0]]
    >>> done = presolve(Problem.from_data(square, 2), StopSignal())
    >>> round(spectral_floor(done.reduced), 6)  # the optimum: left and right
    4.0
    """
    n, d = problem.points.shape
    rank = min(problem.n_clusters, n) - 1
    if rank >= min(n, d):
        return 0.0
    frame = Frame.of(problem)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        value = _by_rows(problem, frame, rank) if n < d else _by_axes(problem, frame, rank)
    return unscaled(value, frame)


def unscaled(value: float, frame: Frame) -> float:
    """A bound for scaled data, for the data as they are; what is no number proves nothing."""
    if not LEAST_VALUE < value < math.inf:
        return 0.0
    return math.ldexp(value, 2 * frame.exponent)


def level_of_axes(gram: Gram, mass: float) -> float:
    """At least ``|Y^T v|^2 / W``."""
    d, norms = gram.n_axes, gram.norms
    drift = np.abs(gram.products[0, 1 : 1 + d])
    drift = drift + 2.0 * gram.relative * norms[1 : 1 + d] * math.sqrt(mass)
    return GENEROUS * float(np.sum(drift * drift)) / mass


def trace_of_axes(gram: Gram) -> tuple[float, float]:
    """``tr Y^T Y`` as computed, and what it may be too large by."""
    trace = math.fsum(np.diagonal(gram.products)[1 : 1 + gram.n_axes].tolist())
    return trace, 2.0 * gram.relative * trace


def _by_axes(problem: ReducedProblem, frame: Frame, rank: int) -> float:
    gram = axes_gram(problem, frame)
    trace, trace_error = trace_of_axes(gram)
    level = level_of_axes(gram, float(gram.products[0, 0]))
    spent = largest_sum(gram.products[1:, 1:], gram.relative * GENEROUS * trace, rank)
    return below(trace, trace_error, level, spent)


def _by_rows(problem: ReducedProblem, frame: Frame, rank: int) -> float:
    n, d = problem.points.shape
    roots = np.sqrt(problem.weights)
    y: Floats = roots[:, None] * frame.rows(problem, slice(0, n))
    relative = (d + n + 16) * EPS
    trace = math.fsum((y * y).sum(axis=1).tolist())
    mass = float(problem.weights.sum())
    norms = np.sqrt((y * y).sum(axis=0))
    drift = np.abs(y.T @ roots) + 2.0 * relative * norms * math.sqrt(mass)
    level = GENEROUS * float(np.sum(drift * drift)) / mass
    spent = largest_sum(y @ y.T, relative * GENEROUS * trace, rank)
    return below(trace, 2.0 * relative * trace, level, spent)


def below(trace: float, trace_error: float, level: float, spent: float) -> float:
    """``trace - level - spent``, at most."""
    value = trace - level - spent - GENEROUS * trace_error
    return value - 8.0 * EPS * (trace + level + spent)
