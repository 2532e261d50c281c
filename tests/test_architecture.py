"""The arrow of ARCHITECTURE.md, enforced from the syntax tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "certikmeans"
LEAFS = {"_atomic", "_version", "errors", "execution", "proof", "rounding", "stop", "streams"}

# What a kernel needs beyond this belongs in a NamedTuple.
MOST_ARGUMENTS = 8

# What each part may import of ours. ARCHITECTURE.md shows the same table, and a test below
# compares them. A part always may import itself.
ALLOWED: dict[str, set[str]] = {
    "problem": LEAFS,
    "kernels": {"rounding"},
    "presolve": LEAFS | {"problem", "kernels"},
    "assignment": LEAFS | {"problem", "kernels"},
    "heuristics": LEAFS | {"problem", "kernels", "assignment"},
    "bounds": LEAFS | {"problem", "kernels", "assignment"},
    "baselines": LEAFS
    | {"problem", "presolve", "assignment", "kernels", "options", "status", "bounds"}
    | {"tolerances", "validation"},
    "certificate": LEAFS | {"problem", "result"},
    "generate": LEAFS | {"options"},
    "incumbent": LEAFS | {"problem", "kernels"},
    "status": set(),
    "tolerances": LEAFS,
    "options": LEAFS,
    "result": LEAFS | {"status", "tolerances", "presolve"},
    "events": LEAFS | {"result"},
    "search": LEAFS | {"problem", "presolve", "assignment", "bounds", "tolerances"},
    "record": LEAFS
    | {"problem", "presolve", "incumbent", "status", "tolerances", "options", "result", "events"},
    "proving": LEAFS
    | {"presolve", "assignment", "heuristics", "bounds", "search", "record", "events"},
    "stages": LEAFS
    | {"problem", "presolve", "assignment", "heuristics", "search", "record", "proving"}
    | {"options", "result", "events"},
    "solver": LEAFS | {"problem", "options", "result", "events", "stages"},
    "validation": LEAFS | {"presolve"},
    "estimator": LEAFS
    | {"problem", "presolve", "solver", "result", "status", "options", "events", "validation"},
    "testing": LEAFS | {"problem", "assignment", "heuristics", "bounds", "presolve"},
    "report": LEAFS | {"problem", "result", "events", "status", "tolerances"},
    "cli": LEAFS
    | {"problem", "solver", "result", "status", "options", "events", "report", "generate"}
    | {"certificate"},
    "__main__": {"cli"},
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
    assert imported_parts(path) <= allowed


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
            assert len(node.args.args) <= MOST_ARGUMENTS, f"{path.name}: {node.name}"


def test_rounding_units_stand_in_one_place():
    # The checker has its own on purpose: it shares no code with what it checks.
    own = {PACKAGE / "rounding.py", PACKAGE / "certificate" / "check_arithmetic.py"}
    for path in MODULES:
        assert path in own or not re.search(r"^(EPS|UNIT) = ", path.read_text(), re.MULTILINE), path


def test_the_library_never_prints():
    for path in MODULES:
        if part_of(path) in ("cli", "report"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", path


def test_architecture_page_shows_the_same_table():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = dict(re.findall(r"^\| `([\w]+)` \| ([^|]*) \|$", page, flags=re.MULTILINE))
    shown = {part: set(re.findall(r"`(\w+)`", cell)) for part, cell in rows.items()}
    expected = {part: allowed - LEAFS for part, allowed in ALLOWED.items()}
    assert shown == expected
