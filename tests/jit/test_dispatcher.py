"""Helpers are compiled as part of their callers, and in full if Python calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
# Code runs in a process of its own, where nothing is compiled yet.
PRELUDE = """
import json, os, pathlib
import numpy as np
from certikmeans._jit.clock import CLOCK
from certikmeans._jit.compile_events import kernels_compiled, watch_compilation
from tests.jit import toy
def cached():
    return sorted({p.name.split("-")[0].split(".")[-1]
        for p in pathlib.Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nbi")})
def call():
    return toy.distance(np.array([3.0, 1.0]), np.array([0.0, 5.0]))
"""


def run(code, cache, **settings):
    """Output of a process that runs ``code``, decoded from JSON."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        cwd=ROOT,
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            **settings,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


def test_only_kernels_are_cached_and_counted(cache):
    code = "v = call(); print(json.dumps([v, cached(), kernels_compiled(), CLOCK.excluded() > 0]))"
    assert run(code, cache) == [5.0, ["distance"], 1, True]


def test_next_process_loads_cache(cache):
    code = "v = call(); print(json.dumps([v, kernels_compiled()]))"
    call_first = "call()"
    run(f"{call_first}; print(json.dumps([]))", cache)
    assert run(code, cache) == [5.0, 0]


def test_helper_called_from_python(tmp_path):
    code = """
call()
inner = [toy.square(3.0), toy.sum_of_squares(np.array([1.0, 2.0])), call(), toy.square(4.0)]
print(json.dumps([inner, cached()]))
"""
    assert run(code, tmp_path) == [
        [9.0, 5.0, 5.0, 16.0],
        ["distance", "square", "sum_of_squares"],
    ]


def test_kernel_errors_propagate(tmp_path):
    code = """
try:
    toy.distance(np.array([-1e200]), np.array([0.0]))
except ValueError as error:
    print(json.dumps([str(error)]))
"""
    assert run(code, tmp_path) == ["too far"]


def test_watcher_events(tmp_path):
    code = """
events = []
with watch_compilation(lambda event: events.append([event.kernel, event.number])):
    call()
    toy.square(2.0)
toy.square(2)  # for integers; the watcher is gone
print(json.dumps([events, kernels_compiled()]))
"""
    assert run(code, tmp_path) == [[["distance", 1], ["square", 2]], 3]


def test_plain_numba_gives_same_results(tmp_path):
    code = "v = call(); print(json.dumps([v, cached(), kernels_compiled()]))"
    assert run(code, tmp_path, CERTIKMEANS_PLAIN_NUMBA="1") == [
        5.0,
        ["distance", "square", "sum_of_squares"],
        1,
    ]


def test_threads_call_helpers_during_compilation():
    from tests.jit import toy

    values = np.arange(4.0)
    found = []
    threads = [
        threading.Thread(target=lambda k=k, more=more: found.append(k(values.copy(), *more)))
        for k, more in ((toy.distance, (values,)), (toy.sum_of_squares, ())) * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0] * 3 + [14.0] * 3


def test_kernel_pickles():
    import pickle

    from tests.jit import toy

    assert pickle.loads(pickle.dumps(toy.square)) is toy.square
