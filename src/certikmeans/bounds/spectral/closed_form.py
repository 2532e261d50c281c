"""Multipliers in closed form, from a labelling: no iteration, rank ``d + K (K - 1)``.

For s in cluster a, another cluster b, and any z let

    u_s(b) = max(0, W_b m_s(b) - z (W_a + W_b) / (2 W_a)) = W_b max(0, m_s(b) - t_ab),
    t_ab = z (1 / W_a + 1 / W_b) / 2,

W the weights of the clusters, and ``ell_st = u_s(b) u_t(a) / (2 sqrt(U_ab U_ba))`` with
``U_ab = sum of w_s u_s(b)`` over a. A group of weight w stands for w copies, so in the scale of M
(see `floor`) ``Lambda_st = v_s v_t ell_st``. Without the maximum both sums would be equal, row sums
would be those that make the labelling a saddle point, and z the multiplier of the trace: the
eigenvalues that belong to the clusters are then all z, and whatever stays below z elsewhere costs
nothing. So z has to leave room above the largest eigenvalue of the scatter within the clusters,
and no more: the larger z, the more groups are cut off by the maximum. A few times that eigenvalue
is right; which one is found by trying, on a sample of the groups where there are many.

Any labelling will do, one that is no fixed point or has empty clusters too; see `safe`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.bounds.spectral.evidence import Floats, Ints, SpectralEvidence
from certikmeans.bounds.spectral.floor import spectral_floor
from certikmeans.bounds.spectral.gram import (
    Frame,
    Gram,
    axes_gram,
    border_margins,
    cluster_centres,
    full_gram,
)
from certikmeans.bounds.spectral.safe import (
    MOST_COLUMNS,
    inner_products,
    middle_matrix,
    safe_value,
)
from certikmeans.execution.blas import one_blas_thread
from certikmeans.problem import ReducedProblem

# z as multiples of the largest eigenvalue within clusters, and steps of bisection about the best;
# fewer where the matrices are large.
PLANS: tuple[tuple[float, list[float], int], ...] = (
    (300, np.geomspace(1.0, 24.0, 10).tolist(), 3),
    (700, [1.4, 2.1, 3.4, 6.0, 12.0], 1),
    (np.inf, [1.8, 3.0, 6.0], 0),
)
SEARCH_AXES = 100  # the leading ones are enough to choose z by
SAMPLE = 10_000  # groups on which z is tried
CHUNK = 8_192


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectralProof:
    """A proven value and what proves it again: ``safe_value(problem, evidence) == value``."""

    value: float
    evidence: SpectralEvidence


@final
@dataclass(frozen=True, slots=True, eq=False)
class Borders:
    """What the multipliers need to know of a labelling, in the scale of a frame."""

    pairs: Ints  # (p, 2): clusters that are not empty
    masses: Floats  # (K,)
    margins: tuple[tuple[Floats, Floats], ...]  # m_s(b) for s in a, and m_t(a) for t in b
    weights: tuple[Floats, ...]  # of the groups of every cluster


def closed_form(
    problem: ReducedProblem,
    labels: Ints,
    stop: Callable[[], bool] = lambda: False,
    known_floor: float | None = None,
) -> SpectralProof:
    """The best of the floor and of the multipliers for a few z.

    ``stop`` is asked before every z; then the best so far is taken, or the floor if there is none.
    ``known_floor`` is `spectral_floor` of the problem, where that has been computed already.

    Examples
    --------
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.stop import StopSignal
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(np.arange(3), 20)
    >>> points = 9.0 * np.eye(3)[truth] + rng.normal(size=(60, 3))
    >>> done = presolve(Problem.from_data(points, 3), StopSignal())
    >>> found = closed_form(done.reduced, done.reduce_labels(truth))
    >>> spectral_floor(done.reduced) < 0.8 * found.value
    True
    """
    value = spectral_floor(problem) if known_floor is None else known_floor
    floor = SpectralProof(value, SpectralEvidence.none(problem.n_groups))
    filled = len(np.unique(labels))
    columns = problem.n_axes + filled * (filled - 1)
    if filled < 2 or columns > MOST_COLUMNS or problem.n_groups <= problem.n_clusters:
        return floor
    with one_blas_thread():
        z = _best_level(problem, labels, stop)
    if z is None:
        return floor
    frame = Frame.of(problem)
    evidence = ramps(labels, borders_of(problem, frame, labels), frame, z)
    value = safe_value(problem, evidence)
    return SpectralProof(value, evidence) if value > floor.value else floor


def borders_of(problem: ReducedProblem, frame: Frame, labels: Ints) -> Borders:
    """Margins of every group towards every other cluster."""
    centres = cluster_centres(problem, frame, labels)
    masses = np.bincount(labels, problem.weights, len(centres)).astype(np.float64)
    filled = np.unique(labels)
    members = {int(k): np.flatnonzero(labels == k) for k in filled}
    margins: dict[int, Floats] = {}
    for k, rows in members.items():
        parts = [
            border_margins(frame.rows(problem, rows[i : i + CHUNK]), centres[k], centres[filled])
            for i in range(0, len(rows), CHUNK)
        ]
        margins[k] = np.concatenate(parts)
    number = {int(k): i for i, k in enumerate(filled)}
    pairs = [(int(a), int(b)) for i, a in enumerate(filled) for b in filled[i + 1 :]]
    return Borders(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        masses,
        tuple((margins[a][:, number[b]], margins[b][:, number[a]]) for a, b in pairs),
        tuple(problem.weights[members.get(k, filled[:0])] for k in range(len(centres))),
    )


def ramps(labels: Ints, borders: Borders, frame: Frame, z: float) -> SpectralEvidence:
    """The multipliers above as evidence: a ramp is the last of two hats."""
    p = len(borders.pairs)
    nodes = np.zeros((p, 2, 2))
    gains = np.zeros((p, 2, 2))
    for pair, (a, b) in enumerate(borders.pairs.tolist()):
        start = 0.5 * z * (1.0 / borders.masses[a] + 1.0 / borders.masses[b])
        heights, sums = [], []
        for side, (here, other) in enumerate(((a, b), (b, a))):
            margins = borders.margins[pair][side]
            end = max(float(margins.max()), 1.001 * start)
            nodes[pair, side] = start, end
            heights.append(float(borders.masses[other]) * (end - start))
            over = borders.masses[other] * np.maximum(margins - start, 0.0)
            sums.append(float(borders.weights[here] @ over))
        if min(sums) > 0.0:
            gains[pair, 1, 1] = heights[0] * heights[1] / (2.0 * np.sqrt(sums[0] * sums[1]))
    none = SpectralEvidence.none(0)
    return SpectralEvidence(
        labels,
        borders.pairs,
        np.ldexp(nodes, 2 * frame.exponent),
        np.ldexp(gains, 2 * frame.exponent),
        none.spikes,
        none.amounts,
    )


def likely_value(gram: Gram, middle: Floats, rank: int) -> float:
    """The bound for scaled data without any care: to choose by."""
    d, norms, mass = gram.n_axes, gram.norms[1:], float(gram.products[0, 0])
    pull = gram.products[0, 1:]
    inner = inner_products(gram)
    try:
        root = np.linalg.cholesky(inner + 1e-11 * np.eye(len(inner))).T
        values = np.linalg.eigvalsh(root @ (norms[:, None] * middle * norms) @ root.T)
    except np.linalg.LinAlgError:
        return -np.inf
    spent = float(np.maximum(values[::-1][:rank], 0.0).sum())
    trace = float(np.diagonal(gram.products)[1 : 1 + d].sum())
    return trace - float(pull @ middle @ pull) / mass - spent


def _best_level(problem: ReducedProblem, labels: Ints, stop: Callable[[], bool]) -> float | None:
    """The best z tried, in the scale of the frame of the whole problem; None: none is useful."""
    sample, chosen = _sample(problem, labels)
    whole = Frame.of(problem)
    frame = Frame(whole.centre[: sample.n_axes], whole.exponent)
    rank = min(problem.n_clusters, problem.n_groups) - 1
    unit = _within(sample, frame, chosen)
    if not unit > 0.0:
        return None
    borders = borders_of(sample, frame, chosen)
    known = axes_gram(sample, frame)
    order = sample.n_axes + 2 * len(borders.pairs)
    factors, finer = next((plan[1], plan[2]) for plan in PLANS if order <= plan[0])

    def value(z: float) -> float:
        if stop():
            return -np.inf
        evidence = ramps(chosen, borders, frame, z)
        gram = full_gram(sample, frame, evidence, known)
        return likely_value(gram, middle_matrix(gram, frame, evidence), rank)

    with np.errstate(all="ignore"):
        tried = {float(factor): value(unit * factor) for factor in factors}
        for _ in range(finer):
            line = sorted(tried)
            best = max(line, key=lambda factor: tried[factor])
            place = line.index(best)
            for other in (line[i] for i in (place - 1, place + 1) if 0 <= i < len(line)):
                between = float(np.sqrt(best * other))
                tried[between] = value(unit * between)
    best = max(tried, key=lambda factor: tried[factor])
    if not np.isfinite(tried[best]):
        return None
    return best * unit


def _sample(problem: ReducedProblem, labels: Ints) -> tuple[ReducedProblem, Ints]:
    """Some groups of each cluster with the weight of all, and leading axes: to choose by."""
    n, axes = problem.n_groups, slice(0, SEARCH_AXES)
    if n <= SAMPLE and problem.n_axes <= SEARCH_AXES:
        return problem, labels
    order = np.argsort(labels, kind="stable")
    kept = order[:: -(-n // SAMPLE)]
    labels_kept = labels[kept]
    weights = problem.weights[kept]
    k = problem.n_clusters
    whole = np.bincount(labels, problem.weights, k)
    part = np.bincount(labels_kept, weights, k)
    weights = weights * (whole / np.where(part > 0.0, part, 1.0))[labels_kept]
    sample = ReducedProblem(
        np.ascontiguousarray(problem.points[kept, axes]), weights, problem.rules, k, 0.0
    )
    return sample, labels_kept


def _within(problem: ReducedProblem, frame: Frame, labels: Ints) -> float:
    """The largest eigenvalue of the scatter within the clusters."""
    centres = cluster_centres(problem, frame, labels)
    d = problem.n_axes
    scatter = np.zeros((d, d))
    for start in range(0, problem.n_groups, CHUNK):
        rows = slice(start, start + CHUNK)
        away = frame.rows(problem, rows) - centres[labels[rows]]
        scatter += (problem.weights[rows, None] * away).T @ away
    if d > 300:
        vector = np.ones(d)
        for _ in range(30):
            vector = scatter @ (vector / max(float(np.linalg.norm(vector)), 1e-300))
        return float(np.linalg.norm(vector))
    return float(np.linalg.eigvalsh(scatter)[-1])
