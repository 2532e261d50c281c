"""Rules for the tests themselves: no test ends before it asserts, none asserts wall time."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("test_*.py"))
CLOCKS = {"perf_counter", "monotonic", "process_time", "elapsed"}
# Deadlines of runs in processes of their own, and of workers that never respond: whole files, or
# single tests of a file.
MAY_READ_CLOCK = {
    "benchmarks/test_runner.py",
    "certificate/test_check_certainty.py test_deadline_with_many_boxes",
    "parallel/test_dask.py",
    "parallel/test_remote.py test_slow_scheduler_gets_few_requests",
    "parallel/test_remote.py test_stop_with_silent_workers_in_parts",
    "parallel/test_remote.py test_time_limit_with_silent_workers",
    "parallel/test_task_pool.py test_drain_cancels_silent_remote_tasks",
}


@cache
def functions_under_test():
    """File, test function and its own nodes, without those of nested functions."""
    return [
        (path.relative_to(HERE).as_posix(), node, list(_own(node)))
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def _own(node):
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


def test_suite_is_found():
    assert len(functions_under_test()) > 500


def test_no_early_return():
    offenders = [
        f"{file}:{node.lineno} {test.name}"
        for file, test, nodes in functions_under_test()
        for node in nodes
        if isinstance(node, ast.Return | ast.Continue)
    ]
    assert offenders == [], "may end before it asserts: redraw the instance instead"


def test_fast_suite_asserts_no_wall_time():
    offenders = [
        f"{file}:{node.lineno} {test.name}"
        for file, test, nodes in functions_under_test()
        if MAY_READ_CLOCK.isdisjoint({file, f"{file} {test.name}"})
        and not any("mark.slow" in ast.unparse(mark) for mark in test.decorator_list)
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and node.attr in CLOCKS
    ]
    assert offenders == []
