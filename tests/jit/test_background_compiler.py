"""A second process compiles what will be needed; nothing depends on it."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from certikmeans._jit import background_compiler
from certikmeans._jit.background_compiler import BackgroundCompiler, is_cached
from certikmeans._jit.clock import CLOCK


def never():
    return None


def at_once():
    return "stop"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel that was never compiled."""
    monkeypatch.setattr(background_compiler, "cores", lambda: 2)
    monkeypatch.delenv(background_compiler._INSIDE, raising=False)
    monkeypatch.setattr(background_compiler.multiprocessing, "parent_process", lambda: None)
    stats = SimpleNamespace(cache_path=str(tmp_path))
    return SimpleNamespace(signatures=[], stats=stats, __name__="price")


def test_it_runs_beside_us_and_is_waited_for_off_the_clock(kernel, tmp_path):
    task = f"open({str(tmp_path / 'done')!r}, 'w').close()"
    before = CLOCK.excluded()
    one = BackgroundCompiler(task, [kernel])
    one.wait(never)
    assert (tmp_path / "done").exists()
    assert not one.is_running
    assert CLOCK.excluded() >= before


def test_whoever_wants_to_stop_does_not_wait(kernel):
    one = BackgroundCompiler("import time; time.sleep(600)", [kernel])
    assert one.is_running
    one.wait(at_once)
    assert not one.is_running


def test_a_process_that_fails_costs_nothing(kernel):
    one = BackgroundCompiler("raise SystemExit(3)", [kernel])
    one.wait(never)
    one.end()
    assert not one.is_running


@pytest.mark.parametrize("reason", ["kept", "compiled", "alone", "inside", "frozen", "elsewhere"])
def test_nothing_is_started_where_it_would_not_help(kernel, tmp_path, monkeypatch, reason):
    match reason:
        case "kept":
            (tmp_path / "search.price-12.py311.nbi").touch()
        case "compiled":
            kernel.signatures.append("int64")
        case "alone":
            monkeypatch.setattr(background_compiler, "cores", lambda: 1)
        case "inside":
            monkeypatch.setenv(background_compiler._INSIDE, "1")
        case "frozen":
            monkeypatch.setattr(sys, "frozen", True, raising=False)
        case "elsewhere":
            monkeypatch.setattr(sys, "executable", "/usr/sbin/apache2")
    one = BackgroundCompiler("import time; time.sleep(600)", [kernel])
    assert not one.is_running
    one.wait(never)


def test_a_kernel_of_another_name_does_not_count(kernel, tmp_path):
    (tmp_path / "search.price_more-12.py311.nbi").touch()
    assert not is_cached(kernel)


def test_there_is_a_core():
    assert 1 <= background_compiler.cores() <= (os.cpu_count() or 1)
