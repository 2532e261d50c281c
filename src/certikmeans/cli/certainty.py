"""``certikmeans certainty`` and ``ask``: which labels can be trusted, and what to ask next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from certikmeans._numbers import whole_number
from certikmeans.cli.parameters import (
    OUTPUT,
    AsJson,
    CannotLink,
    Columns,
    ConstraintFile,
    Drop,
    HeaderKind,
    LabelsColumn,
    MustLink,
    OneBased,
    PartialLabels,
    Weights,
    parse_fraction,
    parse_slack,
    reject_standard_input,
)
from certikmeans.cli.process import ExitCode, exit_code_for, show_error, to_stderr, to_stdout
from certikmeans.cli.solve import (
    DEFAULT_SLACK,
    Clusters,
    DataPath,
    Gap,
    Jobs,
    Quiet,
    Seed,
    Slack,
    StartLabels,
    TimeLimit,
)
from certikmeans.options import DEFAULT_GAP, Options

if TYPE_CHECKING:
    from certikmeans.certainty.pair_queries import PairQuery
    from certikmeans.cli.inputs import Inputs
    from certikmeans.result import Result

NumberOfPairs = Annotated[
    int,
    typer.Option("-n", "--number", metavar="N", rich_help_panel=OUTPUT, help="Pairs to name."),
]


def certainty_command(
    data: DataPath,
    n_clusters: Clusters = None,
    must_link: MustLink = None,
    cannot_link: CannotLink = None,
    constraints: ConstraintFile = None,
    partial_labels: PartialLabels = None,
    one_based: OneBased = False,
    labels_column: LabelsColumn = None,
    start_labels: StartLabels = None,
    weights: Weights = None,
    header: HeaderKind = "auto",
    columns: Columns = None,
    drop: Drop = None,
    slack: Slack = DEFAULT_SLACK,
    gap: Gap = str(DEFAULT_GAP),
    time_limit: TimeLimit = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> ExitCode:
    """Cluster DATA, then say what is true of every labelling that is nearly as good.

    Which points are grouped as in the labelling found, where the others can be, where the centres
    are: proven, as the bound is.
    """
    from certikmeans.cli.inputs import Inputs, PairFiles

    pairs = PairFiles.of(must_link, cannot_link, constraints, partial_labels, one_based)
    inputs = Inputs(
        data, n_clusters, pairs, start_labels, labels_column, weights, header,
        columns or (), drop or (),
    )  # fmt: skip
    share = parse_slack(slack)
    options = Options(parse_fraction(gap), time_limit, jobs=None if jobs == -1 else jobs, seed=seed)
    result, names = _load_and_solve(inputs, options, quiet, int(one_based))
    if result.labels is None:
        return exit_code_for(result.status)
    from certikmeans.cli.run import show_compilation
    from certikmeans.report.certainty import box_lines, certainty_lines

    with show_compilation(quiet):
        certainty = result.certainty(share)
    if as_json:
        to_stdout(json.dumps(certainty.to_dict(), allow_nan=False) + "\n")
    else:
        lines = certainty_lines(certainty, int(one_based)) + box_lines(certainty, names)
        to_stdout("\n".join(lines) + "\n")
    return exit_code_for(result.status)


def ask_command(
    data: DataPath,
    n_clusters: Clusters = None,
    must_link: MustLink = None,
    cannot_link: CannotLink = None,
    constraints: ConstraintFile = None,
    partial_labels: PartialLabels = None,
    one_based: OneBased = False,
    labels_column: LabelsColumn = None,
    start_labels: StartLabels = None,
    weights: Weights = None,
    header: HeaderKind = "auto",
    columns: Columns = None,
    drop: Drop = None,
    number: NumberOfPairs = 10,
    slack: Slack = DEFAULT_SLACK,
    gap: Gap = str(DEFAULT_GAP),
    time_limit: TimeLimit = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> ExitCode:
    """Cluster DATA, then name the pairs whose answer decides most.

    One pair per line, the one that decides most first: a point in doubt, and one that stands for a
    cluster it may belong to. Write each as ML or CL to a file, and pass that as --constraints.
    """
    from certikmeans.cli.inputs import Inputs, PairFiles

    pairs = PairFiles.of(must_link, cannot_link, constraints, partial_labels, one_based)
    inputs = Inputs(
        data, n_clusters, pairs, start_labels, labels_column, weights, header,
        columns or (), drop or (),
    )  # fmt: skip
    share, most = parse_slack(slack), whole_number("questions", number, least=0)
    options = Options(parse_fraction(gap), time_limit, jobs=None if jobs == -1 else jobs, seed=seed)
    result, _ = _load_and_solve(inputs, options, quiet, int(one_based))
    if result.labels is None:
        return exit_code_for(result.status)
    from certikmeans.cli.run import show_compilation

    base = int(one_based)
    with show_compilation(quiet):
        questions = result.questions(most, slack=share)
    if as_json:
        rows = [
            {
                "point": q.point,
                "example": q.example,
                "cluster": q.cluster,
                "points": q.points,
                "settles": q.settles,
            }
            for q in questions
        ]
        to_stdout(json.dumps({"questions": rows, "points_counted_from": 0}) + "\n")
    else:
        if not quiet:
            to_stderr(_legend(questions, base))
        to_stdout("".join(f"{q.point + base} {q.example + base}\n" for q in questions))
    return exit_code_for(result.status)


def _legend(questions: tuple[PairQuery, ...], base: int) -> str:
    """What the pairs mean, told with the first."""
    if not questions:
        return "nothing to ask: no pair would settle anything within this slack\n"
    first = questions[0]
    return (
        f"does point {first.point + base} belong with {first.example + base}, which stands for "
        f"cluster {first.cluster}? One pair per line; answer with ML or CL in front of it\n"
    )


def _load_and_solve(
    inputs: Inputs, options: Options, quiet: bool, base: int
) -> tuple[Result, tuple[str, ...] | None]:
    """Read, and run the solver with its progress; also the names of the features.

    Says so where there is no labelling.
    """
    from certikmeans.cli.inputs import load
    from certikmeans.cli.run import show_infeasible, solve_with_progress

    reject_standard_input(inputs.named())
    loaded = load(inputs)
    if not quiet:
        to_stderr(f"{loaded.describe()}\n")
    result = solve_with_progress(loaded.problem, options, loaded.start_labels, quiet)
    show_infeasible(result, base)
    if result.labels is None and result.infeasibility is None:
        show_error("no labelling was found in time")
    return result, loaded.feature_names
