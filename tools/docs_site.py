"""mkdocs hooks: pages of the repository root, and a menu generated from the folders.

mkdocs calls `on_config`, then `on_files`. README.md becomes the first page; ARCHITECTURE.md,
CONTRIBUTING.md and CHANGELOG.md become pages of the project. Their links name files of the
checkout, so that they work there, too; here they are converted to links of the site.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

# Pages of the root, and their paths on the site.
FROM_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}

# Tabs of the menu. The listed pages of a folder come first; the others follow by name.
SECTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "User guide": (
        "guides",
        (
            "pairs",
            "partial-labels",
            "at-most-one-per-cluster",
            "balanced-clusters",
            "soft-pairs",
            "choosing-k",
            "many-features",
            "executors",
            "pandas",
            "scikit-learn",
            "command-line",
            "how-good",
            "certainty",
            "certificates",
            "noisy-pairs",
        ),
    ),
    "Gallery": ("gallery", ("plot_quickstart", "plot_partial_labels", "plot_choosing_k")),
    "Concepts": ("concepts", ("glossary", "deviations")),
    "Reference": ("reference", ("estimator", "solving", "pairs", "files")),
    "Benchmarks": ("benchmarks", ("paper", "root", "highdim")),
    "Decisions": ("decisions", ()),
    "Project": ("project", ("architecture", "contributing", "changelog")),
}
ROOT_PAGES = {
    "User guide": "One page per task.",
    "Concepts": "Why what is claimed is true, and what the words mean.",
    "Benchmarks": "What was measured. Each page names the command that measures it again.",
    "Decisions": "What was chosen, what was rejected, and the figures that decided it.",
    "Project": "How certikmeans is built.",
}

# Results of a search: guides first, measurements and derivations last.
SEARCH_BOOST = {"tutorial.md": 2.0, "guides": 3.0, "concepts": 0.5, "benchmarks": 0.3}

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_TABLE = re.compile(r"^\|.*\|\n\|[-| :]+\|\n(?:\|.*\|\n)+", re.MULTILINE)
_NUMBER = re.compile(r"(?:<= )?-?[\d,]+(?:\.\d+)?(?:e[-+]?\d+)?(?: (?:%|s|GB))?")
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)


def repository() -> str:
    """Return the address of the sources from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Source"]).rstrip("/")


def site_links(text: str, page: str, source: str) -> str:
    """Convert links of a page of the root to links of the site's page ``page``.

    >>> site_links("[a](docs/guides/b.md#c) [d](ARCHITECTURE.md)", "index.md", "https://x.org/y")
    '[a](guides/b.md#c) [d](project/architecture.md)'
    >>> site_links("[a](docs/guides/b.md)", "project/changelog.md", "https://x.org/y")
    '[a](../guides/b.md)'
    >>> site_links("[a](CITATION.cff) [b](#c)", "index.md", "https://x.org/y")
    '[a](https://x.org/y/blob/main/CITATION.cff) [b](#c)'
    """
    up = "../" * (len(PurePosixPath(page).parts) - 1)

    def rewrite(match: re.Match[str]) -> str:
        opening, target, closing = match.groups()
        path, mark, anchor = target.partition("#")
        if not path or "://" in path:
            return match.group(0)
        if path in FROM_ROOT:
            path = up + FROM_ROOT[path]
        elif path.startswith("docs/"):
            path = up + path.removeprefix("docs/")
            path += "index.md" if path.endswith("/") else ""
        else:
            path = f"{source}/blob/main/{path}"
        return f"{opening}{path}{mark}{anchor}{closing}"

    return _LINK.sub(rewrite, text)


def title_of(text: str) -> str:
    """Return the first heading of a page.

    >>> title_of("# One `two`\\n\\nthree")
    'One two'
    """
    found = _TITLE.search(text)
    return found.group(1).replace("`", "") if found else ""


def opening_of(text: str) -> str:
    """Return the first sentence of a page that begins with prose, without links.

    >>> opening_of("# One\\n\\nTwo [three](a.md)\\nfour. Five.\\n")
    'Two three four.'
    >>> opening_of("# One\\n\\n| a table |\\n")
    ''
    """
    paragraphs = [one for one in text.split("\n\n") if not one.startswith("#")]
    first = " ".join(paragraphs[0].split()) if paragraphs else ""
    found = re.match(r"[\w`*].*?[.:](?= |$)", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first))
    if found is None or first.startswith(("Written by", "```")):
        return ""
    return found.group(0).removeprefix("**Context.** ").rstrip(":.") + "."


