"""The command line: parse, call, print, exit code.

Nothing heavy is imported here, so that ``certikmeans --help`` answers at once; each command
imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from certikmeans._version import __version__
from certikmeans.cli.auxiliary import demo_command, generate_command, warm_up_command
from certikmeans.cli.certainty import ask_command, certainty_command
from certikmeans.cli.check import check_command
from certikmeans.cli.diagnose import diagnose_command
from certikmeans.cli.parameters import StrictCommand
from certikmeans.cli.process import (
    install_sigterm_handler,
    install_warning_format,
    redirect_closed_streams,
    use_one_thread_if_memory_limited,
    with_exit_codes,
)
from certikmeans.cli.solve import solve_command

__all__ = ["app", "main"]

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="k-means under must-link and cannot-link constraints, with a proven lower bound.",
)

_SOLVE_EPILOG = (
    "Exit codes: 0 the gap was reached; 1 stopped before that, the best labelling is returned; "
    "2 bad usage or input; 3 no labelling respects the pairs; 70 a bug in certikmeans; "
    "130 interrupted before there was a result."
)
_CHECK_EPILOG = (
    "Exit codes: 0 accepted; 2 bad usage or input; 4 refused; 70 a bug in certikmeans; "
    "130 interrupted."
)
_DIAGNOSE_EPILOG = (
    "Exit codes: 0 the pairs can all hold; 1 not known; 2 bad usage or input; 3 they cannot."
)

app.command(
    "solve",
    cls=StrictCommand,
    short_help="Cluster points under pairs, with a proven bound.",
    epilog=_SOLVE_EPILOG,
    no_args_is_help=True,
)(with_exit_codes(solve_command))
app.command(
    "check",
    cls=StrictCommand,
    short_help="Check a certificate against the points.",
    epilog=_CHECK_EPILOG,
    no_args_is_help=True,
)(with_exit_codes(check_command))
app.command(
    "certainty",
    cls=StrictCommand,
    short_help="Which labels can be trusted, proven.",
    epilog=_SOLVE_EPILOG,
    no_args_is_help=True,
)(with_exit_codes(certainty_command))
app.command(
    "ask",
    cls=StrictCommand,
    short_help="Which pairs to ask an expert for.",
    epilog=_SOLVE_EPILOG,
    no_args_is_help=True,
)(with_exit_codes(ask_command))
app.command(
    "diagnose",
    cls=StrictCommand,
    short_help="Find contradictions among pairs, and which to remove.",
    epilog=_DIAGNOSE_EPILOG,
    no_args_is_help=True,
)(with_exit_codes(diagnose_command))
app.command(
    "generate",
    cls=StrictCommand,
    short_help="Write a random instance to files.",
    no_args_is_help=True,
)(with_exit_codes(generate_command))
app.command("demo", cls=StrictCommand, short_help="Solve a bundled example and draw a picture.")(
    with_exit_codes(demo_command)
)
app.command("warm-up", cls=StrictCommand, short_help="Compile everything now.")(
    with_exit_codes(warm_up_command)
)


def _show_version(asked: bool) -> None:
    if asked:
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
    use_one_thread_if_memory_limited()
    app(prog_name="certikmeans")
