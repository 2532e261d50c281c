"""Compilation in a second process, on which no result depends."""

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
    """A kernel that is neither compiled nor cached."""
    monkeypatch.setattr(background_compiler, "available_cores", lambda: 2)
    monkeypatch.delenv(background_compiler._IN_BACKGROUND, raising=False)
    monkeypatch.setattr(background_compiler.multiprocessing, "parent_process", lambda: None)
    stats = SimpleNamespace(cache_path=str(tmp_path))
    return SimpleNamespace(signatures=[], stats=stats, __name__="price")


def test_wait_pauses_clock(kernel, tmp_path):
    task = f"open({str(tmp_path / 'done')!r}, 'w').close()"
    before = CLOCK.excluded()
    compiler = BackgroundCompiler(task, [kernel])
    compiler.wait(never)
    assert (tmp_path / "done").exists()
    assert not compiler.is_running
    assert CLOCK.excluded() >= before


def test_wait_ends_on_stop(kernel):
    compiler = BackgroundCompiler("import time; time.sleep(600)", [kernel])
    assert compiler.is_running
    compiler.wait(at_once)
    assert not compiler.is_running


def test_failing_process_is_ignored(kernel):
    compiler = BackgroundCompiler("raise SystemExit(3)", [kernel])
    compiler.wait(never)
    compiler.end()
    assert not compiler.is_running


@pytest.mark.parametrize(
    "reason", ["cached", "compiled", "one core", "background", "frozen", "embedded"]
)
def test_not_started(kernel, tmp_path, monkeypatch, reason):
    match reason:
        case "cached":
            (tmp_path / "search.price-12.py311.nbi").touch()
        case "compiled":
            kernel.signatures.append("int64")
        case "one core":
            monkeypatch.setattr(background_compiler, "available_cores", lambda: 1)
        case "background":
            monkeypatch.setenv(background_compiler._IN_BACKGROUND, "1")
        case "frozen":
            monkeypatch.setattr(sys, "frozen", True, raising=False)
        case "embedded":
            monkeypatch.setattr(sys, "executable", "/usr/sbin/apache2")
    compiler = BackgroundCompiler("import time; time.sleep(600)", [kernel])
    assert not compiler.is_running
    compiler.wait(never)


def test_cache_of_other_kernel(kernel, tmp_path):
    (tmp_path / "search.price_more-12.py311.nbi").touch()
    assert not is_cached(kernel)


def test_core_count():
    assert 1 <= background_compiler.available_cores() <= (os.cpu_count() or 1)


def test_uncompiled_function_counts_as_cached():
    """With NUMBA_DISABLE_JIT=1 kernels are plain functions."""
    assert is_cached(lambda: None)
