"""The checker shares no code with the solver; the syntax tree says so."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from certikmeans.certificate import check

FOLDER = Path(check.__file__).parent
CHECKER = sorted(FOLDER.glob("check*.py"))


@pytest.mark.parametrize("path", [*CHECKER, FOLDER / "format.py"], ids=lambda path: path.name)
def test_only_the_standard_library_numpy_and_the_format(path):
    ours = {f"certikmeans.certificate.{one.stem}" for one in CHECKER}
    allowed = {*ours, "certikmeans.certificate.format", "certikmeans.certificate"}
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module]
            if node.module == "certikmeans.certificate":
                assert {alias.name for alias in node.names} <= {"format"}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call):
            assert "import" not in ast.unparse(node.func)
        for name in names:
            top = name.split(".")[0]
            assert top in sys.stdlib_module_names or top == "numpy" or name in allowed


def test_the_checker_is_pages_not_a_program():
    assert all(len(path.read_text().splitlines()) < 400 for path in CHECKER)
