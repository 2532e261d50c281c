"""Tables of HTML, which notebooks show for results."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def html_table(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values.

    >>> html_table([("gap", "< 1 %")]).count("&lt;")
    1
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table>{cells}</table>"
