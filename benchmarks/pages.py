"""Pages in Markdown: tables, and prose wrapped at a readable width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

WIDTH = 100

_ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)")
# Verbatim: headings, tables, quotes, HTML, rulers, link targets and code by indentation.
_KEPT = re.compile(r"^\s*(#|\||>|<|---+\s*$|===+\s*$|\[[^\]]+\]:)")
# A line must not begin with these, or it would open a list, a heading, a quote or a table.
_OPENER = re.compile(r"^([-*+]$|\d+[.)]$|#|>|\||=+$|---)")
# What may not be broken: a span of code, the target of a link; the rest ends at a blank.
_WORD = re.compile(r"(?:`+[^`]+`+|\]\([^)]*\)|\S)+")


def _words(text: str) -> list[str]:
    """The pieces of ``text`` between which a line may end."""
    words: list[str] = []
    for word in _WORD.findall(text):
        if words and _OPENER.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


def _filled(text: str, first: str, rest: str, width: int) -> list[str]:
    """Lines of at most ``width``: the first begins with ``first``, the others with ``rest``."""
    lines, line = [], first
    empty = True
    for word in _words(text):
        if not empty and len(line) + 1 + len(word) > width:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return [*lines, line]


def wrapped(text: str, width: int = WIDTH) -> str:
    """The page with no line of prose longer than ``width``.

    Paragraphs and items of lists with a longer line are filled again; everything else
    (code, tables, headings, what cannot be broken) stays as it is, so that a page already
    wrapped is returned unchanged.

    Examples
    --------
    >>> print(wrapped("- one `two three` four\\n", width=12))
    - one
      `two three`
      four
    <BLANKLINE>
    """
    out: list[str] = []
    paragraph: list[str] = []
    fenced = False

    def flush() -> None:
        if any(len(line) > width for line in paragraph):
            found = _ITEM.match(paragraph[0])
            head = found.group(0) if found else re.match(r"\s*", paragraph[0]).group(0)  # type: ignore[union-attr]
            body = " ".join([paragraph[0][len(head) :], *(line.strip() for line in paragraph[1:])])
            out.extend(_filled(body, head, " " * len(head), width))
        else:
            out.extend(paragraph)
        paragraph.clear()

    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        code = not paragraph and line.startswith("    ")
        if fence or fenced or not line.strip() or _KEPT.match(line) or code:
            flush()
            out.append(line)
            fenced = fenced != fence
            continue
        if _ITEM.match(line):
            flush()
        paragraph.append(line)
    flush()
    return "\n".join(out)


def show(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Render a Markdown table with aligned columns.

    >>> print(show(["n", "seconds"], [[10, "0.5"]]))
    | n  | seconds |
    | -- | ------- |
    | 10 | 0.5     |
    """
    cells = [list(map(str, header)), *[list(map(str, row)) for row in rows]]
    widths = [max(len(line[j]) for line in cells) for j in range(len(header))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines)


def without_repeats(rows: Sequence[Sequence[object]], columns: int) -> list[list[object]]:
    """Blank the first cells of a row where they repeat those of the row above.

    >>> without_repeats([["a", 1, 2], ["a", 1, 3], ["b", 1, 4]], 2)
    [['a', 1, 2], ['', '', 3], ['b', 1, 4]]
    """
    shown: list[list[object]] = []
    before: list[object] = []
    for row in rows:
        first = list(row[:columns])
        shown.append([*([""] * columns if first == before else first), *row[columns:]])
        before = first
    return shown


def percent(gap: float | None, sign: str = "") -> str:
    """A relative gap in percent, three digits; empty where there is none.

    >>> percent(0.00123), percent(0.5, " %"), percent(None)
    ('0.123', '50 %', '')
    """
    return "" if gap is None else f"{100 * gap:.3g}{sign}"


def write_page(page: Path, parts: Iterable[str]) -> Path:
    """Write the parts that are not empty, wrapped; returns the page."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(wrapped("\n".join(part for part in parts if part)))
    return page


def pyplot() -> Any:
    """Matplotlib without a window."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt
