"""Resuming from a checkpoint: what is still valid for this problem and these options."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count, rounded_down
from certikmeans.checkpoint.file import (
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

# Settings that decide on the course of a run. Limits and the number of threads do not.
TRAJECTORY_OPTIONS = ("gap", "bound", "branching", "selection", "seed", "keep_proof")


@final
@dataclass(frozen=True, slots=True, eq=False)
class BestKnown:
    """The best labelling and the best bound: they hold whoever goes on, and however."""

    labels: NDArray[np.int64] | None
    iterations: int
    lower_bound: float
    bound_source: str
    nodes: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class ResumeState:
    """What a run begins with.

    Attributes
    ----------
    options : Options
        Those of the call; what it left at its default is as it was in the run before.
    essence : Essence
        Labelling and bound.
    state : SolverSnapshot or None
        Everything else; None: it begins anew.
    restart_reason : str or None
        Why, in a clause.
    proof : Proof or None
        Of the bound, where a checker has accepted one.
    """

    options: Options
    essence: BestKnown
    state: Any
    restart_reason: str | None = None
    proof: Proof | None = None

    def describe(self) -> str:
        """What the run goes on from, in a line."""
        nodes = count(self.essence.nodes, "node")
        lower = rounded_down(self.essence.lower_bound)
        if self.state is not None:
            return f"going on after {nodes}, lower bound {lower}"
        return (
            f"labelling and bound ({lower}) are kept, the rest begins anew: {self.restart_reason}"
        )


def resume(path: str | os.PathLike[str], problem: Problem, options: Options) -> ResumeState:
    """Read a checkpoint of the same problem, and say what of it holds with these options."""
    content = read_file(path)
    if is_certificate(content):
        from certikmeans.checkpoint.from_certificate import from_certificate

        return from_certificate(content, path, problem, options)
    found = decode(content, path)
    difference = found.fingerprint.difference(ProblemFingerprint.of(problem))
    if difference is not None:
        raise InputError(
            f"{path}: is a checkpoint of another problem: {difference}",
            hint="resume with the same points, pairs, weights and number of clusters, in the same "
            "order",
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
    """Options, with the course of the run before where they are at their defaults."""
    usual = {field.name: field.default for field in fields(Options)}
    before = {
        name: found.options[name]
        for name in TRAJECTORY_OPTIONS
        if name in found.options and getattr(options, name) == usual[name]
    }
    return options.changed(**before)
