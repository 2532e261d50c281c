"""Spectral multipliers in closed form, from a labelling: no iteration, rank ``d + K (K - 1)``.

For s in cluster a, another cluster b, and any z let

    u_s(b) = max(0, W_b m_s(b) - z (W_a + W_b) / (2 W_a)) = W_b max(0, m_s(b) - t_ab),
    t_ab = z (1 / W_a + 1 / W_b) / 2,

W the weights of the clusters, and ``ell_st = u_s(b) u_t(a) / (2 sqrt(U_ab U_ba))`` with
``U_ab = sum of w_s u_s(b)`` over a. A group of weight w stands for w copies, so in the scale of M
(see `dual_bound`) ``Lambda_st = v_s v_t ell_st``. Without the maximum both sums would be equal,
row sums would be those that make the labelling a saddle point, and z the multiplier of the trace:
the eigenvalues that belong to the clusters are then all z, and other eigenvalues below z do not
lower the bound. So z has to exceed the largest eigenvalue of the scatter within the clusters, but
not by much: the larger z, the more groups are cut off by the maximum. A small multiple of that
eigenvalue is best; it is found by search, on a sample of the groups if there are many.

Any labelling is valid, including one that is not a fixed point of Lloyd's algorithm or has empty
clusters (`dual_bound.safe_value`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.spectral.dual_bound import (
    MAX_COLUMNS,
    coefficient_matrix,
    eigenvalue_bound,
    inner_products,
    safe_value,
)
from certikmeans.bounds.spectral.gram import (
    Frame,
    Gram,
    SpectralMultipliers,
    axes_gram,
    bisector_margins,
    cluster_centers,
    full_gram,
)
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem

CHUNK = 8_192  # rows per block


@final
@dataclass(frozen=True, slots=True)
class ClosedFormParams:
    """Settings of the search for z."""

    # For matrices up to some order: z as multiples of the largest eigenvalue within clusters, and
    # steps of bisection around the best one; fewer for large matrices.
    search_grids: tuple[tuple[float, tuple[float, ...], int], ...] = (
        (300, tuple(np.geomspace(1.0, 24.0, 10).tolist()), 3),
        (700, (1.4, 2.1, 3.4, 6.0, 12.0), 1),
        (math.inf, (1.8, 3.0, 6.0), 0),
    )
    search_axes: int = 100  # leading principal axes used in the search
    max_sample: int = 10_000  # groups used in the search

    def __post_init__(self) -> None:
        if not self.search_grids or self.search_grids[-1][0] != math.inf:
            raise ValueError("search_grids: the last grid has to apply to matrices of any order")
        if self.search_axes < 1 or self.max_sample < 1:
            raise ValueError("search_axes and max_sample have to be positive")


DEFAULT_PARAMS = ClosedFormParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectralProof:
    """A proven bound with its evidence: ``safe_value(problem, evidence) == value``."""

    value: float
    evidence: SpectralMultipliers


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairMargins:
    """Margins, masses and weights of the clusters of a labelling, in the scale of a frame."""

    pairs: Ints  # (p, 2): non-empty clusters
    masses: Floats  # (K,)
    margins: tuple[tuple[Floats, Floats], ...]  # m_s(b) for s in a, and m_t(a) for t in b
    weights: tuple[Floats, ...]  # of the groups of every cluster


def closed_form(
    problem: ReducedProblem,
    labels: Ints,
    stop: Callable[[], bool] = lambda: False,
    known_eigenvalue_bound: float | None = None,
    params: ClosedFormParams = DEFAULT_PARAMS,
) -> SpectralProof:
    """The better of `eigenvalue_bound` and the multipliers for the best z of a search.

    Parameters
    ----------
    stop : callable
        Evaluated before every z; if True, the best z so far is used, or none.
    known_eigenvalue_bound : float, optional
        `eigenvalue_bound` of the problem, if it was computed before.
    params : ClosedFormParams

    Examples
    --------
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.stop import StopSignal
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(np.arange(3), 20)
    >>> points = 9.0 * np.eye(3)[truth] + rng.normal(size=(60, 3))
    >>> done = presolve(Problem.from_data(points, 3), StopSignal())
    >>> found = closed_form(done.reduced, done.presolve_labels(truth))
    >>> eigenvalue_bound(done.reduced) < 0.8 * found.value
    True
    """
    value = eigenvalue_bound(problem) if known_eigenvalue_bound is None else known_eigenvalue_bound
    trivial = SpectralProof(value, SpectralMultipliers.zeros(problem.n_groups))
    nonempty = len(np.unique(labels))
    columns = problem.n_dims + nonempty * (nonempty - 1)
    if nonempty < 2 or columns > MAX_COLUMNS or problem.n_groups <= problem.n_clusters:
        return trivial
    with one_blas_thread():
        z = _best_trace_multiplier(problem, labels, stop, params)
    if z is None:
        return trivial
    frame = Frame.of(problem)
    evidence = ramp_multipliers(labels, compute_pair_margins(problem, frame, labels), frame, z)
    value = safe_value(problem, evidence)
    return SpectralProof(value, evidence) if value > trivial.value else trivial


def compute_pair_margins(problem: ReducedProblem, frame: Frame, labels: Ints) -> PairMargins:
    """Margins of every group towards every other cluster."""
    centers = cluster_centers(problem, frame, labels)
    masses = np.bincount(labels, problem.weights, len(centers)).astype(np.float64)
    nonempty = np.unique(labels)
    members = {int(k): np.flatnonzero(labels == k) for k in nonempty}
    margins: dict[int, Floats] = {}
    for k, rows in members.items():
        parts = [
            bisector_margins(
                frame.rows(problem, rows[i : i + CHUNK]), centers[k], centers[nonempty]
            )
            for i in range(0, len(rows), CHUNK)
        ]
        margins[k] = np.concatenate(parts)
    number = {int(k): i for i, k in enumerate(nonempty)}
    pairs = [(int(a), int(b)) for i, a in enumerate(nonempty) for b in nonempty[i + 1 :]]
    return PairMargins(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        masses,
        tuple((margins[a][:, number[b]], margins[b][:, number[a]]) for a, b in pairs),
        tuple(problem.weights[members.get(k, nonempty[:0])] for k in range(len(centers))),
    )


def ramp_multipliers(
    labels: Ints, pair_margins: PairMargins, frame: Frame, z: float
) -> SpectralMultipliers:
    """The multipliers above as evidence: a ramp is the last of two hat functions."""
    p = len(pair_margins.pairs)
    nodes = np.zeros((p, 2, 2))
    coefficients = np.zeros((p, 2, 2))
    for pair, (a, b) in enumerate(pair_margins.pairs.tolist()):
        start = 0.5 * z * (1.0 / pair_margins.masses[a] + 1.0 / pair_margins.masses[b])
        heights, sums = [], []
        for side, (here, other) in enumerate(((a, b), (b, a))):
            margins = pair_margins.margins[pair][side]
            end = max(float(margins.max()), 1.001 * start)
            nodes[pair, side] = start, end
            heights.append(float(pair_margins.masses[other]) * (end - start))
            excess = pair_margins.masses[other] * np.maximum(margins - start, 0.0)
            sums.append(float(pair_margins.weights[here] @ excess))
        if min(sums) > 0.0:
            coefficients[pair, 1, 1] = heights[0] * heights[1] / (2.0 * np.sqrt(sums[0] * sums[1]))
    zeros = SpectralMultipliers.zeros(0)
    return SpectralMultipliers(
        labels,
        pair_margins.pairs,
        np.ldexp(nodes, 2 * frame.exponent),
        np.ldexp(coefficients, 2 * frame.exponent),
        zeros.link_pairs,
        zeros.link_multipliers,
    )


def approximate_bound(gram: Gram, middle: Floats, rank: int) -> float:
    """The bound for scaled data without rounding margins, for comparing values of z."""
    d, norms, mass = gram.n_dims, gram.norms[1:], float(gram.products[0, 0])
    pull = gram.products[0, 1:]
    inner = inner_products(gram)
    try:
        root = np.linalg.cholesky(inner + 1e-11 * np.eye(len(inner))).T
        values = np.linalg.eigvalsh(root @ (norms[:, None] * middle * norms) @ root.T)
    except np.linalg.LinAlgError:
        return -np.inf
    eigenvalue_term = float(np.maximum(values[::-1][:rank], 0.0).sum())
    trace = float(np.diagonal(gram.products)[1 : 1 + d].sum())
    return trace - float(pull @ middle @ pull) / mass - eigenvalue_term


def _best_trace_multiplier(
    problem: ReducedProblem, labels: Ints, stop: Callable[[], bool], params: ClosedFormParams
) -> float | None:
    """Best z of the search, in the frame of the whole problem, or None if none is finite."""
    sample, chosen = _sample(problem, labels, params)
    whole = Frame.of(problem)
    frame = Frame(whole.center[: sample.n_dims], whole.exponent)
    rank = min(problem.n_clusters, problem.n_groups) - 1
    unit = _within_scatter_eigenvalue(sample, frame, chosen)
    if not unit > 0.0:
        return None
    pair_margins = compute_pair_margins(sample, frame, chosen)
    axes = axes_gram(sample, frame)
    order = sample.n_dims + 2 * len(pair_margins.pairs)
    factors, n_bisections = next(
        (factors, n_bisections)
        for max_order, factors, n_bisections in params.search_grids
        if order <= max_order
    )

    def value(z: float) -> float:
        if stop():
            return -np.inf
        evidence = ramp_multipliers(chosen, pair_margins, frame, z)
        gram = full_gram(sample, frame, evidence, axes)
        return approximate_bound(gram, coefficient_matrix(gram, frame, evidence), rank)

    with np.errstate(all="ignore"):
        tried = {float(factor): value(unit * factor) for factor in factors}
        for _ in range(n_bisections):
            ordered = sorted(tried)
            best = max(ordered, key=lambda factor: tried[factor])
            index = ordered.index(best)
            for other in (ordered[i] for i in (index - 1, index + 1) if 0 <= i < len(ordered)):
                between = float(np.sqrt(best * other))
                tried[between] = value(unit * between)
    best = max(tried, key=lambda factor: tried[factor])
    if not np.isfinite(tried[best]):
        return None
    return best * unit


def _sample(
    problem: ReducedProblem, labels: Ints, params: ClosedFormParams
) -> tuple[ReducedProblem, Ints]:
    """Sample of the groups of each cluster, reweighted to its mass, on the leading axes."""
    n, axes = problem.n_groups, slice(0, params.search_axes)
    if n <= params.max_sample and problem.n_dims <= params.search_axes:
        return problem, labels
    order = np.argsort(labels, kind="stable")
    kept = order[:: -(-n // params.max_sample)]
    labels_kept = labels[kept]
    weights = problem.weights[kept]
    k = problem.n_clusters
    whole = np.bincount(labels, problem.weights, k)
    sampled = np.bincount(labels_kept, weights, k)
    weights = weights * (whole / np.where(sampled > 0.0, sampled, 1.0))[labels_kept]
    sample = ReducedProblem(
        np.ascontiguousarray(problem.points[kept, axes]), weights, problem.label_constraints, k, 0.0
    )
    return sample, labels_kept


def _within_scatter_eigenvalue(problem: ReducedProblem, frame: Frame, labels: Ints) -> float:
    """Largest eigenvalue of the scatter within the clusters (by the power method if d > 300)."""
    centers = cluster_centers(problem, frame, labels)
    d = problem.n_dims
    scatter = np.zeros((d, d))
    for start in range(0, problem.n_groups, CHUNK):
        rows = slice(start, start + CHUNK)
        offsets = frame.rows(problem, rows) - centers[labels[rows]]
        scatter += (problem.weights[rows, None] * offsets).T @ offsets
    if d > 300:
        vector = np.ones(d)
        for _ in range(30):
            vector = scatter @ (vector / max(float(np.linalg.norm(vector)), 1e-300))
        return float(np.linalg.norm(vector))
    return float(np.linalg.eigvalsh(scatter)[-1])
