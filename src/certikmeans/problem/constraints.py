"""Constraints between the rows of a table: construction, union, subsets, diagnosis."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans._numbers import count
from certikmeans._types import Ints
from certikmeans.constraint_model.cannot_link_sets import (
    HINT,
    sets_of_columns,
    validate_set_columns,
)
from certikmeans.constraint_model.soft_pairs import PricedPairs, validate_priced_pairs
from certikmeans.errors import InputError
from certikmeans.problem.arrays import distinct
from certikmeans.problem.links import (
    Links,
    as_links,
    canonical_pairs,
    links_by_id,
    priced_rows_by_id,
    rows_by_id,
)
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


def known_classes(labels: NDArray[Any], unknown: Any) -> tuple[Ints, Ints]:
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
    """Constraints between the rows of one table: pairs, cannot-link sets and soft pairs.

    Row numbers refer to one table, so a `Constraints` stores the number of rows where it is known:
    `check` rejects a table of another length, and `subset` selects rows, as in cross-validation.
    Sizes of clusters are no property of rows; they are settings of the estimator.

    Parameters
    ----------
    must_link, cannot_link : array-like of shape (m, 2) or Links, optional
        Pairs of row numbers, counted from 0. Order and repetition do not matter.
    n_points : int, optional
        Number of rows. With None it is unknown, but exceeds every index.
    cannot_link_groups : array-like of shape (n_points,) or (n_points, n_columns), optional
        A whole number per row: at most one row of a number in every cluster. -1 means none.
    soft_must_link, soft_cannot_link : array-like of shape (m, 3), optional
        Rows ``(i, j, penalty)``: pairs that may be violated, for an increase of the cost by the
        penalty, in units of squared distance. An infinite penalty makes a pair hard.

    Attributes
    ----------
    must_link, cannot_link : ndarray of shape (m, 2)
        The distinct pairs with ``i < j``, sorted. Read-only.
    cannot_link_groups : ndarray of shape (n_columns, n_points)
        Sets, numbered from 0 in every column; -1 where a row is in none. Read-only.
    soft_must_link, soft_cannot_link : PricedPairs
        Arrays ``pairs`` and ``penalties``. Read-only.

    Examples
    --------
    >>> pairs = Constraints.from_pairs(must_link=[(0, 1)], cannot_link=[(1, 2)], n_points=4)
    >>> pairs | Constraints.from_groups([[1, 3]])
    Constraints(2 must-links, 1 cannot-link, n_points=4)
    >>> pairs.subset([2, 0]).cannot_link  # 0 and 2 stay separated without 1
    array([[0, 1]])
    >>> Constraints(soft_must_link=[(0, 1, 2.5)], cannot_link_groups=[4, -1, 4])
    Constraints(0 must-links, 0 cannot-links, 1 cannot-link set, 1 soft pair, n_points=3)
    """

    must_link: Ints = None  # type: ignore[assignment]
    cannot_link: Ints = None  # type: ignore[assignment]
    n_points: int | None = None
    cannot_link_groups: Ints = None  # type: ignore[assignment]
    soft_must_link: PricedPairs = None  # type: ignore[assignment]
    soft_cannot_link: PricedPairs = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.n_points is not None:
            put(self, "n_points", _validate_count(self.n_points))
        columns = list_of_columns(self.cannot_link_groups)
        if columns and self.n_points is None:
            put(self, "n_points", len(columns[0]))
        put(self, "cannot_link_groups", validate_set_columns(columns or None, self.n_points or 0))
        for kind in ("must_link", "cannot_link"):
            rows = getattr(self, f"soft_{kind}")
            available = np.iinfo(np.int64).max if self.n_points is None else self.n_points
            priced, infinite = validate_priced_pairs(rows, f"soft_{kind}", available)
            put(self, f"soft_{kind}", priced)
            hard = _canonical(getattr(self, kind), kind, self.n_points)
            if len(infinite):
                more = Links(np.concatenate([hard, infinite]), f"soft_{kind}")
                hard = _canonical(more, kind, self.n_points)
            put(self, kind, hard)

    def __repr__(self) -> str:
        parts = [
            count(len(self.must_link), "must-link"),
            count(len(self.cannot_link), "cannot-link"),
        ]
        if len(self.cannot_link_groups):
            parts.append(count(len(sets_of_columns(self.cannot_link_groups)), "cannot-link set"))
        n_soft = len(self.soft_must_link) + len(self.soft_cannot_link)
        if n_soft:
            parts.append(count(n_soft, "soft pair"))
        return f"Constraints({', '.join(parts)}, n_points={self.n_points})"

    @classmethod
    def from_pairs(
        cls,
        must_link: Any = None,
        cannot_link: Any = None,
        n_points: int | None = None,
        *,
        soft_must_link: Any = None,
        soft_cannot_link: Any = None,
        index: Iterable[Hashable] | None = None,
    ) -> Constraints:
        """Build from pairs ``(i, j)``, or from the `Links` that the readers return.

        Soft pairs have a third column: the penalty for violating them. With ``index``, the id of
        every row (``df.index``, or a column of ids), pairs name samples by ids of any hashable
        kind: tuples, arrays, or tables with two or three columns.

        >>> Constraints.from_pairs([("eve", "bob")], index=["ann", "bob", "eve"]).must_link
        array([[1, 2]])
        >>> doubtful = Constraints.from_pairs(soft_cannot_link=[(0, 2, 1.5)], n_points=3)
        >>> doubtful.soft_cannot_link.penalties
        array([1.5])
        """
        if index is None:
            return cls(
                must_link,  # type: ignore[arg-type]
                cannot_link,  # type: ignore[arg-type]
                n_points,
                soft_must_link=soft_must_link,
                soft_cannot_link=soft_cannot_link,
            )
        rows = rows_by_id(index)
        if n_points not in (None, len(rows)):
            raise InputError(
                f"n_points: {n_points}, but the index has {len(rows)} rows",
                hint="leave n_points out: it follows from the index",
            )
        return cls(
            links_by_id(must_link, "must_link", rows),  # type: ignore[arg-type]
            links_by_id(cannot_link, "cannot_link", rows),  # type: ignore[arg-type]
            len(rows),
            soft_must_link=priced_rows_by_id(soft_must_link, "soft_must_link", rows),  # type: ignore[arg-type]
            soft_cannot_link=priced_rows_by_id(  # type: ignore[arg-type]
                soft_cannot_link, "soft_cannot_link", rows
            ),
        )

    @classmethod
    def from_cannot_link_groups(cls, groups: Any) -> Constraints:
        """Build sets of which at most one member may be in a cluster, from a column or several.

        >>> Constraints.from_cannot_link_groups([0, 0, -1, 1, 1])
        Constraints(0 must-links, 0 cannot-links, 2 cannot-link sets, n_points=5)
        """
        return cls(cannot_link_groups=groups)

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

    def as_fit_params(self, n_points: int) -> dict[str, Any]:
        """Keyword arguments for ``ConstrainedKMeans.fit``, after `check` for ``n_points``.

        Pairs are `Links`, which name rows by position whatever the index of a DataFrame. Kinds of
        constraints beside hard pairs are included where there are some.

        >>> pairs = Constraints.from_pairs(must_link=[(0, 1)])
        >>> sorted(pairs.as_fit_params(3))
        ['cannot_link', 'must_link']
        """
        self.check(n_points)
        return {
            "must_link": Links(self.must_link, "must_link"),
            "cannot_link": Links(self.cannot_link, "cannot_link"),
            **self._other_kinds(),
        }

    def _other_kinds(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if len(self.cannot_link_groups):
            found["cannot_link_groups"] = self.cannot_link_groups.T
        for name in ("soft_must_link", "soft_cannot_link"):
            if len(getattr(self, name)):
                found[name] = getattr(self, name)
        return found

    def __or__(self, other: Constraints) -> Constraints:
        """Return all constraints of both; they must be about the same number of points."""
        if not isinstance(other, Constraints):
            return NotImplemented
        counts = {c.n_points for c in (self, other) if c.n_points is not None}
        if len(counts) > 1:
            raise InputError(
                f"constraints: one side is about {self.n_points} points, the other about "
                f"{other.n_points}",
                hint="merge only constraints about the rows of the same table",
            )
        n_points = counts.pop() if counts else None
        columns = [c.cannot_link_groups for c in (self, other) if len(c.cannot_link_groups)]
        return Constraints(
            np.concatenate([self.must_link, other.must_link]),
            np.concatenate([self.cannot_link, other.cannot_link]),
            n_points,
            np.concatenate(columns).T if columns else None,  # type: ignore[arg-type]
            _joined(self.soft_must_link, other.soft_must_link),
            _joined(self.soft_cannot_link, other.soft_cannot_link),
        )

    def check(self, n_points: int) -> None:
        """Raise an error if the constraints do not fit a table of ``n_points`` rows."""
        if self.n_points is not None and self.n_points != n_points:
            raise InputError(
                f"constraints: they are about {self.n_points} points, but there are {n_points}",
                hint="if rows were selected by idx, pass constraints.subset(idx)",
            )
        largest = self._largest_index()
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
        the ends of the cannot-links between them are left out. Likewise a row that is left out
        passes its soft pairs and its cannot-link sets on to a row of its must-link group.

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
        largest = self._largest_index()
        rows = _validate_rows(idx, self.n_points)
        n_points = max(largest, int(rows.max(initial=-1)), (self.n_points or 0) - 1) + 1
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
        # The row that stands for each row: itself, or one of its group; -1 where none is left.
        present, first = np.unique(component[rows], return_index=True)
        of_component = np.full(n_points + 1, -1, dtype=np.int64)
        of_component[present] = first
        standin = np.where(position >= 0, position, of_component[component])
        return Constraints(
            _subset_must_links(position[self.must_link], component[rows]),
            _subset_cannot_links(
                position[self.cannot_link], component[self.cannot_link], component[rows]
            ),
            len(rows),
            _subset_columns(self.cannot_link_groups, rows, position, standin),  # type: ignore[arg-type]
            _subset_priced(self.soft_must_link, standin),
            _subset_priced(self.soft_cannot_link, standin),
        )

    def softened(self, penalty: float) -> Constraints:
        """Return the same constraints with every hard pair as a soft pair of this penalty.

        A way out where hard pairs contradict each other: a labelling then violates the pairs that
        cost least. Soft pairs and cannot-link sets stay as they are.

        Parameters
        ----------
        penalty : float
            What it costs to violate a pair, of the size of a squared distance.

        Examples
        --------
        >>> Constraints(must_link=[(0, 1)], cannot_link=[(1, 0)]).softened(2.0)
        Constraints(0 must-links, 0 cannot-links, 2 soft pairs, n_points=None)
        """
        priced = [
            PricedPairs(pairs, np.full(len(pairs), float(penalty)))
            for pairs in (self.must_link, self.cannot_link)
        ]
        columns = self.cannot_link_groups
        return Constraints(
            n_points=self.n_points,
            cannot_link_groups=columns.T if len(columns) else None,  # type: ignore[arg-type]
            soft_must_link=_joined(self.soft_must_link, priced[0]),
            soft_cannot_link=_joined(self.soft_cannot_link, priced[1]),
        )

    def _largest_index(self) -> int:
        soft = self.soft_must_link.pairs, self.soft_cannot_link.pairs
        return _max_index(self.must_link, self.cannot_link, *soft)


def chain_pairs(values: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Link each value to the next one of its group; also return the group of each pair.

    >>> chain_pairs(np.array([4, 0, 2, 1, 3]), np.array([3, 2]))[0].tolist()
    [[4, 0], [0, 2], [1, 3]]
    """
    group = np.repeat(np.arange(len(lengths)), lengths)
    inside = group[:-1] == group[1:]
    return np.stack([values[:-1], values[1:]], axis=1)[inside], group[:-1][inside]


