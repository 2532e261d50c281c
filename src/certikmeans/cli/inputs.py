"""From the files named on the command line to a `Problem`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem import Problem
from certikmeans.problem.constraints import Constraints
from certikmeans.problem.files import read_links, read_partial_labels, read_points
from certikmeans.report.numbers import count


@final
@dataclass(frozen=True, slots=True)
class PairFiles:
    """The files of pairs that were named on the command line."""

    must_link: Path | None = None
    cannot_link: Path | None = None
    constraints: Path | None = None
    partial_labels: Path | None = None
    one_based: bool = False

    def named(self) -> list[Path]:
        """Return those that were named."""
        every = (self.must_link, self.cannot_link, self.constraints, self.partial_labels)
        return [path for path in every if path is not None]


@final
@dataclass(frozen=True, slots=True)
class Inputs:
    """What was named on the command line."""

    data: Path
    n_clusters: int | None = None
    pairs: PairFiles = PairFiles()
    start_labels: Path | None = None
    labels_column: str | None = None

    def named(self) -> list[Path]:
        """Return every file."""
        start = [] if self.start_labels is None else [self.start_labels]
        return [self.data, *self.pairs.named(), *start]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """What the files contain."""

    problem: Problem
    classes: NDArray[Any] | None  # as PointTable.labels
    start_labels: NDArray[np.int64] | None

    def describe(self) -> str:
        """Say in one line what was read."""
        problem = self.problem
        return (
            f"read {count(problem.n_points, 'point')} with "
            f"{count(problem.n_features, 'feature')}, "
            f"{count(len(problem.must_link), 'must-link')} and "
            f"{count(len(problem.cannot_link), 'cannot-link')}; "
            f"looking for {count(problem.n_clusters, 'cluster')}"
        )


def load(inputs: Inputs) -> Loaded:
    """Read every file and check them against each other."""
    table = read_points(inputs.data, label_column=inputs.labels_column)
    n_points = len(table.points)
    pairs = read_pairs(inputs.pairs, n_points)
    n_clusters = inputs.n_clusters if inputs.n_clusters is not None else table.n_clusters_hint
    if n_clusters is None:
        raise InputError(
            f"the number of clusters is missing: {inputs.data} does not state it",
            hint="add -k K",
        )
    problem = Problem.from_data(
        table.points, n_clusters, must_link=pairs.must_link, cannot_link=pairs.cannot_link
    )
    start = None
    if inputs.start_labels is not None:
        start = _start_labels(inputs.start_labels, n_points)
    return Loaded(problem, table.labels, start)


def read_pairs(files: PairFiles, n_points: int) -> Constraints:
    """Collect the pairs of all files; each file is checked alone, so that errors name its lines."""
    kinds: tuple[tuple[Path | None, Literal["must", "cannot"] | None], ...] = (
        (files.must_link, "must"),
        (files.cannot_link, "cannot"),
        (files.constraints, None),
    )
    pairs = Constraints(n_points=n_points)
    for path, kind in kinds:
        if path is not None:
            found = read_links(path, kind=kind, one_based=files.one_based)
            pairs |= Constraints.from_pairs(found.must, found.cannot, n_points)
    if files.partial_labels is not None:
        labels = read_partial_labels(files.partial_labels, n_points=n_points)
        pairs |= Constraints.from_partial_labels(labels)
    return pairs


def _start_labels(path: Path, n_points: int) -> NDArray[np.int64]:
    """Read a complete labelling; whether it respects the pairs is checked by the solver."""
    labels = read_partial_labels(path, n_points=n_points)
    if labels.dtype.kind not in "iu":
        row, value = next(
            (row, value)
            for row, value in enumerate(labels.tolist())
            if not str(value).removeprefix("-").isdecimal()
        )
        raise InputError(
            f"{path}: the label of point {row} (counted from 0) is {value!r}",
            hint="a labelling to start from needs a cluster number for every point",
        )
    return labels
