"""Input files named on the command line, and the `Problem` that they state."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

from certikmeans._numbers import count
from certikmeans.cli.parameters import INPUT, PAIRS, FieldOptions
from certikmeans.cli.process import with_option_names
from certikmeans.errors import InputError

# Nothing heavy is imported above: this module is loaded before every command, also for --help.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certikmeans.problem import Problem
    from certikmeans.problem.constraints import Constraints
    from certikmeans.problem.io import PointTable

STANDARD_STREAM = Path("-")


@dataclass(frozen=True, kw_only=True)
class PairFiles:
    """Files of pairs.

    Parameters
    ----------
    must_link : tuple of Path
        Pairs that share a cluster: two indices per line; or groups, 'i j k ...' per line. May be
        given several times.
    cannot_link : tuple of Path
        Pairs in different clusters: two indices per line. May be given several times.
    constraints : tuple of Path
        Pairs of both kinds: 'ML i j' and 'CL i j'; 'i j 1' and 'i j -1'; or JSON,
        {"ml": [[0, 1]], "cl": [[1, 2]], "groups": [[3, 4, 5]]}, every key optional. May be
        given several times.
    partial_labels : Path or None
        Labels known for some points, one per line, empty or -1 if unknown: points with equal
        labels must link, points with different labels cannot link.
    one_based : bool
        Pair files count points from 1. Results count from 0.
    """

    must_link: tuple[Path, ...] = field(default=(), metadata={"metavar": "F", "panel": PAIRS})
    cannot_link: tuple[Path, ...] = field(default=(), metadata={"metavar": "F", "panel": PAIRS})
    constraints: tuple[Path, ...] = field(default=(), metadata={"metavar": "F", "panel": PAIRS})
    partial_labels: Path | None = field(default=None, metadata={"metavar": "F", "panel": PAIRS})
    one_based: bool = field(default=False, metadata={"flags": ("--one-based",), "panel": PAIRS})

    @property
    def base(self) -> int:
        """The number of the first point in messages."""
        return int(self.one_based)

    def paths(self) -> list[Path]:
        """Return every file that was named."""
        labels = [] if self.partial_labels is None else [self.partial_labels]
        return [*self.must_link, *self.cannot_link, *self.constraints, *labels]


@final
@dataclass(frozen=True, kw_only=True)
class Inputs(PairFiles):
    """All input files, and how to read them.

    Parameters
    ----------
    data : Path
        The points: CSV or other text, .npy, .npz, .parquet.
    n_clusters : int or None
        Number of clusters. May be left out if DATA states it.
    labels_column : str or None
        A column of DATA that holds known classes: not a feature; `solve` compares it with the
        clusters.
    start_labels : Path or None
        A labelling to start from, one cluster number per line.
    weights : Path or None
        Weights of the points, one per line; by default all are 1.
    header : str
        What the first line of DATA is: none (a point), names, sizes ('n d' or 'n d k' as in
        PC-SOS-SDP); auto decides by the lines that follow.
    columns : tuple of str
        The columns of DATA that are features, by name or by number from 0, separated by commas.
        Others may hold anything.
    drop : tuple of str
        The columns of DATA that are not features, likewise.
    """

    data: Path = field(metadata={"metavar": "DATA", "argument": True})
    n_clusters: int | None = field(
        default=None, metadata={"flags": ("-k", "--n-clusters"), "metavar": "K", "panel": INPUT}
    )
    labels_column: str | None = field(default=None, metadata={"metavar": "NAME", "panel": INPUT})
    start_labels: Path | None = field(default=None, metadata={"metavar": "F", "panel": INPUT})
    weights: Path | None = field(default=None, metadata={"metavar": "F", "panel": INPUT})
    header: str = field(default="auto", metadata={"metavar": "KIND", "panel": INPUT})
    columns: tuple[str, ...] = field(default=(), metadata={"metavar": "NAMES", "panel": INPUT})
    drop: tuple[str, ...] = field(default=(), metadata={"metavar": "NAMES", "panel": INPUT})

    def check_command(self, certificate: Path) -> str:
        """Return the command that checks a certificate about these inputs."""
        words = ["certikmeans", "check", str(certificate), "--data", str(self.data)]
        if self.n_clusters is not None:
            words += ["-k", str(self.n_clusters)]
        several = ("must_link", "cannot_link", "constraints", "columns", "drop")
        for name in (*several, "partial_labels", "labels_column", "weights", "header"):
            value = getattr(self, name)
            if name == "header" and value == "auto":
                continue
            for one in value if name in several else [value] * (value is not None):
                words += [f"--{name.replace('_', '-')}", str(one)]
        return shlex.join(words + ["--one-based"] * self.one_based)

    def paths(self) -> list[Path]:
        """Return every file that was named."""
        others = [path for path in (self.start_labels, self.weights) if path is not None]
        return [self.data, *super().paths(), *others]


InputOptions = Annotated[Inputs, FieldOptions(Inputs)]
PairOptions = Annotated[PairFiles, FieldOptions(PairFiles)]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LoadedInputs:
    """Contents of the input files."""

    problem: Problem
    classes: NDArray[Any] | None  # as PointTable.labels
    start_labels: NDArray[np.int64] | None
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def describe(self) -> str:
        """Describe in one line what was read, after the notes of the readers."""
        from certikmeans.problem.io.text import format_list

        problem = self.problem
        names = f" ({format_list(self.feature_names, limit=8)})" if self.feature_names else ""
        weighted = "" if (problem.weights == 1.0).all() else "weighted "
        return (
            f"{format_notes(self.notes)}read {count(problem.n_points, f'{weighted}point')} with "
            f"{count(problem.n_features, 'feature')}{names}, "
            f"{count(len(problem.must_link), 'must-link')} and "
            f"{count(len(problem.cannot_link), 'cannot-link')}; "
            f"looking for {count(problem.n_clusters, 'cluster')}"
        )


def format_notes(notes: Sequence[str]) -> str:
    """Format notes about assumptions of the readers, one per line."""
    return "".join(f"note: {with_option_names(note)}\n" for note in notes)


def reject_standard_input(paths: Iterable[Path]) -> None:
    """Reject ``-`` as the name of an input."""
    if STANDARD_STREAM in paths:
        raise InputError(
            "-: standard input is not read", hint="name a file; /dev/stdin is one on most systems"
        )


def load(inputs: Inputs) -> LoadedInputs:
    """Read every file and check them against each other."""
    from certikmeans.problem import Problem
    from certikmeans.problem.io import read_weights

    table = read_table(inputs)
    n_points = len(table.points)
    pairs = read_pairs(inputs, n_points)
    n_clusters = inputs.n_clusters if inputs.n_clusters is not None else table.n_clusters_hint
    if n_clusters is None:
        raise InputError(
            f"the number of clusters is missing: {inputs.data} does not state it", hint="add -k K"
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
        start = _read_start_labels(inputs.start_labels, n_points)
    return LoadedInputs(problem, table.labels, start, table.feature_names, table.notes)


def read_table(inputs: Inputs) -> PointTable:
    """Read the points."""
    from certikmeans.problem.io import read_points

    kind: Any = inputs.header  # checked by the reader
    return read_points(
        inputs.data,
        label_column=inputs.labels_column,
        header=kind,
        columns=inputs.columns,
        drop=inputs.drop,
    )


def read_pairs(files: PairFiles, n_points: int) -> Constraints:
    """Collect the pairs of all files; each file is checked alone, so that errors name its lines."""
    from certikmeans.problem.constraints import Constraints
    from certikmeans.problem.io import read_links, read_partial_labels

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


def _read_start_labels(path: Path, n_points: int) -> NDArray[np.int64]:
    """Read a complete labelling; whether it respects the pairs is checked by the solver."""
    from certikmeans.problem.io import read_partial_labels
    from certikmeans.problem.io.text import quote

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
