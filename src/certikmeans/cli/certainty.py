"""``certikmeans certainty`` and ``ask``: which labels can be trusted, and which pairs to add."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from certikmeans._numbers import whole_number
from certikmeans.cli.inputs import InputOptions, load
from certikmeans.cli.outputs import show_infeasible
from certikmeans.cli.parameters import (
    DEFAULT_SLACK,
    OUTPUT,
    AsJson,
    BasicSolverOptions,
    Quiet,
    Slack,
    expand_groups,
    parse_slack,
)
from certikmeans.cli.process import ExitCode, exit_code_for, show_error, to_stderr, to_stdout
from certikmeans.cli.run import show_compilation, solve_with_progress

if TYPE_CHECKING:
    from certikmeans.certainty.pair_queries import PairQuery
    from certikmeans.cli.inputs import Inputs, LoadedInputs
    from certikmeans.options import Options
    from certikmeans.result import Result

_MAX_VALUES = 6  # of a point in the list of questions

NumberOfPairs = Annotated[
    int,
    typer.Option(
        "-n", "--number", metavar="N", rich_help_panel=OUTPUT, help="Largest number of pairs."
    ),
]


@expand_groups
def certainty_command(
    inputs: InputOptions,
    options: BasicSolverOptions,
    slack: Slack = DEFAULT_SLACK,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> ExitCode:
    """Cluster DATA, then report what holds for every labelling that is nearly as good.

    Which points are grouped as in the labelling found, which clusters are possible for the
    others, where the centres are: proven, as the bound is.
    """
    slack_value = parse_slack(slack)
    result, loaded = _load_and_solve(inputs, options, quiet)
    if result.labels is None:
        return exit_code_for(result.status)
    from certikmeans.report.certainty import box_lines, certainty_lines

    with show_compilation(quiet):
        certainty = result.certainty(slack_value)
    if as_json:
        to_stdout(json.dumps(certainty.to_dict(), allow_nan=False) + "\n")
    else:
        lines = certainty_lines(certainty, inputs.base) + box_lines(certainty, loaded.feature_names)
        to_stdout("\n".join(lines) + "\n")
    return exit_code_for(result.status)


@expand_groups
def ask_command(
    inputs: InputOptions,
    options: BasicSolverOptions,
    number: NumberOfPairs = 10,
    slack: Slack = DEFAULT_SLACK,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> ExitCode:
    """Cluster DATA, then print the pairs that an expert should label next.

    One pair per line, the most informative first: an uncertain point, and a representative of a
    cluster that it may belong to. Write each as ML or CL to a file, and pass that as
    --constraints. The values of the points are written to standard error. With --id-column, the
    pairs are pairs of ids.
    """
    slack_value, most = parse_slack(slack), whole_number("questions", number, least=0)
    result, loaded = _load_and_solve(inputs, options, quiet)
    if result.labels is None:
        return exit_code_for(result.status)
    with show_compilation(quiet):
        questions = result.questions(most, slack=slack_value)
    names = _PointNames(loaded, inputs.base)
    if as_json:
        keys = ("point", "example", "cluster", "points", "settles")
        rows = [{key: getattr(one, key) for key in keys} for one in questions]
        document: dict[str, Any] = {"questions": rows, "points_counted_from": 0}
        if loaded.ids is not None:
            document["ids"] = [[names.of(one.point), names.of(one.example)] for one in questions]
        to_stdout(json.dumps(document) + "\n")
    else:
        if not quiet:
            to_stderr(_legend(questions, names))
        to_stdout("".join(names.pair(one.point, one.example) for one in questions))
    return exit_code_for(result.status)


@final
class _PointNames:
    """Names of points in the output, as files of pairs take them."""

    def __init__(self, loaded: LoadedInputs, base: int) -> None:
        self._loaded, self._base = loaded, base

    def of(self, row: int) -> str:
        """Return the id, or the number, of a point."""
        ids = self._loaded.ids
        return str(row + self._base) if ids is None else ids.ids[row]

    def pair(self, one: int, other: int) -> str:
        """Return a line with two points, separated by a comma if they are ids."""
        mark = " " if self._loaded.ids is None else ","
        return f"{self.of(one)}{mark}{self.of(other)}\n"

    def values(self, row: int) -> str:
        """Return the features of a point, at most `_MAX_VALUES` of them."""
        names, values = self._loaded.feature_names, self._loaded.problem.points[row].tolist()
        shown = [
            f"{value:g}" if names is None else f"{names[j]} {value:g}"
            for j, value in enumerate(values[:_MAX_VALUES])
        ]
        return ", ".join(shown) + (", ..." if len(values) > _MAX_VALUES else "")


def _legend(questions: tuple[PairQuery, ...], names: _PointNames) -> str:
    """Explain the pairs by the first one, and list the values of all points."""
    if not questions:
        return "no pairs: none would make another point certain within this slack\n"
    first = questions[0]
    lines = [
        f"does point {names.of(first.point)} belong with {names.of(first.example)}, a "
        f"representative of cluster {first.cluster}? One pair per line; answer with ML or CL in "
        "front of it"
    ]
    for one in questions:
        lines.append(f"  {names.of(one.point)}: {names.values(one.point)}")
        lines.append(f"    {names.of(one.example)}: {names.values(one.example)}")
    return "\n".join(lines) + "\n"


def _load_and_solve(inputs: Inputs, options: Options, quiet: bool) -> tuple[Result, LoadedInputs]:
    """Read the input and solve; return the result and what was read.

    Without a labelling, print why.
    """
    loaded = load(inputs)
    if not quiet:
        to_stderr(f"{loaded.describe()}\n")
    result = solve_with_progress(loaded.problem, options, loaded.start_labels, quiet)
    show_infeasible(result, inputs.base)
    if result.labels is None and result.infeasibility is None:
        show_error("no labelling was found in time")
    return result, loaded
