"""How many points can be elsewhere, from the spectral bound: for many axes.

Write ``M`` for the matrix of a labelling (``v_s v_t / W_k`` for two groups of one cluster of weight
``W_k``, ``v = sqrt(w)``; see `bounds.spectral.floor`), ``M_0`` for that of ours, with K clusters.
Let ``W_ab`` be the weight that our cluster a and its cluster b have in common:

    <M_0, M> = sum_ab W_ab^2 / (W_a W'_b).

**From overlap to points.** Suppose ``<M_0, M> >= K - eta`` with ``eta < 1/2``. For every b the
weights ``W_ab / W'_b`` add up to 1, so its part of the sum is at most ``t_b = max_a W_ab / W_a``,
which is at most 1. All of them add up to ``K - eta`` at least; so there are K clusters, none has
``t_b < 1 - eta``, and two clusters cannot have more than half of the same a. That is a numbering,
and in it the weight of the points that are elsewhere is at most ``sum_b W_a(b) (1 - t_b) <= eta
max_a W_a`` (as in Meila, NeurIPS 2018, with a shorter way there).

**From cost to overlap.** For any ``theta >= 0``, bound ``cost - theta (K - <M_0, M>)`` from below
by some ``B(theta)``, with the same multipliers as the cost: the bound takes any matrix, and ``M_0``
is one, K columns more for the spectral bound. Then for every labelling that costs at most ``T``,
``eta <= (T - B(theta)) / theta``. No eigenvalue gap is needed, though a good ``theta`` is about as
large as one. (The semidefinite bound could do the same, but its multipliers leave no room: on
overlapping data the best ``eta`` was above 0.9 for all of them, so it is not tried.)

**Rounding.** ``B`` is what `safe.value_of` returns, its own included. Weights of clusters are
rounded up, so what stands for ``M_0`` is below it, and ``eta`` above. The rest is a few operations:
16 EPS of their sizes.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.spectral.ascent import improved
from certikmeans.bounds.spectral.closed_form import closed_form
from certikmeans.bounds.spectral.evidence import SpectralEvidence
from certikmeans.bounds.spectral.gram import Frame, full_gram, with_indicators
from certikmeans.bounds.spectral.safe import MOST_COLUMNS, middle_matrix, usable_evidence, value_of
from certikmeans.execution.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS, round_up
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]

# Thetas tried, as multiples of a guess.
FACTORS = np.geomspace(0.02, 2.0, 10)


def spectral_overlap(
    problem: ReducedProblem, labels: Labels, most: float, stop: StopSignal
) -> float:
    """Bound ``eta`` by the spectral bound, for reduced costs up to ``most``; infinite: no bound."""
    k = problem.n_clusters
    masses = _masses_above(problem, labels)
    columns = problem.n_axes + k * k
    if len(np.unique(labels)) < k or columns > MOST_COLUMNS or problem.n_groups <= k:
        return math.inf
    found = closed_form(problem, labels, lambda: stop.cause() is not None)
    if stop.cause() is None and found.value < 0.999 * most:
        found = max(
            found,
            improved(problem, found, stop=lambda: stop.cause() is not None),
            key=lambda proof: proof.value,
        )
    none = SpectralEvidence.none(problem.n_groups)
    given = dataclasses.replace(
        found.evidence, labels=labels, spikes=none.spikes, amounts=none.amounts
    )
    if found.evidence.gains.any():
        given = dataclasses.replace(given, labels=found.evidence.labels)
        if not np.array_equal(given.labels, labels):
            return math.inf
    usable = usable_evidence(problem, given)
    evidence = dataclasses.replace(none, labels=labels) if usable is None else usable
    frame = Frame.of(problem)
    best = math.inf
    with one_blas_thread(), np.errstate(all="ignore"):
        gram = full_gram(problem, frame, evidence)
        wider = with_indicators(gram, problem, frame, evidence)
        middle = middle_matrix(wider, frame, evidence)
        diagonal = np.arange(len(middle) - k, len(middle))
        limit = math.ldexp(most, -2 * frame.exponent)
        guess = _between(problem, frame, labels)
        for factor in FACTORS:
            theta = float(factor) * guess
            if not theta > 0.0:
                continue
            middle[diagonal, diagonal] = -theta / masses
            value = value_of(wider, middle, k - 1)
            best = min(best, _eta(limit, value, theta, k))
    return best


def most_points_elsewhere(
    problem: ReducedProblem, labels: Labels, sizes: Labels, eta: float
) -> int | None:
    """Points of groups that ``eta`` leaves room for; None: it says nothing."""
    if not eta < 0.5 * (1.0 - 1e-9):
        return None
    room = round_up(max(0.0, eta) * float(_masses_above(problem, labels).max()))
    order = np.argsort(problem.weights / sizes, kind="stable")
    weights, counts = problem.weights[order], sizes[order]
    spent = np.cumsum(weights) * (1.0 - 2.0 * (len(weights) + 8) * EPS)
    whole = int(np.searchsorted(spent, room, side="right"))
    total = int(counts[:whole].sum())
    if whole < len(counts):
        left = room - (spent[whole - 1] if whole else 0.0)
        total += math.floor(float(counts[whole]) * min(1.0, max(0.0, left) / weights[whole]))
    return total


def _eta(most: float, value: float, theta: float, k: int) -> float:
    """``(T - B) / theta``, at least; ``value`` is B without ``- theta K``."""
    if not math.isfinite(value):
        return math.inf
    size = abs(most) + abs(value) + theta * k
    return ((most - value) + theta * k + 16.0 * EPS * size) / theta * (1.0 + 8.0 * EPS)


def _masses_above(problem: ReducedProblem, labels: Labels) -> NDArray[np.float64]:
    """At least the weight of every cluster."""
    k = problem.n_clusters
    return np.array(
        [math.fsum(problem.weights[labels == c].tolist()) * (1.0 + 4.0 * EPS) for c in range(k)]
    )


def _between(problem: ReducedProblem, frame: Frame, labels: Labels) -> float:
    """About the least that two centres are apart, times the weight of a cluster: a guess."""
    sums, masses = problem.cluster_sums(labels)
    centres = np.ldexp(sums / masses[:, None], -frame.exponent)
    least = math.inf
    for a in range(len(centres)):
        for b in range(a):
            apart = float(np.sum((centres[a] - centres[b]) ** 2))
            least = min(least, apart * float(masses[a] * masses[b] / (masses[a] + masses[b])))
    return least
