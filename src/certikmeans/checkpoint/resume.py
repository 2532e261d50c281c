"""Read a checkpoint and keep what is valid for this problem and these options."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, final

from certikmeans._numbers import count, rounded_down
from certikmeans.checkpoint.file import (
    BestKnown,
    Checkpoint,
    ProblemFingerprint,
    decode,
    is_certificate,
    read_file,
)
from certikmeans.errors import InputError
from certikmeans.options import Options
from certikmeans.proof import Proof

if TYPE_CHECKING:
    from certikmeans.problem import Problem

# Options that determine the trajectory of a run. Limits and the number of threads do not.
TRAJECTORY_OPTIONS = ("gap", "bound", "branching", "selection", "seed", "keep_proof")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ResumeState:
    """Checkpoint from which a run continues.

    Attributes
    ----------
    options : Options
        Those of the call; options left at their default are those of the earlier run.
    essence : BestKnown
        Incumbent and bound.
    state : SolverSnapshot or None
        Everything else; None if only incumbent and bound are used.
    restart_reason : str or None
        Reason for which the rest is computed again.
    proof : Proof or None
        Proof of the bound, if it comes from a certificate that was accepted.
    """

    options: Options
    essence: BestKnown
    state: Any
    restart_reason: str | None = None
    proof: Proof | None = None

    def describe(self) -> str:
        """Describe in a line what the run continues from."""
        nodes = count(self.essence.nodes, "node")
        lower = rounded_down(self.essence.lower_bound)
        if self.state is not None:
            return f"going on after {nodes}, lower bound {lower}"
        again = f"the rest is computed again: {self.restart_reason}"
        return f"labelling and bound ({lower}) are kept, {again}"


def resume(path: str | os.PathLike[str], problem: Problem, options: Options) -> ResumeState:
    """Read a checkpoint of the same problem; keep what is valid with these options."""
    content = read_file(path)
    if is_certificate(content):
        from certikmeans.checkpoint.from_certificate import from_certificate

        return from_certificate(content, path, problem, options)
    found = decode(content, path)
    difference = found.fingerprint.difference(ProblemFingerprint.of(problem))
    if difference is not None:
        raise InputError(
            f"{path}: is a checkpoint of another problem: {difference}",
            hint="resume with the same points, constraints, weights and number of clusters, in the "
            "same order",
        )
    options = _with_saved_options(options, found)
    changed = [
        name for name in TRAJECTORY_OPTIONS if getattr(options, name) != found.options.get(name)
    ]
    if not found.same_code:
        return ResumeState(options, found.essence, None, "another version of the program wrote it")
    if changed:
        names = ", ".join(name.replace("_", " ") for name in changed)
        return ResumeState(options, found.essence, None, f"settings have changed: {names}")
    return ResumeState(options, found.essence, found.state)


def _with_saved_options(options: Options, found: Checkpoint) -> Options:
    """Return options, those at their default replaced by those of the earlier run."""
    defaults = {field.name: field.default for field in fields(Options)}
    saved = {
        name: found.options[name]
        for name in TRAJECTORY_OPTIONS
        if name in found.options and getattr(options, name) == defaults[name]
    }
    return options.changed(**saved)