def contents(section: str, pages: dict[str, str]) -> str:
    """Return an index page for a folder; ``pages`` maps links to texts."""
    lines = [
        f"- [{title_of(text)}]({uri})<br>{opening_of(text)}".removesuffix("<br>")
        for uri, text in pages.items()
    ]
    return "\n".join([f"# {section}", "", ROOT_PAGES.get(section, ""), "", *lines, ""])


def ordered(folder: str, first: tuple[str, ...], uris: list[str]) -> list[str]:
    """Pages of a folder, those of ``first`` before all others; an index is not counted.

    >>> ordered("a", ("z",), ["a/b.md", "a/index.md", "a/z.md", "c/d.md"])
    ['a/z.md', 'a/b.md']
    """
    found = sorted(u for u in uris if str(PurePosixPath(u).parent) == folder)
    leading = [f"{folder}/{name}.md" for name in first]
    inside = [u for u in found if PurePosixPath(u).name != "index.md"]
    return [u for u in leading if u in inside] + [u for u in inside if u not in leading]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Link the sources in the footer: a link in the header would ask a server for its numbers."""
    config.extra["social"] = [{"icon": "fontawesome/brands/git-alt", "link": repository()}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root and the indexes of folders, then write the menu."""
    from mkdocs.structure.files import File

    for name, uri in FROM_ROOT.items():
        text = site_links((ROOT / name).read_text(encoding="utf-8"), uri, repository())
        files.append(File.generated(config, uri, content=text))
    uris = [file.src_uri for file in files.documentation_pages()]
    menu: list[dict[str, Any]] = [
        {"Start": "index.md"},
        {"Install": "install.md"},
        {"Tutorial": "tutorial.md"},
    ]
    for section, (folder, first) in SECTIONS.items():
        inside = ordered(folder, first, uris)
        if folder == "project":
            inside += ["upgrade.md", "certificate-format.md", "cite.md"]
        texts = {uri: _text(files, uri) for uri in inside}
        if f"{folder}/index.md" not in uris:
            content = contents(section, {_relative_uri(u, folder): t for u, t in texts.items()})
            files.append(File.generated(config, f"{folder}/index.md", content=content))
        menu.append({section: [f"{folder}/index.md", *inside]})
    config.nav = menu
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Replace the theme's page for errors, whose links are right at the root of a server only."""
    shutil.copyfile(Path(__file__).with_name("404.html"), Path(config.site_dir) / "404.html")


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Set what depends on the folder of a page.

    Decision records are left out of the search index: they answer no question of a user. Pages
    of benchmarks have wide tables, which get the width of the menus; pages outside a folder have
    no menu of their own.
    """
    folder = page.file.src_uri.split("/")[0]
    if folder in ("index.md", "install.md", "tutorial.md"):
        page.meta["hide"] = ["navigation"]
    if folder == "decisions":
        page.meta["search"] = {"exclude": True}
    elif folder in SEARCH_BOOST:
        page.meta["search"] = {"boost": SEARCH_BOOST[folder]}
    if folder == "benchmarks":
        page.meta["hide"] = ["navigation", "toc"]
        return align_numbers(markdown)
    return markdown


def align_numbers(markdown: str) -> str:
    """Align the columns of tables that hold numbers only to the right.

    >>> print(align_numbers("| a | n  |\\n| - | -- |\\n| x | 10 |\\n"), end="")
    | a | n  |
    | - | --: |
    | x | 10 |
    """
    return _TABLE.sub(_aligned_table, markdown)


def _aligned_table(match: re.Match[str]) -> str:
    header, ruler, *rows = match.group(0).splitlines()
    cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]
    rulers = ruler.strip().strip("|").split("|")
    for j, dashes in enumerate(rulers):
        column = [row[j] for row in cells if j < len(row) and row[j]]
        if column and all(_NUMBER.fullmatch(one) for one in column):
            rulers[j] = f" {dashes.strip().strip(':')}: "
    return "\n".join([header, f"|{'|'.join(rulers)}|", *rows]) + "\n"


def _relative_uri(uri: str, folder: str) -> str:
    return uri.removeprefix(f"{folder}/") if uri.startswith(f"{folder}/") else f"../{uri}"


def _text(files: Files, uri: str) -> str:
    file = files.get_file_from_path(uri)
    return "" if file is None else str(file.content_string)
