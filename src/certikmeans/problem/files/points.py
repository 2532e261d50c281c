"""Read points from a file; its suffix chooses the format, and anything else is read as text."""

from __future__ import annotations

from typing import Any

from certikmeans.errors import InputError
from certikmeans.problem.files.arrays import read_npy, read_npz
from certikmeans.problem.files.columns import ColumnChoice
from certikmeans.problem.files.first_row import HEADERS, Header
from certikmeans.problem.files.parquet import read_parquet
from certikmeans.problem.files.table import PointTable
from certikmeans.problem.files.text import PathLike, existing_file
from certikmeans.problem.files.text_table import read_text_table

__all__ = ["PointTable", "read_points"]

_READERS = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def read_points(
    path: PathLike,
    *,
    label_column: str | int | None = None,
    header: Header = "auto",
    columns: Any = None,
    drop: Any = None,
) -> PointTable:
    """Read a table of points.

    Parameters
    ----------
    path : str or path-like
        ``.npy``, ``.npz`` (array ``X``, labels ``y``), ``.parquet``; every other file is read
        as text: CSV, tabs, semicolons or white space, with or without header, or PC-SOS-SDP's
        ``n d k`` format. ``#`` starts a comment.
    label_column : str or int, optional
        The column that holds labels and is not a feature: its name, or its number, counted
        from 0 (from the end if negative). In a ``.npz`` it may also name an array.
    header : {'auto', 'none', 'names', 'sizes'}
        What the first line of a text file is: a point, names of the columns (which may be
        numbers), or PC-SOS-SDP's sizes. By default it is told from what follows; ``notes`` of
        the result says how, where it could have been something else.
    columns, drop : str, int or iterable of them, optional
        The columns that are features, or those that are not: names, or numbers counted from 0.
        Columns that are left out may hold anything.

    Returns
    -------
    PointTable
        Finite points, names of the features and labels where the file has them.

    Raises
    ------
    InputError
        With file, line, column, value and remedy. Nothing is repaired or skipped silently.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("x,y,class\\n0,1,a\\n2,3,b\\n")
    >>> table = read_points(path, label_column="class")
    >>> table.points.tolist(), table.feature_names, table.labels.tolist()
    ([[0.0, 1.0], [2.0, 3.0]], ('x', 'y'), ['a', 'b'])
    >>> folder.cleanup()
    """
    found = existing_file(path)
    choice = ColumnChoice.of(columns, drop)
    reader = _READERS.get(found.suffix.lower())
    if header not in HEADERS:
        raise InputError(
            f"header: {header!r} is not known", hint=f"choose one of {', '.join(HEADERS)}"
        )
    if reader is None:
        return read_text_table(path, label_column, header, choice)
    if header != "auto":
        raise InputError(
            f"{path}: header={header!r} is about text files, not {found.suffix}",
            hint=f"leave out header={header!r}",
        )
    return reader(found, label_column, choice)
