"""From the original rows to the domain of a leaf, with the rounding of this map.

For a fixed labelling the cost of rows ``X`` is ``|P W^(1/2) X|_F^2``, ``P`` projecting out the
cluster means: the square of a seminorm. So moving rows by ``E`` moves its root by at most
``|W^(1/2) E|_F``, multiplying by ``Q`` multiplies it by at most ``|Q|_2``, lowering weights lowers
it, and a common shift does nothing. None of that depends on the labelling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import (
    BLOCK,
    EPS,
    Floats,
    Ints,
    connected_components,
    distinct,
    scatter,
    total,
    up,
)
from certikmeans.certificate.check_constraints import GroupConstraints, group_constraints
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.format import Reason, Rejection, StatedConstraints

# Entries of tables of groups times clusters: a base, and more per value of the points.
TABLE_ENTRIES, TABLE_ENTRIES_PER_VALUE = 1 << 24, 64


@final
@dataclass(frozen=True, slots=True, eq=False)
class OriginalProblem:
    """The original problem, and the coordinates of the evidence."""

    points: Floats
    weights: Floats
    n_clusters: int
    must_link: Ints
    cannot_link: Ints
    center: Floats
    axes: Floats
    constraints: StatedConstraints | None = None  # beside hard pairs


@final
@dataclass(frozen=True, slots=True, eq=False)
class BranchingPath:
    """Splits on the path from the root of the tree to a node, the first one first."""

    is_pair: NDArray[np.bool_]
    first: Ints  # cluster, or point
    second: Ints  # axis, or point
    value: Floats
    side: Ints

    @classmethod
    def root(cls) -> BranchingPath:
        """Return the path without splits."""
        return cls.allocate(0)

    @classmethod
    def allocate(cls, depth: int) -> BranchingPath:
        """Return arrays for so many splits."""
        integers = [np.zeros(depth, dtype=np.int64) for _ in range(3)]
        first, second, side = integers
        return cls(np.zeros(depth, dtype=bool), first, second, np.zeros(depth), side)

    def set_split(
        self, at: int, is_pair: bool, first: int, second: int, value: float, side: int
    ) -> None:
        """Set one split."""
        self.is_pair[at], self.first[at], self.second[at] = is_pair, first, second
        self.value[at], self.side[at] = value, side

    def head(self, depth: int) -> BranchingPath:
        """Return the first splits, as views."""
        return BranchingPath(
            self.is_pair[:depth],
            self.first[:depth],
            self.second[:depth],
            self.value[:depth],
            self.side[:depth],
        )

    def pairs(self, side: int) -> Ints:
        """Pairs added on the path: must-links (side 0) or cannot-links (side 1)."""
        chosen = self.is_pair & (self.side == side)
        return np.column_stack([self.first[chosen], self.second[chosen]])

    def boxes(self, n_clusters: int, n_dims: int) -> tuple[Floats, Floats]:
        """Lower and upper limits of the means; they ascend along axis 0."""
        low = np.full((n_clusters, n_dims), -np.inf)
        high = np.full((n_clusters, n_dims), np.inf)
        for side, limit, tighten in ((0, high, np.minimum), (1, low, np.maximum)):
            chosen = ~self.is_pair & (self.side == side)
            tighten.at(limit, (self.first[chosen], self.second[chosen]), self.value[chosen])
        low[:, 0] = np.maximum.accumulate(low[:, 0])
        high[:, 0] = np.minimum.accumulate(high[::-1, 0])[::-1]
        return low, high


@final
@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """Groups of points that share a cluster, in working coordinates.

    If every feasible labelling of the groups costs at least ``required_bound`` there, penalties
    included or not, then every labelling of the domain costs at least the bound that was claimed
    for the rows.
    """

    points: Floats  # (n_groups, n_axes)
    weights: Floats  # (n_groups,): at most the exact ones
    edges: Ints  # (m, 2): distinct cannot-links between groups
    infeasible: bool  # contradicting pairs: there is no labelling
    required_bound: float
    constraints: GroupConstraints | None = None  # with penalties in working coordinates

    @property
    def n_groups(self) -> int:
        """Number of groups, numbered by their smallest row."""
        return len(self.points)


def aggregate_domain(original: OriginalProblem, path: BranchingPath, lower_bound: float) -> Domain:
    """Merge, average and rotate the rows; map the claimed bound likewise, rounding up."""
    must = np.concatenate([original.must_link, path.pairs(0)])
    cannot = np.concatenate([original.cannot_link, path.pairs(1)])
    representatives, group = np.unique(
        connected_components(len(original.points), must), return_inverse=True
    )
    ends = np.sort(group[cannot], axis=1)
    key = distinct(ends[:, 0] * len(representatives) + ends[:, 1])
    edges = np.column_stack([key // len(representatives), key % len(representatives)])
    constraints = None
    if original.constraints is not None:
        constraints = group_constraints(
            original.constraints, group, len(representatives), edges, original.n_clusters
        )
        if 0.0 < lower_bound < math.inf:
            rest = math.nextafter(lower_bound - constraints.fixed_penalty, math.inf)
            lower_bound = max(0.0, rest) if constraints.fixed_penalty > 0.0 else lower_bound

    # Differences of floats are rounded once: |error| <= u |result|.
    centered = original.points - original.center
    weighted = original.weights[:, None] * centered * centered
    centering_error = up(EPS * math.sqrt(up(total(weighted), BLOCK + 8)), 4)
    # A single row is its own mean: only groups of several rows have an offset or a mean error.
    inside = scatter(centered, original.weights, group, len(representatives))
    averaging_error = up(math.sqrt(inside.mean_error))

    axes = original.axes
    d, r = axes.shape
    means = inside.means
    points = np.einsum("ij,jk->ik", means, axes)
    # |fl(x Q) - x Q| <= (d + 1) u |x| |Q|_F, row by row.
    # Rounded up before the root is taken: squares that underflow are not small after it.
    frobenius = up(math.sqrt(up(total(axes * axes), BLOCK + 4)))
    norm = up(math.sqrt(up(total(inside.masses_below[:, None] * means * means), BLOCK + 8)))
    rotation_error = up((d + 2) * EPS * frobenius * norm)
    # |Q|_2^2 is at most the largest row sum of |Q^T Q|.
    gram = np.abs(np.einsum("ji,jk->ik", axes, axes))
    rounding_error = (d + 2) * EPS * np.einsum("ji,jk->ik", np.abs(axes), np.abs(axes))
    norm_factor = up(math.sqrt(up(float((gram + rounding_error).sum(axis=1).max()), r + 6)))

    required_bound = lower_bound
    if 0.0 < lower_bound < math.inf:
        root = up(up(math.sqrt(lower_bound)) + centering_error)
        rest = up(root * root) - inside.below
        required_bound = 0.0
        if rest > 0.0:
            root = up(up(math.sqrt(up(rest))) + averaging_error)
            root = up(up(root * norm_factor) + rotation_error)
            required_bound = up(root * root)
    infeasible = bool(np.any(ends[:, 0] == ends[:, 1]))
    if constraints is not None:  # without points of weight 0: all groups are kept
        infeasible |= constraints.contradictory
        constraints = constraints.scaled(norm_factor * norm_factor)
    # Groups of weight 0 cost nothing: without them there are only more labellings.
    kept = inside.masses_below > 0.0
    if not kept.all():
        index = np.cumsum(kept) - 1
        points, edges = points[kept], index[edges[kept[edges].all(axis=1)]]
    return Domain(points, inside.masses_below[kept], edges, infeasible, required_bound, constraints)


@final
@dataclass(slots=True, eq=False)
class WorkBudget:
    """Work done so far for all leaves together."""

    limits: Limits
    boxes: int = 0
    matrix_cost: float = 0.0  # sum of the cubes of their orders
    domain_rows: int = 0  # points and pairs from which domains were built
    # Bound that a row of evidence proves at the root.
    cached_bounds: dict[int, float] = field(default_factory=dict)

    def add_domain(self, rows: int) -> None:
        """Count a domain of so many points and pairs; reject if the limit is exceeded."""
        self.domain_rows += rows
        if self.domain_rows > self.limits.domain_rows:
            raise Rejection(Reason.LIMIT, "too many large domains")

    def add_matrix(self, order: int) -> None:
        """Count a matrix; reject if the limit is exceeded."""
        self.matrix_cost += float(order) ** 3
        if self.matrix_cost > self.limits.matrix_work:
            raise Rejection(Reason.LIMIT, "too many large matrices")


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafContext:
    """Input of the check of one leaf. Boxes are those of the centers, within that of all points."""

    original: OriginalProblem
    root_domain: Domain  # the groups at the root of the tree
    domain: Domain  # the groups of this leaf: the same object where no pairs were added
    labels: Ints | None  # of the points
    lower_bound: float  # claimed for the original points
    low: Floats  # (n_clusters, n_axes)
    high: Floats
    cut_low: NDArray[np.bool_]  # (n_clusters, n_dims): faces created by splits
    cut_high: NDArray[np.bool_]
    row_index: int  # of the row of evidence, or -1
    row: Floats | None
    budget: WorkBudget

    @property
    def is_root_region(self) -> bool:
        """Whether no center was split: clusters may be numbered in any way."""
        return not (self.cut_low.any() or self.cut_high.any())

    def evidence(self) -> Floats:
        """Return the row of evidence; reject if there is none."""
        if self.row is None:
            raise Rejection(Reason.BOUND, "there are no multipliers")
        return self.row


def check_table_size(n_rows: int, n_clusters: int, points: Floats) -> None:
    """Reject tables of groups times clusters that are out of proportion to the points.

    The number of clusters comes from the file, and a small file can name a large one.
    """
    limit = max(TABLE_ENTRIES, TABLE_ENTRIES_PER_VALUE * points.size)
    if n_rows * n_clusters > limit:
        raise Rejection(
            Reason.LIMIT,
            f"a table of {n_rows} groups and {n_clusters} clusters exceeds the memory allowed",
        )


def require_bound(value: float, domain: Domain) -> None:
    """Reject a bound on the groups of a domain that is too small."""
    if not value >= domain.required_bound:  # rejects NaN
        raise Rejection(Reason.BOUND, f"proven {value!r} of {domain.required_bound!r} (reduced)")
