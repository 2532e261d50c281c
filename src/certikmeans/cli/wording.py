"""The library's messages name arguments of Python; here they become options."""

from __future__ import annotations

import re

_OPTIONS = (
    (
        r"read (it|signed pairs|a file that holds both kinds) with kind=None",
        r"pass \1 with --constraints",
    ),
    (r"read it with one_based=True", "pass --one-based"),
    (r"leave out one_based=True", "do not pass --one-based"),
    (r"\bone_based=True", "--one-based"),
    (r"\blabel_column=", "--labels-column "),
    (r"\bdrop=", "--drop "),
    (r"\bheader='(\w+)'", r"--header \1"),
    (r"\bkind='(must|cannot)'", r"--\1-link"),
    (r"pass their centres as start_centers: these may break pairs", "leave --start-labels out"),
)


def on_command_line(text: str) -> str:
    """Say it in options of the command line.

    >>> on_command_line("if it is a point, say header='none'")
    'if it is a point, say --header none'
    """
    for argument, option in _OPTIONS:
        text = re.sub(argument, option, text)
    return text
