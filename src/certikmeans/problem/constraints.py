"""Must-links and cannot-links of a table: construction, union, subsets, diagnosis."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans.errors import InputError
from certikmeans.problem.arrays import distinct
from certikmeans.problem.links import as_links, canonical_pairs, links_by_id, rows_by_id
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.problem.conflicts import Diagnosis


_MISSING_LABELS = {"", "nan", "<na>"}


def label_array(labels: ArrayLike | Iterable[Any]) -> NDArray[Any]:
    """Return labels as a one-dimensional array in which missing values differ from text."""
    if not hasattr(labels, "__array__"):
        values = list(labels)  # type: ignore[arg-type]
        # Next to text, numpy would turn None and NaN into the words "None" and "nan".
        has_text = any(isinstance(value, str) for value in values)
        labels = np.array(values, dtype=object if has_text else None)
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "biufOSU":
        raise InputError(
            f"labels: expected one label per point, got {array.dtype} of shape {array.shape}",
            hint="pass whole numbers or text; -1, None, NaN or empty text means unknown",
        )
    return array


def known_classes(
    labels: NDArray[Any], unknown: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows whose label is known, and for each its class, numbered from 0.

    >>> known_classes(label_array(["a", None, "b", "a"]), unknown=-1)
    (array([0, 2, 3]), array([0, 1, 0]))
    """
    if labels.dtype.kind in "OSU":
        values = labels.tolist()
        # In order of appearance, not through a set: text hashes differ from run to run.
        forms = {value: _normalized_text(value) for value in dict.fromkeys(values)}
        codes = {form: code for code, form in enumerate(dict.fromkeys(forms.values()))}
        codes |= dict.fromkeys(("", _normalized_text(unknown)), -1)
        keys = np.array([codes[forms[value]] for value in values], dtype=np.int64)
        known = keys >= 0
    else:
        number = unknown if isinstance(unknown, int | float | np.number) else np.nan
        known = (labels == labels) & (labels != number)  # NaN differs from itself
        keys = labels
    rows = np.flatnonzero(known)
    classes = np.unique(keys[rows], return_inverse=True)[1]
    return rows, classes.astype(np.int64)


