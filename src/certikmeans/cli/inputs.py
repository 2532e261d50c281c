"""From the files named on the command line to a `Problem`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.cli.process import with_option_names
from certikmeans.errors import InputError
from certikmeans.problem import Problem
from certikmeans.problem.constraints import Constraints
from certikmeans.problem.io import (
    PointTable,
    read_links,
    read_partial_labels,
    read_points,
    read_weights,
)
from certikmeans.problem.io.text import format_list, quote
from certikmeans.report.numbers import count


@final
@dataclass(frozen=True, slots=True)
class PairFiles:
    """The files of pairs that were named on the command line."""

    must_link: Sequence[Path] = ()
    cannot_link: Sequence[Path] = ()
    constraints: Sequence[Path] = ()
    partial_labels: Path | None = None
    one_based: bool = False

    @classmethod
    def of(
        cls,
        must_link: Sequence[Path] | None,
        cannot_link: Sequence[Path] | None,
        constraints: Sequence[Path] | None,
        partial_labels: Path | None,
        one_based: bool,
    ) -> PairFiles:
        """From the options: None for one that was not given."""
        return cls(must_link or (), cannot_link or (), constraints or (), partial_labels, one_based)

    def named(self) -> list[Path]:
        """Return those that were named."""
        labels = [] if self.partial_labels is None else [self.partial_labels]
        return [*self.must_link, *self.cannot_link, *self.constraints, *labels]


@final
@dataclass(frozen=True, slots=True)
class Inputs:
    """What was named on the command line."""

    data: Path
    n_clusters: int | None = None
    pairs: PairFiles = PairFiles()
    start_labels: Path | None = None
    labels_column: str | None = None
    weights: Path | None = None
    header: str = "auto"
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()

    def check_command(self, certificate: Path) -> str:
        """Return the command that checks a certificate about these inputs."""
        words = ["certikmeans", "check", str(certificate), "--data", str(self.data)]
        if self.n_clusters is not None:
            words += ["-k", str(self.n_clusters)]
        for option, values in (
            ("--must-link", self.pairs.must_link),
            ("--cannot-link", self.pairs.cannot_link),
            ("--constraints", self.pairs.constraints),
            ("--columns", self.columns),
            ("--drop", self.drop),
        ):
            for value in values:
                words += [option, str(value)]
        for option, one in (
            ("--partial-labels", self.pairs.partial_labels),
            ("--labels-column", self.labels_column),
            ("--weights", self.weights),
            ("--header", None if self.header == "auto" else self.header),
        ):
            if one is not None:
                words += [option, str(one)]
        return shlex.join(words + ["--one-based"] * self.pairs.one_based)

    def named(self) -> list[Path]:
        """Return every file."""
        others = (self.start_labels, self.weights)
        return [self.data, *self.pairs.named(), *(path for path in others if path is not None)]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LoadedInputs:
    """What the files contain."""

    problem: Problem
    classes: NDArray[Any] | None  # as PointTable.labels
    start_labels: NDArray[np.int64] | None
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def describe(self) -> str:
        """Say in one line what was read, after a line for everything that was a guess."""
        problem = self.problem
        named = f" ({format_list(self.feature_names, limit=8)})" if self.feature_names else ""
        weighted = "" if np.all(problem.weights == 1.0) else "weighted "
        return (
            f"{format_notes(self.notes)}read {count(problem.n_points, f'{weighted}point')} with "
            f"{count(problem.n_features, 'feature')}{named}, "
            f"{count(len(problem.must_link), 'must-link')} and "
            f"{count(len(problem.cannot_link), 'cannot-link')}; "
            f"looking for {count(problem.n_clusters, 'cluster')}"
        )


def format_notes(notes: Sequence[str]) -> str:
    """A line for everything that was a guess."""
    return "".join(f"note: {with_option_names(note)}\n" for note in notes)


def load(inputs: Inputs) -> LoadedInputs:
    """Read every file and check them against each other."""
    table = read_table(
        inputs.data, inputs.labels_column, inputs.header, inputs.columns, inputs.drop
    )
    n_points = len(table.points)
    pairs = read_pairs(inputs.pairs, n_points)
    n_clusters = inputs.n_clusters if inputs.n_clusters is not None else table.n_clusters_hint
    if n_clusters is None:
        raise InputError(
            f"the number of clusters is missing: {inputs.data} does not state it",
            hint="add -k K",
        )
    weights = None
    if inputs.weights is not None:
        weights = read_weights(inputs.weights, n_points=n_points)
    problem = Problem.from_data(
        table.points,
        n_clusters,
        must_link=pairs.must_link,
        cannot_link=pairs.cannot_link,
        weights=weights,
    )
    start = None
    if inputs.start_labels is not None:
        start = _start_labels(inputs.start_labels, n_points)
    return LoadedInputs(problem, table.labels, start, table.feature_names, table.notes)


def read_table(
    data: Path,
    labels_column: str | None,
    header: str,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
) -> PointTable:
    """Read the points."""
    kind: Any = header  # the reader says what is wrong with it
    return read_points(data, label_column=labels_column, header=kind, columns=columns, drop=drop)


def read_pairs(files: PairFiles, n_points: int) -> Constraints:
    """Collect the pairs of all files; each file is checked alone, so that errors name its lines."""
    kinds: tuple[tuple[Sequence[Path], Literal["must", "cannot"] | None], ...] = (
        (files.must_link, "must"),
        (files.cannot_link, "cannot"),
        (files.constraints, None),
    )
    pairs = Constraints(n_points=n_points)
    for paths, kind in kinds:
        for path in paths:
            found = read_links(path, kind=kind, one_based=files.one_based)
            pairs |= Constraints.from_pairs(found.must, found.cannot, n_points)
    if files.partial_labels is not None:
        labels = read_partial_labels(files.partial_labels, n_points=n_points)
        pairs |= Constraints.from_partial_labels(labels)
    return pairs


def _start_labels(path: Path, n_points: int) -> NDArray[np.int64]:
    """Read a complete labelling; whether it respects the pairs is checked by the solver."""
    labels = read_partial_labels(path)
    if len(labels) != n_points:
        raise InputError(
            f"{path}: holds {len(labels)} labels, but there are {n_points} points",
            hint="write one cluster number per line for every point, without a header",
        )
    if labels.dtype.kind not in "iu":
        row, value = next(
            (row, value)
            for row, value in enumerate(labels.tolist())
            if not str(value).removeprefix("-").isdecimal()
        )
        raise InputError(
            f"{path}: the label of point {row} (counted from 0) is {quote(value)}",
            hint="a labelling to start from needs a cluster number for every point",
        )
    return labels
