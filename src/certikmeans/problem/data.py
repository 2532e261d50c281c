"""Points, constraints and weights as given; the reduced problem; domains of the solution set."""

from __future__ import annotations

import hashlib
import math
import operator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans._numbers import count
from certikmeans.constraint_model.cannot_link_sets import sets_of_columns, validate_set_columns
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.model import LabelConstraints
from certikmeans.constraint_model.sizes import SizeLimits, validate_demand, validate_limit
from certikmeans.constraint_model.soft_pairs import (
    PricedPairs,
    ViolatedPair,
    validate_priced_pairs,
)
from certikmeans.errors import Argument, InputError, Message
from certikmeans.problem.arrays import MAX_COORDINATE, column_ranges, exact_sum
from certikmeans.problem.links import Links, as_links, canonical_pairs


def _copy_points(points: Any) -> NDArray[np.float64]:
    """Copy the points, so that callers cannot change them, unless mapped read-only from a file."""
    mapped = isinstance(points, np.memmap) and points.mode == "r"
    if mapped and points.dtype == np.float64 and points.flags.c_contiguous:
        mapped_points: NDArray[np.float64] = points.view(np.ndarray)
        return mapped_points
    return np.array(points, dtype=np.float64, order="C", copy=True)


def _validate_points(points: Any) -> NDArray[np.float64]:
    try:
        array = _copy_points(points)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"points: not a table of numbers ({error})",
            hint="give an array of shape (n_points, n_features) without text columns",
        ) from error
    if array.ndim != 2:
        raise InputError(
            f"points: expected a table, got an array of shape {array.shape}",
            hint="give an array of shape (n_points, n_features); one feature: x.reshape(-1, 1)",
        )
    if 0 in array.shape:
        raise InputError(
            f"points: the table is empty, its shape is {array.shape}",
            hint="at least one point and one feature are needed",
        )
    low, high = column_ranges(array)
    if not np.isfinite([low, high]).all():
        row, column = (int(v) for v in np.argwhere(~np.isfinite(array))[0])
        raise InputError(
            f"points: row {row}, column {column} is {array[row, column]}",
            hint="remove or fill in missing and infinite values before clustering",
        )
    if max(-low.min(), high.max()) > MAX_COORDINATE:
        row, column = (int(v) for v in np.argwhere(np.abs(array) > MAX_COORDINATE)[0])
        raise InputError(
            f"points: row {row}, column {column} is {array[row, column]}, which is too large "
            "for this arithmetic",
            hint=f"values may have a size of up to {MAX_COORDINATE:g}: rescale the feature",
        )
    spread = float((high - low).max())
    if 0.0 < spread < _MIN_SPREAD:
        raise InputError(
            f"points: they differ by {spread} at most: squared distances underflow",
            hint="rescale the features",
        )
    array.flags.writeable = False
    return array


_MIN_SPREAD = 1 / MAX_COORDINATE
_MIN_WEIGHT = 1e-12
_MAX_WEIGHT = 1e12


def _validate_weights(weights: Any, n_points: int) -> NDArray[np.float64]:
    if weights is None:
        array = np.ones(n_points)
    else:
        try:
            array = np.array(weights, dtype=np.float64, copy=True)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"weights: not numbers ({error})", hint="give one positive number per point"
            ) from error
        if array.shape != (n_points,):
            raise InputError(
                f"weights: expected shape ({n_points},), got {array.shape}",
                hint="give one positive number per point",
            )
        bad = ~((array >= _MIN_WEIGHT) & (array <= _MAX_WEIGHT)) & (array != 0.0)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"weights: row {row} is {array[row]}",
                hint=f"weights must be positive, from {_MIN_WEIGHT:g} to {_MAX_WEIGHT:g}, or 0",
            )
        if not array.any():
            raise InputError(
                "weights: all of them are 0", hint="give at least one point a positive weight"
            )
    array.flags.writeable = False
    return array