def _normalized_text(value: Any) -> str:
    """Return a text that is the same for equal labels, empty for a missing one.

    >>> [_normalized_text(value) for value in ("1.0", 1, " a ", None, np.nan, 12345678901234567890)]
    ['1', '1', 'a', '', '', '12345678901234567890']
    """
    if value is None:
        return ""
    text = (value.decode() if isinstance(value, bytes) else str(value)).strip()
    if text.lower() in _MISSING_LABELS:
        return ""
    try:
        return str(int(text))
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    if math.isinf(number):  # too many digits for a float: compared as text
        return text
    return str(int(number)) if number.is_integer() else repr(number)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constraints:
    """Must-links and cannot-links between the rows of one table.

    Row numbers refer to one table, so a `Constraints` stores the number of rows where it is known:
    `check` rejects a table of another length, and `subset` selects rows, as in cross-validation.

    Parameters
    ----------
    must_link, cannot_link : array-like of shape (m, 2) or Links, optional
        Pairs of row numbers, counted from 0. Order and repetition do not matter.
    n_points : int, optional
        Number of rows. With None it is unknown, but exceeds every index.

    Attributes
    ----------
    must_link, cannot_link : ndarray of shape (m, 2)
        The distinct pairs with ``i < j``, sorted. Read-only.

    Examples
    --------
    >>> pairs = Constraints.from_pairs(must_link=[(0, 1)], cannot_link=[(1, 2)], n_points=4)
    >>> pairs | Constraints.from_groups([[1, 3]])
    Constraints(2 must-links, 1 cannot-link, n_points=4)
    >>> pairs.subset([2, 0]).cannot_link  # 0 and 2 stay separated without 1
    array([[0, 1]])
    """

    must_link: NDArray[np.int64] = None  # type: ignore[assignment]
    cannot_link: NDArray[np.int64] = None  # type: ignore[assignment]
    n_points: int | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.n_points is not None:
            put(self, "n_points", _validate_count(self.n_points))
        put(self, "must_link", _canonical(self.must_link, "must_link", self.n_points))
        put(self, "cannot_link", _canonical(self.cannot_link, "cannot_link", self.n_points))

    def __repr__(self) -> str:
        must, cannot = (
            f"{len(pairs)} {kind}{'' if len(pairs) == 1 else 's'}"
            for pairs, kind in ((self.must_link, "must-link"), (self.cannot_link, "cannot-link"))
        )
        return f"Constraints({must}, {cannot}, n_points={self.n_points})"

    @classmethod
    def from_pairs(
        cls,
        must_link: Any = None,
        cannot_link: Any = None,
        n_points: int | None = None,
        *,
        index: Iterable[Hashable] | None = None,
    ) -> Constraints:
        """Build from pairs ``(i, j)``, or from the `Links` that the readers return.

        With ``index``, the id of every row (``df.index``, or a column of ids), pairs name samples
        by ids of any hashable kind: tuples, arrays, or tables with two columns.

        >>> Constraints.from_pairs([("eve", "bob")], index=["ann", "bob", "eve"]).must_link
        array([[1, 2]])
        """
        if index is None:
            return cls(must_link, cannot_link, n_points)  # type: ignore[arg-type]
        rows = rows_by_id(index)
        if n_points not in (None, len(rows)):
            raise InputError(
                f"n_points: {n_points}, but the index has {len(rows)} rows",
                hint="leave n_points out: it follows from the index",
            )
        must = links_by_id(must_link, "must_link", rows)
        cannot = links_by_id(cannot_link, "cannot_link", rows)
        return cls(must, cannot, len(rows))  # type: ignore[arg-type]

    @classmethod
    def from_groups(
        cls, groups: Iterable[Iterable[int]], n_points: int | None = None
    ) -> Constraints:
        """Build must-links from groups of points that belong together.

        >>> Constraints.from_groups([[4, 0, 2], [1, 3]]).must_link.tolist()
        [[0, 2], [0, 4], [1, 3]]
        """
        members = [list(group) for group in groups]
        lengths = np.array([len(group) for group in members], dtype=np.int64)
        values = np.array(list(chain.from_iterable(members)) or np.empty(0, dtype=np.int64))
        if values.dtype.kind not in "iu":
            raise InputError(
                f"groups: indices must be whole numbers, got {values.dtype}",
                hint="points are named by their row number, counted from 0",
            )
        outside = values < 0 if n_points is None else (values < 0) | (values >= n_points)
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            group = int(np.searchsorted(np.cumsum(lengths), at, side="right"))
            raise InputError(
                f"groups[{group}]: point {values[at]} does not exist",
                hint="points are numbered from 0"
                + ("" if n_points is None else f" to {n_points - 1}"),
            )
        pairs, _ = chain_pairs(values.astype(np.int64), lengths)
        return cls.from_pairs(must_link=pairs[pairs[:, 0] != pairs[:, 1]], n_points=n_points)

    @classmethod
    def from_partial_labels(cls, labels: ArrayLike, unknown: Any = -1) -> Constraints:
        """Build from labels of which some are known: must-links within, cannot-links between.

        A class of ``m`` points becomes a chain of ``m - 1`` must-links. Two classes are separated
        by a single cannot-link between their first points: it extends to all other members. So
        there are ``O(n + C^2)`` pairs for ``C`` classes, not ``O(n^2)``, with the same feasible
        labellings.

        Parameters
        ----------
        labels : array-like of shape (n_points,)
            Numbers or text. None, NaN and empty text are unknown. Text that reads as a number
            is compared as one, so ``"1"`` and ``"1.0"`` are the same class.
        unknown : optional
            One more label that means unknown, as a number or as text.

        Examples
        --------
        >>> known = Constraints.from_partial_labels([7, 7, -1, 5])
        >>> known.must_link.tolist(), known.cannot_link.tolist(), known.n_points
        ([[0, 1]], [[0, 3]], 4)
        """
        array = label_array(labels)
        rows, classes = known_classes(array, unknown)
        order = np.argsort(classes, kind="stable")
        lengths = np.bincount(classes)
        must_pairs, _ = chain_pairs(rows[order], lengths)
        representatives = rows[order][np.cumsum(lengths) - lengths]
        one, other = np.triu_indices(len(representatives), k=1)
        cannot_pairs = np.stack([representatives[one], representatives[other]], axis=1)
        return cls.from_pairs(must_pairs, cannot_pairs, n_points=len(array))

    @classmethod
    def from_group_labels(cls, labels: ArrayLike, unknown: Any = -1) -> Constraints:
        """Build must-links from the group of every point; points of different groups are free.

        Labels are read as in `from_partial_labels`: -1, None, NaN and empty text mean no group.

        >>> Constraints.from_group_labels(["a", "", "a", "b"])
        Constraints(1 must-link, 0 cannot-links, n_points=4)
        """
        array = label_array(labels)
        rows, groups = known_classes(array, unknown)
        order = np.argsort(groups, kind="stable")
        must_pairs, _ = chain_pairs(rows[order], np.bincount(groups))
        return cls.from_pairs(must_pairs, n_points=len(array))

    def conflicts(self, n_clusters: int, *, time_limit: float | None = 30.0) -> Diagnosis:
        """Find all contradictions, and a smallest set of pairs to remove.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        time_limit : float or None
            Seconds for proving that no smaller set suffices.

        Returns
        -------
        Diagnosis
            ``broken`` cannot-links with their must-link paths, ``clashes`` (cliques, odd
            cycles), ``remove_must``, ``remove_cannot``, and ``cleaned(constraints)``.

        Examples
        --------
        >>> pairs = Constraints.from_pairs([(0, 1), (1, 2), (3, 4)], [(0, 2), (2, 3), (2, 4)])
        >>> found = pairs.conflicts(n_clusters=2)
        >>> found.broken[0].path, found.size, found.smallest
        ((0, 1, 2), 1, True)
        """
        # Loaded here, not above: building and checking constraints does not need scipy.
        from certikmeans.problem.conflicts import diagnose

        count = _validate_count(n_clusters)
        if count < 1:
            raise InputError("n_clusters: there is at least one cluster", hint="pass K")
        return diagnose(self, count, StopSignal(time_limit))

    def as_fit_params(self, n_points: int) -> dict[str, NDArray[np.int64]]:
        """Keyword arguments for ``ConstrainedKMeans.fit``, after `check` for ``n_points``.

        >>> pairs = Constraints.from_pairs(must_link=[(0, 1)])
        >>> sorted(pairs.as_fit_params(3))
        ['cannot_link', 'must_link']
        """
        self.check(n_points)
        return {"must_link": self.must_link, "cannot_link": self.cannot_link}

    def __or__(self, other: Constraints) -> Constraints:
        """Return all pairs of both; they must be about the same number of points."""
        if not isinstance(other, Constraints):
            return NotImplemented
        counts = {c.n_points for c in (self, other) if c.n_points is not None}
        if len(counts) > 1:
            raise InputError(
                f"constraints: one side is about {self.n_points} points, the other about "
                f"{other.n_points}",
                hint="merge only constraints about the rows of the same table",
            )
        return Constraints(
            np.concatenate([self.must_link, other.must_link]),
            np.concatenate([self.cannot_link, other.cannot_link]),
            counts.pop() if counts else None,
        )

    def check(self, n_points: int) -> None:
        """Raise an error if the constraints do not fit a table of ``n_points`` rows."""
        if self.n_points is not None and self.n_points != n_points:
            raise InputError(
                f"constraints: they are about {self.n_points} points, but there are {n_points}",
                hint="if rows were selected by idx, pass constraints.subset(idx)",
            )
        largest = _max_index(self.must_link, self.cannot_link)
        if largest >= n_points:
            raise InputError(
                f"constraints: a pair names point {largest}, but there are {n_points}",
                hint=f"points are numbered 0 to {n_points - 1}; if rows were selected by idx, "
                "pass constraints.subset(idx)",
            )

    def subset(self, idx: ArrayLike) -> Constraints:
        """Return the constraints on the rows ``idx``, numbered by position in it.

        Pairs with both ends in ``idx`` are kept, and so are implied pairs:
        if ``i-j`` and ``j-k`` are must-links and ``j`` is left out, ``i`` and ``k`` are linked
        directly; and two must-link groups stay separated, through members that remain, even when
        the ends of the cannot-links between them are left out.

        Parameters
        ----------
        idx : array-like of int
            Distinct row numbers, in any order. For a mask pass ``np.flatnonzero(mask)``.

        Raises
        ------
        InputError
            If an index repeats or does not exist, or if a cannot-link contradicts the
            must-links, since no subset can express that.
        """
        largest = _max_index(self.must_link, self.cannot_link)
        rows = _validate_rows(idx, self.n_points)
        n_points = max(largest, int(rows.max(initial=-1))) + 1
        position = np.full(n_points, -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        component = _must_link_components(self.must_link, n_points)
        contradiction = component[self.cannot_link[:, 0]] == component[self.cannot_link[:, 1]]
        if contradiction.any():
            i, j = self.cannot_link[np.flatnonzero(contradiction)[0]]
            raise InputError(
                f"constraints: must-links join points {i} and {j}, a cannot-link separates them",
                hint="remove one of these pairs",
            )
        return Constraints(
            _subset_must_links(position[self.must_link], component[rows]),
            _subset_cannot_links(
                position[self.cannot_link], component[self.cannot_link], component[rows]
            ),
            len(rows),
        )


def chain_pairs(
    values: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Link each value to the next one of its group; also return the group of each pair.

    >>> chain_pairs(np.array([4, 0, 2, 1, 3]), np.array([3, 2]))[0].tolist()
    [[4, 0], [0, 2], [1, 3]]
    """
    group = np.repeat(np.arange(len(lengths)), lengths)
    inside = group[:-1] == group[1:]
    return np.stack([values[:-1], values[1:]], axis=1)[inside], group[:-1][inside]


def _canonical(pairs: Any, name: str, n_points: int | None) -> NDArray[np.int64]:
    links = as_links(pairs, name)
    if n_points is None:
        negative = (links.pairs < 0).any(axis=1)
        if negative.any():
            row = int(np.flatnonzero(negative)[0])
            raise InputError(
                f"{links.where(row)}: pair {links.shown(row)} names a point that does not exist",
                hint=f"points are numbered from {links.base}",
            )
        n_points = _max_index(links.pairs) + 1
    return canonical_pairs(links, n_points)


def _validate_count(n_points: Any) -> int:
    try:
        count = operator.index(n_points)
    except TypeError:
        count = -1
    if count < 0:
        raise InputError(
            f"n_points: expected a number of rows, got {n_points!r}", hint="pass len(X)"
        )
    return count


def _validate_rows(idx: ArrayLike, n_points: int | None) -> NDArray[np.int64]:
    rows = np.asarray(idx)
    if rows.size == 0:
        rows = rows.astype(np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError(
            f"idx: expected a list of row numbers, got {rows.dtype} of shape {rows.shape}",
            hint="for a mask pass np.flatnonzero(mask)",
        )
    outside = rows < 0 if n_points is None else (rows < 0) | (rows >= n_points)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"idx[{at}]: row {rows[at]} does not exist",
            hint="rows are numbered from 0" + ("" if n_points is None else f" to {n_points - 1}"),
        )
    distinct, counts = np.unique(rows, return_counts=True)
    if len(distinct) < len(rows):
        raise InputError(
            f"idx: row {distinct[counts > 1][0]} occurs more than once",
            hint="constraints between copies of a point are not defined; use distinct rows",
        )
    return rows.astype(np.int64)


def _max_index(*pairs: NDArray[np.int64]) -> int:
    return max(int(array.max(initial=-1)) for array in pairs)


def _must_link_components(pairs: NDArray[np.int64], n_points: int) -> NDArray[np.int64]:
    """Number the must-link components; each point gets the number of its own."""
    # Loaded here, not above: building and checking constraints does not need scipy.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), dtype=np.int8), pairs.T), shape=(n_points, n_points))
    _, component = connected_components(graph, directed=False)
    return np.asarray(component, dtype=np.int64)


def _subset_must_links(links: NDArray[np.int64], component: NDArray[np.int64]) -> NDArray[np.int64]:
    """Must-links between kept rows, and those implied by removed rows (-1)."""
    kept = links[(links >= 0).all(axis=1)]
    parts = _must_link_components(kept, len(component))
    _, representatives = np.unique(parts, return_index=True)  # one kept row of each part
    order = representatives[np.argsort(component[representatives], kind="stable")]
    whole, lengths = np.unique(component[representatives], return_counts=True)
    bridges, _ = chain_pairs(order, lengths)
    assert len(whole) == len(representatives) - len(bridges)
    return np.concatenate([kept, bridges])


def _subset_cannot_links(
    links: NDArray[np.int64], ends: NDArray[np.int64], component: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cannot-links between kept rows, and one for each pair of components that lost all."""
    kept = (links >= 0).all(axis=1)
    present, representatives = np.unique(component, return_index=True)
    ends = np.sort(ends, axis=1)
    width = np.int64(max(ends.max(initial=0), component.max(initial=0)) + 1)
    keys = ends[:, 0] * width + ends[:, 1]
    lost = np.setdiff1d(distinct(keys), distinct(keys[kept]), assume_unique=True)
    lost_ends = np.stack([lost // width, lost % width], axis=1)
    lost_ends = lost_ends[np.isin(lost_ends, present).all(axis=1)]
    return np.concatenate([links[kept], representatives[np.searchsorted(present, lost_ends)]])
