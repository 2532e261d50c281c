"""Number of points that can be reassigned, from bounds on the overlap of labellings: for many axes.

Write ``M`` for the matrix of a labelling (``v_s v_t / W_k`` for two groups of one cluster of weight
``W_k``, ``v = sqrt(w)``; see `bounds.spectral`), ``M_0`` for that of the incumbent, with K
clusters. Let ``W_ab`` be the weight that cluster a of the incumbent and cluster b of the other
labelling have in common:

    <M_0, M> = sum_ab W_ab^2 / (W_a W'_b).

**From overlap to points.** Suppose ``<M_0, M> >= K - eta`` with ``eta < 1/2``. For every b the
shares ``W_ab / W'_b`` add up to 1, so its part of the sum is at most ``t_b = max_a W_ab / W_a``,
which is at most 1. All of them add up to ``K - eta`` at least; so there are K clusters, none has
``t_b < 1 - eta``, and no two have more than half of the same a: that is a numbering, a(b).

Let ``p_b = 1 - t_b`` be the share of a(b) that is not in b, ``q_b`` the share of b that is not of
a(b). Another a has at most ``eta`` of itself in b, for it has ``1 - eta`` elsewhere. So the part of
b is at most ``(1 - p_b)(1 - q_b) + eta q_b``, and with all parts together and ``p_b <= eta``

    sum p_b + (1 - 2 eta) sum q_b  <=  eta.

The weight m of the reassigned points is ``sum W_a(b) p_b``, and ``sum W'_b q_b`` as well. With A
the largest ``W_a`` no ``W'_b`` is above ``A + m``, so ``m / A + (1 - 2 eta) m / (A + m) <= eta``: a
quadratic inequality for ``m / A`` (`max_reassigned_fraction`), which comes to about ``eta / 2`` of
the largest cluster where eta is small. (Meila, NeurIPS 2018, has eta times its weight.)

For larger ``eta``, clusters with ``t_b > 1/2`` still have different a(b). Every other one takes 1/2
of ``eta`` at least, and leaves one of the incumbent unmatched: at most ``2 eta`` of its largest
clusters, and of the others what is left of ``eta`` (`max_reassigned_weight`).

**From cost to overlap.** For any ``theta >= 0``, bound ``cost - theta (K - <M_0, M>)`` from below
by some ``B(theta)``, with the same multipliers as the cost: the bound takes any matrix, and ``M_0``
is one, K columns more for the spectral bound. Then for every labelling that costs at most ``T``,
``eta <= (T - B(theta)) / theta``. No eigenvalue gap is needed, though a good ``theta`` is about as
large as one. Where clusters overlap, the semidefinite bound below does the same.

**Rounding.** ``B`` is the value of `bound_for_coefficients`, which includes its rounding. Weights
of clusters are rounded up, so the matrix used is below ``M_0``, and ``eta`` above. The rest is a
few operations: 16 EPS of their sizes; the fraction is raised by 32 EPS of itself.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.sdp.admm import Admm, AdmmState
from certikmeans.bounds.sdp.bound import MAX_GROUPS
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.bounds.spectral.ascent import ascend
from certikmeans.bounds.spectral.closed_form import closed_form
from certikmeans.bounds.spectral.dual_bound import (
    MAX_COLUMNS,
    bound_for_coefficients,
    coefficient_matrix,
    valid_multipliers,
)
from certikmeans.bounds.spectral.gram import Frame, SpectralMultipliers, full_gram, with_indicators
from certikmeans.certainty.params import OverlapParams
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS, round_up
from certikmeans.stop import StopSignal

Labels = Ints


def spectral_overlap(
    problem: ReducedProblem,
    labels: Labels,
    most: float,
    known: SpectralMultipliers | None,
    stop: StopSignal,
    params: OverlapParams,
) -> float:
    """Bound ``eta`` by the spectral bound, for reduced costs up to ``most``; infinite if it fails.

    ``known`` are the multipliers of the run; by default they are computed.
    """
    k = problem.n_clusters
    masses = cluster_weights_rounded_up(problem, labels)
    columns = problem.n_dims + k * k
    if len(np.unique(labels)) < k or columns > MAX_COLUMNS or problem.n_groups <= k:
        return math.inf
    zeros = SpectralMultipliers.zeros(problem.n_groups)
    if known is None or not np.array_equal(known.labels, labels):
        known = _multipliers(problem, labels, most, stop)
    known = dataclasses.replace(
        known, labels=labels, link_pairs=zeros.link_pairs, link_multipliers=zeros.link_multipliers
    )
    usable = valid_multipliers(problem, known)
    evidence = dataclasses.replace(zeros, labels=labels) if usable is None else usable
    frame = Frame.of(problem)
    best = math.inf
    with one_blas_thread(), np.errstate(all="ignore"):
        gram = full_gram(problem, frame, evidence)
        wider = with_indicators(gram, problem, frame, evidence)
        middle = coefficient_matrix(wider, frame, evidence)
        diagonal = np.arange(len(middle) - k, len(middle))
        limit = math.ldexp(most, -2 * frame.exponent)
        estimate = math.ldexp(min_merge_cost(problem, labels), -2 * frame.exponent)
        for factor in params.theta_factors:
            theta = factor * estimate
            if not theta > 0.0:
                continue
            middle[diagonal, diagonal] = -theta / masses
            value = bound_for_coefficients(wider, middle, k - 1)
            best = min(best, overlap_deficit(limit, value, theta, k))
    return best


def _multipliers(
    problem: ReducedProblem, labels: Labels, most: float, stop: StopSignal
) -> SpectralMultipliers:
    """Multipliers whose bound is as close as possible to the cost of the labelling."""
    found = closed_form(problem, labels, lambda: stop.reason() is not None)
    if stop.reason() is None and found.value < 0.999 * most:
        found = max(
            found,
            ascend(problem, found, stop=lambda: stop.reason() is not None),
            key=lambda proof: proof.value,
        )
    return found.evidence


def max_reassigned_fraction(eta: float) -> float:
    """Upper bound on ``m / A``: the largest r with ``r + (1 - 2 eta) r / (1 + r) <= eta``.

    >>> round(max_reassigned_fraction(0.1), 4), round(max_reassigned_fraction(0.5), 4)
    (0.0569, 0.5)
    """
    eta = max(0.0, eta)
    half = 2.0 - 3.0 * eta
    return 2.0 * eta / (half + math.sqrt(half * half + 4.0 * eta)) * (1.0 + 32.0 * EPS)


def max_reassigned_weight(masses: Floats, eta: float) -> float:
    """Upper bound on the reassigned weight, given the weights of the clusters of the incumbent.

    >>> round(max_reassigned_weight(np.array([10.0, 20.0, 30.0]), 0.8), 6)
    36.0
    """
    masses = np.sort(masses)[::-1]
    if eta < 0.5 * (1.0 - 1e-9):
        return max_reassigned_fraction(eta) * float(masses[0])
    n_unmatched = math.floor(min(2.0 * eta, len(masses)))
    left = eta - 0.5 * n_unmatched
    rest = left * float(masses[n_unmatched]) if n_unmatched < len(masses) else 0.0
    return (math.fsum(masses[:n_unmatched].tolist()) + rest) * (1.0 + 8.0 * EPS)


def max_reassigned_points(
    problem: ReducedProblem, labels: Labels, sizes: Labels, eta: float
) -> int | None:
    """Upper bound on the reassigned points of groups; None if ``eta`` implies none."""
    if not eta < 0.5 * problem.n_clusters:
        return None
    weight = round_up(max_reassigned_weight(cluster_weights_rounded_up(problem, labels), eta))
    order = np.argsort(problem.weights / sizes, kind="stable")
    weights, counts = problem.weights[order], sizes[order]
    spent = np.cumsum(weights) * (1.0 - 2.0 * (len(weights) + 8) * EPS)
    whole = int(np.searchsorted(spent, weight, side="right"))
    total = int(counts[:whole].sum())
    if whole < len(counts):
        left = weight - (spent[whole - 1] if whole else 0.0)
        total += math.floor(float(counts[whole]) * min(1.0, max(0.0, left) / weights[whole]))
    return total if whole < len(counts) else None


def overlap_deficit(most: float, value: float, theta: float, k: int) -> float:
    """Upper bound on ``(T - B) / theta``; ``value`` is B without ``- theta K``."""
    if not math.isfinite(value):
        return math.inf
    size = abs(most) + abs(value) + theta * k
    return ((most - value) + theta * k + 16.0 * EPS * size) / theta * (1.0 + 8.0 * EPS)


def cluster_weights_rounded_up(problem: ReducedProblem, labels: Labels) -> Floats:
    """Upper bounds on the weights of the clusters."""
    k = problem.n_clusters
    return np.array(
        [math.fsum(problem.weights[labels == c].tolist()) * (1.0 + 4.0 * EPS) for c in range(k)]
    )


def min_merge_cost(problem: ReducedProblem, labels: Labels) -> float:
    """Approximate cost of merging the two nearest clusters."""
    sums, masses = problem.cluster_sums(labels)
    centers = sums / masses[:, None]
    least = math.inf
    for a in range(len(centers)):
        for b in range(a):
            squared_distance = float(np.sum((centers[a] - centers[b]) ** 2))
            least = min(
                least, squared_distance * float(masses[a] * masses[b] / (masses[a] + masses[b]))
            )
    return least


# The semidefinite bound: for many axes and overlapping clusters.
#
# For any ``theta >= 0`` the semidefinite relaxation bounds
#
#     cost - theta (K - <M_0, M>)  =  <C + theta P, Z> - theta K
#
# with ``P_st = w_s w_t / W_a`` for two groups of cluster a of the incumbent, like any other cost,
# and its own multipliers are computed for it: those of the cost alone pay for every direction in
# which M can turn away from ``M_0``, and leave no slack (Meila, NeurIPS 2018, solves the same
# program for the matrix that is farthest from ``M_0``). They are close to those of the proof, where
# the run has some.
#
# **Rounding.** ``P`` as used is at most ``P``: weights of clusters are rounded up, and the quotient
# down by 8 EPS. As Z has no negative entry, the bound is lower for it. Two more roundings lead to
# the entries of ``C + theta P``; `bounds.sdp.dual_bound` counts ``(d + k + 16) EPS``, twice of what
# it needs.


def semidefinite_overlap(
    problem: ReducedProblem,
    labels: Labels,
    most: float,
    slack: float,
    start: AdmmState | None,
    stop: StopSignal,
    params: OverlapParams,
) -> float:
    """Bound ``eta`` for reduced costs up to ``most``, ``slack`` above the incumbent; else inf."""
    n, k = problem.n_groups, problem.n_clusters
    too_late = stop.remaining < params.min_checks * params.seconds_per_check * n * n
    if too_late or n > MAX_GROUPS or n <= k or len(np.unique(labels)) < k:
        return math.inf
    merge_cost = min_merge_cost(problem, labels)
    if not merge_cost > 0.0:
        return math.inf
    low, high = params.theta_range
    theta = min(max(slack / params.target_eta, low * merge_cost), high * merge_cost)
    model = SdpModel.of(problem)
    shifted = dataclasses.replace(
        model, costs=model.costs + theta * _incumbent_matrix(problem, labels)
    )
    found = [math.inf]
    with one_blas_thread():
        admm = Admm(shifted, start)
        while len(found) <= params.max_checks and stop.reason() is None:
            admm.run(params.iterations_per_check, stop)
            value = safe_bound(shifted, admm.multipliers)
            found.append(min(found[-1], overlap_deficit(most, value, theta, k)))
            if len(found) > params.stall_checks:
                before = found[-1 - params.stall_checks]
                if found[-1] > (1.0 - params.min_improvement) * before:
                    break
    return found[-1]


def _incumbent_matrix(problem: ReducedProblem, labels: Labels) -> Floats:
    """Lower bound on ``P``."""
    weights = problem.weights
    fraction = weights / cluster_weights_rounded_up(problem, labels)[labels]
    same_cluster = labels[:, None] == labels[None, :]
    return np.where(same_cluster, np.outer(fraction, weights) * (1.0 - 8.0 * EPS), 0.0)
