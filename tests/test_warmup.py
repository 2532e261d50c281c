"""`warm_up` calls every kernel that Python calls."""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import certikmeans
from certikmeans import InputError, warmup
from certikmeans.options import BOUNDS


@dataclass
class _Recording:
    """What a warm-up did."""

    runs: list = field(default_factory=list)  # problems, options, results
    verdicts: list = field(default_factory=list)
    called: set = field(default_factory=set)  # names of kernels


def recorded(monkeypatch, bounds):
    """Warm up and record."""
    found = _Recording()
    solve, check = warmup.solve, warmup.check_certificate

    def recording_solve(problem, **options):
        result = solve(problem, **options)
        found.runs.append((problem, options, result))
        return result

    def recording_check(*arguments, **options):
        found.verdicts.append(check(*arguments, **options))

    monkeypatch.setattr(warmup, "solve", recording_solve)
    monkeypatch.setattr(warmup, "check_certificate", recording_check)
    for module, name, kernel in _imported_everywhere():
        if hasattr(module, name):  # else imported inside a function
            monkeypatch.setattr(module, name, _Recorded(kernel, found.called))
    certikmeans.warm_up(bounds=bounds)
    return found


@pytest.fixture(scope="module")
def whole():
    """One warm-up of everything: it takes most of the time of this file."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return recorded(monkeypatch, None)


def test_all_bounds_and_pair_kinds(whole):
    kinds = {(bool(len(p.must_link)), bool(len(p.cannot_link))) for p, _, _ in whole.runs}
    assert kinds == {(False, False), (True, False), (False, True), (True, True)}
    runs = [
        (options["bound"], options["branching"], result)
        for _, options, result in whole.runs
        if "branching" in options
    ]
    assert {bound for bound, _, _ in runs} == set(BOUNDS) - {"auto"}
    branched = {(bound, branching) for bound, branching, result in runs if result.nodes > 1}
    assert {("cluster", "pairs"), ("cluster", "centers"), ("sdp", "pairs")} <= branched
    assert {("grouped", "centers"), ("sample", "centers")} <= branched


def test_certificate_is_checked(whole):
    assert [verdict.accepted for verdict in whole.verdicts] == [True]


def test_every_kernel_is_called(whole):
    reachable = {_name(kernel) for _, _, kernel in _imported_everywhere()}
    assert len(reachable) > 50
    assert reachable - whole.called == set()


def test_selected_bounds(monkeypatch):
    found = recorded(monkeypatch, ["sample"])
    assert {options.get("bound", "auto") for _, options, _ in found.runs} == {"auto", "sample"}


def test_unknown_bound_is_rejected_first(monkeypatch):
    monkeypatch.setattr(warmup, "solve", None)
    with pytest.raises(InputError, match="bound"):
        certikmeans.warm_up(bounds=["cluster", "best"])


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


def _imported_everywhere():
    """Modules that may call kernels from Python, with the kernels that they import."""
    return [
        (importlib.import_module(module), name, kernel)
        for path, module in _python_modules()
        for name, kernel in _imported_kernels(path)
    ]


def test_kernels_of_soft_pairs_are_compiled_ahead():
    """A run with soft pairs finds every kernel that a second process compiles meanwhile."""
    bound = warmup.make_bound("cluster")
    problem = warmup.soft_problem()
    kernels = bound.kernels_for(warmup.presolve_feasible(problem).reduced)
    assert set(kernels).isdisjoint(bound.kernels())
    plain = warmup.presolve_feasible(warmup.easy_problems()[0]).reduced
    assert bound.kernels_for(plain) == bound.kernels()
    warmup.compile_prices()
    compiled = [len(kernel.signatures) for kernel in kernels]
    assert min(compiled) > 0
    warmup.solve(problem, bound="cluster", node_limit=1)
    assert [len(kernel.signatures) for kernel in kernels] == compiled
