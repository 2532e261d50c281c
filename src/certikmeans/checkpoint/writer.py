"""Event listener that writes checkpoints."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from certikmeans._atomic import write_atomically
from certikmeans.checkpoint.codec import UnsupportedTypeError
from certikmeans.checkpoint.file import BestKnown, ProblemFingerprint, encode
from certikmeans.errors import InputError
from certikmeans.events import CheckpointOpportunity, Event

if TYPE_CHECKING:
    from certikmeans.options import Options
    from certikmeans.problem import Problem

DEFAULT_INTERVAL = 60.0


@final
class CheckpointWriter:
    """Listener that writes the state to a file, at the first event after every interval.

    The file is replaced atomically: a run that is killed leaves the last complete one.

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
        self.written = 0

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
        try:
            write_atomically(self._path, content)
        except OSError as error:
            raise InputError(
                f"{self._path}: could not be written ({error.strerror or error})",
                hint="the run ends here: a checkpoint that is not there would be missed later",
            ) from error
        self.written += 1
        self._next = self._clock() + self._interval


def without_warm_starts(state: Any) -> Any:
    """Return a snapshot without the states of bounds, which classes of other packages may be in."""
    turns = tuple(replace(turn, warm_start=None) for turn in state.schedule)
    return replace(state, schedule=turns)
