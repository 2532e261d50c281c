"""Input files named on the command line, and the `Problem` that they state."""

from __future__ import annotations

import atexit
import dataclasses
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, final

from certikmeans._numbers import count
from certikmeans.cli.parameters import INPUT, PAIRS, SIZES, FieldOptions, parse_numbers
from certikmeans.cli.process import show_path_as, with_option_names
from certikmeans.errors import Argument, InputError, Message

# Nothing heavy is imported above: this module is loaded before every command, also for --help.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certikmeans._types import Floats, Ints
    from certikmeans.problem import Problem
    from certikmeans.problem.constraints import Constraints
    from certikmeans.problem.io import LinkFile, PointTable
    from certikmeans.problem.io.text import PointIds

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
        Pairs of all kinds: 'ML i j' and 'CL i j'; soft pairs 'SML i j p' and 'SCL i j p',
        whose violation costs p; columns i, j, type; 'i j 1' and 'i j -1'; or JSON,
        {"ml": [[0, 1]], "cl": [[1, 2]], "groups": [[3, 4, 5]], "sml": [], "scl": []}, every key
        optional. May be given several times.
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
        The points: CSV or other text, also .csv.gz; .npy, .npz, .parquet; - for standard input.
    n_clusters : int or None
        Number of clusters. May be left out if DATA states it.
    labels_column : str or None
        A column of DATA that holds known classes: not a feature; `solve` compares it with the
        clusters.
    id_column : str or None
        A column of DATA that names the points: not a feature. Then files of pairs name points by
        these ids, files with a value per point have rows 'id,value', and labels are written so.
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
    penalty : str or None
        What it costs to violate a soft pair of confidence 1, for soft pairs without a penalty of
        their own (JSON): a number, or mean, the total sum of squares divided by the number of
        points.
    cannot_link_groups : tuple of Path
        Groups of points of which at most one may be in a cluster: one number or name per line,
        -1 or nothing for points in none, or several columns. May be given several times.
    size_min : str or None
        Least number of points in a cluster; a list like 10,10,20 holds for clusters in any order.
    size_max : str or None
        Largest number of points in a cluster, likewise.
    balanced : bool
        Clusters of equal size, up to one point.
    demand : Path or None
        What every point counts for in the sizes, instead of 1; one number per line.
    """

    data: Path = field(metadata={"metavar": "DATA", "argument": True})
    n_clusters: int | None = field(
        default=None, metadata={"flags": ("-k", "--n-clusters"), "metavar": "K", "panel": INPUT}
    )
    labels_column: str | None = field(default=None, metadata={"metavar": "NAME", "panel": INPUT})
    id_column: str | None = field(default=None, metadata={"metavar": "NAME", "panel": INPUT})
    start_labels: Path | None = field(default=None, metadata={"metavar": "F", "panel": INPUT})
    weights: Path | None = field(default=None, metadata={"metavar": "F", "panel": INPUT})
    header: str = field(default="auto", metadata={"metavar": "KIND", "panel": INPUT})
    columns: tuple[str, ...] = field(default=(), metadata={"metavar": "NAMES", "panel": INPUT})
    drop: tuple[str, ...] = field(default=(), metadata={"metavar": "NAMES", "panel": INPUT})

    penalty: str | None = field(default=None, metadata={"metavar": "P", "panel": PAIRS})
    cannot_link_groups: tuple[Path, ...] = field(
        default=(), metadata={"metavar": "F", "panel": SIZES}
    )
    size_min: str | None = field(default=None, metadata={"metavar": "N", "panel": SIZES})
    size_max: str | None = field(default=None, metadata={"metavar": "N", "panel": SIZES})
    balanced: bool = field(default=False, metadata={"flags": ("--balanced",), "panel": SIZES})
    demand: Path | None = field(default=None, metadata={"metavar": "F", "panel": SIZES})

    def check_command(self, certificate: Path) -> str:
        """Return the command that checks a certificate about these inputs."""
        words = ["certikmeans", "check", str(certificate), "--data", str(self.data)]
        if self.n_clusters is not None:
            words += ["-k", str(self.n_clusters)]
        several = (
            *("must_link", "cannot_link", "constraints", "cannot_link_groups"),
            *("columns", "drop"),
        )
        single = (
            *("partial_labels", "labels_column", "id_column", "weights", "header", "penalty"),
            *("size_min", "size_max", "demand"),
        )
        for name in (*several, *single):
            value = getattr(self, name)
            if name == "header" and value == "auto":
                continue
            for one in value if name in several else [value] * (value is not None):
                words += [f"--{name.replace('_', '-')}", str(one)]
        words += ["--one-based"] * self.one_based + ["--balanced"] * self.balanced
        return shlex.join(words)

    def paths(self) -> list[Path]:
        """Return every file that was named."""
        others = [self.start_labels, self.weights, self.demand]
        named = [path for path in others if path is not None]
        return [self.data, *super().paths(), *self.cannot_link_groups, *named]

    @property
    def names_constraints(self) -> bool:
        """Whether any option states constraints."""
        named = [*PairFiles.paths(self), *self.cannot_link_groups, self.demand]
        return any((*named, self.size_min, self.size_max, self.balanced))


InputOptions = Annotated[Inputs, FieldOptions(Inputs)]
PairOptions = Annotated[PairFiles, FieldOptions(PairFiles)]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LoadedInputs:
    """Contents of the input files."""

    problem: Problem
    classes: NDArray[Any] | None  # as PointTable.labels
    start_labels: Ints | None
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    ids: PointIds | None = None
    penalty_unit: float | None = None  # penalty of a soft pair of confidence 1

    def describe(self) -> str:
        """Describe in one line what was read, after the notes of the readers."""
        from certikmeans.problem.io.text import format_list
        from certikmeans.report.summary import constraint_phrases

        problem = self.problem
        names = f" ({format_list(self.feature_names, limit=8)})" if self.feature_names else ""
        weighted = "" if (problem.weights == 1.0).all() else "weighted "
        return (
            f"{format_notes(self.notes)}read {count(problem.n_points, f'{weighted}point')} with "
            f"{count(problem.n_features, 'feature')}{names}, {constraint_phrases(problem)}; "
            f"looking for {count(problem.n_clusters, 'cluster')}"
        )


def format_notes(notes: Sequence[str]) -> str:
    """Format notes about assumptions of the readers, one per line."""
    return "".join(f"note: {with_option_names(note)}\n" for note in notes)


def reject_standard_input(paths: Iterable[Path]) -> None:
    """Reject ``-`` as the name of an input that cannot be standard input."""
    if STANDARD_STREAM in paths:
        raise InputError(
            "-: standard input is not read here", hint="name a file; /dev/stdin is one"
        )


FileGroup = TypeVar("FileGroup", bound=PairFiles)


def with_standard_input(files: FileGroup) -> FileGroup:
    """Replace ``-`` by a temporary file with the content of standard input."""
    times = files.paths().count(STANDARD_STREAM)
    if times == 0:
        return files
    if times > 1:
        raise InputError("-: standard input is named twice", hint="name a file for one of them")
    path = _spooled_standard_input()
    changes: dict[str, Any] = {}
    for one in dataclasses.fields(files):
        value = getattr(files, one.name)
        if value == STANDARD_STREAM:
            changes[one.name] = path
        elif isinstance(value, tuple) and STANDARD_STREAM in value:
            changes[one.name] = tuple(path if v == STANDARD_STREAM else v for v in value)
    return dataclasses.replace(files, **changes)


def _spooled_standard_input() -> Path:
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "-: standard input is a terminal", hint="pipe a file into it: certikmeans ... < FILE"
        )
    folder = tempfile.mkdtemp(prefix="certikmeans-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "stdin"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        raise InputError(
            f"-: standard input could not be read ({error.strerror or error})",
            hint="name a file",
        ) from error
    show_path_as(str(path), "standard input")
    return path


def load(inputs: Inputs) -> LoadedInputs:
    """Read every file and check them against each other."""
    from certikmeans.problem import Problem

    inputs = with_standard_input(inputs)
    table = read_table(inputs)
    n_clusters = inputs.n_clusters if inputs.n_clusters is not None else table.n_clusters_hint
    if n_clusters is None:
        raise InputError(
            f"the number of clusters is missing: {inputs.data} does not state it", hint="add -k K"
        )
    weights = read_numbers(inputs.weights, table)
    found = read_constraints(inputs, table, weights, n_clusters)
    problem = Problem.from_data(table.points, n_clusters, weights=weights, **found.arguments)
    start = None
    if inputs.start_labels is not None:
        start = _read_start_labels(inputs.start_labels, len(table.points), table.ids)
    return LoadedInputs(
        problem,
        table.labels,
        start,
        table.feature_names,
        table.notes,
        table.ids,
        found.penalty_unit,
    )


def read_numbers(path: Path | None, table: PointTable) -> Floats | None:
    """Read a number for every point."""
    from certikmeans.problem.io import read_weights
    from certikmeans.problem.io.points import numbers_by_id

    if path is None:
        return None
    if table.ids is not None and path.suffix.lower() != ".npy":
        return numbers_by_id(path, table.ids)
    return read_weights(path, n_points=len(table.points))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoundConstraints:
    """Constraints of all inputs, as arguments of `Problem.from_data`."""

    arguments: dict[str, Any]
    penalty_unit: float | None


def read_constraints(
    inputs: Inputs, table: PointTable, weights: Floats | None, n_clusters: int
) -> FoundConstraints:
    """Read all constraints: pairs, sets, sizes and soft pairs."""
    from certikmeans.problem.data import mean_squared_distance
    from certikmeans.problem.io import read_cannot_link_groups

    n_points, ids = len(table.points), table.ids
    files = read_link_files(inputs, ids)
    unit = None
    if inputs.penalty is not None:
        unit = parse_penalty(inputs.penalty)
        if unit is None:
            unit = mean_squared_distance(table.points, weights)
    pairs = joined_pairs(inputs, files, n_points, ids, unit)
    columns: list[Any] = []
    for path in inputs.cannot_link_groups:
        columns += read_cannot_link_groups(path, n_points=n_points, ids=ids)
    for path, found in files:
        for column in found.cannot_link_groups:
            if len(column) != n_points:
                raise InputError(
                    f"{path}: cannot_link_groups: {len(column)} numbers, but there are "
                    f"{n_points} points",
                    hint="give a number for every point, -1 for points in no group",
                )
            columns.append(column)
    arguments: dict[str, Any] = {
        "must_link": pairs.must_link,
        "cannot_link": pairs.cannot_link,
        "soft_must_link": pairs.soft_must_link,
        "soft_cannot_link": pairs.soft_cannot_link,
        "cannot_link_groups": _columns(columns) if columns else None,
        **_sizes(inputs, files, table, n_clusters),
    }
    stated = any(found.soft_must.in_units.any() for _, found in files) or any(
        found.soft_cannot.in_units.any() for _, found in files
    )
    return FoundConstraints(arguments, unit if stated else None)


def _columns(columns: list[Any]) -> list[Any]:
    from certikmeans.problem.constraints import list_of_columns

    return [one for column in columns for one in list_of_columns(column)]


def _sizes(
    inputs: Inputs, files: list[tuple[Path, LinkFile]], table: PointTable, n_clusters: int
) -> dict[str, Any]:
    """Limits on sizes from options and JSON files, of which only one may state each."""
    stated: dict[str, Any] = {}
    for name in ("size_min", "size_max"):
        if getattr(inputs, name) is not None:
            stated[name] = parse_numbers(getattr(inputs, name), name)
    if inputs.balanced:
        stated["balanced"] = True
    if inputs.demand is not None:
        stated["demand"] = read_numbers(inputs.demand, table)
    for path, found in files:
        for name, value in found.sizes.items():
            if name in stated:
                raise InputError(
                    Message(f"{path}: {name} is also stated by ", Argument(name)),
                    hint="state it once",
                )
            stated[name] = value
    from certikmeans.constraint_model.sizes import balanced_limits

    if stated.pop("balanced", False):
        for name in ("size_min", "size_max", "demand"):
            if name in stated:
                raise InputError(
                    Message(Argument("balanced"), " and ", Argument(name), " exclude each other"),
                    hint="equal sizes count points; for others give both limits",
                )
        smallest, largest = balanced_limits(len(table.points), max(1, n_clusters))
        return {"size_min": smallest, "size_max": largest}
    return stated


def parse_penalty(text: str) -> float | None:
    """Parse the penalty of a soft pair of confidence 1; None for ``mean``.

    >>> parse_penalty("2.5"), parse_penalty("mean")
    (2.5, None)
    """
    if text.strip().lower() == "mean":
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0.0:
        raise InputError(
            Message(Argument("penalty"), f": {text!r} is not a penalty"),
            hint="give a number, 0 or more, of the size of a squared distance, or mean",
        )
    return number


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
        id_column=inputs.id_column,
    )


def read_link_files(files: PairFiles, ids: PointIds | None = None) -> list[tuple[Path, LinkFile]]:
    """Read every file of pairs."""
    from certikmeans.problem.io import read_links

    kinds: tuple[tuple[Sequence[Path], Literal["must", "cannot"] | None], ...] = (
        (files.must_link, "must"),
        (files.cannot_link, "cannot"),
        (files.constraints, None),
    )
    return [
        (path, read_links(path, kind=kind, one_based=files.one_based, ids=ids))
        for paths, kind in kinds
        for path in paths
    ]


def joined_pairs(
    files: PairFiles,
    found: list[tuple[Path, LinkFile]],
    n_points: int,
    ids: PointIds | None = None,
    unit: float | None = None,
) -> Constraints:
    """Collect the pairs of all files; each file is checked alone, so that errors name its lines."""
    from certikmeans.problem.constraints import Constraints
    from certikmeans.problem.io import read_partial_labels
    from certikmeans.problem.io.points import labels_by_id
    from certikmeans.problem.links import check_rows

    pairs = Constraints(n_points=n_points)
    for _, one in found:
        for soft in (one.soft_must, one.soft_cannot):
            check_rows(soft.links, n_points)
        pairs |= Constraints.from_pairs(
            one.must,
            one.cannot,
            n_points,
            soft_must_link=one.soft_must.rows(unit),
            soft_cannot_link=one.soft_cannot.rows(unit),
        )
    if files.partial_labels is not None:
        if ids is None:
            labels = read_partial_labels(files.partial_labels, n_points=n_points)
        else:
            labels = labels_by_id(files.partial_labels, ids, complete=False)
        pairs |= Constraints.from_partial_labels(labels)
    return pairs


def _read_start_labels(path: Path, n_points: int, ids: PointIds | None) -> Ints:
    """Read a complete labelling; whether it respects the pairs is checked by the solver."""
    from certikmeans.problem.io import read_partial_labels
    from certikmeans.problem.io.points import labels_by_id
    from certikmeans.problem.io.text import quote

    labels = read_partial_labels(path) if ids is None else labels_by_id(path, ids, complete=True)
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
