"""``certikmeans solve``: points and pairs in, the best labelling and its proven bound out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certikmeans.cli.exits import ExitCode, to_stderr
from certikmeans.cli.outputs import check_outputs
from certikmeans.errors import InputError
from certikmeans.options import (
    BOUNDS,
    BRANCHINGS,
    DEFAULT_GAP,
    DEFAULT_NODE_LIMIT,
    SELECTIONS,
    Options,
)

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
        help="Number of clusters. May be left out if DATA states it.",
    ),
]
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
        help="A column of DATA that holds known classes: not a feature, only compared with "
        "the clusters.",
    ),
]
StartLabels = Annotated[
    Path | None,
    typer.Option(metavar="F", help="A labelling to start from, one cluster number per line."),
]
Gap = Annotated[
    float, typer.Option(metavar="G", help="Stop once proven within this share of the optimum.")
]
TimeLimit = Annotated[float | None, typer.Option(metavar="S", help="Stop after this many seconds.")]
Bound = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"Lower bound; one of {', '.join(BOUNDS)}."),
]
Branching = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"What the tree splits; one of {', '.join(BRANCHINGS)}."),
]
Selection = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"Which node is split next; one of {', '.join(SELECTIONS)}."),
]
NodeLimit = Annotated[int, typer.Option(metavar="N", help="Stop after this many nodes.")]
Jobs = Annotated[int | None, typer.Option(metavar="N", help="Threads; by default one per core.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Every random choice follows from it.")]
OutputFile = Annotated[
    Path | None, typer.Option(metavar="F.json", help="Write the result to this file.")
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(metavar="F", help="Write a proof that `certikmeans check` can verify."),
]
PlotFile = Annotated[
    Path | None, typer.Option(metavar="F.png", help="Draw the clusters and the progress.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")]


UNCERTIFIED = ("grouped",)


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
    gap: Gap = DEFAULT_GAP,
    time_limit: TimeLimit = None,
    bound: Bound = "auto",
    branching: Branching = "auto",
    selection: Selection = "best",
    node_limit: NodeLimit = DEFAULT_NODE_LIMIT,
    jobs: Jobs = None,
    seed: Seed = 0,
    output: OutputFile = None,
    certificate: CertificateFile = None,
    plot: PlotFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> ExitCode:
    """Cluster DATA under must-link and cannot-link constraints, with a proven lower bound.

    Results go to standard output, everything else to standard error. Ctrl-C returns the best
    labelling so far and its bound.
    """
    if certificate is not None and bound in UNCERTIFIED:
        raise _no_certificate(bound)
    options = Options(
        gap,
        time_limit,
        bound,
        branching,
        jobs,
        seed,
        node_limit,
        selection,
        keep_proof=certificate is not None,
    )
    named = (data, must_link, cannot_link, constraints, partial_labels, start_labels)
    outputs = [path for path in (output, plot, certificate) if path is not None]
    _check_before_reading(outputs, plot, [path for path in named if path is not None])

    from certikmeans.cli.inputs import Inputs, load
    from certikmeans.cli.run import Delivery, run_and_deliver

    loaded = load(
        Inputs(
            data=data,
            n_clusters=n_clusters,
            must_link=must_link,
            cannot_link=cannot_link,
            constraints=constraints,
            partial_labels=partial_labels,
            start_labels=start_labels,
            labels_column=labels_column,
            one_based=one_based,
        )
    )
    if not quiet:
        to_stderr(f"{loaded.describe()}\n")
    return run_and_deliver(
        loaded.problem,
        options,
        Delivery(
            output,
            plot,
            json_to_stdout=as_json,
            quiet=quiet,
            base=int(one_based),
            certificate_file=certificate,
        ),
        start_labels=loaded.start_labels,
        classes=loaded.classes,
    )


def _no_certificate(bound: str) -> InputError:
    return InputError(
        f"--certificate: the {bound} bound has no leaf that the checker understands",
        hint="use --bound auto, cluster or sample with a certificate",
    )


def _check_before_reading(outputs: list[Path], plot: Path | None, inputs: list[Path]) -> None:
    """Refuse outputs that cannot be made before any time is spent on them."""
    check_outputs(outputs, inputs)
    if plot is not None:
        from certikmeans.report.plots import picture_format, require_matplotlib

        picture_format(plot)
        require_matplotlib()
