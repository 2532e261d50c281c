"""How many centres every cell of regions holds, and which of ours they correspond to.

Of a labelling that is good enough, with ``delta`` for all deficits together:

* an empty cluster has the deficit ``sigma``, so with ``sigma > delta``, without which there are no
  regions (`regions.enclose`), none is empty;
* ``m`` centres in a region have disjoint clusters, together worth at most
  ``sum_s max(a_s, 0)`` over the region, and at least ``m sigma - delta``;
* without a centre in region j every group is worth at most what it is in the other regions; one
  that is worth less than nothing there costs its cluster as much, cannot-links or not (a cluster
  without some of its groups is a cluster), so ``sum_s max(0, -max_(i != j) a_s) <= delta``;
* all counts together make K.

R may have islands without a centre of ours: other clusters that are as good. Each is counted with
the region of ours that is nearest, as one *cell*; all of the above holds for cells as well. Where
least and most agree for a cell, the clusters there correspond to ours there, as our own
labelling is one of those spoken of. Where they do not, the two such cells that are nearest become
one, until it is known what they hold together. All that is left is taken together: it holds the
rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty.level import Level
from certikmeans.certainty.ranges import Worth
from certikmeans.certainty.regions import CenterRegion
from certikmeans.problem.tables import SMALL_BLOCK, row_blocks
from certikmeans.rounding import EPS

# Cells that are put together, two by two, at most.
MOST_MERGERS = 40


@final
@dataclass(frozen=True, slots=True)
class Family:
    """Clusters of ours, and the regions that hold as many of any good labelling."""

    clusters: tuple[int, ...]
    regions: tuple[int, ...]


def families_of(
    level: Level,
    worth: Worth,
    regions: tuple[CenterRegion, ...],
    centers: NDArray[np.float64],
    slack: NDArray[np.float64],
) -> tuple[Family, ...] | None:
    """Match regions with clusters. ``centers`` are ours, up to ``slack``.

    None: rounding leaves open which region a centre of ours is in.
    """
    home = [_home_of(place, regions, slack) for place in centers]
    if None in home:
        return None
    ours = np.bincount(np.array(home, dtype=np.int64), minlength=len(regions))
    cells = _cells(regions, ours)
    exact = _exact(level, worth, cells, ours)
    for _ in range(MOST_MERGERS):
        pair = _nearest(regions, [j for j, is_exact in enumerate(exact) if not is_exact], cells)
        if pair is None:
            break
        # Two cells that exchange a centre hold a known number together.
        cells[pair[0]] += cells.pop(pair[1])
        exact = _exact(level, worth, cells, ours)
    loose = [j for cell, is_exact in zip(cells, exact, strict=True) if not is_exact for j in cell]
    known = [cell for cell, is_exact in zip(cells, exact, strict=True) if is_exact]
    return tuple(
        Family(tuple(k for k, where in enumerate(home) if where in cell), tuple(cell))
        for cell in (*known, *([loose] if loose else []))
    )


def one_centre_each(level: Level, high: NDArray[np.float64]) -> bool:
    """Whether every set of places holds one centre, given what groups are worth there at most."""
    columns = [high[:, k] for k in range(high.shape[1])]
    least, most = _counts(level, columns, len(columns))
    return bool(np.all(least == 1) and np.all(most == 1))


def _home_of(
    place: NDArray[np.float64], regions: tuple[CenterRegion, ...], slack: NDArray[np.float64]
) -> int | None:
    """Number of the region that a centre is in; None: of none, or it is between two."""
    homes = [
        j
        for j, region in enumerate(regions)
        if np.all(region.low - slack <= place) and np.all(place <= region.high + slack)
    ]
    return homes[0] if len(homes) == 1 else None


def _cells(regions: tuple[CenterRegion, ...], ours: NDArray[np.int64]) -> list[list[int]]:
    """Regions with a centre of ours, each with the islands that are nearest to it."""
    held = np.flatnonzero(ours > 0)
    cells = [[int(j)] for j in held]
    middles = np.stack([0.5 * (region.low + region.high) for region in regions])
    for j in np.flatnonzero(ours == 0):
        away = np.sum((middles[held] - middles[j]) ** 2, axis=1)
        cells[int(np.argmin(away))].append(int(j))
    return cells


def _exact(
    level: Level,
    worth: Worth,
    cells: list[list[int]],
    ours: NDArray[np.int64],
) -> list[bool]:
    """Whether a cell is known to hold as many centres as it holds of ours."""
    high = [worth.over(cell)[1] for cell in cells]
    least, most = _counts(level, high, int(ours.sum()))
    held = [int(ours[cell].sum()) for cell in cells]
    return [bool(least[j] == most[j] == held[j]) for j in range(len(cells))]


def _nearest(
    regions: tuple[CenterRegion, ...], loose: list[int], cells: list[list[int]]
) -> tuple[int, int] | None:
    """The two of the loose cells that are nearest to each other, in ascending order."""
    if len(loose) < 2:
        return None
    first = [regions[cells[j][0]] for j in loose]
    middles = np.stack([0.5 * (region.low + region.high) for region in first])
    away = np.sum((middles[:, None] - middles[None]) ** 2, axis=2)
    np.fill_diagonal(away, np.inf)
    i, j = divmod(int(np.argmin(away)), len(loose))
    return loose[min(i, j)], loose[max(i, j)]


def _counts(
    level: Level, high: list[NDArray[np.float64]], n_clusters: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Least and most centres of every cell, given what groups are worth there at most."""
    n_groups, n_cells = len(high[0]), len(high)
    least, most = np.zeros(n_cells, dtype=np.int64), np.full(n_cells, n_clusters)
    slack = (n_groups + 8) * EPS
    all_worth, lost = _sums(high)
    for j in range(n_cells):
        held = all_worth[j] * (1.0 + slack)
        while most[j] > 0 and most[j] * level.sigma * (1.0 - 4.0 * EPS) - level.delta > held:
            most[j] -= 1
        if lost[j] * (1.0 - slack) > level.delta:
            least[j] = 1
    for _ in range(n_cells + 1):  # every round settles a region, or changes nothing
        most = np.minimum(most, n_clusters - (least.sum() - least))
        least = np.maximum(least, n_clusters - (most.sum() - most))
    return least, most


def _sums(
    high: list[NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For every cell, what all groups are worth there at most, and what they lose elsewhere."""
    n_cells = len(high)
    worth, lost = np.zeros(n_cells), np.zeros(n_cells)
    for rows in row_blocks(high[0], SMALL_BLOCK):
        here = [column[rows] for column in high]
        first, second = np.full(len(here[0]), -np.inf), np.full(len(here[0]), -np.inf)
        for column in here:
            np.maximum(second, np.minimum(first, column), out=second)
            np.maximum(first, column, out=first)
        for j, column in enumerate(here):
            worth[j] += np.maximum(column, 0.0).sum()
            # The best of the others: the second one where this is the first.
            others = np.where(column == first, second, first)
            lost[j] += np.maximum(0.0, -others).sum()
    return worth, lost
