"""Every link of a page leads somewhere: to a file, a heading, or a page of the package index."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tools.docs_site import FROM_ROOT, ROOT, SECTIONS, repository, site_links

from certikmeans import __version__

DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in FROM_ROOT] + sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page):
    """The text without code, where brackets mean something else."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", text)


def links_of(page):
    return [one for one in LINK.findall(prose(page)) if "://" not in one]


@cache
def anchors_of(page):
    """Headings as they are named in addresses."""
    heads = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", head.lower()).strip() for head in heads)
    return {head.replace(" ", "-") for head in plain}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def test_there_are_links():
    assert sum(len(links_of(page)) for page in PAGES) > 100


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: no such file"
        assert target.is_relative_to(ROOT), f"{link} leaves the checkout"
        if anchor:
            assert anchor in anchors_of(target), f"{link}: no such heading"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_pages_of_the_site_stay_on_it(page):
    """The site has the folder docs/ alone; pages of the root are linked from there, not to."""
    for link in links_of(page):
        path = link.partition("#")[0]
        assert not path or (page.parent / path).resolve().is_relative_to(DOCS), link


@pytest.mark.parametrize("name", FROM_ROOT)
def test_pages_of_the_root_have_working_links_on_the_site(name):
    turned = site_links(prose(ROOT / name), FROM_ROOT[name], repository())
    made = {f"{folder}/index.md" for folder, _ in SECTIONS.values()} | set(FROM_ROOT.values())
    place = DOCS / Path(FROM_ROOT[name]).parent
    for link in LINK.findall(turned):
        path = link.partition("#")[0]
        if path and "://" not in path:
            target = (place / path).resolve()
            assert target.exists() or target.relative_to(DOCS).as_posix() in made, link


def test_every_folder_of_the_site_is_in_its_menu():
    known = {folder for folder, _ in SECTIONS.values()}
    assert {page.parent.name for page in DOCS.glob("*/*.md")} <= known
    assert [page.name for page in DOCS.glob("*.md")] == ["certificate-format.md"]


def test_readme_becomes_a_package_page():
    """The substitutions of pyproject.toml leave no relative link, and lose no file."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    rules = tool["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    text = prose(ROOT / "README.md")
    before = links_of(ROOT / "README.md")
    for rule in rules:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    links = [one.replace("$HFPR_VERSION", __version__) for one in LINK.findall(text)]
    assert all(one.startswith(("https://", "#")) for one in links)
    for kind, pictures in (("raw", True), ("blob", False)):
        start = f"{repository()}/{kind}/v{__version__}/"
        found = [one.removeprefix(start) for one in links if one.startswith(start)]
        assert found == [
            one for one in before if one.endswith(".png") == pictures and one[0] != "#"
        ]


def test_addresses_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert all(url.startswith(repository()) for url in project["urls"].values())


def test_citation_and_changelog_agree_with_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = re.search(r"^date-released: (\S+)$", citation, flags=re.MULTILINE).group(1)
    assert f"version: {__version__}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert (
        re.search(r"^## (.+)$", changelog, re.MULTILINE).group(1) == f"{__version__} ({released})"
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    bibtex = re.search(r"^```bibtex\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE).group(1)
    title = re.search(r'^title: "(.+)"$', citation, flags=re.MULTILINE).group(1)
    assert f"version = {{{__version__}}}" in bibtex
    assert f"title = {{{title}}}" in bibtex
    assert f"year = {{{released[:4]}}}" in bibtex
    for text in (bibtex, citation):
        assert repository() in text
