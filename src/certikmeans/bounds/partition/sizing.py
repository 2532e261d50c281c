"""Size of the parts: as large as the effort that is left allows.

The loss of a partition falls about as 1 / size. An iteration takes ``iteration_work(size)`` units
of work, about size^2.1, and the number of iterations hardly depends on the size; so all parts
together take about ``n size^1.1``. Larger parts gain more than more iterations: a part of 232
digits leaves 1.70 % after 75 iterations and 1.67 % after 100, a part of 450 leaves 1.23 % after 75.

The first parts are what a fifth of the effort affords, so that a bound is known early and no part
is larger than necessary. From what they leave, the law above gives the size of the next ones; they
have not converged then, which leaves a margin.

Effort is counted in work, not in measured seconds, so that the parts of a run repeat.
"""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.sdp.admm import ITERATION_WORK_EXPONENT, iteration_work
from certikmeans.stop import UNITS_PER_SECOND

MAX_PART_SIZE = 1_000
MAX_LATER_PART_SIZE = 2_000  # where time is left
MIN_PART_SIZE = 250
MIN_GROUPS_PER_CLUSTER = 8
# An iteration with many cuts takes longer than one with few by this factor.
CUT_SLOWDOWN = 1.6
EXPECTED_ITERATIONS = 120
# Fraction of the time left that the parts may take.
TIME_FRACTION = 0.75
# Fraction of the time left for the first task of every part.
ROUGH_TIME_FRACTION = 0.4
MIN_ROUGH_ITERATIONS = 5
# A second partition must be this much coarser to be computed.
MIN_COARSENING = 1.6
# Fraction of the time left for the first partition, and the time assumed without a limit.
FIRST_TIME_FRACTION = 0.2
DEFAULT_TIME_LIMIT = 600.0


def iteration_seconds(size: int) -> float:
    """Seconds of one iteration on a part, by its work.

    >>> iteration_seconds(240)
    0.005
    """
    return iteration_work(size) / UNITS_PER_SECOND


def rough_iterations(
    n_groups: int, size: int, seconds: float, n_threads: int, max_iterations: int
) -> int:
    """Iterations of the first task of a part, so that the first tasks of all parts end in time.

    >>> rough_iterations(200_000, 250, 30.0, 2, 30)
    5
    """
    all_parts = iteration_seconds(size) * max(1.0, n_groups / size)
    affordable = ROUGH_TIME_FRACTION * seconds * n_threads / max(all_parts, 1e-12)
    return int(np.clip(affordable, MIN_ROUGH_ITERATIONS, max_iterations))


def part_size(
    n_groups: int, n_clusters: int, seconds: float, n_threads: int, max_size: int = MAX_PART_SIZE
) -> int:
    """Groups per part; ``n_groups`` if the whole problem can be one part.

    >>> part_size(10_000, 10, 600.0, 2) > part_size(10_000, 10, 60.0, 2)
    True
    """
    iterations = EXPECTED_ITERATIONS * CUT_SLOWDOWN
    # A single part runs on one thread; a second thread hardly speeds it up.
    whole = iterations * iteration_seconds(n_groups)
    min_size = min(max(MIN_PART_SIZE, MIN_GROUPS_PER_CLUSTER * n_clusters), MAX_LATER_PART_SIZE)
    if n_groups <= min_size or (n_groups <= max_size and whole <= TIME_FRACTION * seconds):
        return n_groups
    # n / size parts of that many iterations, on all threads.
    affordable = TIME_FRACTION * seconds * n_threads / (iterations * iteration_seconds(1))
    size = (affordable / n_groups) ** (1.0 / (ITERATION_WORK_EXPONENT - 1.0))
    return int(np.clip(size, min_size, max(min_size, min(max_size, (n_groups + 1) // 2))))


def first_size(n_groups: int, n_clusters: int, seconds: float, n_threads: int) -> int:
    """Groups per part to begin with, by a small fraction of the time.

    If even the smallest parts take most of the time, the size that all of it allows.

    >>> first_size(10_000, 10, 60.0, 2) < part_size(10_000, 10, 60.0, 2)
    True
    """
    sizes = n_groups, n_clusters
    early_seconds = FIRST_TIME_FRACTION * min(seconds, DEFAULT_TIME_LIMIT)
    early = part_size(*sizes, early_seconds, n_threads)
    later = part_size(*sizes, seconds, n_threads, MAX_LATER_PART_SIZE)
    if MIN_COARSENING * early <= later:
        return early
    return part_size(*sizes, seconds, n_threads)


def next_size(n_groups: int, size: int, missing: float, allowed: float, affordable: int) -> int:
    """Groups per part after parts of ``size`` that leave ``missing`` where ``allowed`` is left.

    Returns 0 if parts that are larger by `MIN_COARSENING` are not affordable.

    >>> next_size(10_000, 300, 2.0, 1.0, 1_500)
    600
    >>> next_size(10_000, 300, 2.0, 1.0, 400)
    0
    """
    if affordable < MIN_COARSENING * size:
        return 0
    wanted = size * missing / allowed if allowed > 0.0 else float(affordable)
    wanted = max(wanted, MIN_COARSENING * size)
    if 2.0 * wanted > n_groups:  # two parts, or all in one
        return affordable
    return int(min(wanted, affordable))
