"""Better gains: ascent on the spectral bound over hats, at a cost that does not depend on n.

The bound of `safe` is concave in the gains. Once the inner products of all hats are known, it and
its gradient are those of a matrix of order ``d + q K (K - 1)``: with ``b = B^T v`` and R as there,

    f(gains) = trace - b^T C b / W - sum of the m largest eigenvalues of R C R^T, where positive.

The last term is ``max <R C R^T, T>`` over ``0 <= T <= I`` of trace at most m; with
``- (mu/2) |T|^2`` it is smooth, T is found by cutting eigenvalues, and a quasi-Newton method with
``gains >= 0`` goes up. The start is the closed form, put on more nodes: with two or three clusters
there is room for many. Amounts at cannot-links are variables too, free in sign.

Nothing here is trusted: the gains found go through `safe_value`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.bounds.spectral.closed_form import Borders, SpectralProof, borders_of
from certikmeans.bounds.spectral.evidence import Floats, Ints, SpectralEvidence
from certikmeans.bounds.spectral.gram import Frame, Gram, cluster_centres, full_gram
from certikmeans.bounds.spectral.safe import MOST_COLUMNS, inner_products, safe_value
from certikmeans.execution.blas import one_blas_thread
from certikmeans.problem import ReducedProblem

MOST_NODES, ENOUGH_NODES, LEAST_NODES = 16, 5, 3
SMOOTHING = (0.03, 0.005)  # of the unit of eigenvalues: rough first, then finer
LIFT = 1e-11  # makes inner products that are nearly singular positive
NEGLIGIBLE = 1e-9  # gains below this part of the largest are dropped
# Hats that hardly any group is under are dropped, too: what their gains are worth depends on the
# last digits of margins, which the checker rounds in its own way.
LEAST_HATS = 1e-10  # two of them, as a part of the total weight


class _Stopped(Exception):
    pass


def improved(
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
    room = min(n_columns, MOST_COLUMNS) - problem.n_axes
    spare = room - ENOUGH_NODES * 2 * len(given.pairs)
    spikes = _chosen_links(problem, frame, given, max(spare, 0))
    room -= len(np.unique(spikes))
    n_nodes = min(room // (2 * len(given.pairs)), MOST_NODES)
    if n_nodes < LEAST_NODES or stop():
        return start
    begun = _refined(problem, frame, given, spikes, n_nodes)
    whole = SpectralEvidence(
        begun.labels, begun.pairs, begun.nodes, np.ones_like(begun.gains), begun.spikes,
        begun.amounts,
    )  # fmt: skip
    with one_blas_thread(), np.errstate(all="ignore"):
        model = _Model.of(full_gram(problem, frame, whole), begun, rank)
        found = None if model is None else _climb(model, frame, begun, steps, stop)
    if found is None:
        return start
    value = safe_value(problem, found)
    return SpectralProof(value, found) if value > start.value else start


def _chosen_links(
    problem: ReducedProblem, frame: Frame, given: SpectralEvidence, most: int
) -> Ints:
    """Cannot-links whose ends are nearest to the other's cluster: those that matter.

    A group that is kept from its nearest cluster would need a negative row sum of multipliers
    towards it; only at its cannot-links they can be negative.
    """
    edges: Ints = problem.graph.edges()
    apart = given.labels[edges[:, 0]] != given.labels[edges[:, 1]]
    edges = edges[apart]
    if not len(edges):
        return np.empty((0, 2), dtype=np.int64)
    centres = cluster_centres(problem, frame, given.labels)
    ends = given.labels[edges]
    margins = []
    for side in (0, 1):
        away = frame.rows(problem, edges[:, side])
        own, other = centres[ends[:, side]], centres[ends[:, 1 - side]]
        margins.append(np.sum((away - other) ** 2 - (away - own) ** 2, axis=1))
    masses = np.bincount(given.labels, problem.weights, len(centres))
    # Where the ramps of the closed form begin, ``t_ab``, is a z that all pairs share.
    a, b = given.pairs[0]
    z = given.nodes[0, 0, 0] / (1.0 / masses[a] + 1.0 / masses[b])
    z = max(0.0, float(np.ldexp(z, -2 * frame.exponent)))
    need = np.minimum(margins[0], margins[1]) - z * np.sum(1.0 / masses[ends], axis=1)
    order = np.argsort(need, kind="stable")
    order = order[need[order] < 0.0][: most // 2]
    return np.asarray(edges[np.sort(order)])


def _refined(
    problem: ReducedProblem, frame: Frame, given: SpectralEvidence, spikes: Ints, n_nodes: int
) -> SpectralEvidence:
    """The same multipliers on more nodes, where the groups are."""
    borders = borders_of(problem, frame, given.labels)
    p = len(given.pairs)
    number = {tuple(pair): i for i, pair in enumerate(borders.pairs.tolist())}
    nodes = np.empty((p, 2, n_nodes))
    gains = np.empty((p, n_nodes, n_nodes))
    old = np.ldexp(given.nodes, -2 * frame.exponent)
    for pair, (a, b) in enumerate(given.pairs.tolist()):
        tables = []
        for side in (0, 1):
            margins = _margins(borders, number, a, b, side)
            nodes[pair, side] = _spread(old[pair, side], margins, n_nodes)
            tables.append(
                np.array([np.interp(nodes[pair, side], old[pair, side], hat)
                          for hat in np.eye(old.shape[2])])
            )  # fmt: skip
        gains[pair] = tables[0].T @ given.gains[pair] @ tables[1]
    nodes = np.ldexp(nodes, 2 * frame.exponent)
    amounts = np.zeros(len(spikes))
    return SpectralEvidence(given.labels, given.pairs, nodes, gains, spikes, amounts)


def _margins(
    borders: Borders, number: dict[tuple[int, ...], int], a: int, b: int, side: int
) -> Floats:
    if (a, b) in number:
        return borders.margins[number[a, b]][side]
    return borders.margins[number[b, a]][1 - side]


def _spread(old: Floats, margins: Floats, n_nodes: int) -> Floats:
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
class _Model:
    """The function that is climbed; variables are gains in units of ``scale``."""

    root: Floats
    fixed: Floats  # C of the axes, columns of length 1
    one: Ints  # where in C every variable stands: gains first, then amounts
    two: Ints
    linear: Floats
    scale: Floats  # gains are variables times this
    trace: float
    mass: float
    rank: int

    @classmethod
    def of(cls, gram: Gram, begun: SpectralEvidence, rank: int) -> _Model | None:
        d, norms, mass = gram.n_axes, gram.norms[1:], float(gram.products[0, 0])
        inner = inner_products(gram)
        try:
            root = np.linalg.cholesky(inner + LIFT * np.eye(len(inner))).T
        except np.linalg.LinAlgError:
            return None
        p, q, _ = begun.gains.shape
        start = d + 2 * q * np.arange(p)[:, None, None]
        one = (start + np.arange(q)[None, :, None] + np.zeros((1, 1, q), np.int64)).ravel()
        two = (start + q + np.arange(q)[None, None, :] + np.zeros((1, q, 1), np.int64)).ravel()
        single = d + len(gram.columns) + np.searchsorted(gram.singles, begun.spikes)
        one, two = np.append(one, single[:, 0]), np.append(two, single[:, 1])
        fixed = np.zeros_like(inner)
        fixed[np.arange(d), np.arange(d)] = norms[:d] ** 2
        pull = gram.products[0, 1:] / norms
        trace = float(np.sum(norms[:d] ** 2))
        return cls(
            np.asarray(root, np.float64), fixed, one, two, 2.0 * pull[one] * pull[two] / mass,
            1.0 / (norms[one] * norms[two]), trace, mass, rank,
        )  # fmt: skip

    def value(self, x: Floats, smoothing: float) -> tuple[float, Floats]:
        """The smoothed bound, never below the bound, and its gradient."""
        middle = self.fixed.copy()
        middle[self.one, self.two] += x
        middle[self.two, self.one] += x
        values, vectors = self._largest(self.root @ middle @ self.root.T, smoothing)
        share = _cut(values / smoothing, self.rank)
        spent = float(values @ share) - 0.5 * smoothing * float(share @ share)
        kept = share > 0.0
        turned = self.root.T @ (vectors[:, kept] * np.sqrt(share[kept]))
        slope = np.einsum("ij,ij->i", turned[self.one], turned[self.two])
        return self.trace - float(self.linear @ x) - spent, -self.linear - 2.0 * slope

    def _largest(self, matrix: Floats, smoothing: float) -> tuple[Floats, Floats]:
        """All eigenvalues that have a share, and perhaps some more."""
        from scipy.linalg import eigh

        order = len(matrix)
        wanted = 2 * self.rank + 10
        if order > 4 * wanted:
            window = (order - wanted, order - 1)
            values, vectors = eigh(matrix, subset_by_index=window, check_finite=False)
            if _cut(values / smoothing, self.rank)[0] == 0.0:
                return values, vectors
        return np.linalg.eigh(matrix)


def _cut(values: Floats, rank: int) -> Floats:
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


def _climb(
    model: _Model,
    frame: Frame,
    begun: SpectralEvidence,
    steps: int,
    stop: Callable[[], bool],
) -> SpectralEvidence | None:
    from scipy.optimize import minimize  # takes longer to load than a small run takes

    n_gains = begun.gains.size
    x = np.append(np.ldexp(begun.gains, -2 * frame.exponent).ravel(), begun.amounts) / model.scale
    bounds = [(0.0, None)] * n_gains + [(None, None)] * len(begun.amounts)
    try:
        values = np.linalg.eigvalsh(model.root @ model.fixed @ model.root.T)
    except np.linalg.LinAlgError:
        return None
    # The first eigenvalue that is not about the clusters: what stays below it costs nothing.
    unit = max(float(values[-model.rank - 1]), 1e-4 * model.trace)
    if not 0.0 < unit < np.inf:
        return None
    last = x

    def falls(x: Floats, smoothing: float) -> tuple[float, Floats]:
        if stop():
            raise _Stopped
        value, slope = model.value(x * unit, smoothing * unit)
        return -value / unit, -slope

    def keep(x: Floats) -> None:
        nonlocal last
        last = x * unit

    try:
        for smoothing in SMOOTHING:
            minimize(
                falls, last / unit, args=(smoothing,), jac=True, method="L-BFGS-B",
                bounds=bounds, callback=keep,
                options={"maxiter": steps, "maxcor": 20},
            )  # fmt: skip
    except (_Stopped, np.linalg.LinAlgError):
        pass
    slight = np.abs(last) <= NEGLIGIBLE * float(np.abs(last).max())
    slight[:n_gains] |= model.scale[:n_gains] * model.mass > 1.0 / LEAST_HATS
    last = np.where(slight, 0.0, last)
    numbers = np.ldexp(last * model.scale, 2 * frame.exponent)
    if not np.isfinite(numbers).all():
        return None
    gains, amounts = numbers[:n_gains].reshape(begun.gains.shape), numbers[n_gains:]
    used = amounts != 0.0
    return SpectralEvidence(
        begun.labels, begun.pairs, begun.nodes, gains, begun.spikes[used], amounts[used]
    )
