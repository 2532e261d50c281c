"""The import table of ARCHITECTURE.md and the layout rules of CONTRIBUTING.md, checked statically.

Every test reads all modules and reports all offenders at once.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from certikmeans.bounds.registry import BOUNDS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "certikmeans"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
MAX_LINES = 800
MAX_KERNEL_ARGUMENTS = 8  # beyond this, a NamedTuple


def named(text):
    return set(re.findall(r"`([\w.]+)`", text))


# A row names a module or package ("solver", "solver.state") and what it may import. A module
# belongs to the most specific row. Entries of a cell cover submodules; `problem.__init__` is the
# package page alone.
COMMON = named(re.search(r"^(`errors`[^.]*?)\s+may\s+be\s+imported\s+by\s+every", PAGE, re.M)[1])
ROWS = re.findall(r"^\| `([\w.]+)` \| ([^|]*) \|$", PAGE, flags=re.MULTILINE)
ALLOWED = {unit: named(cell) for unit, cell in ROWS}

# Stages that use `LabelConstraints` and the assigner instead of reading the cannot-link graph.
CONSTRAINT_AGNOSTIC = ("solver.", "tree.", "heuristics.", "active", "elbow_curve")


@cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path):
    """Dotted name below the package; ``problem.__init__`` for a package page."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def is_module(name):
    path = PACKAGE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports(path):
    """Names of the modules that a module imports, below the package."""
    found = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = (node.module or "").split(".")
            if base[0] == "certikmeans":
                for alias in node.names:
                    name = ".".join([*base[1:], alias.name])
                    found.add(name if is_module(name) else ".".join(base[1:]))
        elif isinstance(node, ast.Import):
            found |= {a.name.partition(".")[2] for a in node.names if a.name[:12] == "certikmeans."}
    return {
        f"{name}.__init__" if (PACKAGE / name.replace(".", "/")).is_dir() else name
        for name in found
        if name
    }


def covers(entry, name):
    return name == entry or name.startswith(f"{entry}.")


def unit_of(name):
    """The most specific row that covers a module, or None."""
    return max((unit for unit in ALLOWED if covers(unit, name)), key=len, default=None)


def test_imports_follow_the_table():
    offenders = []
    for path in MODULES:
        name = module_name(path)
        if any(covers(entry, name) for entry in COMMON):
            allowed = COMMON
        elif (unit := unit_of(name)) is not None:
            allowed = COMMON | ALLOWED[unit] | {unit}
        else:
            allowed = set()
            offenders.append(f"{name} has no row in ARCHITECTURE.md")
        offenders += [
            f"{name} imports {other}"
            for other in sorted(imports(path))
            if not any(covers(entry, other) for entry in allowed)
        ]
    assert offenders == []


def test_table_names_existing_modules():
    assert len(ROWS) == len(ALLOWED) >= 20
    entries = COMMON | set(ALLOWED) | set().union(*ALLOWED.values())
    assert sorted(entry for entry in entries if not is_module(entry)) == []


def test_module_length():
    lengths = {module_name(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_stages_do_not_read_the_cannot_link_graph():
    # Kempe moves are moves along cannot-links: a module that has them checks for other kinds.
    # `solver.run` looks at the number of linked groups to choose kernels, not labels.
    offenders = [
        f"{module_name(path)}:{node.lineno}"
        for path in MODULES
        if module_name(path).startswith(CONSTRAINT_AGNOSTIC)
        and module_name(path) != "solver.run"
        and "is_cannot_link_only" not in path.read_text()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute) and node.attr in ("graph", "cannot_links", "indptr")
    ]
    assert offenders == []


def test_only_bounds_compare_bound_names():
    names = "|".join(BOUNDS)
    compared = re.compile(rf"(==|!=|\bin|\bcase)\s*\(?\s*[\"'](?:{names})[\"']")
    offenders = [
        module_name(path)
        for path in MODULES
        if not module_name(path).startswith(("bounds.", "certificate."))
        and compared.search(path.read_text())
    ]
    assert offenders == []


def test_kernels_are_plain_compiled_functions():
    offenders = []
    for path in sorted((PACKAGE / "kernels").rglob("*.py")):
        name, text = module_name(path), path.read_text()
        if re.search(r"fastmath\s*=\s*True|parallel\s*=\s*True|jitclass", text):
            offenders.append(f"{name}: fastmath, parallel or jitclass")
        if "from numba" in text:
            offenders.append(f"{name}: njit is that of certikmeans._jit")
        for node in syntax(path).body:
            if isinstance(node, ast.FunctionDef):
                decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
                if decorators != {"njit(cache=True, nogil=True)"}:
                    offenders.append(f"{name}.{node.name}: decorators {decorators}")
                if len(node.args.args) > MAX_KERNEL_ARGUMENTS:
                    offenders.append(f"{name}.{node.name}: {len(node.args.args)} arguments")
    assert offenders == []


def test_rounding_units_are_defined_once():
    # The verifier has its own on purpose: it shares no code with the solver.
    own = {"rounding", "certificate.check_arithmetic"}
    offenders = [
        module_name(path)
        for path in MODULES
        if re.search(r"^(EPS|UNIT) = ", path.read_text(), re.MULTILINE)
    ]
    assert set(offenders) <= own


def test_library_never_prints():
    offenders = [
        f"{module_name(path)}:{node.lineno}"
        for path in MODULES
        if not module_name(path).startswith(("cli.", "report."))
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert offenders == []
