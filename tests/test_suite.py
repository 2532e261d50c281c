"""What is asked of the tests themselves: none can end early unseen, none looks at the clock."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("test_*.py"))
CLOCKS = {"perf_counter", "monotonic", "process_time", "elapsed"}
# Deadlines of runs in processes of their own, which have to be waited for, and of workers that
# never answer.
MAY_LOOK_AT_THE_CLOCK = {
    "benchmarks/test_runner.py",
    "cluster/test_dask.py",
    "contract/test_silent.py",
}


def functions_of(path):
    """Every test function of a file, without the functions that it defines for others to call."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node, list(_own(node))


def _own(node):
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


def name_of(path):
    return path.relative_to(HERE).as_posix()


def test_there_are_tests():
    assert sum(1 for path in FILES for _ in functions_of(path)) > 500


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_test_can_pass_empty(path):
    for test, nodes in functions_of(path):
        early = [node.lineno for node in nodes if isinstance(node, ast.Return | ast.Continue)]
        assert not early, f"{test.name} may end before it asserts: draw until it need not"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_fast_suite_asserts_no_wall_time(path):
    if name_of(path) not in MAY_LOOK_AT_THE_CLOCK:
        for test, nodes in functions_of(path):
            slow = any("mark.slow" in ast.unparse(mark) for mark in test.decorator_list)
            looks = {
                node.attr
                for node in nodes
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
            }
            assert slow or not looks & CLOCKS, test.name
