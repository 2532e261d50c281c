"""Ascent on the spectral bound over coefficients of hat functions; cost per step independent of n.

The bound of `dual_bound` is concave in the coefficients. Once the inner products of all hat
functions are known, the bound and its gradient are those of a matrix of order
``d + q K (K - 1)``: with ``b = B^T v`` and R as there,

    f(coefficients) = trace - b^T C b / W
                      - sum of the m largest eigenvalues of R C R^T, where positive.

The last term is ``max <R C R^T, T>`` over ``0 <= T <= I`` of trace at most m; with
``- (mu/2) |T|^2`` it is smooth, T follows from a projection of the eigenvalues on a capped
simplex, and L-BFGS-B with ``coefficients >= 0`` maximizes it. The start is the closed form,
interpolated on more nodes: with two or three clusters many nodes are affordable. Multipliers of
cannot-links are variables too, free in sign.

Nothing here is trusted: the coefficients found go through `safe_value`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.spectral.closed_form import PairMargins, SpectralProof, compute_pair_margins
from certikmeans.bounds.spectral.dual_bound import MAX_COLUMNS, inner_products, safe_value
from certikmeans.bounds.spectral.gram import (
    Frame,
    Gram,
    SpectralMultipliers,
    cluster_centers,
    full_gram,
)
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem

EVALUATION_WORK = 0.4  # units of work, times the cube of the order of the matrices
CHOLESKY_SHIFT = 1e-11  # makes nearly singular inner products positive definite


@final
@dataclass(frozen=True, slots=True)
class SpectralAscentParams:
    """Settings of the ascent."""

    # About the order of the matrices; decides the number of nodes. The time of a step grows with
    # its cube.
    n_columns: int = 500
    steps: int = 100  # of L-BFGS-B, for each smoothing
    max_nodes: int = 16  # of hat functions per side of a pair of clusters
    preferred_nodes: int = 5  # nodes that take precedence over multipliers of cannot-links
    min_nodes: int = 3  # with fewer there is no ascent
    smoothing: tuple[float, ...] = (0.03, 0.005)  # in units of the first eigenvalue not used
    memory: int = 20  # corrections kept by L-BFGS-B
    negligible_coefficient: float = 1e-9  # smaller ones, relative to the largest, become 0
    # Coefficients of two hat functions whose product is below this fraction of the total weight
    # become 0, too: their effect depends on the last digits of margins, which the verifier rounds
    # differently.
    min_basis_weight: float = 1e-10

    def __post_init__(self) -> None:
        if not 2 <= self.min_nodes <= self.max_nodes:
            raise ValueError("min_nodes has to be at least 2 and at most max_nodes")
        if not all(smoothing > 0.0 for smoothing in self.smoothing):
            raise ValueError("smoothing has to be positive")


DEFAULT_PARAMS = SpectralAscentParams()


class _Stopped(Exception):
    pass


def ascend(
    problem: ReducedProblem,
    start: SpectralProof,
    *,
    params: SpectralAscentParams = DEFAULT_PARAMS,
    stop: Callable[[], bool] = lambda: False,
    on_work: Callable[[float], None] = lambda units: None,
) -> SpectralProof:
    """Improve a proof in closed form; returns ``start`` if nothing better is found.

    Parameters
    ----------
    problem : ReducedProblem
    start : SpectralProof
    params : SpectralAscentParams
    stop : callable
        Evaluated before every function evaluation; if True, the last iterate is proven.
    on_work : callable
        Called with the units of work of every evaluation.
    """
    given = start.evidence
    rank = min(problem.n_clusters, problem.n_groups) - 1
    if not len(given.pairs) or rank < 1:
        return start
    frame = Frame.of(problem)
    n_columns = min(params.n_columns, MAX_COLUMNS) - problem.n_dims
    n_spare = n_columns - params.preferred_nodes * 2 * len(given.pairs)
    link_pairs = _select_links(problem, frame, given, max(n_spare, 0))
    n_columns -= len(np.unique(link_pairs))
    n_nodes = min(n_columns // (2 * len(given.pairs)), params.max_nodes)
    if n_nodes < params.min_nodes or stop():
        return start
    initial = _refine_nodes(problem, frame, given, link_pairs, n_nodes)
    all_columns_used = replace(initial, coefficients=np.ones_like(initial.coefficients))
    with one_blas_thread(), np.errstate(all="ignore"):
        model = _SmoothedBound.of(full_gram(problem, frame, all_columns_used), initial, rank)
        found = None if model is None else _maximize(model, frame, initial, params, stop, on_work)
    if found is None:
        return start
    value = safe_value(problem, found)
    return SpectralProof(value, found) if value > start.value else start


def _select_links(
    problem: ReducedProblem, frame: Frame, given: SpectralMultipliers, n_columns: int
) -> Ints:
    """Cannot-links with both ends closest to the cluster of the other end.

    A group that a cannot-link keeps out of its nearest cluster would need a negative row sum of
    multipliers towards it; only at cannot-links can multipliers be negative.
    """
    edges: Ints = problem.graph.edges()
    separated = given.labels[edges[:, 0]] != given.labels[edges[:, 1]]
    edges = edges[separated]
    if not len(edges):
        return np.empty((0, 2), dtype=np.int64)
    centers = cluster_centers(problem, frame, given.labels)
    ends = given.labels[edges]
    margins = []
    for side in (0, 1):
        offsets = frame.rows(problem, edges[:, side])
        own, other = centers[ends[:, side]], centers[ends[:, 1 - side]]
        margins.append(np.sum((offsets - other) ** 2 - (offsets - own) ** 2, axis=1))
    masses = np.bincount(given.labels, problem.weights, len(centers))
    # The ramps of the closed form begin at ``t_ab``, which gives the z common to all pairs.
    a, b = given.pairs[0]
    z = given.nodes[0, 0, 0] / (1.0 / masses[a] + 1.0 / masses[b])
    z = max(0.0, float(np.ldexp(z, -2 * frame.exponent)))
    need = np.minimum(margins[0], margins[1]) - z * np.sum(1.0 / masses[ends], axis=1)
    order = np.argsort(need, kind="stable")
    order = order[need[order] < 0.0][: n_columns // 2]
    return np.asarray(edges[np.sort(order)])


def _refine_nodes(
    problem: ReducedProblem,
    frame: Frame,
    given: SpectralMultipliers,
    link_pairs: Ints,
    n_nodes: int,
) -> SpectralMultipliers:
    """The same multipliers on more nodes, placed by the margins of the groups."""
    pair_margins = compute_pair_margins(problem, frame, given.labels)
    p = len(given.pairs)
    number = {tuple(pair): i for i, pair in enumerate(pair_margins.pairs.tolist())}
    nodes = np.empty((p, 2, n_nodes))
    coefficients = np.empty((p, n_nodes, n_nodes))
    old = np.ldexp(given.nodes, -2 * frame.exponent)
    for pair, (a, b) in enumerate(given.pairs.tolist()):
        tables = []
        for side in (0, 1):
            margins = _side_margins(pair_margins, number, a, b, side)
            nodes[pair, side] = _place_nodes(old[pair, side], margins, n_nodes)
            tables.append(
                np.array([np.interp(nodes[pair, side], old[pair, side], basis_function)
                          for basis_function in np.eye(old.shape[2])])
            )  # fmt: skip
        coefficients[pair] = tables[0].T @ given.coefficients[pair] @ tables[1]
    nodes = np.ldexp(nodes, 2 * frame.exponent)
    link_multipliers = np.zeros(len(link_pairs))
    return SpectralMultipliers(
        given.labels, given.pairs, nodes, coefficients, link_pairs, link_multipliers
    )


def _side_margins(
    pair_margins: PairMargins, number: dict[tuple[int, ...], int], a: int, b: int, side: int
) -> Floats:
    if (a, b) in number:
        return pair_margins.margins[number[a, b]][side]
    return pair_margins.margins[number[b, a]][1 - side]


def _place_nodes(old: Floats, margins: Floats, n_nodes: int) -> Floats:
    """Nodes from the smallest margin to the end of the ramp, denser near the bisector.

    Multipliers are nonlinear where groups lie between two clusters, and nearly linear far out.
    """
    start, end = float(old[0]), float(old[-1])
    low = min(float(margins.min()), start - 0.05 * (end - start))
    below = max(1, n_nodes // 4)
    left = np.linspace(low, start, below + 1)[:-1]
    share = np.linspace(0.0, 1.0, n_nodes - below)
    return np.concatenate([left, start + (end - start) * share**1.5])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _SmoothedBound:
    """The smoothed bound; variables are coefficients in units of ``scale``."""

    root: Floats
    fixed: Floats  # C of the axes, columns of length 1
    first_index: Ints  # row in C of every variable: coefficients, then link multipliers
    second_index: Ints  # column in C
    linear: Floats
    scale: Floats  # coefficients are variables times this
    trace: float
    mass: float
    rank: int

    @classmethod
    def of(cls, gram: Gram, initial: SpectralMultipliers, rank: int) -> _SmoothedBound | None:
        d, norms, mass = gram.n_dims, gram.norms[1:], float(gram.products[0, 0])
        inner = inner_products(gram)
        try:
            root = np.linalg.cholesky(inner + CHOLESKY_SHIFT * np.eye(len(inner))).T
        except np.linalg.LinAlgError:
            return None
        p, q, _ = initial.coefficients.shape
        start = d + 2 * q * np.arange(p)[:, None, None]
        first_index = (start + np.arange(q)[None, :, None] + np.zeros((1, 1, q), np.int64)).ravel()
        second_index = (
            start + q + np.arange(q)[None, None, :] + np.zeros((1, q, 1), np.int64)
        ).ravel()
        units = d + len(gram.columns) + np.searchsorted(gram.unit_groups, initial.link_pairs)
        first_index = np.append(first_index, units[:, 0])
        second_index = np.append(second_index, units[:, 1])
        fixed = np.zeros_like(inner)
        fixed[np.arange(d), np.arange(d)] = norms[:d] ** 2
        pull = gram.products[0, 1:] / norms
        trace = float(np.sum(norms[:d] ** 2))
        return cls(
            root=np.asarray(root, np.float64),
            fixed=fixed,
            first_index=first_index,
            second_index=second_index,
            linear=2.0 * pull[first_index] * pull[second_index] / mass,
            scale=1.0 / (norms[first_index] * norms[second_index]),
            trace=trace,
            mass=mass,
            rank=rank,
        )

    def value(self, x: Floats, smoothing: float) -> tuple[float, Floats]:
        """Smoothed bound, never below the bound itself, and its gradient."""
        middle = self.fixed.copy()
        middle[self.first_index, self.second_index] += x
        middle[self.second_index, self.first_index] += x
        values, vectors = self._largest(self.root @ middle @ self.root.T, smoothing)
        share = _project_capped_simplex(values / smoothing, self.rank)
        eigenvalue_term = float(values @ share) - 0.5 * smoothing * float(share @ share)
        kept = share > 0.0
        rotated = self.root.T @ (vectors[:, kept] * np.sqrt(share[kept]))
        gradient = np.einsum("ij,ij->i", rotated[self.first_index], rotated[self.second_index])
        return self.trace - float(self.linear @ x) - eigenvalue_term, -self.linear - 2.0 * gradient

    def _largest(self, matrix: Floats, smoothing: float) -> tuple[Floats, Floats]:
        """Eigenpairs that include all with a positive weight."""
        from scipy.linalg import eigh

        order = len(matrix)
        wanted = 2 * self.rank + 10
        if order > 4 * wanted:
            window = (order - wanted, order - 1)
            values, vectors = eigh(matrix, subset_by_index=window, check_finite=False)
            if _project_capped_simplex(values / smoothing, self.rank)[0] == 0.0:
                return values, vectors
        return np.linalg.eigh(matrix)


def _project_capped_simplex(values: Floats, rank: int) -> Floats:
    """Nearest point with entries in [0, 1] and a sum of at most ``rank``, by bisection."""
    share = np.clip(values, 0.0, 1.0)
    low, high = 0.0, float(values.max(initial=0.0))
    if share.sum() <= rank:
        return share
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.clip(values - middle, 0.0, 1.0).sum() > rank:
            low = middle
        else:
            high = middle
    return np.clip(values - high, 0.0, 1.0)


def _maximize(
    model: _SmoothedBound,
    frame: Frame,
    initial: SpectralMultipliers,
    params: SpectralAscentParams,
    stop: Callable[[], bool],
    on_work: Callable[[float], None],
) -> SpectralMultipliers | None:
    from scipy.optimize import minimize  # imported late: slower to load than a small run takes

    n_coefficients = initial.coefficients.size
    x = (
        np.append(
            np.ldexp(initial.coefficients, -2 * frame.exponent).ravel(), initial.link_multipliers
        )
        / model.scale
    )
    bounds = [(0.0, None)] * n_coefficients + [(None, None)] * len(initial.link_multipliers)
    try:
        values = np.linalg.eigvalsh(model.root @ model.fixed @ model.root.T)
    except np.linalg.LinAlgError:
        return None
    # The first eigenvalue beyond the rank: those below it do not lower the bound.
    unit = max(float(values[-model.rank - 1]), 1e-4 * model.trace)
    if not 0.0 < unit < np.inf:
        return None
    last_x = x

    def negative_bound(x: Floats, smoothing: float) -> tuple[float, Floats]:
        if stop():
            raise _Stopped
        value, gradient = model.value(x * unit, smoothing * unit)
        on_work(EVALUATION_WORK * float(len(model.root)) ** 3)
        return -value / unit, -gradient

    def record(x: Floats) -> None:
        nonlocal last_x
        last_x = x * unit

    try:
        for smoothing in params.smoothing:
            minimize(
                negative_bound, last_x / unit, args=(smoothing,), jac=True, method="L-BFGS-B",
                bounds=bounds, callback=record,
                options={"maxiter": params.steps, "maxcor": params.memory},
            )  # fmt: skip
    except (_Stopped, np.linalg.LinAlgError):
        pass
    negligible = np.abs(last_x) <= params.negligible_coefficient * float(np.abs(last_x).max())
    negligible[:n_coefficients] |= (
        model.scale[:n_coefficients] * model.mass > 1.0 / params.min_basis_weight
    )
    last_x = np.where(negligible, 0.0, last_x)
    found = np.ldexp(last_x * model.scale, 2 * frame.exponent)
    if not np.isfinite(found).all():
        return None
    link_multipliers = found[n_coefficients:]
    used = link_multipliers != 0.0
    return replace(
        initial,
        coefficients=found[:n_coefficients].reshape(initial.coefficients.shape),
        link_pairs=initial.link_pairs[used],
        link_multipliers=link_multipliers[used],
    )
