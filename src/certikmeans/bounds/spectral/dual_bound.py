"""Lower bounds from sums of eigenvalues, for any multipliers, rounding included.

**Without multipliers.** With weights w, ``v = sqrt(w)``, W their sum, ``y_s = v_s (x_s - c)`` for
**any** c, and M the matrix of a labelling (``v_s v_t / W_k`` for two groups of one cluster of
weight W_k, else 0),

    cost = sum_s |y_s|^2 - <Y Y^T, M>,      M = v v^T / W + N,

N a projection of rank at most ``m = min(K, n) - 1`` with ``N v = 0``. Hence (Ding and He, 2004)

    cost >= tr Y^T Y - |Y^T v|^2 / W - (sum of the m largest eigenvalues of Y Y^T).

The non-zero eigenvalues of ``Y Y^T`` are those of ``Y^T Y``; the smaller matrix is used.

**With multipliers.** ``M >= 0`` entrywise, and 0 at cannot-links. So for any ``Lambda`` that is
non-negative except at cannot-links,

    cost >= tr Y^T Y - <A, M>,     A = Y Y^T + Lambda,     <A, M> = v^T A v / W + <A, N>.

``Lambda`` has few columns: ``Lambda_st = v_s v_t ell_st`` with the hat functions of
`SpectralMultipliers`, and link multipliers between unit vectors. So ``A = B C B^T`` with B the
columns of `gram` (except v) and C a small symmetric matrix: ones for the axes, coefficients
between hat functions, link multipliers between unit vectors. The columns of the multipliers
**are** the computed floats: their only required property is that they are non-negative.

N lies between 0 and the projection ``P = I - v v^T / W``, so ``S = B^T N B`` lies between 0 and
``H = B^T P B = B^T B - b b^T / W``, ``b = B^T v``, and has rank at most m. For any nonsingular
square R with ``R^T R >= H``: ``S = R^T T R`` with ``0 <= T <= I`` and trace at most m, and

    <A, N> = <C, S> = <R C R^T, T> <= sum of the m largest eigenvalues of R C R^T, if positive.

This matrix has order ``d + K (K - 1)`` for one hat function per ordered pair of clusters,
independently of n.

**Rounding.** Bounds on sums of eigenvalues, and R: `verified_eigen`. Without multipliers:

* ``Y^T Y`` errs entrywise by ``g h_i h_j`` (`gram`), in norm by ``g sum h_j^2``; its diagonal and
  so the trace t by ``g t``; ``|y_j^T v|`` by ``g h_j sqrt(W)``, which is doubled for the rounding
  of W itself. The n x n matrix: rows of d terms, ``g = (d + n + 16) EPS``.

With multipliers, columns are divided by floats near their norms h, and C is multiplied by them
(2 u each):

* H: entries of ``B^T B`` err by ``g h_i h_j`` (`gram`), ``b_i`` by ``g h_i sqrt(W)``, where
  ``|b_i| <= h_i sqrt(W)``, W by g of itself: in all ``4 g + 8 EPS`` after division; in norm
  r times that.
* ``R C R^T``: two products, ``(2 r + 8) EPS |R| |C| |R|^T`` entrywise.
* ``v^T A v / W``: the axes as above; coefficients: products of non-negative sums, 4 g of
  themselves and 8 EPS; link multipliers: a few EPS of their sizes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints
from certikmeans.bounds.spectral.gram import (
    CHUNK,
    Frame,
    Gram,
    SpectralMultipliers,
    axes_gram,
    full_gram,
)
from certikmeans.bounds.verified_eigen import (
    NORM_SAFETY,
    cholesky_above,
    frobenius_norm,
    largest_eigenvalue_sum,
)
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS

MIN_VALUE = 1e-200  # smallest bound claimed for scaled data
MAX_COLUMNS = 2_000


def eigenvalue_bound(problem: ReducedProblem, chunk: int = CHUNK) -> float:
    """Lower bound on the reduced cost of every labelling; one pass over the points.

    ``chunk`` is the number of rows per block of the inner products (`gram`).

    Examples
    --------
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.stop import StopSignal
    >>> square = [[0.0, 0.0], [0.0, 2.0], [9.0, 0.0], [9.0, 2.0]]
    >>> done = presolve(Problem.from_data(square, 2), StopSignal())
    >>> round(eigenvalue_bound(done.reduced), 6)  # the optimum: left and right
    4.0
    """
    n, d = problem.points.shape
    rank = min(problem.n_clusters, n) - 1
    if rank >= min(n, d):
        return 0.0
    frame = Frame.of(problem)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        value = _by_rows(problem, frame, rank) if n < d else _by_axes(problem, frame, rank, chunk)
    return rescale_bound(value, frame)


def rescale_bound(value: float, frame: Frame) -> float:
    """Bound for the original data from one for scaled data; 0 if it is not a positive number."""
    if not MIN_VALUE < value < math.inf:
        return 0.0
    return math.ldexp(value, 2 * frame.exponent)


def axes_rank_one_term(gram: Gram, mass: float) -> float:
    """Upper bound on ``|Y^T v|^2 / W``."""
    d, norms = gram.n_dims, gram.norms
    mean_offset = np.abs(gram.products[0, 1 : 1 + d])
    mean_offset = mean_offset + 2.0 * gram.relative_error * norms[1 : 1 + d] * math.sqrt(mass)
    return NORM_SAFETY * float(np.sum(mean_offset * mean_offset)) / mass


def axes_trace(gram: Gram) -> tuple[float, float]:
    """``tr Y^T Y`` as computed, and an upper bound on its error."""
    trace = math.fsum(np.diagonal(gram.products)[1 : 1 + gram.n_dims].tolist())
    return trace, 2.0 * gram.relative_error * trace


def _by_axes(problem: ReducedProblem, frame: Frame, rank: int, chunk: int) -> float:
    gram = axes_gram(problem, frame, chunk)
    trace, trace_error = axes_trace(gram)
    rank_one_term = axes_rank_one_term(gram, float(gram.products[0, 0]))
    eigenvalue_term = largest_eigenvalue_sum(
        gram.products[1:, 1:], gram.relative_error * NORM_SAFETY * trace, rank
    )
    return combine_rounded_down(trace, trace_error, rank_one_term, eigenvalue_term)


def _by_rows(problem: ReducedProblem, frame: Frame, rank: int) -> float:
    n, d = problem.points.shape
    sqrt_weights = np.sqrt(problem.weights)
    y: Floats = sqrt_weights[:, None] * frame.rows(problem, slice(0, n))
    relative_error = (d + n + 16) * EPS
    trace = math.fsum((y * y).sum(axis=1).tolist())
    mass = float(problem.weights.sum())
    norms = np.sqrt((y * y).sum(axis=0))
    mean_offset = np.abs(y.T @ sqrt_weights) + 2.0 * relative_error * norms * math.sqrt(mass)
    rank_one_term = NORM_SAFETY * float(np.sum(mean_offset * mean_offset)) / mass
    eigenvalue_term = largest_eigenvalue_sum(y @ y.T, relative_error * NORM_SAFETY * trace, rank)
    return combine_rounded_down(trace, 2.0 * relative_error * trace, rank_one_term, eigenvalue_term)


def combine_rounded_down(
    trace: float, trace_error: float, rank_one_term: float, eigenvalue_term: float
) -> float:
    """Lower bound on ``trace - rank_one_term - eigenvalue_term``."""
    value = trace - rank_one_term - eigenvalue_term - NORM_SAFETY * trace_error
    return value - 8.0 * EPS * (trace + rank_one_term + eigenvalue_term)


def safe_value(problem: ReducedProblem, evidence: SpectralMultipliers, chunk: int = CHUNK) -> float:
    """Lower bound on the reduced cost of every labelling, valid for any evidence.

    Negative coefficients and link multipliers without a cannot-link count as 0. Evidence that is
    not finite, or needs more than `MAX_COLUMNS` columns, gives `eigenvalue_bound`.
    """
    usable = valid_multipliers(problem, evidence)
    rank = min(problem.n_clusters, problem.n_groups) - 1
    if rank == 0 or usable is None:
        return eigenvalue_bound(problem, chunk)
    frame = Frame.of(problem)
    with one_blas_thread(), np.errstate(all="ignore"):
        gram = full_gram(problem, frame, usable, chunk=chunk)
        value = bound_for_coefficients(gram, coefficient_matrix(gram, frame, usable), rank)
    return rescale_bound(value, frame)


def bound_for_coefficients(gram: Gram, middle: Floats, rank: int) -> float:
    """Lower bound on ``tr Y^T Y - <A, M>`` for all M and ``A = B C B^T`` with this C.

    For scaled data; may be infinite or not a number.
    """
    mass = float(gram.products[0, 0])
    trace, trace_error = axes_trace(gram)
    rank_one_term = _rank_one_term(gram, middle, mass)
    norms = gram.norms[1:]
    inner = inner_products(gram)
    r = len(inner)
    root = cholesky_above(inner, r * (4.0 * gram.relative_error + 8.0 * EPS))
    if root is None:
        return -math.inf
    scaled = norms[:, None] * middle * norms
    small = root @ scaled @ root.T
    small = 0.5 * (small + small.T)
    magnitude = np.abs(root) @ np.abs(scaled) @ np.abs(root).T
    perturbation = (2 * r + 12) * EPS * NORM_SAFETY * frobenius_norm(magnitude)
    return combine_rounded_down(
        trace, trace_error, rank_one_term, largest_eigenvalue_sum(small, perturbation, rank)
    )


def inner_products(gram: Gram) -> Floats:
    """``H`` of all columns except v, each divided by its norm."""
    norms, products = gram.norms[1:], gram.products
    pull = products[0, 1:] / norms
    inner = products[1:, 1:] / norms[:, None] / norms
    return np.asarray(inner - np.outer(pull, pull / products[0, 0]))


def coefficient_matrix(gram: Gram, frame: Frame, evidence: SpectralMultipliers) -> Floats:
    """``C``: ones for axes, coefficients between hat functions, link multipliers."""
    d = gram.n_dims
    r = len(gram.products) - 1
    middle = np.zeros((r, r))
    middle[np.arange(d), np.arange(d)] = 1.0
    position = {
        (column.pair, column.side, column.node): d + number
        for number, column in enumerate(gram.columns)
    }
    coefficients = np.ldexp(evidence.coefficients, -2 * frame.exponent)
    for pair, k, el in np.argwhere(evidence.coefficients > 0.0).tolist():
        first_index, second_index = position[pair, 0, k], position[pair, 1, el]
        coefficient = coefficients[pair, k, el]
        middle[first_index, second_index] = middle[second_index, first_index] = coefficient
    first = d + len(gram.columns)
    ends = first + np.searchsorted(gram.unit_groups, evidence.link_pairs)
    link_multipliers = np.ldexp(evidence.link_multipliers, -2 * frame.exponent)
    middle[ends[:, 0], ends[:, 1]] = middle[ends[:, 1], ends[:, 0]] = link_multipliers
    return middle


def _rank_one_term(gram: Gram, middle: Floats, mass: float) -> float:
    """Upper bound on ``v^T A v / W``."""
    d = gram.n_dims
    pull = gram.products[0, 1 + d :]
    terms = pull[:, None] * middle[d:, d:] * pull / mass
    error = (4.0 * gram.relative_error + (len(terms) + 16) * EPS) * NORM_SAFETY
    more = math.fsum(terms.ravel().tolist()) + error * float(np.abs(terms).sum())
    return axes_rank_one_term(gram, mass) + more


def valid_multipliers(
    problem: ReducedProblem, evidence: SpectralMultipliers
) -> SpectralMultipliers | None:
    """Valid part of the evidence, or None if nothing of it is usable."""
    labels, pairs = evidence.labels, evidence.pairs
    if len(labels) != problem.n_groups or (len(labels) and labels.min() < 0):
        return None
    most = int(labels.max()) if len(labels) else 0
    if most >= max(problem.n_clusters, 1):
        return None
    finite = (evidence.nodes, evidence.coefficients, evidence.link_multipliers)
    if not all(np.isfinite(values).all() for values in finite):
        return None
    if len(pairs) and not (pairs.min() >= 0 and pairs.max() <= most):
        return None
    coefficients = np.maximum(evidence.coefficients, 0.0)
    is_link = _is_cannot_link(problem, evidence.link_pairs)
    link_pairs, positions = np.unique(
        np.sort(evidence.link_pairs[is_link], axis=1), axis=0, return_index=True
    )
    link_multipliers = evidence.link_multipliers[is_link][positions]
    used = coefficients > 0.0
    columns = int(used.any(axis=1).sum() + used.any(axis=2).sum()) + len(np.unique(link_pairs))
    if not columns or problem.n_dims + columns > MAX_COLUMNS:
        return None
    return SpectralMultipliers(
        labels, pairs, evidence.nodes, coefficients, link_pairs, link_multipliers
    )


def _is_cannot_link(problem: ReducedProblem, link_pairs: Ints) -> NDArray[np.bool_]:
    """Mask of the pairs of groups that are cannot-links."""
    n = problem.n_groups
    edges = problem.graph.edges()
    low, high = np.sort(link_pairs, axis=1).T
    inside = (low >= 0) & (high < n)
    return np.asarray(inside & np.isin(low * n + high, edges[:, 0] * n + edges[:, 1]))
