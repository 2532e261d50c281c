"""How large the parts should be: as large as the time allows.

The loss of a partition falls about as 1 / size. An iteration costs about ``size^POWER``, and a
part wants a number of iterations that hardly depends on its size; so all parts together cost
``n size^(POWER - 1)``.
"""

from __future__ import annotations

import time

import numpy as np

from certikmeans.bounds.partition.anticlusters import anticlusters
from certikmeans.bounds.partition.parts import part_of
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

LARGEST = 1_000
SMALLEST = 120
LEAST_PER_CLUSTER = 8
PROBE = 240
PROBE_ITERATIONS = 10
POWER = 2.4
# An iteration with many cuts takes so much longer than one of the probe, which has few.
LATER = 2.0
ITERATIONS = 200
# Of the time that is left.
USED = 0.75
# A whole problem has nothing to lose by being cut up: it may take this much longer.
WHOLE = 2.0


def seconds_per_iteration(problem: ReducedProblem, labels: np.ndarray, stop: StopSignal) -> float:
    """Measured on a small part, in the first iterations."""
    n_parts = max(1, problem.n_groups // PROBE)
    none = np.zeros(problem.n_groups, dtype=np.bool_)
    rows = np.flatnonzero(anticlusters(problem, labels, n_parts, none) == 0)[:PROBE]
    part = part_of(problem, rows, problem.weights[rows], labels)
    admm = Admm(SdpModel.of(part.problem))
    admm.climb(PROBE_ITERATIONS, stop)  # compiles what is not compiled yet
    began = time.perf_counter()
    admm.climb(PROBE_ITERATIONS, stop)
    taken = time.perf_counter() - began
    return float(taken / PROBE_ITERATIONS * (PROBE / max(len(rows), 1)) ** POWER)


def part_size(
    n_groups: int, n_clusters: int, seconds: float, n_threads: int, per_iteration: float
) -> int:
    """Groups per part; at least ``n_groups`` if the whole problem can be one part.

    ``per_iteration`` is that of `seconds_per_iteration`, for ``PROBE`` groups.

    >>> part_size(10_000, 10, 600.0, 2, 0.005) > part_size(10_000, 10, 60.0, 2, 0.005)
    True
    """
    # One part alone has one thread, or two that help each other little.
    whole = ITERATIONS * LATER * per_iteration * (n_groups / PROBE) ** POWER
    least = max(SMALLEST, LEAST_PER_CLUSTER * n_clusters)
    if n_groups <= least or whole <= WHOLE * USED * seconds:
        return n_groups
    # n / size parts of ITERATIONS steps on all threads.
    budget = USED * seconds * n_threads / (ITERATIONS * LATER * per_iteration)
    size = PROBE * (budget * PROBE / n_groups) ** (1.0 / (POWER - 1.0))
    return int(np.clip(size, least, LARGEST))
