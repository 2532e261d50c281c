"""Time limits of tests, applied in the slow suite only.

The fast suite tests results on a machine of any load; the slow suite also tests times.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager

import pytest


def timed(seconds):
    """Parametrize a test with no limit and, in the slow suite, with ``seconds``."""
    limits = [math.inf, pytest.param(seconds, marks=pytest.mark.slow)]
    return pytest.mark.parametrize("seconds", limits, ids=["untimed", "timed"])


@contextmanager
def within(seconds):
    """Assert that the block takes less than ``seconds``."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds
