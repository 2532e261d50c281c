"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MustLink = Annotated[
    Path | None,
    typer.Option(metavar="F", help="Pairs that share a cluster: two indices per line."),
]
CannotLink = Annotated[
    Path | None,
    typer.Option(metavar="F", help="Pairs in different clusters: two indices per line."),
]
ConstraintFile = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        metavar="F",
        help="Pairs of both kinds: 'ML i j' and 'CL i j', 'i j 1' and 'i j -1', or JSON.",
    ),
]
PartialLabels = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        help="Labels known for some points, one per line, empty or -1 if unknown: "
        "equal ones must, different ones cannot link.",
    ),
]
OneBased = Annotated[bool, typer.Option("--one-based", help="Pair files count points from 1.")]
LabelsColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A column of DATA that holds known classes: not a feature; `solve` compares "
        "it with the clusters.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