def _canonical(pairs: Any, name: str, n_points: int | None) -> Ints:
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


def _validate_rows(idx: ArrayLike, n_points: int | None) -> Ints:
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


def _max_index(*pairs: Ints) -> int:
    return max(int(array.max(initial=-1)) for array in pairs)


def _must_link_components(pairs: Ints, n_points: int) -> Ints:
    """Number the must-link components; each point gets the number of its own."""
    # Loaded here, not above: building and checking constraints does not need scipy.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), dtype=np.int8), pairs.T), shape=(n_points, n_points))
    _, component = connected_components(graph, directed=False)
    return np.asarray(component, dtype=np.int64)


def _subset_must_links(links: Ints, component: Ints) -> Ints:
    """Must-links between kept rows, and those implied by removed rows (-1)."""
    kept = links[(links >= 0).all(axis=1)]
    parts = _must_link_components(kept, len(component))
    _, representatives = np.unique(parts, return_index=True)  # one kept row of each part
    order = representatives[np.argsort(component[representatives], kind="stable")]
    whole, lengths = np.unique(component[representatives], return_counts=True)
    bridges, _ = chain_pairs(order, lengths)
    assert len(whole) == len(representatives) - len(bridges)
    return np.concatenate([kept, bridges])


def _subset_cannot_links(links: Ints, ends: Ints, component: Ints) -> Ints:
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


