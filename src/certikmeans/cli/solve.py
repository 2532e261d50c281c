"""``certikmeans solve``: the best labelling of points under pairs, and its proven bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certikmeans.cli.inputs import STANDARD_STREAM, InputOptions, load
from certikmeans.cli.outputs import WRITERS, OutputFiles, OutputOptions, check_outputs
from certikmeans.cli.parameters import (
    DEFAULT_SLACK,
    PROOF,
    AsJson,
    Quiet,
    Slack,
    SolverOptions,
    expand_groups,
    parse_slack,
)
from certikmeans.cli.process import ExitCode, to_stderr
from certikmeans.cli.run import Checkpointing, solve_and_write
from certikmeans.errors import InputError

WithCertainty = Annotated[
    bool,
    typer.Option(
        "--certainty",
        rich_help_panel=PROOF,
        help="Report what holds for every labelling that is nearly as good (see --slack).",
    ),
]


@expand_groups
def solve_command(
    inputs: InputOptions,
    options: SolverOptions,
    files: OutputFiles,
    checkpointing: Checkpointing,
    certainty: WithCertainty = False,
    slack: Slack = DEFAULT_SLACK,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> ExitCode:
    """Cluster DATA under constraints, with a proven lower bound.

    Results go to standard output, everything else to standard error. Without --time-limit the
    run ends by itself: bounds are raised as long as that pays, then a tree is searched for about
    ten seconds of work. Ctrl-C returns the best labelling so far and its bound.
    """
    if "certificate" in files:
        options = options.changed(keep_proof=True)
        _reject_uncertifiable_bound(options.bound)
    streamed = [name for name, path in files.items() if path == STANDARD_STREAM]
    for name in streamed:
        if name not in ("output", "labels"):
            raise InputError(
                f"--{name} -: only --output and --labels can go to standard output",
                hint="name a file",
            )
        del files[name]
    if len(streamed) + as_json > 1:
        raise InputError(
            "standard output is named twice as an output", hint="name a file for one of them"
        )
    outputs = OutputOptions(
        files=files,
        json_to_stdout=as_json or "output" in streamed,
        labels_to_stdout="labels" in streamed,
        quiet=quiet,
        base=inputs.base,
        title=f"certikmeans: {inputs.data.name}",
        check_command=inputs.check_command(files.get("certificate", Path("F"))),
        slack=parse_slack(slack) if certainty else None,
    )
    # Reject outputs that cannot be written before any time is spent on them.
    checkpointing.check()
    check_outputs([*files.values(), *checkpointing.paths()], inputs.paths())
    for name, path in files.items():
        check = WRITERS[name].check
        if check is not None:
            check(path)
    loaded = load(inputs)
    if not quiet:
        to_stderr(f"{loaded.describe()}\n")
    return solve_and_write(loaded, options, outputs, checkpointing)


def _reject_uncertifiable_bound(name: str) -> None:
    """Reject a certificate of a bound that has no evidence, before any work is done."""
    from certikmeans.bounds.registry import BOUNDS, make_bound

    if name not in BOUNDS or make_bound(name).certifiable:
        return
    others = [one for one in BOUNDS if make_bound(one).certifiable]
    raise InputError(
        f"--certificate: the verifier cannot check the {name} bound",
        hint=f"use --bound {', '.join(['auto', *others[:-1]])} or {others[-1]} with a certificate",
    )
