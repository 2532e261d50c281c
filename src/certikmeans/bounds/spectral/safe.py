"""The spectral bound for any multipliers, however they were found, rounding included.

**The bound.** Notation of `floor`: ``cost = tr Y^T Y - <Y Y^T, M>`` and ``M >= 0`` entrywise, 0 at
cannot-links. So for any ``Lambda``, not negative but at cannot-links,

    cost >= tr Y^T Y - <A, M>,     A = Y Y^T + Lambda,     <A, M> = v^T A v / W + <A, N>.

``Lambda`` has few columns: ``Lambda_st = v_s v_t ell_st`` with the hats of `SpectralEvidence`, and
spikes between unit vectors. So ``A = B C B^T`` with B the columns of `gram` (but v) and C a small
symmetric matrix: ones for the axes, gains between hats, amounts between unit vectors. The columns
of multipliers **are** the floats computed: all they must be is not negative.

N lies between 0 and the projection ``P = I - v v^T / W``, so ``S = B^T N B`` lies between 0 and
``H = B^T P B = B^T B - b b^T / W``, ``b = B^T v``, and has rank at most m. For any square R, not
singular, with ``R^T R >= H``: ``S = R^T T R`` with ``0 <= T <= I`` and trace at most m, and

    <A, N> = <C, S> = <R C R^T, T> <= sum of the m largest eigenvalues of R C R^T, if positive.

A matrix of order ``d + K (K - 1)`` for one hat per ordered pair of clusters, whatever n is.

**Rounding.** Columns are divided by floats near their norms h, C is multiplied by them (2 u each).

* H: entries of ``B^T B`` err by ``g h_i h_j`` (`gram`), ``b_i`` by ``g h_i sqrt(W)``, where
  ``|b_i| <= h_i sqrt(W)``, W by g of itself: in all ``4 g + 8 EPS`` after division; in norm
  r times that. A root R above it: `eigen`.
* ``R C R^T``: two products, ``(2 r + 8) EPS |R| |C| |R|^T`` entrywise.
* ``v^T A v / W``: the axes as in `floor`; gains: products of sums that are not negative, 4 g of
  themselves and 8 EPS; spikes: a few EPS of their sizes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.spectral.eigen import GENEROUS, largest_sum, norm, root_above
from certikmeans.bounds.spectral.evidence import Floats, Ints, SpectralEvidence
from certikmeans.bounds.spectral.floor import (
    below,
    level_of_axes,
    spectral_floor,
    trace_of_axes,
    unscaled,
)
from certikmeans.bounds.spectral.gram import Frame, Gram, full_gram
from certikmeans.execution.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS

MOST_COLUMNS = 2_000


def safe_value(problem: ReducedProblem, evidence: SpectralEvidence) -> float:
    """At most the reduced cost of every labelling, for any evidence whatsoever.

    Gains of the wrong sign count as 0, spikes where there is no cannot-link too; what is not
    finite, or needs more than `MOST_COLUMNS` columns, proves the floor.
    """
    usable = usable_evidence(problem, evidence)
    rank = min(problem.n_clusters, problem.n_groups) - 1
    if rank == 0 or usable is None:
        return spectral_floor(problem)
    frame = Frame.of(problem)
    with one_blas_thread(), np.errstate(all="ignore"):
        value = value_in_frame(full_gram(problem, frame, usable), frame, usable, rank)
    return unscaled(value, frame)


def value_in_frame(gram: Gram, frame: Frame, evidence: SpectralEvidence, rank: int) -> float:
    """The bound for scaled data; not always a number."""
    return value_of(gram, middle_matrix(gram, frame, evidence), rank)


def value_of(gram: Gram, middle: Floats, rank: int) -> float:
    """``tr Y^T Y - <A, M>`` at least, for every M and ``A = B C B^T`` with this C."""
    mass = float(gram.products[0, 0])
    trace, trace_error = trace_of_axes(gram)
    level = _level(gram, middle, mass)
    norms = gram.norms[1:]
    inner = inner_products(gram)
    r = len(inner)
    root = root_above(inner, r * (4.0 * gram.relative + 8.0 * EPS))
    if root is None:
        return -math.inf
    scaled = norms[:, None] * middle * norms
    small = root @ scaled @ root.T
    small = 0.5 * (small + small.T)
    size = np.abs(root) @ np.abs(scaled) @ np.abs(root).T
    astray = (2 * r + 12) * EPS * GENEROUS * norm(size)
    return below(trace, trace_error, level, largest_sum(small, astray, rank))


def inner_products(gram: Gram) -> Floats:
    """``H`` of all columns but v, each divided by its norm."""
    norms, products = gram.norms[1:], gram.products
    pull = products[0, 1:] / norms
    inner = products[1:, 1:] / norms[:, None] / norms
    return np.asarray(inner - np.outer(pull, pull / products[0, 0]))


def middle_matrix(gram: Gram, frame: Frame, evidence: SpectralEvidence) -> Floats:
    """``C``: ones for the axes, gains between hats, amounts between unit vectors."""
    d = gram.n_axes
    r = len(gram.products) - 1
    middle = np.zeros((r, r))
    middle[np.arange(d), np.arange(d)] = 1.0
    place = {
        (column.pair, column.side, column.node): d + number
        for number, column in enumerate(gram.columns)
    }
    gains = np.ldexp(evidence.gains, -2 * frame.exponent)
    for pair, k, el in np.argwhere(evidence.gains > 0.0).tolist():
        one, two = place[pair, 0, k], place[pair, 1, el]
        middle[one, two] = middle[two, one] = gains[pair, k, el]
    first = d + len(gram.columns)
    ends = first + np.searchsorted(gram.singles, evidence.spikes)
    amounts = np.ldexp(evidence.amounts, -2 * frame.exponent)
    middle[ends[:, 0], ends[:, 1]] = middle[ends[:, 1], ends[:, 0]] = amounts
    return middle


def _level(gram: Gram, middle: Floats, mass: float) -> float:
    """At least ``v^T A v / W``."""
    d = gram.n_axes
    pull = gram.products[0, 1 + d :]
    terms = pull[:, None] * middle[d:, d:] * pull / mass
    error = (4.0 * gram.relative + (len(terms) + 16) * EPS) * GENEROUS
    more = math.fsum(terms.ravel().tolist()) + error * float(np.abs(terms).sum())
    return level_of_axes(gram, mass) + more


def usable_evidence(problem: ReducedProblem, evidence: SpectralEvidence) -> SpectralEvidence | None:
    """What of the evidence is valid; None if nothing is."""
    labels, pairs = evidence.labels, evidence.pairs
    if len(labels) != problem.n_groups or (len(labels) and labels.min() < 0):
        return None
    most = int(labels.max()) if len(labels) else 0
    if most >= max(problem.n_clusters, 1):
        return None
    finite = (evidence.nodes, evidence.gains, evidence.amounts)
    if not all(np.isfinite(part).all() for part in finite):
        return None
    if len(pairs) and not (pairs.min() >= 0 and pairs.max() <= most):
        return None
    gains = np.maximum(evidence.gains, 0.0)
    known = _cannot_links(problem, evidence.spikes)
    spikes, places = np.unique(np.sort(evidence.spikes[known], axis=1), axis=0, return_index=True)
    amounts = evidence.amounts[known][places]
    used = gains > 0.0
    columns = int(used.any(axis=1).sum() + used.any(axis=2).sum()) + len(np.unique(spikes))
    if not columns or problem.n_axes + columns > MOST_COLUMNS:
        return None
    return SpectralEvidence(labels, pairs, evidence.nodes, gains, spikes, amounts)


def _cannot_links(problem: ReducedProblem, spikes: Ints) -> NDArray[np.bool_]:
    """Which of these pairs of groups are cannot-links."""
    n = problem.n_groups
    edges = problem.graph.edges()
    low, high = np.sort(spikes, axis=1).T
    inside = (low >= 0) & (high < n)
    return np.asarray(inside & np.isin(low * n + high, edges[:, 0] * n + edges[:, 1]))
