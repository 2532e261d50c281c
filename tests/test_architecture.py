"""The arrow of ARCHITECTURE.md, enforced from the syntax tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from certikmeans.bounds.registry import BOUNDS, Strength

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "certikmeans"
# What a kernel needs beyond this belongs in a NamedTuple.
MOST_ARGUMENTS = 8
PAGE = (ROOT / "ARCHITECTURE.md").read_text()


def named(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


# ARCHITECTURE.md says who may be imported by everyone, and what else each part may import. A part
# always may import itself.
LEAFS = named(re.search(r"^(`errors`[^.]*?)\s+may\s+be\s+imported by everyone", PAGE, re.M)[1])
ROWS = re.findall(r"^\| `(\w+)` \| ([^|]*) \|$", PAGE, flags=re.MULTILINE)
ALLOWED = {part: named(cell) for part, cell in ROWS}

# Where a part is too coarse: what a module may import of another part.
NARROW: dict[str, dict[str, set[str]]] = {
    # The tree and the policy know bounds by what they can do: none by its module, but the sample
    # bound, which is part of every node with boxes, and what any mixture leaves in doubt.
    "search": {"bounds": {"bounds.base", "bounds.doubt", "bounds.sample"}},
    "policy": {"bounds": {"bounds.base", "bounds.registry"}},
    "proving": {"bounds": {"bounds.base"}},
    "solver": {"bounds": {"bounds.base"}},
    "options": {"bounds": {"bounds.registry"}},
    "cli": {"bounds": {"bounds.registry"}},
    "warming": {"bounds": {"bounds.base", "bounds.registry"}},
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
        assert part in ALLOWED, f"{part} is new: give it a row in ARCHITECTURE.md"
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


# Who asks for labellings or for a tree does not look into the rules: `problem/label_constraints.py`.
BLIND = ("search", "board", "policy", "proving", "course", "conclusion", "choosing", "asking")


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if part_of(path) in (*BLIND, "heuristics")],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_stages_do_not_look_into_the_rules(path):
    text = path.read_text()
    # Chain moves are made of cannot-links: whoever prepares them asks for nothing else first.
    if "is_cannot_link_only" not in text and "chain_move_setup" not in text:
        assert not re.search(r"\.(graph|apart|indptr)\b", text)


@pytest.mark.parametrize("strength", Strength)
def test_each_strength_is_claimed_by_one_bound(strength):
    assert [strength in entry.strengths for entry in BOUNDS.values()].count(True) == 1


def test_the_policy_knows_no_bound_by_its_name():
    texts = {
        node.value
        for node in ast.walk(ast.parse((PACKAGE / "policy.py").read_text()))
        if isinstance(node, ast.Constant)
    }
    assert not texts & set(BOUNDS)


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
    assert "from numba" not in text, "njit is that of certikmeans._jit.dispatcher"
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
    for path in (path for path in MODULES if part_of(path) not in ("cli", "report")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", path


def test_the_page_names_nothing_that_is_not_there():
    assert len(ROWS) == len(ALLOWED) >= 20
    for part in LEAFS | set(ALLOWED) | set().union(*ALLOWED.values()):
        assert (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").is_file(), part
