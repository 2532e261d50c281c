"""``certikmeans warm-up``: compile the kernels now, for images, clusters and impatient users."""

from __future__ import annotations

from typing import Annotated

import typer

from certikmeans.cli.exits import ExitCode, to_stderr


def warm_up_command(
    bound: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compile this bound alone; may be given several times. By default, all of them.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> ExitCode:
    """Compile everything now, so that no later run has to."""
    from certikmeans.compiling.clock import CLOCK
    from certikmeans.compiling.listening import Compiling, kernels_compiled, watched
    from certikmeans.warming import warm_up

    def show(news: Compiling) -> None:
        if not quiet:
            to_stderr(f"compiling kernel {news.number}: {news.kernel}\n")

    with watched(show):
        warm_up(bound)
    if not quiet:
        to_stderr(f"{kernels_compiled()} kernels compiled in {CLOCK.lost():.0f} s\n")
    return ExitCode.GAP_REACHED
