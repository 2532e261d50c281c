"""What of certainty goes into a certificate: numbers from which a checker derives it again.

The checker works with boxes alone, and asks of every group once; so it is told of the points that
this much shows to be certain. It rounds in its own way: `level.FOR_A_CHECKER` leaves room for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty.counting import Family, one_centre_each
from certikmeans.certainty.level import Level
from certikmeans.certainty.ranges import worth_of
from certikmeans.certainty.regions import CenterRegion
from certikmeans.certainty.statements import family_worth, who_can_be_where
from certikmeans.presolve.pipeline import Presolved


@final
@dataclass(frozen=True, slots=True, eq=False)
class RegionClaim:
    """Multipliers and boxes; see ``docs/certificate-format.md``."""

    slack: float
    sigma: float
    multipliers: NDArray[np.float64]  # (n_groups,): by smallest row
    low: NDArray[np.float64]  # (n_boxes, n_axes), in the coordinates of presolve
    high: NDArray[np.float64]
    cluster: NDArray[np.int64]  # (n_boxes,): of ours
    certain: NDArray[np.bool_]  # (n_points,)
    centre: NDArray[np.float64]  # (n_features,): the coordinates
    axes: NDArray[np.float64]  # (n_features, n_axes)


def claim_of(
    presolved: Presolved,
    slack: float,
    level: Level,
    regions: tuple[CenterRegion, ...],
    families: tuple[Family, ...],
) -> RegionClaim | None:
    """What a checker can be told; None where it could not tell clusters apart."""
    if any(len(family.clusters) > 1 for family in families):
        return None
    reduced = presolved.reduced
    boxes = tuple(replace(region, radius=np.inf) for region in regions)
    worth = family_worth(worth_of(reduced, level.multipliers, boxes), families)
    if not one_centre_each(level, worth.high):
        return None
    told = who_can_be_where(reduced, worth, families, level.delta, rounds=1)
    cluster = np.empty(len(regions), dtype=np.int64)
    for family in families:
        cluster[list(family.regions)] = family.clusters[0]
    # A box that ends where the points end goes on beyond: the checker's points end elsewhere, by a
    # rounding, and no centre is out there.
    least, most = reduced.points.min(axis=0), reduced.points.max(axis=0)
    wide = most - least
    alone = told.possible.sum(axis=1) == 1
    rows = presolved.row_of_point
    kept = rows < reduced.n_groups
    certain = np.zeros(len(rows), dtype=bool)
    certain[kept] = alone[rows[kept]]
    return RegionClaim(
        slack=slack,
        sigma=level.sigma + 16.0 * level.error,
        multipliers=level.multipliers[np.argsort(presolved.first_points)],
        low=np.stack(
            [np.where(region.low <= least, least - wide, region.low) for region in regions]
        ),
        high=np.stack(
            [np.where(region.high >= most, most + wide, region.high) for region in regions]
        ),
        cluster=cluster,
        certain=certain,
        centre=presolved.centre,
        axes=presolved.axes,
    )
