"""`warm_up` goes through everything that compiles."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import certikmeans
from certikmeans import InputError, warmup
from certikmeans.options import BOUNDS


@pytest.fixture
def solved(monkeypatch):
    """Every problem solved, with its settings and its result."""
    runs = []
    solve = warmup.solve

    def listening(problem, **options):
        result = solve(problem, **options)
        runs.append((problem, options, result))
        return result

    monkeypatch.setattr(warmup, "solve", listening)
    return runs


def test_every_bound_is_taken_into_a_tree_and_every_kind_of_pairs_is_solved(solved):
    certikmeans.warm_up()
    kinds = {(bool(len(p.must_link)), bool(len(p.cannot_link))) for p, _, _ in solved}
    assert kinds == {(False, False), (True, False), (False, True), (True, True)}
    runs = [
        (options["bound"], options["branching"], result)
        for _, options, result in solved
        if "branching" in options
    ]
    assert {bound for bound, _, _ in runs} == set(BOUNDS) - {"auto"}
    branched = {(bound, branching) for bound, branching, result in runs if result.nodes > 1}
    assert {("cluster", "pairs"), ("cluster", "centers"), ("sdp", "pairs")} <= branched
    assert {("grouped", "centers"), ("sample", "centers")} <= branched


def test_the_checker_is_warmed_and_accepts(monkeypatch):
    verdicts = []
    check = warmup.check_certificate
    monkeypatch.setattr(
        warmup, "check_certificate", lambda *a, **k: verdicts.append(check(*a, **k))
    )
    certikmeans.warm_up(bounds=[])
    assert [verdict.accepted for verdict in verdicts] == [True]


def test_some_bounds_alone(solved):
    certikmeans.warm_up(bounds=["sample"])
    assert {options.get("bound", "auto") for _, options, _ in solved} == {"auto", "sample"}


def test_a_bound_that_is_not_there_is_refused_before_anything_is_solved(solved):
    with pytest.raises(InputError, match="bound"):
        certikmeans.warm_up(bounds=["cluster", "best"])
    assert not solved


class _Recorded:
    """A kernel that notes that Python called it."""

    def __init__(self, kernel, called):
        self._kernel, self._called = kernel, called

    def __call__(self, *arguments):
        self._called.add(_name(self._kernel))
        return self._kernel(*arguments)

    def __getattr__(self, name):
        return getattr(self._kernel, name)


def _name(kernel):
    return f"{kernel.py_func.__module__}.{kernel.__name__}"


def _python_modules():
    """Every module that may call kernels from Python; baselines are left out, as documented."""
    package = Path(certikmeans.__file__).parent
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts[1] not in ("kernels", "baselines", "__main__"):
            yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported_kernels(path):
    """Kernels that a file imports, at its top or inside of a function, as their names there."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certikmeans"):
            source = importlib.import_module(node.module)
            for alias in node.names:
                found = getattr(source, alias.name, None)
                if getattr(found, "is_kernel", False):
                    yield alias.asname or alias.name, found


def test_no_kernel_that_python_calls_is_left_out(monkeypatch):
    called, reachable = set(), set()
    imported = [
        (importlib.import_module(module), name, kernel)
        for path, module in _python_modules()
        for name, kernel in _imported_kernels(path)
    ]
    for module, name, kernel in imported:
        reachable.add(_name(kernel))
        if hasattr(module, name):  # else imported inside of a function, to compile ahead
            monkeypatch.setattr(module, name, _Recorded(kernel, called))
    assert len(reachable) > 50
    certikmeans.warm_up()
    assert reachable - called == set()
