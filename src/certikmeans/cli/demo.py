"""``certikmeans demo``: the bundled example, from data to picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certikmeans.cli.exits import ExitCode, to_stderr, to_stdout
from certikmeans.cli.outputs import check_outputs
from certikmeans.errors import InputError, MissingExtraError
from certikmeans.options import Options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certikmeans.problem import Problem

_INTRODUCTION = """\
certikmeans demo: 150 iris flowers, 50 of each of 3 species, described by 4 measurements.
{must} pairs of flowers are known to be of the same species (must-link), {cannot} pairs to be of
different ones (cannot-link). Wanted: the 3 clusters with the least total squared distance to
their centres among those that respect every pair, and a proof of how good they are.
"""


def demo_command(
    output_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the result and the picture go.")
    ] = Path("demo-output"),
) -> ExitCode:
    """Solve a bundled example, iris with 80 pairs: result, picture and certificate."""
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

    from certikmeans.cli.run import Delivery, run_and_deliver

    problem, species = iris_with_pairs()
    to_stderr(
        _INTRODUCTION.format(must=len(problem.must_link), cannot=len(problem.cannot_link)) + "\n"
    )
    can_draw = _can_draw()
    code = run_and_deliver(
        problem,
        Options(keep_proof=True),
        Delivery(
            json_file=json_file,
            picture_file=picture_file if can_draw else None,
            json_to_stdout=False,
            quiet=False,
            certificate_file=certificate_file,
        ),
        classes=species,
    )
    if code is not ExitCode.BAD_INPUT:
        _check(problem, certificate_file)
    # A demo that ran is a success, whatever it could prove.
    return code if code is ExitCode.BAD_INPUT else ExitCode.GAP_REACHED


def _check(problem: Problem, certificate_file: Path) -> None:
    """Let the independent checker have the last word."""
    from certikmeans.certificate import check_certificate
    from certikmeans.cli.check import describe

    verdict = check_certificate(problem.points, certificate_file.read_bytes())
    to_stdout(f"\nThe independent checker says {describe(verdict)}")


def iris_with_pairs() -> tuple[Problem, NDArray[np.int64]]:
    """Return the example and the species of each flower."""
    from importlib.resources import as_file, files

    from sklearn.datasets import load_iris

    from certikmeans.problem import Problem
    from certikmeans.problem.files import read_links

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
        to_stderr(f"no picture will be drawn: {error.message}\nhint: {error.hint}\n")
        return False
    return True
