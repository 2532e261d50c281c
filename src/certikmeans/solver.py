"""`solve`: the one call that does everything."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from certikmeans.errors import InputError
from certikmeans.events import Emitter, Listener
from certikmeans.options import DEFAULT_GAP, DEFAULT_NODE_LIMIT, Options
from certikmeans.problem import Problem
from certikmeans.problem.start import checked_start_centers, checked_start_labels
from certikmeans.result import Result
from certikmeans.stages import Crews, Run
from certikmeans.stop import StopSignal


def solve(
    problem: Problem,
    *,
    gap: float = DEFAULT_GAP,
    time_limit: float | None = None,
    bound: str = "auto",
    branching: str = "auto",
    jobs: int | None = None,
    seed: int = 0,
    node_limit: int = DEFAULT_NODE_LIMIT,
    selection: str = "best",
    executor: Executor | None = None,
    keep_proof: bool = False,
    callbacks: Iterable[Listener] = (),
    start_labels: Any = None,
    start_centers: Any = None,
    stop: StopSignal | None = None,
) -> Result:
    """Find the best labelling that respects every pair, and prove how good it is.

    Parameters
    ----------
    problem : Problem
        Points, K and pairs.
    gap : float
        Stop as soon as ``(cost - lower_bound) / cost`` is proven to be at most this.
    time_limit : float, optional
        Seconds for the whole run. What is known by then is returned. Counts compilation, where
        the kernels were never compiled on this machine.
    bound : {"auto", "cluster", "grouped", "sample", "sdp"}
        Which lower bound to compute. ``auto`` is ``cluster``; where that leaves more than 1 % at
        the root, with at most 400 groups and 6 or more axes, ``sdp`` takes over. Where centres
        are split, the sample bound comes with each of them.
    branching : {"auto", "centers", "pairs"}
        How to split the solution set when the bound alone does not close the gap: on the box of
        a centre, or on a pair of points, together or apart. ``auto``: pairs for the cluster bound
        up to 20,000 groups and for ``sdp``, otherwise centres.
    jobs : int, optional
        Number of threads; by default one per core. The answer does not depend on it.
    seed : int
        Every random choice follows from it.
    node_limit : int
        Nodes of the tree to bound at most.
    selection : {"best", "depth", "mixed"}
        Which open node is split next: the one with the least bound, the deepest, or in turns.
    executor : concurrent.futures.Executor, optional
        Runs the nodes of the tree and the boxes of the bounds: processes, machines, anything with
        this interface. By default the threads. Heuristics always use the threads.
    keep_proof : bool
        Keep what a certificate needs (``Result.proof``).
    callbacks : iterable of callable
        Each is called with every `certikmeans.events.Event`, in this thread.
    start_labels, start_centers : array-like, optional
        A known labelling that respects every pair, or centres, to start from.
    stop : StopSignal, optional
        ``stop.interrupt()``, called from a callback, another thread or a signal handler,
        ends the run with what is known.

    Returns
    -------
    Result
        Also for infeasible input (with a proof), and when time ran out.

    Examples
    --------
    >>> problem = Problem.from_data(
    ...     [[0.0], [1.0], [5.0], [6.0]], n_clusters=2, cannot_link=[(0, 1)], must_link=[(2, 3)]
    ... )
    >>> result = solve(problem)
    >>> result.labels
    array([0, 1, 1, 1])
    >>> print(round(result.cost, 9), result.status, result.gap <= 0.001)
    14.0 optimal True
    """
    if not isinstance(problem, Problem):
        raise InputError(
            f"problem: expected a Problem, got {type(problem).__name__}",
            hint="solve(Problem.from_data(X, n_clusters=3, must_link=[(0, 1)])); "
            "ConstrainedKMeans takes arrays",
        )
    options = Options(
        gap, time_limit, bound, branching, jobs, seed, node_limit, selection, keep_proof
    )
    labels = checked_start_labels(problem, start_labels)
    centers = checked_start_centers(problem, start_centers)
    if stop is None:
        stop = StopSignal(options.time_limit_seconds)
    elif options.time_limit_seconds is not None:
        stop = stop.within(options.time_limit_seconds)
    with ThreadPoolExecutor(options.n_threads, "certikmeans") as pool:
        threads = pool if options.n_threads > 1 else None
        crews = Crews(threads, executor or threads)
        return Run(problem, options, Emitter(callbacks), stop, crews).execute(labels, centers)
