"""``certikmeans certainty`` and ``ask``: which labels can be trusted, and which pairs to add."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

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
    from certikmeans.cli.inputs import Inputs
    from certikmeans.options import Options
    from certikmeans.result import Result

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
    result, names = _load_and_solve(inputs, options, quiet)
    if result.labels is None:
        return exit_code_for(result.status)
    from certikmeans.report.certainty import box_lines, certainty_lines

    with show_compilation(quiet):
        certainty = result.certainty(slack_value)
    if as_json:
        to_stdout(json.dumps(certainty.to_dict(), allow_nan=False) + "\n")
    else:
        lines = certainty_lines(certainty, inputs.base) + box_lines(certainty, names)
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
    --constraints.
    """
    slack_value, most = parse_slack(slack), whole_number("questions", number, least=0)
    result, _ = _load_and_solve(inputs, options, quiet)
    if result.labels is None:
        return exit_code_for(result.status)
    base = inputs.base
    with show_compilation(quiet):
        questions = result.questions(most, slack=slack_value)
    if as_json:
        names = ("point", "example", "cluster", "points", "settles")
        rows = [{name: getattr(one, name) for name in names} for one in questions]
        to_stdout(json.dumps({"questions": rows, "points_counted_from": 0}) + "\n")
    else:
        if not quiet:
            to_stderr(_legend(questions, base))
        to_stdout("".join(f"{one.point + base} {one.example + base}\n" for one in questions))
    return exit_code_for(result.status)


def _legend(questions: tuple[PairQuery, ...], base: int) -> str:
    """Explain the pairs by the first one."""
    if not questions:
        return "no pairs: none would make another point certain within this slack\n"
    first = questions[0]
    return (
        f"does point {first.point + base} belong with {first.example + base}, a representative of "
        f"cluster {first.cluster}? One pair per line; answer with ML or CL in front of it\n"
    )


def _load_and_solve(
    inputs: Inputs, options: Options, quiet: bool
) -> tuple[Result, tuple[str, ...] | None]:
    """Read the input and solve; return the result and the names of the features.

    Without a labelling, print why.
    """
    loaded = load(inputs)
    if not quiet:
        to_stderr(f"{loaded.describe()}\n")
    result = solve_with_progress(loaded.problem, options, loaded.start_labels, quiet)
    show_infeasible(result, inputs.base)
    if result.labels is None and result.infeasibility is None:
        show_error("no labelling was found in time")
    return result, loaded.feature_names
