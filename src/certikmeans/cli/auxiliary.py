"""Auxiliary commands: ``demo``, ``generate`` and ``warm-up``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certikmeans.cli.inputs import LoadedInputs
from certikmeans.cli.outputs import OutputOptions, check_outputs
from certikmeans.cli.process import ExitCode, to_stderr, to_stdout
from certikmeans.errors import InputError, MissingExtraError
from certikmeans.options import Options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certikmeans.problem import Problem


_INTRODUCTION = """\
certikmeans demo: 150 iris flowers, 50 of each of 3 species, described by 4 measurements.
{must} pairs of flowers are known to be of the same species (must-link), {cannot} pairs to be of
different ones (cannot-link). Find the 3 clusters that respect every pair with the smallest sum
of squared distances to their centres, and prove how good they are.
"""


def demo_command(
    output_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory for result, figure and certificate.")
    ] = Path("demo-output"),
) -> ExitCode:
    """Solve a bundled example, iris with 80 pairs: result, figure and certificate."""
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{output_dir}: cannot be created ({error.strerror})",
            hint="choose another directory with --output-dir",
        ) from error
    json_file, picture_file = output_dir / "iris.json", output_dir / "iris.png"
    certificate_file = output_dir / "iris.certificate"
    check_outputs([json_file, picture_file, certificate_file])

    from certikmeans.cli.run import solve_and_write

    problem, species = iris_with_pairs()
    to_stderr(
        _INTRODUCTION.format(must=len(problem.must_link), cannot=len(problem.cannot_link)) + "\n"
    )
    files = {"output": json_file, "certificate": certificate_file}
    if _can_draw():
        files["plot"] = picture_file
    code = solve_and_write(
        LoadedInputs(problem, classes=species, start_labels=None),
        Options(keep_proof=True),
        OutputOptions(files=files),
    )
    if code is not ExitCode.BAD_INPUT:
        _verify(problem, certificate_file)
    # A demo that ran is a success, whatever gap it reached.
    return code if code is ExitCode.BAD_INPUT else ExitCode.GAP_REACHED


def _verify(problem: Problem, certificate_file: Path) -> None:
    """Verify the certificate of the demo."""
    from certikmeans.certificate import check_certificate
    from certikmeans.cli.check import describe

    verdict = check_certificate(problem.points, certificate_file.read_bytes())
    to_stdout(f"\nIndependent verifier: {describe(verdict)}")


def iris_with_pairs() -> tuple[Problem, NDArray[np.int64]]:
    """Return the example and the species of each flower."""
    from importlib.resources import as_file, files

    from sklearn.datasets import load_iris

    from certikmeans.problem import Problem
    from certikmeans.problem.io import read_links

    points, species = load_iris(return_X_y=True)
    with as_file(files("certikmeans") / "data" / "iris_pairs.txt") as path:
        pairs = read_links(path)
    problem = Problem.from_data(
        points, n_clusters=3, must_link=pairs.must, cannot_link=pairs.cannot
    )
    return problem, species


def _can_draw() -> bool:
    from certikmeans.report.plots import require_matplotlib

    try:
        require_matplotlib()
    except MissingExtraError as error:
        to_stderr(f"no figure will be drawn: {error.message}\nhint: {error.hint}\n")
        return False
    return True


# ``certikmeans generate``: random instances.


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
        float, typer.Option(metavar="S", help="Standard deviation; centres are within -10 and 10.")
    ] = 1.0,
    must_link: Annotated[
        int, typer.Option(metavar="M", help="Number of pairs inside clusters.")
    ] = 0,
    cannot_link: Annotated[
        int, typer.Option(metavar="C", help="Number of pairs across clusters.")
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
        f"next: certikmeans solve {files.points} -k {n_clusters} --constraints {files.pairs}\n"
    )
    return ExitCode.GAP_REACHED


# ``certikmeans warm-up``: compile the kernels, for container images and clusters.


def warm_up_command(
    bound: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compile only this bound; may be given several times. By default, all bounds.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No messages.")] = False,
) -> ExitCode:
    """Compile all kernels, so that no later run has to."""
    from certikmeans._jit.clock import CLOCK
    from certikmeans._jit.compile_events import (
        KernelCompilation,
        kernels_compiled,
        watch_compilation,
    )
    from certikmeans.warmup import warm_up

    def show(event: KernelCompilation) -> None:
        if not quiet:
            to_stderr(f"compiling kernel {event.number}: {event.kernel}\n")

    with watch_compilation(show):
        warm_up(bound)
    if not quiet:
        to_stderr(f"{kernels_compiled()} kernels compiled in {CLOCK.excluded():.0f} s\n")
    return ExitCode.GAP_REACHED
