"""The reference lists every public name once, and warnings of the site build are errors."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from tools.docs_site import (
    ROOT,
    contents,
    on_page_markdown,
    on_post_build,
    ordered,
    title_of,
)

import certikmeans
from certikmeans import baselines

REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
NAMED = [
    name
    for page in REFERENCE
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
]


def test_every_public_name_is_listed():
    """A deprecated alias is another name of a listed object."""
    public = {name: getattr(certikmeans, name) for name in certikmeans.__all__}
    del public["__version__"]
    wanted = {f"certikmeans.{name}" for name, thing in public.items() if thing.__name__ == name}
    assert len(wanted) >= len(public) - 1
    wanted |= {f"certikmeans.baselines.{name}" for name in baselines.__all__}
    lost = sorted(wanted - set(NAMED))
    assert lost == [], "add '::: NAME' to a page of docs/reference"


def test_no_name_is_listed_twice():
    assert len(NAMED) == len(set(NAMED))


def exists(name):
    module, _, last = name.rpartition(".")
    return find_spec(module) is not None and hasattr(import_module(module), last)


def test_listed_names_exist():
    assert [name for name in NAMED if not exists(name)] == []


def test_menu_includes_new_pages():
    assert ordered("a", ("z",), ["a/new.md", "a/z.md"]) == ["a/z.md", "a/new.md"]
    assert "- [New page](new.md)" in contents("Guides", {"new.md": "# New page\n"})
    assert title_of("no heading") == ""


def test_page_for_errors_has_no_link_from_the_root(tmp_path):
    """The site may be in any folder of a server."""
    on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
    page = (tmp_path / "404.html").read_text(encoding="utf-8")
    links = re.findall(r'href="([^"]*)"', page)
    assert links
    assert not [link for link in links if link.startswith("/")]
    assert "<link" not in page


def test_search_lists_guides_first_and_no_decisions():
    def search(uri):
        page = SimpleNamespace(file=SimpleNamespace(src_uri=uri), meta={})
        on_page_markdown("", page)
        return page.meta.get("search", {})

    assert search("guides/pairs.md")["boost"] > 1.0 > search("benchmarks/paper.md")["boost"]
    assert search("decisions/0001.md") == {"exclude": True}
    assert search("reference/index.md") == {}


def test_docs_target_is_strict():
    """With --quiet mkdocs would not count them."""
    rule = re.search(r"^docs:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "mkdocs build --strict\n" in rule.group(1)


@pytest.mark.slow
def test_broken_link_fails_the_build(tmp_path):
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
