"""The benchmarks stay small, use public names, and share one harness."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from benchmarks.__main__ import BENCHMARKS, STUDIES

from benchmarks import study

ROOT = Path(study.__file__).resolve().parent
MODULES = sorted(ROOT.rglob("*.py"))
PUBLIC = {
    "certikmeans",
    "certikmeans.baselines",
    "certikmeans.certificate",
    "certikmeans.certificate.write",
    "certikmeans.events",
    "certikmeans.generate",
    "certikmeans.options",
    "certikmeans.problem.io",
}


def _imported(path: Path) -> set[str]:
    """The modules of the package that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.split(".")[0] == "certikmeans"}


def test_commands_on_pages_exist():
    pages = [ROOT.parent / "README.md", *sorted((ROOT.parent / "docs").rglob("*.md"))]
    named = {
        name for page in pages for name in re.findall(r"-m benchmarks ([a-z]+)", page.read_text())
    }
    assert {"highdim", "many", "paper", "root", "data", "constraints"} <= named
    assert named - {"smoke"} <= set(BENCHMARKS)
    assert all(name == one.name for name, one in STUDIES.items())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_short(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_studies_use_public_names(path):
    # These time single steps of the inside.
    if path.parent.name == "micro" or path.relative_to(ROOT).as_posix() == "solvers/sizes.py":
        assert _imported(path) <= PUBLIC | {
            "certikmeans.assignment",
            "certikmeans.presolve.pipeline",
        }
    else:
        assert _imported(path) <= PUBLIC


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_instance_and_solver_names_are_unique(name):
    from benchmarks.__main__ import parser

    scope = study.Scope(None, False, parser().parse_args([name]))
    titles = [one.title for one in STUDIES[name].requests(scope)]
    assert len(titles) == len(set(titles))
    assert titles or name == "incumbents"  # which needs the published instances


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_requests_can_be_pickled(name):
    import pickle

    from benchmarks.__main__ import parser

    scope = study.Scope(None, False, parser().parse_args([name]))
    for one in STUDIES[name].requests(scope):
        assert pickle.loads(pickle.dumps(one)).key == one.key
