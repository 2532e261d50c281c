"""Tests against the clock: the fast suite runs them without it, the slow one holds them to it.

That they end at all, and how, is tested on any machine, however busy; how soon, where time is
taken for it.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager

import pytest


def timed(seconds):
    """Give a test ``seconds``: no limit, and in the slow suite this one."""
    limits = [math.inf, pytest.param(seconds, marks=pytest.mark.slow)]
    return pytest.mark.parametrize("seconds", limits, ids=["untimed", "timed"])


@contextmanager
def within(seconds):
    """What is done inside takes less than this."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds
