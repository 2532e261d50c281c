"""``certikmeans check``: verify a certificate against the points."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import select
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certikmeans._numbers import count, percent_in_full
from certikmeans.cli.inputs import (
    STANDARD_STREAM,
    Inputs,
    format_notes,
    read_constraints,
    read_numbers,
    read_table,
    with_standard_input,
)
from certikmeans.cli.parameters import (
    INPUT,
    LIMITS,
    AsJson,
    FieldOptions,
    expand_groups,
    parse_seconds,
)
from certikmeans.cli.process import ExitCode, to_stderr, to_stdout
from certikmeans.errors import InputError

if TYPE_CHECKING:
    from certikmeans.certificate import Verdict
    from certikmeans.problem import Problem
    from certikmeans.problem.io import PointTable

DEFAULT_SECONDS = "600"
MAX_STREAM_BYTES = 1 << 30  # limit for what is not a regular file

CertificatePath = Annotated[
    Path, typer.Argument(metavar="CERTIFICATE", help="Written by solve --certificate.")
]
CheckedInputs = Annotated[
    Inputs,
    FieldOptions(
        Inputs,
        only=[field.name for field in dataclasses.fields(Inputs) if field.name != "start_labels"],
        overrides={
            "data": typer.Option(
                "--data",
                metavar="DATA",
                rich_help_panel=INPUT,
                help="The points: the file that was solved.",
            ),
            "n_clusters": typer.Option(
                "-k",
                "--n-clusters",
                metavar="K",
                rich_help_panel=INPUT,
                help="Number of clusters that the certificate has to be about.",
            ),
        },
    ),
]
TimeLimit = Annotated[
    str,
    typer.Option(
        metavar="S",
        rich_help_panel=LIMITS,
        help="Refuse if it takes longer than this many seconds: a small file can require a lot "
        "of work. 0 or none: no limit.",
    ),
]


@expand_groups
def check_command(
    certificate: CertificatePath,
    inputs: CheckedInputs,
    time_limit: TimeLimit = DEFAULT_SECONDS,
    as_json: AsJson = False,
) -> ExitCode:
    """Check a certificate against the points, with code that shares nothing with the solver.

    Prints ACCEPTED (exit code 0) or REFUSED and the reason (exit code 4). Without options for
    constraints the verdict is about those in the certificate; with some, all must be the same.
    """
    seconds = parse_seconds(time_limit)
    if certificate == STANDARD_STREAM:
        certificate = Path("/dev/stdin")
    content = _read(certificate, time.monotonic() + seconds)

    import numpy as np

    from certikmeans.certificate import Limits, check_certificate

    inputs = with_standard_input(inputs)
    table = read_table(inputs)
    to_stderr(format_notes(table.notes))
    points = table.points
    weights = read_numbers(inputs.weights, table)
    stated = _stated_problem(inputs, table, weights) if inputs.names_constraints else None
    verdict = check_certificate(
        points,
        content,
        n_clusters=inputs.n_clusters,
        # Without a file all are 1: the certificate does not choose them.
        weights=np.ones(len(points)) if weights is None else weights,
        limits=Limits(deadline=time.monotonic() + seconds),
        must_link=None if stated is None else stated.must_link,
        cannot_link=None if stated is None else stated.cannot_link,
        constraints=None if stated is None else stated.other_arrays(),
    )
    to_stdout(_document(verdict) if as_json else describe(verdict))
    return ExitCode.GAP_REACHED if verdict.accepted else ExitCode.REFUSED


def _stated_problem(inputs: Inputs, table: PointTable, weights: Any) -> Problem:
    """Return the problem that the options state; without -k, for as many clusters as it takes."""
    from certikmeans.problem import Problem

    n_clusters = inputs.n_clusters or table.n_clusters_hint
    if n_clusters is None and (inputs.size_min or inputs.size_max or inputs.balanced):
        raise InputError(
            "the number of clusters is missing, which sizes are about", hint="add -k K"
        )
    found = read_constraints(inputs, table, weights, n_clusters or 1)
    return Problem.from_data(table.points, n_clusters or 1, weights=weights, **found.arguments)


def _read(path: Path, deadline: float) -> bytes:
    """Read the file; a pipe or device only until the deadline, and up to a limited size."""
    try:
        if path.is_file():
            return path.read_bytes()
        return _read_stream(path, deadline)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error})",
            hint="name a file written by certikmeans solve --certificate",
        ) from error


def _read_stream(path: Path, deadline: float) -> bytes:
    # Opened so that a pipe without a writer does not block; waiting is left to select.
    stream = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    pieces: list[bytes] = []
    size = 0
    try:
        while size <= MAX_STREAM_BYTES:
            wait = None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
            if not select.select([stream], [], [], wait)[0]:
                raise InputError(
                    f"{path}: no data arrived through this pipe within the time limit",
                    hint="name a file, or start the program that writes to the pipe first",
                )
            piece = os.read(stream, 1 << 20)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
    finally:
        os.close(stream)
    raise InputError(
        f"{path}: is not a file, and yields more than {MAX_STREAM_BYTES:,} bytes",
        hint="name a file written by certikmeans solve --certificate",
    )


def _document(verdict: Verdict) -> str:
    document: dict[str, Any] = {
        "accepted": verdict.accepted,
        "proven": verdict.accepted,  # if False, the numbers below are claims of the certificate
        "reason": str(verdict.reason),
        "message": verdict.message,
        "cost": _finite(verdict.cost),
        "lower_bound": _finite(verdict.lower_bound),
        "gap": verdict.gap,
        **verdict.details,
    }
    return json.dumps(document, allow_nan=False) + "\n"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def describe(verdict: Verdict) -> str:
    """Describe the verdict in a few lines."""
    if not verdict.accepted:
        return f"REFUSED ({verdict.reason}): {verdict.message}\n"
    details = verdict.details
    facts = (
        f"  {count(details['n_points'], 'point')} in {count(details['n_clusters'], 'cluster')}, "
        f"{count(details['n_must_link'], 'must-link')} and "
        f"{count(details['n_cannot_link'], 'cannot-link')}"
        f"{', weighted' if details['weighted'] else ''}\n"
        f"{_constraints(details)}"
    )
    if verdict.gap is None:
        return f"ACCEPTED: no labelling respects every constraint\n{facts}"
    leaves = f"{details['leaves']:,} {'leaf' if details['leaves'] == 1 else 'leaves'}"
    boxes = f"{details['boxes']:,} {'box' if details['boxes'] == 1 else 'boxes'}"
    work = f"{leaves}, {boxes}, {details['seconds']:.2f} s"
    return (
        f"ACCEPTED: the claim is proven for these points\n{facts}"
        f"  cost         {verdict.cost!r}\n"
        f"  lower bound  {verdict.lower_bound!r}\n"
        f"  gap          {100.0 * verdict.gap:.6f} %\n"
        f"{_certain(details)}"
        f"  checked      {work}\n"
    )


def _constraints(details: dict[str, Any]) -> str:
    """Describe the constraints beside hard pairs, if there are any."""
    found = details.get("constraints")
    if found is None:
        return ""
    parts = []
    if found["sets"]:
        parts.append(count(found["sets"], "cannot-link set"))
    kind = "demand" if found["demands"] else "size"
    parts += [
        f"cluster {kind} at {word} {found[name]}"
        for name, word in (("size_min", "least"), ("size_max", "most"))
        if name in found
    ]
    for name in ("soft must-link", "soft cannot-link"):
        number = found[f"{name.replace(' ', '_').replace('-', '_')}s"]
        if number:
            parts.append(count(number, name))
    return f"  with {', '.join(parts)}\n"


def _certain(details: dict[str, Any]) -> str:
    """Describe the claim about every labelling that is nearly as good, if there is one."""
    claim = details.get("certainty")
    if claim is None:
        return ""
    return (
        f"  certain      {claim['certain']:,} of {details['n_points']:,} points in every labelling "
        f"within {percent_in_full(float(claim['slack']))} of the cost\n"
    )
