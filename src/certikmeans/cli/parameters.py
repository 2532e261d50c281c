"""Command-line options shared by several commands, their parsing and validation."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, final

import typer
from typer.core import TyperCommand, TyperOption

from certikmeans._atomic import is_special, open_beside
from certikmeans.errors import Argument, InputError, Message

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


def parse_seconds(text: str) -> float:
    """Read a time limit; infinite if it is switched off.

    >>> parse_seconds("90"), parse_seconds("none"), parse_seconds("0")
    (90.0, inf, inf)
    """
    try:
        seconds = math.inf if text.strip().lower() == "none" else float(text) or math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0.0:
        raise InputError(
            Message(Argument("time_limit"), f": {text} is not a positive number of seconds"),
            hint="0 or none switches the limit off",
        )
    return seconds


def parse_fraction(text: str, name: str = "gap") -> float:
    """Read a gap or a slack, a share or with a percent sign; others say which are too large.

    >>> parse_fraction("0.01"), parse_fraction("1%"), parse_fraction("0.1 %")
    (0.01, 0.01, 0.001)
    """
    number = text.strip()
    try:
        # Divided as a decimal: 0.1 % is the float 0.001, not a neighbour of it.
        return float(Decimal(number[:-1].strip()) / 100 if number.endswith("%") else number)
    except (ValueError, ArithmeticError) as error:
        raise InputError(
            Message(Argument(name), f": {text!r} is not a number"),
            hint="0.001 or 0.1% stands for 0.1 % of the cost",
        ) from error


def parse_slack(text: str) -> float:
    """Read a slack, before anything takes long."""
    from certikmeans.certainty.report import validate_slack

    return validate_slack(parse_fraction(text, "slack"))


def reject_standard_input(paths: list[Path]) -> None:
    """Refuse ``-`` as the name of an input."""
    if STANDARD_STREAM in paths:
        raise InputError(
            "-: standard input is not read",
            hint="name a file; /dev/stdin is one on most systems",
        )


# How commands are parsed and described, where typer's own way does not do.


@final
class StrictCommand(TyperCommand):
    """A command that refuses a second value for the same option, and lists options by topic.

    Of two values for one option, one would be lost silently. The topics are typer's panels,
    written as plain text: that needs no library which takes longer to load than the page to read.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look at the order of the options first, then parse as usual."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(order).items():
            if not isinstance(option, TyperOption) or option.is_flag or option.multiple:
                continue
            if times > 1:
                name = "/".join(option.opts)
                ctx.fail(f"{name} is given {times} times.\nhint: it takes one value")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of each panel under its title."""
        titles: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        titles |= {panel: [] for panel in PANELS} | {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            titles["Arguments" if is_argument else panel].append(record)
        for title, records in titles.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


# Output files: refused before the run if they cannot be written.


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path] = ()) -> None:
    """Raise unless every output can be written without destroying something.

    Asked before the run starts: a typing error in a path must not cost an hour's result.
    """
    taken = {_identity(path): f"{path}: is an input of this run" for path in inputs}
    for path in outputs:
        if _identity(path) in taken:
            raise InputError(taken[_identity(path)], hint="choose another name for the output")
        taken[_identity(path)] = f"{path}: is named twice as an output"
        _check_output(path)


def _identity(path: Path) -> str:
    return os.path.realpath(path)


def _check_output(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # said below, or to be created
    except OSError as error:
        name = str(path) if len(str(path)) <= 60 else str(path)[:60] + "..."
        raise InputError(
            f"{name}: cannot be written ({error.strerror})", hint="choose another name"
        ) from error
    if path.is_dir():
        raise InputError(f"{path}: is a directory", hint="name a file inside it")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(
            f"{path}: the directory {str(folder)!r} does not exist",
            hint="create it first, or correct the path",
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path}: is write-protected", hint="choose another name")
    if is_special(path):
        return
    try:
        beside, descriptor = open_beside(path)
        os.close(descriptor)
        beside.unlink()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror})",
            hint=f"choose a directory in which files can be created, not {str(folder)!r}",
        ) from error
