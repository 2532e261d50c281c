"""Event listener that writes checkpoints."""

from __future__ import annotations

import contextlib
import errno
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from certikmeans._atomic import is_special, open_beside, write_atomically
from certikmeans.checkpoint.codec import UnsupportedTypeError
from certikmeans.checkpoint.file import BestKnown, ProblemFingerprint, encode
from certikmeans.errors import CheckpointWarning, InputError, warn_caller
from certikmeans.events import CheckpointOpportunity, Event

if TYPE_CHECKING:
    from certikmeans.options import Options
    from certikmeans.problem import Problem

DEFAULT_INTERVAL = 60.0


@final
class CheckpointWriter:
    """Listener that writes the state to a file, at the first event after every interval.

    The file is replaced atomically: a run that is killed leaves the last complete one. A file that
    cannot be written is a warning, and is tried again after the next interval.

    Parameters
    ----------
    path : path-like
        The file.
    problem : Problem
    options : Options
        Written beside the state.
    interval_seconds : float
        0 writes at every `CheckpointOpportunity`.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: Problem,
        options: Options,
        interval_seconds: float = DEFAULT_INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not interval_seconds >= 0.0:
            raise InputError(
                f"checkpoint interval: {interval_seconds!r} is not a number of seconds",
                hint="60 saves the state once a minute",
            )
        self._path = path
        self._fingerprint = ProblemFingerprint.of(problem)
        self._options = options
        self._interval = interval_seconds
        self._clock = clock
        self._next = clock() + interval_seconds
        self._failed = False  # at the last attempt
        self.written = 0
        _check_writable(path)

    def __call__(self, event: Event) -> None:
        """Save the state if the interval has passed."""
        if isinstance(event, CheckpointOpportunity) and (event.last or self._clock() >= self._next):
            self.write(event)

    def write(self, event: CheckpointOpportunity) -> None:
        """Save the state now."""
        best, state = event.essence(), event.state()
        assert isinstance(best, BestKnown)
        try:
            content = encode(self._fingerprint, self._options, best, state)
        except UnsupportedTypeError as error:
            warnings.warn(
                f"checkpoint: the state of a bound cannot be saved ({error}); a resumed run "
                "computes the bound again",
                RuntimeWarning,
                stacklevel=2,
            )
            content = encode(self._fingerprint, self._options, best, without_warm_starts(state))
        self._next = self._clock() + self._interval
        try:
            write_atomically(self._path, content)
        except OSError as error:
            if event.last or not self._failed:
                self._warn(error, event.last)
            self._failed = True
        else:
            self.written += 1
            self._failed = False

    def _warn(self, error: OSError, last: bool) -> None:
        """Warn that a checkpoint is missing; the run and its result are not affected."""
        rest = "the run continues, and tries again" if not last else "the result is not affected"
        # Where warnings are errors, a full disk must not cost the result either.
        with contextlib.suppress(CheckpointWarning):
            warn_caller(
                f"{self._path}: the checkpoint could not be written ({error.strerror or error}); "
                f"{rest}",
                CheckpointWarning,
            )


def _check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` before the run starts if the file cannot be created."""
    if is_special(path) and not os.path.isdir(path):
        return
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        beside, descriptor = open_beside(path)
        os.close(descriptor)
        beside.unlink()
    except OSError as error:
        raise InputError(
            f"{path}: checkpoints cannot be written there ({error.strerror or error})",
            hint="name a file in a directory in which files can be created",
        ) from error


def without_warm_starts(state: Any) -> Any:
    """Return a snapshot without the states of bounds, which classes of other packages may be in."""
    turns = tuple(replace(turn, warm_start=None) for turn in state.schedule)
    return replace(state, schedule=turns)
