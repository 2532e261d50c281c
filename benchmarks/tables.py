"""Plain tables for a terminal or a page."""

from __future__ import annotations

from collections.abc import Sequence


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
