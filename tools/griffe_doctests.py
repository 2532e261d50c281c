"""griffe extension: add a heading to doctest examples that have none.

Markdown renders a line that begins with ``>>>`` as a quotation; below a numpydoc heading
``Examples`` it is rendered as code.
"""

from __future__ import annotations

import re
from typing import Any

try:
    from griffe import Extension
except ImportError:  # without the extra "docs" the function below can be tested
    Extension = object  # type: ignore[misc, assignment]

_EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)
_HEADING = re.compile(r"^Examples\n-+$", re.MULTILINE)


def with_heading(text: str) -> str:
    """Put the heading before the first example that has none.

    >>> with_heading("Say so.\\n\\n>>> 1 + 1\\n2")
    'Say so.\\n\\nExamples\\n--------\\n>>> 1 + 1\\n2'
    >>> with_heading("Say so.")
    'Say so.'
    """
    first = _EXAMPLE.search(text)
    if first is None or _HEADING.search(text):
        return text
    return f"{text[: first.start()]}Examples\n--------\n{text[first.start() :]}"


class DoctestHeadings(Extension):  # type: ignore[misc]
    """Called by griffe for every object that it reads."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Add the heading to the docstring."""
        if obj.docstring is not None:
            obj.docstring.value = with_heading(obj.docstring.value)
