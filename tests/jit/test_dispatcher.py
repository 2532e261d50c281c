"""Helpers are compiled as a part of who calls them, and in full where Python calls them."""

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
# Every statement runs in a process of its own: what is compiled there was not compiled before.
BEGIN = """
import json, os, pathlib
import numpy as np
from certikmeans._jit.clock import CLOCK
from certikmeans._jit.compile_events import kernels_compiled, watched
from tests.jit import toy
def there():
    return sorted({p.name.split("-")[0].split(".")[-1]
        for p in pathlib.Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nbi")})
def call():
    return toy.distance(np.array([3.0, 1.0]), np.array([0.0, 5.0]))
"""


def answers(code, cache, **settings):
    """What a process says after ``code``, a list in JSON."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
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


def test_only_what_python_calls_is_kept_and_counted(cache):
    code = "v = call(); print(json.dumps([v, there(), kernels_compiled(), CLOCK.lost() > 0]))"
    assert answers(code, cache) == [5.0, ["distance"], 1, True]


def test_the_next_process_compiles_nothing(cache):
    code = "v = call(); print(json.dumps([v, kernels_compiled()]))"
    call_first = "call()"
    answers(f"{call_first}; print(json.dumps([]))", cache)
    assert answers(code, cache) == [5.0, 0]


def test_a_helper_is_compiled_in_full_where_python_calls_it(tmp_path):
    code = """
call()
inner = [toy.square(3.0), toy.sum_of_squares(np.array([1.0, 2.0])), call(), toy.square(4.0)]
print(json.dumps([inner, there()]))
"""
    assert answers(code, tmp_path) == [
        [9.0, 5.0, 5.0, 16.0],
        ["distance", "square", "sum_of_squares"],
    ]


def test_errors_of_kernels_come_out(tmp_path):
    code = """
try:
    toy.distance(np.array([-1e200]), np.array([0.0]))
except ValueError as error:
    print(json.dumps([str(error)]))
"""
    assert answers(code, tmp_path) == ["too far"]


def test_who_watches_is_told_the_kernel_and_its_number(tmp_path):
    code = """
told = []
with watched(lambda news: told.append([news.kernel, news.number])):
    call()
    toy.square(2.0)
toy.square(2)  # for integers; nobody watches any more
print(json.dumps([told, kernels_compiled()]))
"""
    assert answers(code, tmp_path) == [[["distance", 1], ["square", 2]], 3]


def test_numbas_own_compiler_gives_the_same(tmp_path):
    code = "v = call(); print(json.dumps([v, there(), kernels_compiled()]))"
    assert answers(code, tmp_path, CERTIKMEANS_PLAIN_NUMBA="1") == [
        5.0,
        ["distance", "square", "sum_of_squares"],
        1,
    ]


def test_threads_may_call_helpers_while_kernels_are_compiled():
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


def test_a_kernel_can_be_pickled():
    import pickle

    from tests.jit import toy

    assert pickle.loads(pickle.dumps(toy.square)) is toy.square
