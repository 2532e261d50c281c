"""How large the parts should be: as large as the time allows.

The loss of a partition falls about as 1 / size. An iteration costs about ``size^COST_EXPONENT``, and a
part wants a number of iterations that hardly depends on its size; so all parts together cost
``n size^(COST_EXPONENT - 1)``. Larger parts are worth more than more iterations: a part of 232 digits
leaves 1.70 % after 75 iterations and 1.67 % after 100, a part of 450 leaves 1.23 % after 75.

So that something is known early, and nothing is larger than it need be, the first parts are what
a fifth of the time affords. What they leave says, by the law above, how large the next ones have
to be; they have not converged then, which is room enough.
"""

from __future__ import annotations

import numpy as np

from certikmeans._jit.clock import CLOCK
from certikmeans.bounds.partition.parts import anticlusters, make_part
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

MAX_PART_SIZE = 1_000
MAX_LATER_PART_SIZE = 2_000  # where time is left
MIN_PART_SIZE = 250
MIN_GROUPS_PER_CLUSTER = 8
PROBE_SIZE = 240
PROBE_ITERATIONS = 10
COST_EXPONENT = 2.1
# An iteration with many cuts takes so much longer than one of the probe, which has few.
CUT_SLOWDOWN = 1.6
EXPECTED_ITERATIONS = 120
NEGLIGIBLE_SECONDS = 1e-6
# Of the time that is left.
TIME_FRACTION = 0.75
# Of the time that is left, for a rough value of every part.
ROUGH_TIME_FRACTION = 0.4
MIN_ROUGH_ITERATIONS = 5
# A second partition must be this much coarser to be worth while.
MIN_COARSENING = 1.6
# Of the time that is left, for the first partition; and what counts as the time without a limit.
FIRST_TIME_FRACTION = 0.2
DEFAULT_TIME_LIMIT = 600.0


def seconds_per_iteration(problem: ReducedProblem, labels: np.ndarray, stop: StopSignal) -> float:
    """Measured on a small part, in the first iterations."""
    n_parts = max(1, problem.n_groups // PROBE_SIZE)
    none = np.zeros(problem.n_groups, dtype=np.bool_)
    rows = np.flatnonzero(anticlusters(problem, labels, n_parts, none) == 0)[:PROBE_SIZE]
    part = make_part(problem, rows, problem.weights[rows], labels)
    model = SdpModel.of(part.problem)
    if model.total <= 0.0:  # all in one place: there is nothing to iterate
        return NEGLIGIBLE_SECONDS
    admm = Admm(model)
    admm.run(PROBE_ITERATIONS, stop)  # compiles what is not compiled yet
    began = CLOCK.now()
    admm.run(PROBE_ITERATIONS, stop)
    taken = CLOCK.now() - began
    return float(taken / PROBE_ITERATIONS * (PROBE_SIZE / max(len(rows), 1)) ** COST_EXPONENT)


def rough_iterations(
    n_groups: int,
    size: int,
    seconds: float,
    n_threads: int,
    per_iteration: float,
    max_iterations: int,
) -> int:
    """Iterations of the first task of a part: so few that every part has its turn in time.

    >>> rough_iterations(200_000, 250, 30.0, 2, 0.005, 30)
    5
    """
    all_parts = per_iteration * (size / PROBE_SIZE) ** COST_EXPONENT * max(1.0, n_groups / size)
    affordable = ROUGH_TIME_FRACTION * seconds * n_threads / max(all_parts, 1e-12)
    return int(np.clip(affordable, MIN_ROUGH_ITERATIONS, max_iterations))


def part_size(
    n_groups: int,
    n_clusters: int,
    seconds: float,
    n_threads: int,
    per_iteration: float,
    max_size: int = MAX_PART_SIZE,
) -> int:
    """Groups per part; ``n_groups`` if the whole problem can be one part.

    ``per_iteration`` is that of `seconds_per_iteration`, for ``PROBE_SIZE`` groups.

    >>> part_size(10_000, 10, 600.0, 2, 0.005) > part_size(10_000, 10, 60.0, 2, 0.005)
    True
    """
    # One part alone has one thread, or two that help each other little.
    whole = (
        EXPECTED_ITERATIONS
        * CUT_SLOWDOWN
        * per_iteration
        * (n_groups / PROBE_SIZE) ** COST_EXPONENT
    )
    min_size = min(max(MIN_PART_SIZE, MIN_GROUPS_PER_CLUSTER * n_clusters), MAX_LATER_PART_SIZE)
    if n_groups <= min_size or (n_groups <= max_size and whole <= TIME_FRACTION * seconds):
        return n_groups
    # n / size parts of ITERATIONS steps on all threads.
    budget = (
        TIME_FRACTION * seconds * n_threads / (EXPECTED_ITERATIONS * CUT_SLOWDOWN * per_iteration)
    )
    size = PROBE_SIZE * (budget * PROBE_SIZE / n_groups) ** (1.0 / (COST_EXPONENT - 1.0))
    return int(np.clip(size, min_size, max(min_size, min(max_size, (n_groups + 1) // 2))))


def first_size(
    n_groups: int, n_clusters: int, seconds: float, n_threads: int, per_iteration: float
) -> int:
    """Groups per part to begin with, by a small share of the time.

    Where the smallest parts take most of the time, what all of it affords.

    >>> first_size(10_000, 10, 60.0, 2, 0.005) < part_size(10_000, 10, 60.0, 2, 0.005)
    True
    """
    sizes, time_budget = (
        (n_groups, n_clusters),
        FIRST_TIME_FRACTION * min(seconds, DEFAULT_TIME_LIMIT),
    )
    early = part_size(*sizes, time_budget, n_threads, per_iteration)
    later = part_size(*sizes, seconds, n_threads, per_iteration, MAX_LATER_PART_SIZE)
    if MIN_COARSENING * early <= later:
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
    if affordable < MIN_COARSENING * size:
        return 0
    wanted = size * missing / allowed if allowed > 0.0 else float(affordable)
    wanted = max(wanted, MIN_COARSENING * size)
    if 2.0 * wanted > n_groups:  # two parts, or all in one
        return affordable
    return int(min(wanted, affordable))
