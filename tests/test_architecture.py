"""The arrow of ARCHITECTURE.md, enforced from the syntax tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from certikmeans.bounds.registry import BOUNDS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "certikmeans"
# May be imported by everyone.
LEAFS = {"_atomic", "_version", "errors", "execution", "news", "proof", "stop"}

# What each part may import of ours, beside these. ARCHITECTURE.md shows the same table, and a test
# below compares them. A part always may import itself.
ALLOWED: dict[str, set[str]] = {
    "problem": set(),
    "kernels": set(),
    "presolve": {"problem", "kernels"},
    "assignment": {"problem", "kernels"},
    "heuristics": {"problem", "kernels", "assignment"},
    "bounds": {"problem", "kernels", "assignment"},
    "baselines": {
        "problem",
        "presolve",
        "assignment",
        "kernels",
        "options",
        "status",
        "bounds",
        "tolerances",
        "validation",
    },
    "certificate": {"problem", "result"},
    "generate": {"options"},
    "status": set(),
    "tolerances": set(),
    "options": {"bounds"},
    "result": {"status", "tolerances", "presolve"},
    "events": {"problem", "result"},
    "board": {"problem", "presolve", "kernels", "tolerances", "events"},
    "search": {
        "problem",
        "presolve",
        "assignment",
        "bounds",
        "tolerances",
        "options",
        "events",
        "board",
    },
    "conclusion": {"problem", "presolve", "board", "options", "result", "status"},
    "policy": {"problem", "bounds", "options"},
    "proving": {
        "problem",
        "presolve",
        "bounds",
        "search",
        "board",
        "conclusion",
        "events",
        "options",
        "policy",
        "result",
        "tolerances",
    },
    "solver": {
        "problem",
        "presolve",
        "assignment",
        "heuristics",
        "bounds",
        "board",
        "conclusion",
        "events",
        "options",
        "policy",
        "proving",
        "result",
    },
    "validation": {"presolve"},
    "estimator": {"problem", "solver", "result", "status", "options", "events", "validation"},
    "testing": {"problem", "assignment", "heuristics", "bounds", "presolve", "board", "events"},
    "report": {"problem", "result", "events", "status", "tolerances"},
    "cli": {
        "problem",
        "solver",
        "result",
        "status",
        "options",
        "events",
        "report",
        "generate",
        "certificate",
        "bounds",
    },
    "__main__": {"cli"},
}

# Where a part is too coarse: what a module may import of another part.
NARROW: dict[str, dict[str, set[str]]] = {
    # The tree and the policy know bounds by what they can do: none by its module, but the sample
    # bound, which is part of every node with boxes.
    "search": {"bounds": {"bounds.base", "bounds.sample"}},
    "policy": {"bounds": {"bounds.base", "bounds.registry"}},
    "proving": {"bounds": {"bounds.base"}},
    "solver": {"bounds": {"bounds.base"}},
    "options": {"bounds": {"bounds.registry"}},
    "cli": {"bounds": {"bounds.registry"}},
    "testing": {"bounds": {"bounds.base"}},
    "events": {"problem": {"problem"}},
}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "certikmeans":
                parts |= {alias.name for alias in node.names}
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts |= {name.split(".")[1] for name in names if name.startswith("certikmeans.")}
    return parts


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    part = part_of(path)
    if part in LEAFS:
        allowed = LEAFS
    else:
        assert part in ALLOWED, f"{part} is new: give it a row here and in ARCHITECTURE.md"
        allowed = ALLOWED[part] | {part}
    assert imported_parts(path) <= allowed | LEAFS


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certikmeans."):
            found.add(node.module.removeprefix("certikmeans."))
    return found


@pytest.mark.parametrize("part", sorted(NARROW))
def test_some_parts_see_little_of_others(part):
    paths = [path for path in MODULES if part_of(path) == part]
    assert paths
    for other, allowed in NARROW[part].items():
        for path in paths:
            seen = {name for name in imported_modules(path) if name.split(".")[0] == other}
            assert seen <= allowed, path


def test_no_module_outside_bounds_knows_a_bound_by_its_name():
    names = "|".join(BOUNDS)
    compared = re.compile(rf"(==|!=|\bin|\bcase)\s*\(?\s*[\"'](?:{names})[\"']")
    for path in MODULES:
        if part_of(path) not in ("bounds", "certificate"):
            assert not compared.search(path.read_text()), path


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_pages_stay_short(path):
    if path.name != "estimator.py":
        assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "kernels").rglob("*.py")), ids=lambda path: path.name
)
def test_kernels_are_plain_compiled_functions(path):
    text = path.read_text()
    assert not re.search(r"fastmath\s*=\s*True|parallel\s*=\s*True|jitclass", text)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
            assert decorators == {"njit(cache=True, nogil=True)"}, f"{path.name}: {node.name}"


def test_the_library_never_prints():
    for path in (path for path in MODULES if part_of(path) not in ("cli", "report")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", path


def test_architecture_page_shows_the_same_table():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = dict(re.findall(r"^\| `([\w]+)` \| ([^|]*) \|$", page, flags=re.MULTILINE))
    shown = {part: set(re.findall(r"`(\w+)`", cell)) for part, cell in rows.items()}
    assert shown == ALLOWED
