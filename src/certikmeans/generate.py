"""Random instances: Gaussian clusters, and pairs drawn from labels as in the paper's experiments.

The labels satisfy all pairs drawn from them, so the instance is feasible with one cluster per
class.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans._numbers import whole_number
from certikmeans._types import Floats, Ints
from certikmeans.errors import InputError

PAPER_SETTINGS = {"ml": (1, 0), "cl": (0, 1), "ml+cl": (1, 1)}
"""The paper's three experiments: multiples of ``n / 4`` must-links and cannot-links."""

_ROWS_PER_WRITE = 100_000


def gaussian_clusters(
    n_points: int,
    n_features: int = 2,
    n_clusters: int = 3,
    *,
    spread: float = 1.0,
    box: float = 10.0,
    seed: int = 1,
) -> tuple[Floats, Ints]:
    """Draw points around random centres; the defaults are the paper's synthetic data.

    The paper does not state the spread of its clusters; ``spread`` and ``box`` are our choice.

    Parameters
    ----------
    n_points, n_features, n_clusters : int
        Sizes. Clusters differ by at most one point in size.
    spread : float
        Standard deviation of a cluster in every direction.
    box : float
        Centres are uniform in ``[-box, box]`` in every direction.
    seed : int
        Equal seeds give equal points.

    Returns
    -------
    points : ndarray of shape (n_points, n_features)
    labels : ndarray of shape (n_points,)
        The cluster each point was drawn from.

    Examples
    --------
    >>> points, labels = gaussian_clusters(7, n_clusters=3)
    >>> points.shape, np.bincount(labels)
    ((7, 2), array([3, 2, 2]))
    """
    n_features = whole_number("n_features", n_features, least=1)
    n_clusters = whole_number("n_clusters", n_clusters, least=1)
    n_points = whole_number("n_points", n_points, least=1)
    if n_points < n_clusters:
        raise InputError(
            f"n_points: {n_points} is less than the number of clusters, {n_clusters}",
            hint=f"choose at least {n_clusters} points, or fewer clusters",
        )
    for name, value in (("spread", spread), ("box", box)):
        if not 0 <= value < np.inf:
            raise InputError(f"{name}: {value} is not a length", hint="give a number >= 0")
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-box, box, size=(n_clusters, n_features))
    labels = rng.permutation(np.arange(n_points, dtype=np.int64) % n_clusters)
    points = rng.normal(scale=spread, size=(n_points, n_features))
    points += centres[labels]
    return points, labels


