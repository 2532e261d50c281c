"""Options that several commands share."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from certikmeans.errors import InputError

# Options are listed under these titles, in this order.
INPUT, PAIRS, PROOF, LIMITS, OUTPUT = "Input", "Pairs", "Proof", "Limits", "Output"
PANELS = (INPUT, PAIRS, PROOF, LIMITS, OUTPUT)

MustLink = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="F",
        rich_help_panel=PAIRS,
        help="Pairs that share a cluster: two indices per line; or groups, 'i j k ...' per line. "
        "May be given several times.",
    ),
]
CannotLink = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="F",
        rich_help_panel=PAIRS,
        help="Pairs in different clusters: two indices per line. May be given several times.",
    ),
]
ConstraintFile = Annotated[
    list[Path] | None,
    typer.Option(
        "--constraints",
        metavar="F",
        rich_help_panel=PAIRS,
        help="Pairs of both kinds: 'ML i j' and 'CL i j'; 'i j 1' and 'i j -1'; or JSON, "
        '{"ml": [[0, 1]], "cl": [[1, 2]], "groups": [[3, 4, 5]]}, every key optional. '
        "May be given several times.",
    ),
]
PartialLabels = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        rich_help_panel=PAIRS,
        help="Labels known for some points, one per line, empty or -1 if unknown: "
        "equal ones must, different ones cannot link.",
    ),
]
OneBased = Annotated[
    bool,
    typer.Option(
        "--one-based",
        rich_help_panel=PAIRS,
        help="Pair files count points from 1. Results count from 0.",
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        rich_help_panel=INPUT,
        help="Weights of the points, one per line; without, all are 1.",
    ),
]
HeaderKind = Annotated[
    str,
    typer.Option(
        "--header",
        metavar="KIND",
        rich_help_panel=INPUT,
        help="What the first line of DATA is: none (a point), names, sizes ('n d' or 'n d k' as "
        "in PC-SOS-SDP); auto tells from what follows.",
    ),
]
LabelsColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=INPUT,
        help="A column of DATA that holds known classes: not a feature; `solve` compares "
        "it with the clusters.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        rich_help_panel=INPUT,
        help="The columns of DATA that are features, by name or by number from 0, separated by "
        "commas. Others may hold anything.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        rich_help_panel=INPUT,
        help="The columns of DATA that are not features, likewise.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the result as JSON.")
]

STANDARD_STREAM = Path("-")


def seconds_of(text: str) -> float:
    """Read a time limit; infinite if it is switched off.

    >>> seconds_of("90"), seconds_of("none"), seconds_of("0")
    (90.0, inf, inf)
    """
    try:
        seconds = math.inf if text.strip().lower() == "none" else float(text) or math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0.0:
        raise InputError(
            f"time limit: {text} is not a positive number of seconds",
            hint="0 or none: no limit",
        )
    return seconds


def share_of(text: str, name: str = "gap") -> float:
    """Read a gap or a slack, a share or with a percent sign; others say which are too large.

    >>> share_of("0.01"), share_of("1%"), share_of("0.1 %")
    (0.01, 0.01, 0.001)
    """
    number = text.strip()
    try:
        # Divided as a decimal: 0.1 % is the float 0.001, not a neighbour of it.
        return float(Decimal(number[:-1].strip()) / 100 if number.endswith("%") else number)
    except (ValueError, ArithmeticError) as error:
        raise InputError(
            f"{name}: {text!r} is not a number", hint="0.001 or 0.1% stands for 0.1 % of the cost"
        ) from error


def slack_of(text: str) -> float:
    """Read a slack, before anything takes long."""
    from certikmeans.certainty.wanted import checked_slack

    return checked_slack(share_of(text, "slack"))


def refuse_standard_input(paths: list[Path]) -> None:
    """Refuse ``-`` as the name of an input."""
    if STANDARD_STREAM in paths:
        raise InputError(
            "-: standard input is not read",
            hint="name a file; /dev/stdin is one on most systems",
        )
