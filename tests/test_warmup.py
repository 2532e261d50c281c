"""`warm_up` calls every kernel that Python calls."""

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
    """Problems solved, with options and results."""
    runs = []
    solve = warmup.solve

    def recording(problem, **options):
        result = solve(problem, **options)
        runs.append((problem, options, result))
        return result

    monkeypatch.setattr(warmup, "solve", recording)
    return runs


def test_all_bounds_and_pair_kinds(solved):
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


def test_certificate_is_checked(monkeypatch):
    verdicts = []
    check = warmup.check_certificate
    monkeypatch.setattr(
        warmup, "check_certificate", lambda *a, **k: verdicts.append(check(*a, **k))
    )
    certikmeans.warm_up(bounds=[])
    assert [verdict.accepted for verdict in verdicts] == [True]


def test_selected_bounds(solved):
    certikmeans.warm_up(bounds=["sample"])
    assert {options.get("bound", "auto") for _, options, _ in solved} == {"auto", "sample"}


def test_unknown_bound_is_rejected_first(solved):
    with pytest.raises(InputError, match="bound"):
        certikmeans.warm_up(bounds=["cluster", "best"])
    assert not solved


class _Recorded:
    """A kernel that records its calls from Python."""

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
    """Modules that may call kernels from Python; without baselines, as documented."""
    package = Path(certikmeans.__file__).parent
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts[1] not in ("kernels", "baselines", "__main__"):
            yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported_kernels(path):
    """Kernels that a file imports, at module level or inside a function, by their local names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certikmeans"):
            source = importlib.import_module(node.module)
            for alias in node.names:
                found = getattr(source, alias.name, None)
                if getattr(found, "is_kernel", False):
                    yield alias.asname or alias.name, found


def test_every_kernel_is_called(monkeypatch):
    called, reachable = set(), set()
    imported = [
        (importlib.import_module(module), name, kernel)
        for path, module in _python_modules()
        for name, kernel in _imported_kernels(path)
    ]
    for module, name, kernel in imported:
        reachable.add(_name(kernel))
        if hasattr(module, name):  # else imported inside a function
            monkeypatch.setattr(module, name, _Recorded(kernel, called))
    assert len(reachable) > 50
    certikmeans.warm_up()
    assert reachable - called == set()