def _joined(one: PricedPairs, other: PricedPairs) -> PricedPairs:
    return PricedPairs(
        np.concatenate([one.pairs, other.pairs]), np.concatenate([one.penalties, other.penalties])
    )


def list_of_columns(columns: Any) -> list[NDArray[Any]]:
    """Return one column of sets, or a table with a row per point, as a list of columns.

    Text is numbered; empty text and missing values become -1.

    >>> list_of_columns(np.array([[0, 1], [0, 2], [3, 1]]))
    [array([0, 0, 3]), array([1, 2, 1])]
    >>> list_of_columns(["photo1", "", "photo1"])
    [array([ 0, -1,  0])]
    """
    if columns is None:
        return []
    if hasattr(columns, "columns"):  # a table of any library
        return [_numbered(np.asarray(columns[name])) for name in columns.columns]
    try:
        table = np.asarray(columns)
    except ValueError as error:
        raise InputError("cannot_link_groups: rows have different lengths", hint=HINT) from error
    if table.ndim != 2:
        return [_numbered(table)] if table.size else []
    return [_numbered(column) for column in table.T]


def _numbered(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype.kind not in "OSU" or column.ndim != 1:
        return column
    rows, classes = known_classes(column, unknown=-1)
    numbers = np.full(len(column), -1, dtype=np.int64)
    numbers[rows] = classes
    return numbers


def _subset_priced(priced: PricedPairs, standin: Ints) -> PricedPairs:
    """Soft pairs between rows that are left; those inside a must-link group are constant."""
    if not len(priced):
        return priced
    ends = standin[priced.pairs]
    kept = (ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])
    return PricedPairs(ends[kept], priced.penalties[kept])


def _subset_columns(
    columns: Ints,
    rows: Ints,
    position: Ints,
    standin: Ints,
) -> Ints | None:
    """Columns of set numbers for the rows that are left.

    A member that is left out is replaced by a row of its must-link group. That row may be in
    another set of the same column, so such sets get columns of their own.
    """
    if not len(columns):
        return None
    found = [columns[:, rows]]
    for column in columns:
        left_out = np.flatnonzero((column >= 0) & (position < 0) & (standin >= 0))
        for number in distinct(column[left_out]):
            members = standin[np.flatnonzero(column == number)]
            members = members[members >= 0]
            if len(distinct(members)) < len(members):
                raise InputError(
                    "constraints: must-links join two points of one cannot-link group",
                    hint="remove one of these constraints",
                )
            own = np.full(len(rows), -1, dtype=np.int64)
            own[members] = 0
            found.append(own[None, :])
    return np.concatenate(found).T
