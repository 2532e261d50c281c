"""How large the parts should be: as large as the time allows.

The loss of a partition falls about as 1 / size. An iteration costs about ``size^POWER``, and a
part wants a number of iterations that hardly depends on its size; so all parts together cost
``n size^(POWER - 1)``. Larger parts are worth more than more iterations: a part of 232 digits
leaves 1.70 % after 75 iterations and 1.67 % after 100, a part of 450 leaves 1.23 % after 75.

So that something is known early, and nothing is larger than it need be, the first parts are what
a fifth of the time affords. What they leave says, by the law above, how large the next ones have
to be; they have not converged then, which is room enough.
"""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.partition.anticlusters import anticlusters
from certikmeans.bounds.partition.parts import part_of
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.compiling.clock import CLOCK
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

LARGEST = 1_000
LARGEST_LATER = 2_000  # where time is left
SMALLEST = 250
LEAST_PER_CLUSTER = 8
PROBE = 240
PROBE_ITERATIONS = 10
POWER = 2.1
# An iteration with many cuts takes so much longer than one of the probe, which has few.
LATER = 1.6
ITERATIONS = 120
NO_TIME = 1e-6
# Of the time that is left.
USED = 0.75
# Of the time that is left, for a rough value of every part.
ROUGH = 0.4
FEWEST = 5
# A second partition must be this much coarser to be worth while.
COARSER = 1.6
# Of the time that is left, for the first partition; and what counts as the time without a limit.
EARLY = 0.2
ENDLESS = 600.0


def seconds_per_iteration(problem: ReducedProblem, labels: np.ndarray, stop: StopSignal) -> float:
    """Measured on a small part, in the first iterations."""
    n_parts = max(1, problem.n_groups // PROBE)
    none = np.zeros(problem.n_groups, dtype=np.bool_)
    rows = np.flatnonzero(anticlusters(problem, labels, n_parts, none) == 0)[:PROBE]
    part = part_of(problem, rows, problem.weights[rows], labels)
    model = SdpModel.of(part.problem)
    if model.total <= 0.0:  # all in one place: there is nothing to iterate
        return NO_TIME
    admm = Admm(model)
    admm.climb(PROBE_ITERATIONS, stop)  # compiles what is not compiled yet
    began = CLOCK.now()
    admm.climb(PROBE_ITERATIONS, stop)
    taken = CLOCK.now() - began
    return float(taken / PROBE_ITERATIONS * (PROBE / max(len(rows), 1)) ** POWER)


def rough_iterations(
    n_groups: int, size: int, seconds: float, n_threads: int, per_iteration: float, most: int
) -> int:
    """Iterations of the first task of a part: so few that every part has its turn in time.

    >>> rough_iterations(200_000, 250, 30.0, 2, 0.005, 30)
    5
    """
    all_parts = per_iteration * (size / PROBE) ** POWER * max(1.0, n_groups / size)
    affordable = ROUGH * seconds * n_threads / max(all_parts, 1e-12)
    return int(np.clip(affordable, FEWEST, most))


def part_size(
    n_groups: int,
    n_clusters: int,
    seconds: float,
    n_threads: int,
    per_iteration: float,
    largest: int = LARGEST,
) -> int:
    """Groups per part; ``n_groups`` if the whole problem can be one part.

    ``per_iteration`` is that of `seconds_per_iteration`, for ``PROBE`` groups.

    >>> part_size(10_000, 10, 600.0, 2, 0.005) > part_size(10_000, 10, 60.0, 2, 0.005)
    True
    """
    # One part alone has one thread, or two that help each other little.
    whole = ITERATIONS * LATER * per_iteration * (n_groups / PROBE) ** POWER
    least = min(max(SMALLEST, LEAST_PER_CLUSTER * n_clusters), LARGEST_LATER)
    if n_groups <= least or (n_groups <= largest and whole <= USED * seconds):
        return n_groups
    # n / size parts of ITERATIONS steps on all threads.
    budget = USED * seconds * n_threads / (ITERATIONS * LATER * per_iteration)
    size = PROBE * (budget * PROBE / n_groups) ** (1.0 / (POWER - 1.0))
    return int(np.clip(size, least, max(least, min(largest, (n_groups + 1) // 2))))


def first_size(
    n_groups: int, n_clusters: int, seconds: float, n_threads: int, per_iteration: float
) -> int:
    """Groups per part to begin with, by a small share of the time.

    Where the smallest parts take most of the time, what all of it affords.

    >>> first_size(10_000, 10, 60.0, 2, 0.005) < part_size(10_000, 10, 60.0, 2, 0.005)
    True
    """
    sizes, share = (n_groups, n_clusters), EARLY * min(seconds, ENDLESS)
    early = part_size(*sizes, share, n_threads, per_iteration)
    later = part_size(*sizes, seconds, n_threads, per_iteration, LARGEST_LATER)
    if COARSER * early <= later:
        return early
    return part_size(*sizes, seconds, n_threads, per_iteration)


def next_size(n_groups: int, size: int, missing: float, allowed: float, affordable: int) -> int:
    """Groups per part after parts of ``size`` that leave ``missing`` where ``allowed`` is left.

    0 if parts that are larger by enough cannot be had.

    >>> next_size(10_000, 300, 2.0, 1.0, 1_500)
    600
    >>> next_size(10_000, 300, 2.0, 1.0, 400)
    0
    """
    if affordable < COARSER * size:
        return 0
    wanted = size * missing / allowed if allowed > 0.0 else float(affordable)
    wanted = max(wanted, COARSER * size)
    if 2.0 * wanted > n_groups:  # two parts, or all in one
        return affordable
    return int(min(wanted, affordable))
