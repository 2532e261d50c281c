"""From the rows as given to a part of the solution set, with the rounding of the way.

For a fixed labelling the cost of rows ``X`` is ``|P W^(1/2) X|_F^2``, ``P`` projecting out the
cluster means: the square of a seminorm. So moving rows by ``E`` moves its root by at most
``|W^(1/2) E|_F``, multiplying by ``Q`` multiplies it by at most ``|Q|_2``, lowering weights lowers
it, and a common shift does nothing. None of that depends on the labelling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import (
    BLOCK,
    EPS,
    Floats,
    Ints,
    component_labels,
    distinct,
    scatter,
    total,
    up,
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """The problem as stated, and the coordinates in which the evidence is given."""

    points: Floats
    weights: Floats
    n_clusters: int
    must_link: Ints
    cannot_link: Ints
    centre: Floats
    axes: Floats


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The way from the root of the tree to a node, as a chain: one link per split."""

    above: Cuts | None = None
    paired: bool = False
    first: int = -1  # cluster, or point
    second: int = -1  # axis, or point
    value: float = 0.0
    side: int = 0
    depth: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", 0 if self.above is None else self.above.depth + 1)

    def links(self) -> list[Cuts]:
        """Return the splits, the last one first."""
        found, cuts = [], self
        while cuts.above is not None:
            found.append(cuts)
            cuts = cuts.above
        return found

    def pairs(self, side: int) -> Ints:
        """Pairs added on the way: together (side 0) or apart (side 1)."""
        pairs = [(c.first, c.second) for c in self.links() if c.paired and c.side == side]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def boxes(self, n_clusters: int, n_axes: int) -> tuple[Floats, Floats]:
        """Lower and upper limits of the means; they ascend along axis 0."""
        low = np.full((n_clusters, n_axes), -np.inf)
        high = np.full((n_clusters, n_axes), np.inf)
        for c in self.links():
            if c.paired:
                continue
            place = c.first, c.second
            if c.side == 0:
                high[place] = min(high[place], c.value)
            else:
                low[place] = max(low[place], c.value)
        low[:, 0] = np.maximum.accumulate(low[:, 0])
        high[:, 0] = np.minimum.accumulate(high[::-1, 0])[::-1]
        return low, high


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Groups of points that share a cluster, in working coordinates.

    If every proper labelling of the groups costs at least ``needed`` there, then every
    labelling of the part costs at least the bound that was claimed for the rows.
    """

    points: Floats  # (n_groups, n_axes)
    weights: Floats  # (n_groups,): at most the exact ones
    edges: Ints  # (m, 2): distinct cannot-links between groups
    contradictory: bool  # a pair both together and apart: there is no labelling
    needed: float

    @property
    def n_groups(self) -> int:
        """Number of groups, numbered by their smallest row."""
        return len(self.points)


def collapse(stated: Stated, cuts: Cuts, lower_bound: float) -> Part:
    """Group, average, turn; and carry the claimed bound the same way, rounding up."""
    must = np.concatenate([stated.must_link, cuts.pairs(0)])
    cannot = np.concatenate([stated.cannot_link, cuts.pairs(1)])
    names, group = np.unique(component_labels(len(stated.points), must), return_inverse=True)
    ends = np.sort(group[cannot], axis=1)
    key = distinct(ends[:, 0] * len(names) + ends[:, 1])
    edges = np.column_stack([key // len(names), key % len(names)])

    # Differences of floats are rounded once: |error| <= u |result|.
    centred = stated.points - stated.centre
    weighted = stated.weights[:, None] * centred * centred
    centring = up(EPS * math.sqrt(up(total(weighted), BLOCK + 8)), 4)
    # A single row is its own mean: only groups of several have an offset or a drift.
    inside = scatter(centred, stated.weights, group, len(names))
    averaging = up(math.sqrt(inside.drift))

    axes = stated.axes
    d, r = axes.shape
    means = inside.means
    points = np.einsum("ij,jk->ik", means, axes)
    # |fl(x Q) - x Q| <= (d + 1) u |x| |Q|_F, row by row.
    # Rounded up before the root is taken: squares that underflow are not small after it.
    frobenius = up(math.sqrt(up(total(axes * axes), BLOCK + 4)))
    norm = up(math.sqrt(up(total(inside.masses_below[:, None] * means * means), BLOCK + 8)))
    turning = up((d + 2) * EPS * frobenius * norm)
    # |Q|_2^2 is at most the largest row sum of |Q^T Q|.
    gram = np.abs(np.einsum("ji,jk->ik", axes, axes))
    doubt = (d + 2) * EPS * np.einsum("ji,jk->ik", np.abs(axes), np.abs(axes))
    stretch = up(math.sqrt(up(float((gram + doubt).sum(axis=1).max()), r + 6)))

    needed = lower_bound
    if 0.0 < lower_bound < math.inf:
        root = up(up(math.sqrt(lower_bound)) + centring)
        rest = up(root * root) - inside.below
        needed = 0.0
        if rest > 0.0:
            root = up(up(math.sqrt(up(rest))) + averaging)
            root = up(up(root * stretch) + turning)
            needed = up(root * root)
    contradictory = bool(np.any(ends[:, 0] == ends[:, 1]))
    # Groups that weigh nothing cost nothing: without them there are only more labellings.
    kept = inside.masses_below > 0.0
    if not kept.all():
        place = np.cumsum(kept) - 1
        points, edges = points[kept], place[edges[kept[edges].all(axis=1)]]
    return Part(points, inside.masses_below[kept], edges, contradictory, needed)
