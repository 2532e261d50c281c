"""Command line: commands, their options and exit codes.

Nothing heavy is imported here, so that ``certikmeans --help`` is fast; each command imports what
it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from certikmeans._version import __version__
from certikmeans.cli.auxiliary import demo_command, generate_command, warm_up_command
from certikmeans.cli.certainty import ask_command, certainty_command
from certikmeans.cli.check import check_command
from certikmeans.cli.diagnose import diagnose_command
from certikmeans.cli.parameters import StrictCommand
from certikmeans.cli.process import (
    ExitCode,
    install_sigterm_handler,
    install_warning_format,
    redirect_closed_streams,
    with_exit_codes,
)
from certikmeans.cli.solve import solve_command

__all__ = ["app", "main"]

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="k-means under constraints, with a proven lower bound.",
)

_SOLVE_EPILOG = (
    "Exit codes: 0 the gap was reached; 1 stopped before that, the best labelling is returned; "
    "2 bad usage or input; 3 no labelling respects the constraints; 70 a bug in certikmeans; "
    "130 interrupted before there was a result."
)
_CHECK_EPILOG = (
    "Exit codes: 0 accepted; 2 bad usage or input; 4 refused; 70 a bug in certikmeans; "
    "130 interrupted."
)
_DIAGNOSE_EPILOG = (
    "Exit codes: 0 the pairs can all hold; 1 not known; 2 bad usage or input; 3 they cannot."
)

_COMMANDS: dict[str, tuple[Callable[..., ExitCode], str, str | None]] = {
    "solve": (
        solve_command,
        "Cluster points under constraints, with proof.",
        _SOLVE_EPILOG,
    ),
    "check": (check_command, "Check a certificate against the points.", _CHECK_EPILOG),
    "certainty": (certainty_command, "Which labels can be trusted, proven.", _SOLVE_EPILOG),
    "ask": (ask_command, "Which pairs an expert should label next.", _SOLVE_EPILOG),
    "diagnose": (
        diagnose_command,
        "Find contradictions among pairs, and which to remove.",
        _DIAGNOSE_EPILOG,
    ),
    "generate": (generate_command, "Write a random instance to files.", None),
    "demo": (demo_command, "Solve a bundled example and draw a figure.", None),
    "warm-up": (warm_up_command, "Compile all kernels.", None),
}
for _name, (_command, _short_help, _epilog) in _COMMANDS.items():
    app.command(
        _name,
        cls=StrictCommand,
        short_help=_short_help,
        epilog=_epilog,
        no_args_is_help=_name not in ("demo", "warm-up"),
    )(with_exit_codes(_command))


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"certikmeans {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    redirect_closed_streams()
    install_sigterm_handler()
    install_warning_format()
    app(prog_name="certikmeans")
