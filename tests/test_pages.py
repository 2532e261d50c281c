"""Prose of all pages is wrapped at 100 characters."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.pages import WIDTH, wrapped

ROOT = Path(__file__).resolve().parent.parent
# Folders of the repository: a virtual environment has pages, too.
PLACES = ["", "docs", "benchmarks", "examples", "src", "tests"]
PAGES = sorted(
    page
    for place in PLACES
    for page in (ROOT / place).glob("**/*.md" if place else "*.md")
    if ".pytest_cache" not in page.parts
)


def _prose(text: str) -> list[str]:
    """The lines outside code, tables and headings."""
    lines, fenced, before = [], False, ""
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "#")):
            indented = line.startswith("    ") and not (before.strip() and before in lines)
            if not indented:
                lines.append(line)
        before = line
    return lines


def _can_be_broken(line: str) -> bool:
    """Whether a blank stands outside code spans and targets of links."""
    item = re.sub(r"^\s*([-*+]|\d+[.)])?\s+", "", line)
    return " " in re.sub(r"`[^`]*`|\]\([^)]*\)", "_", item).strip()


def test_pages_are_found():
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {"README.md", "CONTRIBUTING.md", "docs/benchmarks/paper.md"} <= names


def test_prose_is_wrapped():
    offenders = []
    for page in PAGES:
        prose = _prose(page.read_text(encoding="utf-8"))
        name = page.relative_to(ROOT)
        if not any(prose):
            offenders.append(f"{name}: no prose")
        offenders += [
            f"{name}: {line[:60]}..."
            for line in prose
            if len(line) > WIDTH and _can_be_broken(line)
        ]
    assert offenders == []


def test_wrapping_preserves_content():
    text = (
        "# A heading that is far too long for the width\n\n"
        "Some words - and a sum 1 + 2 + 3 that must not become a list `code is kept` [a](b c)\n"
        "and more of them.\n\n"
        "- an item that goes on and on and on,\n  and on\n- short\n\n"
        "1. numbered items are indented by three, whatever comes next\n\n"
        "| a table | is | kept | as it stands |\n| --- | --- | --- | --- |\n\n"
        "```\ncode is kept as it stands, however long\n```\n\n"
        "    so is what is indented by four blanks\n"
    )
    narrow = wrapped(text, width=24)
    assert narrow.split() == text.split()
    assert wrapped(narrow, width=24) == narrow
    assert wrapped(text, width=1000) == text
    lines = narrow.split("\n")
    assert "`code is kept`" in narrow
    assert sum(line.startswith("- ") for line in lines) == 2
    assert not any(line.startswith("+") for line in lines)
    assert "   indented by three," in lines
    assert "code is kept as it stands, however long" in lines
    assert "    so is what is indented by four blanks" in lines
    assert max(len(line) for line in _prose(narrow)) <= 24
