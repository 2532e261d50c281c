"""Links of all pages resolve: in the checkout, on the site and on the package index."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

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


def test_links_are_found():
    assert sum(len(links_of(page)) for page in PAGES) > 100


def broken_reason(page, link):
    """Why a link of a page does not resolve, or None."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return "no such file"
    if not target.is_relative_to(ROOT):
        return "leaves the checkout"
    if anchor and anchor not in anchors_of(target):
        return "no such heading"
    return None


def test_links_resolve():
    offenders = [
        f"{name_of(page)}: {link}: {reason}"
        for page in PAGES
        for link in links_of(page)
        if (reason := broken_reason(page, link)) is not None
    ]
    assert offenders == []


def test_docs_link_within_docs():
    """The site is built from docs/ alone; pages of the root are linked from there, not to."""
    offenders = [
        f"{name_of(page)}: {link}"
        for page in sorted(DOCS.rglob("*.md"))
        for link in links_of(page)
        if (path := link.partition("#")[0])
        and not (page.parent / path).resolve().is_relative_to(DOCS)
    ]
    assert offenders == []


def test_root_pages_have_working_links_on_the_site():
    generated = {f"{folder}/index.md" for folder, _ in SECTIONS.values()} | set(FROM_ROOT.values())
    offenders = []
    for name, address in FROM_ROOT.items():
        place = DOCS / Path(address).parent
        for link in LINK.findall(site_links(prose(ROOT / name), address, repository())):
            path = link.partition("#")[0]
            if path and "://" not in path:
                target = (place / path).resolve()
                if not target.exists() and target.relative_to(DOCS).as_posix() not in generated:
                    offenders.append(f"{name}: {link}")
    assert offenders == []


def test_menu_has_every_folder():
    known = {folder for folder, _ in SECTIONS.values()}
    assert {page.parent.name for page in DOCS.glob("*/*.md")} <= known
    assert {page.name for page in DOCS.glob("*.md")} == {
        "certificate-format.md", "cite.md", "install.md", "tutorial.md", "upgrade.md"
    }  # fmt: skip


def test_readme_links_on_the_package_page():
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


def test_project_urls():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert all(url.startswith(repository()) for url in project["urls"].values())


def test_citation_and_changelog_match_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = re.search(r"^date-released: (\S+)$", citation, flags=re.MULTILINE).group(1)
    assert f"version: {__version__}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    if headings[0].endswith("(unreleased)"):  # the entry of the next version
        assert headings.pop(0).split()[0] != __version__
    assert headings[0] == f"{__version__} ({released})"
    page = (DOCS / "cite.md").read_text(encoding="utf-8")
    bibtex = re.search(r"^```bibtex\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE).group(1)
    title = re.search(r'^title: "(.+)"$', citation, flags=re.MULTILINE).group(1)
    assert f"version = {{{__version__}}}" in bibtex
    assert f"title = {{{title}}}" in bibtex
    assert f"year = {{{released[:4]}}}" in bibtex
    for text in (bibtex, citation):
        assert repository() in text
