"""Clusters that look alike: the same box, the same groups allowed. They are priced once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing import Column, Region
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem


@final
@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Clusters whose centres share one region: each is worth at most ``sigma`` of the region."""

    region: Region
    clusters: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.clusters)

    def holds(self, place: NDArray[np.float64]) -> bool:
        """Whether a centre may be there."""
        walls = self.region.walls
        return bool(((place >= walls[0]) & (place <= walls[1])).all())

    def may_hold(self, column: Column) -> bool:
        """Whether the column's mean may be here, and all its groups."""
        allowed = self.region.allowed
        if not self.holds(column.centre):
            return False
        return allowed is None or not bool((column.members.astype(bool) & ~allowed).any())


def families_of(reduced: ReducedProblem, part: Subproblem) -> list[Family]:
    """Group the clusters of ``part`` by box and allowed groups."""
    alike: dict[tuple[bytes, ...], list[int]] = {}
    for k in range(reduced.n_clusters):
        groups = b"" if part.viable is None else np.packbits(part.viable[:, k]).tobytes()
        key = (part.lower[k].tobytes(), part.upper[k].tobytes(), groups)
        alike.setdefault(key, []).append(k)
    families = []
    for clusters in alike.values():
        k = clusters[0]
        allowed = None if part.viable is None else part.viable[:, k]
        region = Region.of(reduced, part.lower[k], part.upper[k], allowed)
        families.append(Family(region, tuple(clusters)))
    return families
