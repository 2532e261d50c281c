"""``certikmeans generate``: random instances, to try things out and to repeat experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certikmeans.cli.exits import ExitCode, to_stderr, to_stdout
from certikmeans.errors import InputError


def generate_command(
    prefix: Annotated[
        Path,
        typer.Argument(
            metavar="PREFIX",
            help="Writes PREFIX.csv, PREFIX.labels.txt and PREFIX.pairs.txt; "
            "PREFIX.npy stores the points as an array.",
            show_default=False,
        ),
    ],
    n_points: Annotated[
        int, typer.Option(metavar="N", help="Number of points.", show_default=False)
    ],
    n_features: Annotated[int, typer.Option(metavar="D", help="Number of features.")] = 2,
    n_clusters: Annotated[int, typer.Option(metavar="K", help="Number of clusters.")] = 3,
    spread: Annotated[
        float,
        typer.Option(metavar="S", help="Standard deviation; centres are within -10 and 10."),
    ] = 1.0,
    must_link: Annotated[
        int, typer.Option(metavar="M", help="How many pairs inside clusters to draw.")
    ] = 0,
    cannot_link: Annotated[
        int, typer.Option(metavar="C", help="How many pairs across clusters to draw.")
    ] = 0,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Equal seeds give equal files.")
    ] = 1,
) -> ExitCode:
    """Write random points around random centres, and pairs that agree with their clusters."""
    from certikmeans.generate import gaussian_clusters, random_pairs, write_instance

    points, labels = gaussian_clusters(n_points, n_features, n_clusters, spread=spread, seed=seed)
    must, cannot = random_pairs(labels, must_link, cannot_link, seed=seed)
    try:
        files = write_instance(prefix, points, labels, must, cannot)
    except OSError as error:
        raise InputError(
            f"{error.filename or prefix}: could not be written ({error.strerror or error})",
            hint="choose a prefix in a directory in which files can be created",
        ) from error
    to_stdout(f"{files.points}\n{files.labels}\n{files.pairs}\n")
    to_stderr(
        f"now: certikmeans solve {files.points} -k {n_clusters} --constraints {files.pairs}\n"
    )
    return ExitCode.GAP_REACHED
