"""The reference has every public name, once, and the site is built without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
from tools.docs_site import ROOT, contents, ordered, title_of

import certikmeans
from certikmeans import baselines

REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
NAMED = [
    name
    for page in REFERENCE
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
]


def test_every_public_name_is_described():
    wanted = {f"certikmeans.{name}" for name in certikmeans.__all__ if name != "__version__"}
    wanted |= {f"certikmeans.baselines.{name}" for name in baselines.__all__}
    lost = sorted(wanted - set(NAMED))
    assert lost == [], "add '::: NAME' to a page of docs/reference"


def test_no_name_is_described_twice():
    assert len(NAMED) == len(set(NAMED))


@pytest.mark.parametrize("name", NAMED)
def test_names_exist(name):
    module, _, last = name.rpartition(".")
    assert hasattr(import_module(module), last) or import_module(name)


def test_menu_finds_new_pages():
    assert ordered("a", ("z",), ["a/new.md", "a/z.md"]) == ["a/z.md", "a/new.md"]
    assert "- [New page](new.md)" in contents("Guides", {"new.md": "# New page\n"})
    assert title_of("no heading") == ""


@pytest.mark.slow
def test_a_broken_link_fails_the_build(tmp_path):
    """Warnings are errors: this is what `make docs` is for."""
    if find_spec("mkdocs") is None:
        pytest.skip("the site is built with the extra 'docs'")
    settings = (
        f"INHERIT: {ROOT / 'mkdocs.yml'}\n"
        f"hooks: [{ROOT / 'tools' / 'docs_site.py'}]\n"
        "docs_dir: docs\nsite_dir: site\n"
    )
    (tmp_path / "mkdocs.yml").write_text(settings, encoding="utf-8")
    (tmp_path / "docs" / "guides").mkdir(parents=True)
    (tmp_path / "docs" / "guides" / "one.md").write_text("# One\n\n[gone](gone.md)\n")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(tmp_path / "mkdocs.yml")],
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "gone.md" in run.stderr
