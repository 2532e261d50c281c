"""Size cuts: how many clusters can lie in a part of the data.

The relaxation may put one and a half clusters on a site of one and a half times the largest size.
Let ``A`` be a set of groups of unit demand, ``m_k`` the number of its groups in cluster k, U the
largest and L the least size, and ``l = max(0, L - n + |A|)``, so that ``l <= m_k <= U``. With
``|A| = q U + (K - q - 1) l + r`` and ``l <= r < U``,

    sum over clusters of max(m_k - r, 0)  <=  q (U - r):

the left side is convex in ``m``, so it is largest at a vertex of ``l <= m_k <= U``,
``sum m_k = |A|``, where q clusters have U groups of ``A``, one has r, and the others have l. A
solution of the relaxation with one and a half clusters in ``A`` violates it.

With multipliers ``beta >= 0`` the Lagrangian bound is ``sum lam - K sigma - sum beta q (U - r)``,
where a cluster pays ``beta max(m - r, 0)`` in its pricing (`kernels.constraint_prices.size_cuts`).
All numbers are whole and far below ``2^53``, so that right sides are exact. The sets of the cuts in
use are disjoint, which makes their prices independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints, Mask
from certikmeans.problem import ReducedProblem


@final
@dataclass(frozen=True, slots=True)
class SizeCutParams:
    """Settings of the separation of size cuts."""

    max_cuts: int = 8
    min_rest: float = 0.02  # least distance of a site from a multiple of the largest size, which
    # is the unit
    n_cells: int = 64  # parts of the data, of which candidates are unions
    sample_size: int = 1_000  # of the groups, for the parts

    def __post_init__(self) -> None:
        if self.max_cuts < 1 or not 2 <= self.n_cells <= self.sample_size:
            raise ValueError("max_cuts >= 1 and 2 <= n_cells <= sample_size are required")


DEFAULT_PARAMS = SizeCutParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class SizeCuts:
    """Cuts of disjoint sets of groups."""

    cut_of: NDArray[np.int32]  # (n_groups,): cut of every group, -1 for none
    free: Floats  # (n_cuts,)
    right_side: Floats  # (n_cuts,)
    distance: Floats  # (n_cuts,): squared, of the set from the next groups

    @classmethod
    def none(cls, n_groups: int) -> SizeCuts:
        """No cuts."""
        return cls(np.full(n_groups, -1, dtype=np.int32), np.empty(0), np.empty(0), np.empty(0))

    def __len__(self) -> int:
        return len(self.free)

    def sums(self, values: Floats, members: Ints | None = None) -> Floats:
        """Sum of the values, of all groups or of some, in every set."""
        cut_of = self.cut_of if members is None else self.cut_of[members]
        inside = cut_of >= 0
        return np.bincount(cut_of[inside], values[inside], len(self)).astype(np.float64)

    def excess(self, members: Ints) -> Floats:
        """Members of a cluster beyond the free ones, for every cut."""
        counts = self.sums(np.ones(len(members)), members)
        excess: Floats = np.maximum(counts - self.free, 0.0)
        return excess

    def extended(self, inside: Mask, free: int, right_side: int, distance: float) -> SizeCuts:
        """Append the cut of a set disjoint from the others."""
        return SizeCuts(
            np.where(inside, len(self), self.cut_of).astype(np.int32),
            np.append(self.free, free),
            np.append(self.right_side, right_side),
            np.append(self.distance, distance),
        )


def supports_size_cuts(reduced: ReducedProblem) -> bool:
    """Whether sizes of unit demand, the same for all clusters, are the only constraints."""
    model = reduced.label_constraints
    sizes = model.sizes
    others = model.sets is not None or model.soft is not None or len(model.cannot_links.neighbors)
    return sizes is not None and sizes.unit and sizes.uniform and not others


def cut_numbers(n_groups: int, n_clusters: int, low: int, high: int, size: int) -> tuple[int, int]:
    """Free members and right side of the cut of a set of this size; right side 0: no cut.

    >>> cut_numbers(2000, 4, 500, 500, 750)  # one cluster in the set, 250 groups beside it
    (250, 250)
    """
    high = min(high, n_groups - (n_clusters - 1) * low)
    least = max(0, low - n_groups + size)
    if high <= least:
        return size, 0
    full = (size - n_clusters * least) // (high - least)
    if not 0 < full < n_clusters:
        return size, 0
    free = size - full * high - (n_clusters - full - 1) * least
    if free <= least:  # true for any covering of the set
        return size, 0
    return free, full * (high - free)


def find_size_cuts(
    reduced: ReducedProblem, params: SizeCutParams = DEFAULT_PARAMS
) -> SizeCuts | None:
    """Cuts of well separated sites that are no multiple of the sizes; None if there are none.

    Candidates are the nodes of a Ward tree of a sample, completed by the nearest means of its
    cells. Putting ``r`` groups of a site into a cluster of U groups with others costs about
    ``r (U - r) / U`` times the squared distance of the site from them; the dearest come first.
    """
    sizes = reduced.label_constraints.sizes
    assert sizes is not None
    n, k = reduced.n_groups, reduced.n_clusters
    low, high = int(sizes.lower[0]), int(min(sizes.upper[0], n))
    cell_of, sites = _sites(reduced, params)
    cell_sizes = np.bincount(cell_of, minlength=params.n_cells)
    found = []
    for cells, distance in sites:
        free, right_side = cut_numbers(n, k, low, high, int(cell_sizes[cells].sum()))
        if right_side > 0 and min(free, high - free) >= params.min_rest * high:
            cost = distance * free * (high - free) / high
            found.append((cost, cells, free, right_side, distance))
    found.sort(key=lambda one: -one[0])
    cuts, taken = SizeCuts.none(n), np.zeros(len(cell_sizes), dtype=bool)
    for _, cells, free, right_side, distance in found:
        if len(cuts) < params.max_cuts and not taken[cells].any():
            taken[cells] = True
            cuts = cuts.extended(np.isin(cell_of, cells), free, right_side, distance)
    return cuts if len(cuts) else None


def _sites(
    reduced: ReducedProblem, params: SizeCutParams
) -> tuple[Ints, list[tuple[list[int], float]]]:
    """Cell of every group, and unions of cells with their squared distance from the next union."""
    from scipy.cluster.hierarchy import cut_tree, ward  # loaded here: slow to import

    n = reduced.n_groups
    sample = np.unique(np.linspace(0, n - 1, min(n, params.sample_size)).astype(np.int64))
    points = reduced.points[sample]
    tree = ward(points)
    count = min(params.n_cells, len(sample))
    cells = cut_tree(tree, n_clusters=count).ravel()
    means = np.stack([points[cells == i].mean(axis=0) for i in range(count)])
    nearest, least = np.zeros(n, dtype=np.int64), np.full(n, np.inf)
    for i, mean in enumerate(means):
        away = reduced.points - mean
        square = np.einsum("ij,ij->i", away, away)
        nearest[square < least] = i
        np.minimum(least, square, out=least)
    inside: list[set[int]] = [{int(cell)} for cell in cells]
    mass = np.ones(2 * len(sample) - 1)
    sites = []
    for number, (first, second) in enumerate(tree[:, :2].astype(np.int64)):
        inside.append(inside[first] | inside[second])
        mass[len(sample) + number] = mass[first] + mass[second]
        if number >= len(sample) - count:
            # Half of the square of the height is what the merge adds to the sum of squares.
            share = mass[first] * mass[second] / (mass[first] + mass[second])
            distance = 0.5 * float(tree[number, 2]) ** 2 / share
            sites += [(sorted(inside[one]), distance) for one in (first, second)]
    return nearest, sites