def paper_counts(n_points: int, setting: str) -> tuple[int, int]:
    """Return the numbers of must-links and cannot-links that the paper draws for ``n_points``.

    >>> paper_counts(150, "ml+cl")
    (37, 37)
    """
    if setting not in PAPER_SETTINGS:
        raise InputError(
            f"setting: {setting!r} is not known", hint=f"choose from {', '.join(PAPER_SETTINGS)}"
        )
    must, cannot = PAPER_SETTINGS[setting]
    return must * (n_points // 4), cannot * (n_points // 4)


def random_pairs(
    labels: ArrayLike, n_must: int, n_cannot: int, *, seed: int = 1
) -> tuple[Ints, Ints]:
    """Draw distinct must-links within classes and cannot-links between them, uniformly.

    All pairs of one kind are numbered; distinct numbers are drawn and decoded. The time depends
    on the number of pairs drawn, not on the ``n^2 / 2`` existing pairs.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
        The class of every point.
    n_must, n_cannot : int
        Number of pairs of each kind.
    seed : int
        Each kind has its own stream: the cannot-links do not change with ``n_must``.

    Returns
    -------
    must, cannot : ndarray of shape (n_must, 2) and (n_cannot, 2)
        Pairs ``(i, j)`` with ``i < j``, in random order.

    Examples
    --------
    >>> must, cannot = random_pairs([0, 0, 1], 1, 2)
    >>> must.tolist(), sorted(cannot.tolist())
    ([[0, 1]], [[0, 2], [1, 2]])
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InputError(
            f"labels: expected one label per point, got shape {array.shape}",
            hint="pass a list or a one-dimensional array",
        )
    _, classes, sizes = np.unique(array, return_inverse=True, return_counts=True)
    by_class = np.argsort(classes, kind="stable")
    ends = np.cumsum(sizes)
    for_must, for_cannot = np.random.default_rng(seed).spawn(2)

    block, rank = _draw(sizes * (sizes - 1) // 2, n_must, for_must, "must-links")
    high = _row_of_triangle(rank)
    low = rank - high * (high - 1) // 2
    start = (ends - sizes)[block]
    must = np.stack([by_class[start + low], by_class[start + high]], axis=1)

    # A pair of classes is counted with the one that comes first in ``by_class``.
    after = len(array) - ends
    block, rank = _draw(sizes * after, n_cannot, for_cannot, "cannot-links")
    one = (ends - sizes)[block] + rank // after[block]
    other = ends[block] + rank % after[block]
    cannot = np.stack([by_class[one], by_class[other]], axis=1)
    return np.sort(must, axis=1), np.sort(cannot, axis=1)


def _draw(block_sizes: Ints, count: int, rng: np.random.Generator, what: str) -> tuple[Ints, Ints]:
    """Draw distinct elements of consecutive blocks; return block and rank inside it."""
    count = whole_number(f"number of {what}", count, least=0)
    ends = np.cumsum(block_sizes)
    total = int(ends[-1]) if len(ends) else 0
    if count > total:
        raise InputError(
            f"cannot draw {count} {what}: the labels allow {total}", hint=f"choose at most {total}"
        )
    drawn = rng.choice(total, size=count, replace=False) if count else np.empty(0, dtype=np.int64)
    block = np.searchsorted(ends, drawn, side="right")
    return block, drawn - (ends - block_sizes)[block]


def _row_of_triangle(rank: Ints) -> Ints:
    """Return the largest ``h`` with ``h (h - 1) / 2 <= rank``, exactly.

    >>> _row_of_triangle(np.arange(7))
    array([1, 2, 2, 3, 3, 3, 4])
    """
    high: Ints = ((1 + np.sqrt(1.0 + 8.0 * rank)) / 2).astype(np.int64)
    # The square root is rounded: correct an error of at most one.
    high -= high * (high - 1) // 2 > rank
    high += (high + 1) * high // 2 <= rank
    return high


@final
@dataclass(frozen=True, slots=True)
class InstanceFiles:
    """Files written by `write_instance`."""

    points: Path
    labels: Path
    pairs: Path


def write_instance(
    prefix: str | Path, points: ArrayLike, labels: ArrayLike, must: ArrayLike, cannot: ArrayLike
) -> InstanceFiles:
    """Write points, labels and pairs to three files that the readers accept.

    ``demo`` becomes ``demo.csv``, ``demo.labels.txt`` and ``demo.pairs.txt`` (``ML i j`` and
    ``CL i j``). A prefix that ends in ``.npy`` stores the points as an array. Labels have their
    own file so that they cannot be mistaken for a feature. Numbers are written with full
    precision: reading returns the same bits.
    """
    prefix = Path(prefix)
    if prefix.is_dir():
        raise InputError(f"{prefix}: is a directory", hint=f"name the files: {prefix / 'demo'}")
    table = np.asarray(points, dtype=np.float64)
    suffix = prefix.suffix if prefix.suffix in (".csv", ".npy") else ".csv"
    stem = prefix.name.removesuffix(suffix)
    files = InstanceFiles(
        points=prefix.with_name(stem + suffix),
        labels=prefix.with_name(stem + ".labels.txt"),
        pairs=prefix.with_name(stem + ".pairs.txt"),
    )
    prefix.parent.mkdir(parents=True, exist_ok=True)
    if suffix == ".npy":
        np.save(files.points, table)
    else:
        header = ",".join(f"x{column}" for column in range(table.shape[1]))
        _write_rows(files.points, [(table, lambda row: ",".join(map(repr, row)))], header)
    _write_rows(files.labels, [(np.asarray(labels), str)])
    _write_rows(
        files.pairs,
        [
            (np.asarray(must, dtype=np.int64), lambda pair: f"ML {pair[0]} {pair[1]}"),
            (np.asarray(cannot, dtype=np.int64), lambda pair: f"CL {pair[0]} {pair[1]}"),
        ],
    )
    return files


def _write_rows(path: Path, parts: list[tuple[NDArray[Any], Any]], header: str = "") -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if header:
            file.write(header + "\n")
        for rows, written in parts:
            for start in range(0, len(rows), _ROWS_PER_WRITE):
                chunk = rows[start : start + _ROWS_PER_WRITE].tolist()
                file.write("\n".join(map(written, chunk)) + "\n")
