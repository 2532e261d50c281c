"""Better gains: ascent on the spectral bound over hats, at a cost that does not depend on n.

The bound of `safe` is concave in the gains. Once the inner products of all hats are known, it and
its gradient are those of a matrix of order ``d + q K (K - 1)``: with ``b = B^T v`` and R as there,

    f(gains) = trace - b^T C b / W - sum of the m largest eigenvalues of R C R^T, where positive.

The last term is ``max <R C R^T, T>`` over ``0 <= T <= I`` of trace at most m; with
``- (mu/2) |T|^2`` it is smooth, T is found by cutting eigenvalues, and a quasi-Newton method with
``coefficients >= 0`` goes up. The start is the closed form, put on more nodes: with two or three clusters
there is room for many. Amounts at cannot-links are variables too, free in sign.

Nothing here is trusted: the gains found go through `safe_value`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.bounds.spectral.closed_form import PairMargins, SpectralProof, compute_pair_margins
from certikmeans.bounds.spectral.dual_bound import MAX_COLUMNS, inner_products, safe_value
from certikmeans.bounds.spectral.gram import Frame, Gram, cluster_centers, full_gram
from certikmeans.bounds.spectral.multipliers import Floats, Ints, SpectralMultipliers
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem

MAX_NODES, PREFERRED_NODES, MIN_NODES = 16, 5, 3
SMOOTHING = (0.03, 0.005)  # of the unit of eigenvalues: rough first, then finer
CHOLESKY_SHIFT = 1e-11  # makes inner products that are nearly singular positive
NEGLIGIBLE_COEFFICIENT = 1e-9  # gains below this part of the largest are dropped
# Hats that hardly any group is under are dropped, too: what their gains are worth depends on the
# last digits of margins, which the checker rounds in its own way.
MIN_BASIS_WEIGHT = 1e-10  # two of them, as a part of the total weight


class _Stopped(Exception):
    pass


def ascend(
    problem: ReducedProblem,
    start: SpectralProof,
    *,
    n_columns: int = 500,
    steps: int = 100,
    stop: Callable[[], bool] = lambda: False,
) -> SpectralProof:
    """A better proof, found in at most so many steps from one in closed form.

    Parameters
    ----------
    n_columns : int
        About the order of the matrices; decides the number of nodes. The time of a step grows
        with its cube.
    steps : int
        Of the quasi-Newton method, for each amount of smoothing.
    stop : callable
        Asked before every evaluation; what was found so far is proven then.
    """
    given = start.evidence
    rank = min(problem.n_clusters, problem.n_groups) - 1
    if not len(given.pairs) or rank < 1:
        return start
    frame = Frame.of(problem)
    room = min(n_columns, MAX_COLUMNS) - problem.n_dims
    spare_columns = room - PREFERRED_NODES * 2 * len(given.pairs)
    link_pairs = _select_links(problem, frame, given, max(spare_columns, 0))
    room -= len(np.unique(link_pairs))
    n_nodes = min(room // (2 * len(given.pairs)), MAX_NODES)
    if n_nodes < MIN_NODES or stop():
        return start
    initial = _refine_nodes(problem, frame, given, link_pairs, n_nodes)
    all_columns_used = SpectralMultipliers(
        initial.labels, initial.pairs, initial.nodes, np.ones_like(initial.coefficients), initial.link_pairs,
        initial.link_multipliers,
    )  # fmt: skip
    with one_blas_thread(), np.errstate(all="ignore"):
        model = _SmoothedBound.of(full_gram(problem, frame, all_columns_used), initial, rank)
        found = None if model is None else _maximize(model, frame, initial, steps, stop)
    if found is None:
        return start
    value = safe_value(problem, found)
    return SpectralProof(value, found) if value > start.value else start


def _select_links(
    problem: ReducedProblem, frame: Frame, given: SpectralMultipliers, most: int
) -> Ints:
    """Cannot-links whose ends are nearest to the other's cluster: those that matter.

    A group that is kept from its nearest cluster would need a negative row sum of multipliers
    towards it; only at its cannot-links they can be negative.
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
    # Where the ramps of the closed form begin, ``t_ab``, is a z that all pairs share.
    a, b = given.pairs[0]
    z = given.nodes[0, 0, 0] / (1.0 / masses[a] + 1.0 / masses[b])
    z = max(0.0, float(np.ldexp(z, -2 * frame.exponent)))
    need = np.minimum(margins[0], margins[1]) - z * np.sum(1.0 / masses[ends], axis=1)
    order = np.argsort(need, kind="stable")
    order = order[need[order] < 0.0][: most // 2]
    return np.asarray(edges[np.sort(order)])


def _refine_nodes(
    problem: ReducedProblem,
    frame: Frame,
    given: SpectralMultipliers,
    link_pairs: Ints,
    n_nodes: int,
) -> SpectralMultipliers:
    """The same multipliers on more nodes, where the groups are."""
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
    """Where the ramp begins and ends, the least margin, and nodes between, denser near the border.

    Multipliers bend where groups lie between two clusters; far out they are all but linear.
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
    """The function that is climbed; variables are gains in units of ``scale``."""

    root: Floats
    fixed: Floats  # C of the axes, columns of length 1
    first_index: Ints  # where in C every variable stands: gains first, then amounts
    second_index: Ints
    linear: Floats
    scale: Floats  # gains are variables times this
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
        single = d + len(gram.columns) + np.searchsorted(gram.unit_groups, initial.link_pairs)
        first_index, second_index = (
            np.append(first_index, single[:, 0]),
            np.append(second_index, single[:, 1]),
        )
        fixed = np.zeros_like(inner)
        fixed[np.arange(d), np.arange(d)] = norms[:d] ** 2
        pull = gram.products[0, 1:] / norms
        trace = float(np.sum(norms[:d] ** 2))
        return cls(
            np.asarray(root, np.float64), fixed, first_index, second_index, 2.0 * pull[first_index] * pull[second_index] / mass,
            1.0 / (norms[first_index] * norms[second_index]), trace, mass, rank,
        )  # fmt: skip

    def value(self, x: Floats, smoothing: float) -> tuple[float, Floats]:
        """The smoothed bound, never below the bound, and its gradient."""
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
        """All eigenvalues that have a share, and perhaps some more."""
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
    """The nearest point with entries from 0 to 1 and a sum of at most ``rank``."""
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
    steps: int,
    stop: Callable[[], bool],
) -> SpectralMultipliers | None:
    from scipy.optimize import minimize  # takes longer to load than a small run takes

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
    # The first eigenvalue that is not about the clusters: what stays below it costs nothing.
    unit = max(float(values[-model.rank - 1]), 1e-4 * model.trace)
    if not 0.0 < unit < np.inf:
        return None
    last_x = x

    def negative_bound(x: Floats, smoothing: float) -> tuple[float, Floats]:
        if stop():
            raise _Stopped
        value, gradient = model.value(x * unit, smoothing * unit)
        return -value / unit, -gradient

    def record(x: Floats) -> None:
        nonlocal last_x
        last_x = x * unit

    try:
        for smoothing in SMOOTHING:
            minimize(
                negative_bound, last_x / unit, args=(smoothing,), jac=True, method="L-BFGS-B",
                bounds=bounds, callback=record,
                options={"maxiter": steps, "maxcor": 20},
            )  # fmt: skip
    except (_Stopped, np.linalg.LinAlgError):
        pass
    negligible = np.abs(last_x) <= NEGLIGIBLE_COEFFICIENT * float(np.abs(last_x).max())
    negligible[:n_coefficients] |= (
        model.scale[:n_coefficients] * model.mass > 1.0 / MIN_BASIS_WEIGHT
    )
    last_x = np.where(negligible, 0.0, last_x)
    numbers = np.ldexp(last_x * model.scale, 2 * frame.exponent)
    if not np.isfinite(numbers).all():
        return None
    coefficients, link_multipliers = (
        numbers[:n_coefficients].reshape(initial.coefficients.shape),
        numbers[n_coefficients:],
    )
    used = link_multipliers != 0.0
    return SpectralMultipliers(
        initial.labels,
        initial.pairs,
        initial.nodes,
        coefficients,
        initial.link_pairs[used],
        link_multipliers[used],
    )
