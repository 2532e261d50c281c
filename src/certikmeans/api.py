"""`certikmeans.solve`: the solver, with progress on a terminal on request.

The solver never prints. Solver and progress are joined here for Python, and in `cli.run` for the
command line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any, Self, final

from certikmeans._alignment import inside_cross_validation
from certikmeans._jit.compile_events import KernelCompilation
from certikmeans._numbers import whole_number
from certikmeans.checkpoint.writer import DEFAULT_INTERVAL
from certikmeans.errors import CompilingWarning, warn_caller, warn_renamed
from certikmeans.events import Listener
from certikmeans.options import Options
from certikmeans.problem import Problem
from certikmeans.report.progress import FIRST_RUN_MESSAGE, make_progress
from certikmeans.result import Result
from certikmeans.solver import run
from certikmeans.stop import StopSignal


def solve(
    problem: Problem,
    options: Options | None = None,
    *,
    executor: Any = None,
    callbacks: Iterable[Listener] = (),
    start_labels: Any = None,
    initial_centers: Any = None,
    stop: StopSignal | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = DEFAULT_INTERVAL,
    resume: str | os.PathLike[str] | None = None,
    verbose: int = 0,
    **changes: Any,
) -> Result:
    """Find the best labelling that respects the constraints, and prove how good it is.

    An interrupt (Ctrl-C, or the stop button of a notebook) ends the run with what is known; a
    second one raises KeyboardInterrupt.

    Parameters
    ----------
    problem : Problem
        Points, K and constraints.
    options : Options, optional
        All settings at once; by default those of ``Options()``.
    gap : float
        Stop as soon as ``(cost - lower_bound) / cost`` is proven to be at most this.
    time_limit : float, optional
        Seconds for the whole run. What is known by then is returned. Compilation, where kernels
        were never compiled on this machine, does not count. Without a limit the run ends by
        itself: bounds are raised as long as that pays, then a tree is searched for about ten
        seconds of work.
    bound : str
        Which lower bound to compute; `Options` lists the names. ``auto`` runs several of them,
        depending on the problem: the eigenvalue bound, then with few axes ``cluster``, with many
        ``spectral``, ``sdp`` or ``partition`` (`certikmeans.solver.bound_schedule`). Branching on
        centres adds the sample bound to each of them.
    branching : {"auto", "centers", "pairs"}
        How to split the solution set when the bound alone does not close the gap: on the box of
        a centre, or on a pair of points, together or apart. ``auto``: pairs for the cluster bound
        up to 20,000 groups and for ``sdp``, otherwise centres.
    jobs : int, optional
        Number of threads; by default one per core. The answer does not depend on it.
    seed : int
        Every random choice follows from it.
    node_limit : int, optional
        Largest number of nodes in the branch-and-bound tree. Without a time limit and a node
        limit, the tree is searched for about ten seconds of work.
    selection : {"best", "depth", "mixed"}
        Which open node is split next: the one with the least bound, the deepest, or in turns.
    keep_proof : bool
        Keep what a certificate needs (``Result.proof``).
    executor : concurrent.futures.Executor or Dask Client, optional
        Runs nodes of the tree, parts and groups in other processes, on other machines or through
        MPI. By default, and for all else, threads are used.
    callbacks : iterable of callable
        Each is called with every `certikmeans.events.Event`, in this thread.
    start_labels, initial_centers : array-like, optional
        A known labelling that respects every pair, or centres, to start from.
    stop : StopSignal, optional
        ``stop.interrupt()``, called from a callback, another thread or a signal handler,
        ends the run with what is known.
    checkpoint : path-like, optional
        Save the state of the run to this file, once per interval and at the end. Killed at any
        moment, a run leaves the last whole state.
    checkpoint_interval : float
        Seconds between two saved states; 0: as often as possible.
    resume : path-like, optional
        Continue from such a file, or from a certificate. Points, pairs, weights and number of
        clusters must be the same. Settings that determine the run (gap, bound, branching,
        selection, seed, keep_proof) are taken from the file unless they are given; where one
        differs, only labelling and bound are kept. Limits are those of this call.
    verbose : int
        0: silent. 1 or more: progress on standard error, live on a terminal; in notebooks and
        log files, at most one line per second.
    **changes
        Settings, by the names above, that differ from ``options``.

    Returns
    -------
    Result
        Also for infeasible input (with a proof), and when time ran out.

    Examples
    --------
    >>> from certikmeans import Problem, solve
    >>> problem = Problem.from_data([[0.0], [1.0], [5.0], [6.0]], n_clusters=2, must_link=[(0, 2)])
    >>> result = solve(problem, gap=1e-6)
    >>> result.labels
    array([0, 0, 0, 1])
    """
    if "start_centers" in changes:
        warn_renamed("start_centers", "initial_centers")
        initial_centers = changes.pop("start_centers")
    quiet = verbosity(verbose) == 0
    stop = StopSignal() if stop is None else stop
    with (
        make_progress(sys.stderr, quiet=quiet, on_compile=_warn_once) as progress,
        _Interrupts(stop) as interrupts,
    ):
        result = run.solve(
            problem,
            options=options,
            executor=executor,
            callbacks=(*callbacks, progress),
            start_labels=start_labels,
            initial_centers=initial_centers,
            stop=stop,
            checkpoint=checkpoint,
            checkpoint_interval=checkpoint_interval,
            resume=resume,
            **changes,
        )
    if interrupts.received and result.labels is None:
        raise KeyboardInterrupt
    return result


@final
class _Interrupts:
    """Context in which the first SIGINT ends the run with what is known; the second one raises.

    Only where SIGINT raises KeyboardInterrupt as usual, and not inside a search over many fits,
    which an interrupt has to end as a whole.
    """

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop
        self._installed = False
        self.received = False

    def __enter__(self) -> Self:
        self._installed = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
            and not inside_cross_validation()
        )
        if self._installed:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.received = True
        self._stop.interrupt()

    def __exit__(self, *error: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@final
class _WarningOnce:
    """Warn when the first kernel is compiled: without a message, the call seems to hang."""

    def __init__(self) -> None:
        self._done = False

    def __call__(self, progress_event: KernelCompilation) -> None:
        if self._done:
            return
        self._done = True
        # Where warnings are errors, a run must not depend on what was compiled before.
        with contextlib.suppress(CompilingWarning):
            warn_caller(
                f"{FIRST_RUN_MESSAGE}; certikmeans.warm_up() does it ahead, verbose=1 shows "
                "how far it is",
                CompilingWarning,
            )


_warn_once = _WarningOnce()


def verbosity(verbose: Any) -> int:
    """Return the verbosity level as an integer.

    >>> verbosity(True), verbosity(0)
    (1, 0)
    """
    return whole_number("verbose", int(verbose) if isinstance(verbose, bool) else verbose, least=0)