def _validate_n_clusters(n_clusters: Any, n_points: int) -> int:
    try:
        count = None if isinstance(n_clusters, bool) else operator.index(n_clusters)
    except TypeError:
        count = None
    if count is None:
        raise InputError(
            f"n_clusters: expected a whole number, got {n_clusters!r}",
            hint=f"choose K from 1 to the number of points, {n_points}",
        )
    if not 1 <= count <= n_points:
        raise InputError(
            f"n_clusters: {count} is not between 1 and the number of points, {n_points}",
            hint="choose a K in that range",
        )
    return count


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Problem:
    """Points, number of clusters, pairs and weights; validated on construction.

    Parameters
    ----------
    points : array-like of shape (n_points, n_features)
        Finite numbers. Copied, unless it is a file of float64 that is mapped read-only
        (``np.load(path, mmap_mode="r")``).
    n_clusters : int
        From 1 to n_points. Clusters may be empty in a solution.
    must_link, cannot_link : array-like of shape (m, 2) or Links, optional
        Pairs of row numbers, counted from 0. Order and repetition do not matter.
    weights : array-like of shape (n_points,), optional
        Not negative; the cost of a point is multiplied by its weight. A point of weight 0 takes
        the label of its must-link group or, without one of positive weight, of the nearest centre;
        then it must not occur in a cannot-link.

    cannot_link_groups : array-like of shape (n_points,), or several such columns, optional
        At most one point of a group may be in a cluster; -1 for points in no group.
    size_min, size_max : float or array-like of shape (n_clusters,), optional
        Limits on the size of clusters: of all, or of each (clusters in any order).
    demand : array-like of shape (n_points,), optional
        What a point counts towards the size of its cluster, 1 by default.
    soft_must_link, soft_cannot_link : array-like of shape (m, 3), optional
        Rows ``(i, j, penalty)``: pairs that may be violated; each violation adds its penalty to
        the cost. An infinite penalty makes a pair hard.

    Attributes
    ----------
    must_link, cannot_link : ndarray of shape (m, 2)
        The distinct hard pairs with ``i < j``, sorted.

    Notes
    -----
    All arrays are float64 or int64, C-contiguous and read-only; later stages do not check.

    Examples
    --------
    >>> problem = Problem.from_data([[0.], [1.], [9.]], n_clusters=2, cannot_link=[(1, 0), (0, 1)])
    >>> problem.cannot_link
    array([[0, 1]])
    >>> problem
    Problem(3 points, 1 feature, 2 clusters, 0 must-links, 1 cannot-link)
    """

    points: NDArray[np.float64]
    n_clusters: int
    must_link: NDArray[np.int64] = None  # type: ignore[assignment]
    cannot_link: NDArray[np.int64] = None  # type: ignore[assignment]
    weights: NDArray[np.float64] = None  # type: ignore[assignment]
    cannot_link_groups: NDArray[np.int64] = None  # type: ignore[assignment]  # (columns, n_points)
    size_min: NDArray[np.float64] | None = None  # (n_clusters,)
    size_max: NDArray[np.float64] | None = None  # (n_clusters,)
    demand: NDArray[np.float64] | None = None  # (n_points,); None: all 1
    soft_must_link: PricedPairs = None  # type: ignore[assignment]
    soft_cannot_link: PricedPairs = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        points = _validate_points(self.points)
        n_points = len(points)
        must, cannot = (
            as_links(self.must_link, "must_link"),
            as_links(self.cannot_link, "cannot_link"),
        )
        put = object.__setattr__
        put(self, "points", points)
        n_clusters = _validate_n_clusters(self.n_clusters, n_points)
        put(self, "n_clusters", n_clusters)
        hard = {}
        for name, links in (("must_link", must), ("cannot_link", cannot)):
            priced, infinite = validate_priced_pairs(
                getattr(self, f"soft_{name}"), f"soft_{name}", n_points
            )
            put(self, f"soft_{name}", priced)
            hard[name] = canonical_pairs(links, n_points)
            if len(infinite):
                more = Links(np.concatenate([hard[name], infinite]), f"soft_{name}")
                hard[name] = canonical_pairs(more, n_points)
            put(self, name, hard[name])
        put(self, "weights", _validate_weights(self.weights, n_points))
        columns = validate_set_columns(self.cannot_link_groups, n_points)
        put(self, "cannot_link_groups", columns)
        demand = validate_demand(self.demand, n_points)
        put(self, "demand", demand)
        for name in ("size_min", "size_max"):
            limit = validate_limit(
                getattr(self, name), name, n_clusters, n_points, counted=demand is None
            )
            put(self, name, limit)
        self._check_limits()

    def _check_limits(self) -> None:
        """Reject limits that contradict each other, and weights of 0 beside new kinds."""
        if self.size_min is not None and self.size_max is not None:
            crossed = self.size_min > self.size_max
            if crossed.any():
                k = int(np.flatnonzero(crossed)[0])
                raise InputError(
                    f"size_min: {self.size_min[k]:g} exceeds size_max, {self.size_max[k]:g}, "
                    f"of cluster {k}",
                    hint="give a minimum that is at most the maximum",
                )
        if self.demand is not None and not self.has_sizes:
            raise InputError(
                "demand: there is no limit on the sizes of clusters",
                hint="give size_min or size_max as well, or leave demand out",
            )
        if self.has_other_kinds and not self.weights.all():
            row = int(np.flatnonzero(self.weights == 0.0)[0])
            raise InputError(
                f"weights: row {row} is 0, which is not supported together with sets, sizes or "
                "soft pairs: the point would have no cost, but count in its cluster",
                hint="give the point a small positive weight, or leave it out; a demand of 0 makes "
                "a point that has a weight count for nothing in sizes",
            )

    @property
    def has_sizes(self) -> bool:
        """Whether the sizes of clusters are limited."""
        return self.size_min is not None or self.size_max is not None

    @property
    def has_soft_pairs(self) -> bool:
        """Whether there are pairs with a penalty."""
        return len(self.soft_must_link) + len(self.soft_cannot_link) > 0

    @property
    def has_other_kinds(self) -> bool:
        """Whether there are constraints beside hard pairs."""
        return len(self.cannot_link_groups) > 0 or self.has_sizes or self.has_soft_pairs

    def penalty(self, labels: NDArray[np.int64]) -> float:
        """Sum of the penalties of the violated soft pairs, rounded up."""
        if not self.has_soft_pairs:
            return 0.0
        must, cannot = self.soft_must_link, self.soft_cannot_link
        apart = labels[must.pairs[:, 0]] != labels[must.pairs[:, 1]]
        together = labels[cannot.pairs[:, 0]] == labels[cannot.pairs[:, 1]]
        paid = [*must.penalties[apart].tolist(), *cannot.penalties[together].tolist()]
        total = math.fsum(paid)
        return math.nextafter(total, math.inf) if total > 0.0 else 0.0

    def violated_soft_pairs(self, labels: NDArray[np.int64]) -> tuple[ViolatedPair, ...]:
        """List the soft pairs that ``labels`` violate, must-links first, in the order given."""
        found = []
        for kind, priced, together in (
            ("must_link", self.soft_must_link, False),
            ("cannot_link", self.soft_cannot_link, True),
        ):
            first, second = priced.pairs.T
            rows = np.flatnonzero((labels[first] == labels[second]) == together)
            columns = zip(priced.pairs[rows].tolist(), priced.penalties[rows].tolist(), strict=True)
            found += [ViolatedPair(kind, i, j, penalty) for (i, j), penalty in columns]
        return tuple(found)

    @classmethod
    def from_data(
        cls,
        points: ArrayLike,
        n_clusters: int,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
        weights: ArrayLike | None = None,
        cannot_link_groups: Any = None,
        size_min: Any = None,
        size_max: Any = None,
        demand: ArrayLike | None = None,
        soft_must_link: Any = None,
        soft_cannot_link: Any = None,
    ) -> Problem:
        """Build a problem from arrays, or from the output of the readers."""
        return cls(
            points,  # type: ignore[arg-type]
            n_clusters,
            must_link,
            cannot_link,
            weights,  # type: ignore[arg-type]
            cannot_link_groups,
            size_min,
            size_max,
            demand,  # type: ignore[arg-type]
            soft_must_link,
            soft_cannot_link,
        )

    def __repr__(self) -> str:
        parts = [
            count(self.n_points, "point"),
            count(self.n_features, "feature"),
            count(self.n_clusters, "cluster"),
            count(len(self.must_link), "must-link"),
            count(len(self.cannot_link), "cannot-link"),
            *([] if np.all(self.weights == 1.0) else ["weighted"]),
            *self._other_kinds(),
        ]
        return f"Problem({', '.join(parts)})"

    def _other_kinds(self) -> list[str]:
        """Return one phrase for each kind of constraint beside hard pairs."""
        parts = []
        if len(self.cannot_link_groups):
            parts.append(count(len(sets_of_columns(self.cannot_link_groups)), "cannot-link set"))
        if self.has_sizes:
            parts.append("limited cluster sizes")
        if self.has_soft_pairs:
            n_soft = len(self.soft_must_link) + len(self.soft_cannot_link)
            parts.append(count(n_soft, "soft pair"))
        return parts

    @property
    def n_points(self) -> int:
        """Number of rows."""
        return int(self.points.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.points.shape[1])

    def content_hash(self) -> str:
        """SHA-256 over shapes, points, weights, pairs and K: equal problems, equal hash."""
        digest = hashlib.sha256(b"certikmeans-problem-1")
        for array in (self.points, self.weights, self.must_link, self.cannot_link):
            digest.update(np.asarray(array.shape, dtype="<i8").tobytes())
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(np.ascontiguousarray(little).data)
        digest.update(np.int64(self.n_clusters).astype("<i8").tobytes())
        for name, array in self.other_arrays().items():
            digest.update(name.encode())
            digest.update(np.asarray(array.shape, dtype="<i8").tobytes())
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(np.ascontiguousarray(little).data)
        return digest.hexdigest()

    def other_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the constraints beside hard pairs as arrays by name; empty ones are left out."""
        found: dict[str, NDArray[Any] | None] = {
            "cannot_link_groups": self.cannot_link_groups,
            "size_min": self.size_min,
            "size_max": self.size_max,
            "demand": self.demand,
            "soft_must_link": self.soft_must_link.pairs,
            "soft_must_link_penalties": self.soft_must_link.penalties,
            "soft_cannot_link": self.soft_cannot_link.pairs,
            "soft_cannot_link_penalties": self.soft_cannot_link.penalties,
        }
        return {name: array for name, array in found.items() if array is not None and len(array)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReducedProblem:
    """The problem after presolve: weighted groups and constraints on their labels.

    Rows are ordered: groups with a cannot-link come first, component by component as
    `CannotLinkGraph` describes, then the free ones. Coordinates are centred and rotated to
    principal axes. ``cost(problem) == cost(reduced) + offset`` up to rounding; bounds
    are carried back by `presolve.PresolvedProblem.postsolve_bound`, which accounts for it.
    """

    points: NDArray[np.float64]  # (n_groups, n_dims)
    weights: NDArray[np.float64]  # (n_groups,), > 0
    label_constraints: LabelConstraints
    n_clusters: int
    offset: float  # sum of squares inside the groups, and penalties that every labelling pays

    def __post_init__(self) -> None:
        """Make the arrays read-only: kernels would be compiled again for writable ones."""
        for name in ("points", "weights"):
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @property
    def graph(self) -> CannotLinkGraph:
        """The cannot-links among the constraints, for lower bounds. See `label_constraints`."""
        return self.label_constraints.cannot_links

    @property
    def n_groups(self) -> int:
        """Number of rows."""
        return int(self.points.shape[0])

    @property
    def n_dims(self) -> int:
        """Number of columns; at least 1."""
        return int(self.points.shape[1])

    def cluster_sums(
        self, labels: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weighted sums of the points of every cluster, and the weights of the clusters."""
        k = self.n_clusters
        sums = np.empty((k, self.n_dims))
        for j, column in enumerate(self.points.T):
            sums[:, j] = np.bincount(labels, self.weights * column, k)
        return sums, np.bincount(labels, self.weights, k).astype(np.float64)

    def cluster_means(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weighted means of the clusters; that of an empty one is the origin, the overall mean."""
        sums, masses = self.cluster_sums(labels)
        means, filled = np.zeros_like(sums), masses > 0.0
        means[filled] = sums[filled] / masses[filled, None]
        return means


# Validation of start values given by a user.


def validate_start_labels(problem: Problem, labels: Any) -> NDArray[np.int64] | None:
    """Validate that labels satisfy every pair; an error names the first violated one.

    >>> two = Problem.from_data([[0.0], [1.0]], 2, cannot_link=[(0, 1)])
    >>> validate_start_labels(two, [1, 1])
    Traceback (most recent call last):
    ...
    certikmeans.errors.InputError: start_labels: points 0 and 1 share cluster 1, but must not
    hint: correct the labels, or leave out start_labels; in Python, initial_centers may break pairs
    """
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.shape != (problem.n_points,) or array.dtype.kind not in "iu":
        raise InputError(
            Message(
                Argument("start_labels"),
                f": expected {problem.n_points} whole numbers, "
                f"got {array.dtype} of shape {array.shape}",
            ),
            hint="give one cluster number per point",
        )
    outside = (array < 0) | (array >= problem.n_clusters)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError(
            Message(Argument("start_labels"), f": point {row} has label {array[row]}"),
            hint=f"clusters are numbered 0 to {problem.n_clusters - 1}",
        )
    hint = Message(
        "correct the labels, or leave out ",
        Argument("start_labels"),
        "; in Python, initial_centers may break pairs",
    )
    first, second = array[problem.must_link].T
    for i, j in problem.must_link[first != second]:
        raise InputError(
            Message(
                Argument("start_labels"),
                f": points {i} and {j} are in clusters {array[i]} and {array[j]}, "
                "but must share one",
            ),
            hint=hint,
        )
    first, second = array[problem.cannot_link].T
    for i, j in problem.cannot_link[first == second]:
        raise InputError(
            Message(
                Argument("start_labels"),
                f": points {i} and {j} share cluster {array[i]}, but must not",
            ),
            hint=hint,
        )
    _check_other_kinds(problem, array.astype(np.int64))
    return array.astype(np.int64)


def _check_other_kinds(problem: Problem, labels: NDArray[np.int64]) -> None:
    """Raise an error for start labels that violate sets or sizes."""
    hint = Message("correct the labels, or leave out ", Argument("start_labels"))
    for column in problem.cannot_link_groups:
        rows = np.flatnonzero(column >= 0)
        key = column[rows] * np.int64(problem.n_clusters) + labels[rows]
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(np.diff(key[order]) == 0)
        if len(same):
            i, j = rows[order[same[0]]], rows[order[same[0] + 1]]
            raise InputError(
                Message(
                    Argument("start_labels"),
                    f": points {i} and {j} of one cannot-link group share cluster {labels[i]}",
                ),
                hint=hint,
            )
    if problem.has_sizes:
        limits = size_limits(problem)
        if not limits.satisfied_by(labels):
            sizes = ", ".join(f"{value:g}" for value in limits.totals(labels))
            raise InputError(
                Message(
                    Argument("start_labels"),
                    f": the cluster sizes {sizes} are not within the limits",
                ),
                hint=hint,
            )


def size_limits(problem: Problem) -> SizeLimits:
    """Limits on sizes, and the demands of the points."""
    demand = np.ones(problem.n_points) if problem.demand is None else problem.demand
    k, total = problem.n_clusters, float(demand.sum())
    lower = np.zeros(k) if problem.size_min is None else problem.size_min
    upper = np.full(k, total) if problem.size_max is None else problem.size_max
    return SizeLimits(demand, lower, upper)


def mean_squared_distance(
    points: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> float:
    """Total sum of squares divided by the number of points: a usual penalty of a soft pair.

    >>> mean_squared_distance(np.array([[0.0], [2.0], [4.0], [6.0]]))
    5.0
    """
    mass = np.ones(len(points)) if weights is None else weights
    total = exact_sum(mass)
    scatter = 0.0
    for column in points.T:
        mean = exact_sum(mass * column) / total
        scatter += exact_sum(mass * (column - mean) ** 2)
    return scatter / len(points)


def validate_start_centers(problem: Problem, centers: Any) -> NDArray[np.float64] | None:
    """Finite centres of the right shape, as float64."""
    if centers is None:
        return None
    expected = (problem.n_clusters, problem.n_features)
    try:
        array = np.array(centers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            Message(Argument("initial_centers"), f": not a table of numbers ({error})"),
            hint=f"give shape {expected}",
        ) from error
    if array.shape != expected or not np.isfinite(array).all():
        raise InputError(
            Message(
                Argument("initial_centers"),
                f": expected finite numbers of shape {expected}, got shape {array.shape}",
            ),
            hint="one row per cluster, one column per feature",
        )
    return array


@final
@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """All labellings with the mean of every non-empty cluster k in ``lower[k] .. upper[k]``.

    ``allowed``, where given, also excludes every labelling that puts a group s into a cluster k
    with ``allowed[s, k]`` False.
    """

    lower: NDArray[np.float64]  # (n_clusters, n_dims)
    upper: NDArray[np.float64]  # (n_clusters, n_dims)
    allowed: NDArray[np.bool_] | None = None  # (n_groups, n_clusters)

    @classmethod
    def root(cls, problem: ReducedProblem) -> Domain:
        """Every labelling: a mean of points lies in the bounding box of the points."""
        low, high = column_ranges(problem.points)
        boxes = (problem.n_clusters, 1)
        return cls(np.tile(low, boxes), np.tile(high, boxes))
