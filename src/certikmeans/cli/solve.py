"""``certikmeans solve``: points and pairs in, the best labelling and its proven bound out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certikmeans.cli.parameters import (
    INPUT,
    LIMITS,
    OUTPUT,
    PROOF,
    STANDARD_STREAM,
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
    check_outputs,
    parse_fraction,
    parse_slack,
    reject_standard_input,
)
from certikmeans.cli.process import ExitCode, to_stderr
from certikmeans.errors import InputError
from certikmeans.options import (
    BOUNDS,
    BRANCHINGS,
    DEFAULT_GAP,
    DEFAULT_NODE_LIMIT,
    SELECTIONS,
    Options,
)

if TYPE_CHECKING:
    from certikmeans.cli.inputs import Inputs
    from certikmeans.cli.run import CheckpointOptions, OutputOptions

DataPath = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="The points: CSV or other text, .npy, .npz, .parquet.",
        show_default=False,
    ),
]
Clusters = Annotated[
    int | None,
    typer.Option(
        "-k",
        "--n-clusters",
        metavar="K",
        rich_help_panel=INPUT,
        help="Number of clusters. May be left out if DATA states it.",
    ),
]
StartLabels = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        rich_help_panel=INPUT,
        help="A labelling to start from, one cluster number per line.",
    ),
]
Gap = Annotated[
    str,
    typer.Option(
        metavar="G",
        rich_help_panel=LIMITS,
        help="Stop once proven within this share of the optimum: at least 0, below 1, or with a "
        "percent sign: 0.1%. Rounding "
        "keeps bound and cost about 1e-9 % apart, so 0 asks for all that can be proven and "
        "normally ends with exit code 1.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="S", rich_help_panel=LIMITS, help="Stop after this many seconds."),
]
Bound = Annotated[
    str,
    typer.Option(
        metavar="NAME", rich_help_panel=PROOF, help=f"Lower bound; one of {', '.join(BOUNDS)}."
    ),
]
Branching = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        rich_help_panel=PROOF,
        help=f"What the tree splits; one of {', '.join(BRANCHINGS)}.",
    ),
]
Selection = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        rich_help_panel=PROOF,
        help=f"Which node is split next; one of {', '.join(SELECTIONS)}.",
    ),
]
NodeLimit = Annotated[
    int, typer.Option(metavar="N", rich_help_panel=LIMITS, help="Stop after this many nodes.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N", rich_help_panel=LIMITS, help="Threads; -1, the default: one per core."
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="N", rich_help_panel=LIMITS, help="Every random choice follows from it."),
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F.json",
        rich_help_panel=OUTPUT,
        help="Write the result as JSON to this file; - prints it.",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="F",
        rich_help_panel=OUTPUT,
        help="Write the labels to this file, one per line, as --start-labels reads them.",
    ),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        rich_help_panel=OUTPUT,
        help="Write a proof that `certikmeans check` can verify.",
    ),
]
PlotFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F.png", rich_help_panel=OUTPUT, help="Draw the clusters and the progress."
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F.html",
        rich_help_panel=OUTPUT,
        help="Write a page to look at: picture, progress, clusters, pairs, what is proven.",
    ),
]
DEFAULT_SLACK = "0.001"
Slack = Annotated[
    str,
    typer.Option(
        metavar="S",
        rich_help_panel=PROOF,
        help="Certainty speaks of all labellings that cost up to this share more than the one "
        "found: 0.001, or with a percent sign, 0.1%.",
    ),
]
WithCertainty = Annotated[
    bool,
    typer.Option(
        "--certainty",
        rich_help_panel=PROOF,
        help="Say what is true of every labelling that is nearly as good (see --slack).",
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        rich_help_panel=OUTPUT,
        help="Save the state of the run to this file at intervals and at the end, for --resume.",
    ),
]
CheckpointEvery = Annotated[
    float,
    typer.Option(metavar="S", rich_help_panel=OUTPUT, help="Seconds between two saved states."),
]
ResumeFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        rich_help_panel=LIMITS,
        help="Go on from a state that --checkpoint has saved, or from a certificate.",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="No progress, no summary.")
]


def solve_command(
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
    gap: Gap = str(DEFAULT_GAP),
    time_limit: TimeLimit = None,
    bound: Bound = "auto",
    branching: Branching = "auto",
    selection: Selection = "best",
    node_limit: NodeLimit = DEFAULT_NODE_LIMIT,
    jobs: Jobs = None,
    seed: Seed = 0,
    resume: ResumeFile = None,
    output: OutputFile = None,
    labels: LabelsFile = None,
    certificate: CertificateFile = None,
    plot: PlotFile = None,
    report: ReportFile = None,
    certainty: WithCertainty = False,
    slack: Slack = DEFAULT_SLACK,
    checkpoint: CheckpointFile = None,
    checkpoint_every: CheckpointEvery = 60.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> ExitCode:
    """Cluster DATA under must-link and cannot-link constraints, with a proven lower bound.

    Results go to standard output, everything else to standard error. Ctrl-C returns the best
    labelling so far and its bound.
    """
    options = Options(
        parse_fraction(gap),
        time_limit,
        bound,
        branching,
        None if jobs == -1 else jobs,
        seed,
        node_limit,
        selection,
        keep_proof=certificate is not None,
    )
    if options.keep_proof:
        _reject_uncertifiable_bound(options.bound)

    from certikmeans.cli.inputs import Inputs, PairFiles, load
    from certikmeans.cli.run import CheckpointOptions, OutputOptions, solve_and_write

    pairs = PairFiles.of(must_link, cannot_link, constraints, partial_labels, one_based)
    inputs = Inputs(
        data,
        n_clusters,
        pairs,
        start_labels,
        labels_column,
        weights,
        header,
        columns or (),
        drop or (),
    )
    outputs = OutputOptions(
        json_file=None if output == STANDARD_STREAM else output,
        picture_file=plot,
        json_to_stdout=as_json or output == STANDARD_STREAM,
        quiet=quiet,
        base=int(one_based),
        certificate_file=certificate,
        labels_file=labels,
        report_file=report,
        title=f"certikmeans: {data.name}",
        check_command=inputs.check_command(certificate or Path("F")),
        certainty=parse_slack(slack) if certainty else None,
    )
    checkpointing = CheckpointOptions(checkpoint, checkpoint_every, resume)
    _check_before_reading(outputs, inputs, checkpointing)
    loaded = load(inputs)
    if not quiet:
        to_stderr(f"{loaded.describe()}\n")
    return solve_and_write(
        loaded.problem,
        options,
        outputs,
        start_labels=loaded.start_labels,
        classes=loaded.classes,
        feature_names=loaded.feature_names,
        checkpointing=checkpointing,
    )


def _reject_uncertifiable_bound(name: str) -> None:
    """Refuse a certificate of a bound that has no evidence, before any work is done."""
    from certikmeans.bounds.registry import BOUNDS as REGISTERED
    from certikmeans.bounds.registry import make_bound

    if name not in REGISTERED or make_bound(name).certifiable:
        return
    others = [one for one in REGISTERED if make_bound(one).certifiable]
    raise InputError(
        f"--certificate: the {name} bound has no leaf that the checker understands",
        hint=f"use --bound {', '.join(['auto', *others[:-1]])} or {others[-1]} with a certificate",
    )


def _check_before_reading(
    outputs: OutputOptions, inputs: Inputs, checkpointing: CheckpointOptions
) -> None:
    """Refuse outputs that cannot be made before any time is spent on them."""
    reject_standard_input(inputs.named())
    checkpointing.check()
    if STANDARD_STREAM in outputs.files():
        raise InputError(
            "-: only --output can go to standard output",
            hint="name a file",
        )
    check_outputs([*outputs.files(), *checkpointing.files()], inputs.named())
    if outputs.picture_file is not None:
        from certikmeans.report.plots import figure_format, require_matplotlib

        figure_format(outputs.picture_file)
        require_matplotlib()
