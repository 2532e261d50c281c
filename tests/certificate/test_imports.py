"""The verifier shares no code with the solver: tested on the syntax trees."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from certikmeans.certificate import check

FOLDER = Path(check.__file__).parent
LEAVES = sorted((FOLDER / "leaves").glob("*.py"))
VERIFIER = [*sorted(FOLDER.glob("check*.py")), *LEAVES]


@pytest.mark.parametrize(
    "path", [*VERIFIER, *sorted(FOLDER.glob("format*.py"))], ids=lambda path: path.name
)
def test_allowed_imports(path):
    ours = {f"certikmeans.certificate.{one.stem}" for one in VERIFIER}
    package = "certikmeans.certificate"
    formats = {f"{package}.{one.stem}" for one in FOLDER.glob("format*.py")}
    allowed = {*ours, *formats, f"{package}.leaves", package}
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module]
            if node.module == "certikmeans.certificate":
                assert {alias.name for alias in node.names} <= {"format"}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            # Kinds of leaves are imported from their own package only.
            assert path == FOLDER / "leaves" / "__init__.py"
            assert ast.unparse(node) == "import_module(f'{__name__}.{found.name}')"
        for name in names:
            top = name.split(".")[0]
            assert top in sys.stdlib_module_names or top == "numpy" or name in allowed


def test_module_length():
    assert all(len(path.read_text().splitlines()) < 400 for path in VERIFIER)
