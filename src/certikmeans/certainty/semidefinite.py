"""How many points can be elsewhere, from the semidefinite bound: for many axes and overlaps.

Notation of `overlap`. For any ``theta >= 0`` the semidefinite relaxation bounds

    cost - theta (K - <M_0, M>)  =  <C + theta P, Z> - theta K

with ``P_st = w_s w_t / W_a`` for two groups of our cluster a,
like any other cost, and its own multipliers are sought for it: those of the cost alone pay for
every direction in which M can turn away from ours, and leave no room (Meila, NeurIPS 2018, solves
the same program for the matrix that is farthest from ours). They are not far from those of the
proof, where there is one to begin with.

**Rounding.** ``P`` as used is at most ``P``: weights of clusters are rounded up, and the quotient
down by 8 EPS. As Z has no negative entry, the bound is lower for it. Two more roundings lead to the
entries of ``C + theta P``; `bounds.sdp.safe` counts ``(d + k + 16) EPS``, twice of what it needs.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.sdp.admm import Admm, Start
from certikmeans.bounds.sdp.bound import MOST_GROUPS
from certikmeans.bounds.sdp.model import Matrix, SdpModel
from certikmeans.bounds.sdp.safe import safe_bound
from certikmeans.certainty.overlap import eta_of, least_between, masses_above
from certikmeans.execution.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]

# A check takes about so many seconds, times the square of the groups; with less time than a few of
# them take there is no use in beginning.
SECONDS, LEAST_CHECKS = 1.1e-6, 4
# What the slack alone may make of eta; theta within these shares of what it costs to join clusters.
ETA_OF_SLACK, THETA_RANGE = 0.06, (0.05, 0.3)
CHECK_EVERY = 25  # iterations
MOST_CHECKS = 20
# Not worth going on if so many checks bring eta down by less than this share.
PATIENCE, LEAST_GAIN = 3, 0.05


def semidefinite_overlap(
    problem: ReducedProblem,
    labels: Labels,
    most: float,
    slack: float,
    start: Start | None,
    stop: StopSignal,
) -> float:
    """Bound ``eta`` for reduced costs up to ``most``, ``slack`` above ours; infinite: no bound."""
    n, k = problem.n_groups, problem.n_clusters
    late = stop.remaining < LEAST_CHECKS * SECONDS * n * n
    if late or n > MOST_GROUPS or n <= k or len(np.unique(labels)) < k:
        return math.inf
    between = least_between(problem, labels)
    if not between > 0.0:
        return math.inf
    low, high = THETA_RANGE
    theta = min(max(slack / ETA_OF_SLACK, low * between), high * between)
    model = SdpModel.of(problem)
    turned = dataclasses.replace(model, costs=model.costs + theta * _ours(problem, labels))
    found = [math.inf]
    with one_blas_thread():
        admm = Admm(turned, start)
        while len(found) <= MOST_CHECKS and stop.cause() is None:
            admm.climb(CHECK_EVERY, stop)
            value = safe_bound(turned, admm.multipliers)
            found.append(min(found[-1], eta_of(most, value, theta, k)))
            if len(found) > PATIENCE and found[-1] > (1.0 - LEAST_GAIN) * found[-1 - PATIENCE]:
                break
    return found[-1]


def _ours(problem: ReducedProblem, labels: Labels) -> Matrix:
    """At most ``P``."""
    weights = problem.weights
    share = weights / masses_above(problem, labels)[labels]
    together = labels[:, None] == labels[None, :]
    return np.where(together, np.outer(share, weights) * (1.0 - 8.0 * EPS), 0.0)
