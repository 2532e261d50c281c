"""Classes of clusters that are priced once: the same box, groups and limits on sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing import Column, PricingRegion
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain


@final
@dataclass(frozen=True, slots=True, eq=False)
class SymmetryClass:
    """Clusters with the same region, which are priced once."""

    region: PricingRegion
    clusters: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.clusters)

    def contains(self, center: NDArray[np.float64]) -> bool:
        """Whether a centre lies in the region."""
        active_faces = self.region.active_faces
        return bool(((center >= active_faces[0]) & (center <= active_faces[1])).all())

    def admits(self, column: Column) -> bool:
        """Whether the column's mean lies in the region and all its groups are allowed."""
        allowed = self.region.allowed
        if not self.contains(column.center) or not self.region.fits(column):
            return False
        return allowed is None or not bool((column.members.astype(bool) & ~allowed).any())


def symmetry_classes(reduced: ReducedProblem, domain: Domain) -> list[SymmetryClass]:
    """Classes of the clusters of ``domain`` with the same box and the same allowed groups.

    Where that is one class, the clusters may be numbered by their limits on sizes: then there is
    one class for each pair of limits. Otherwise they are numbered by their centres, and each has
    the loosest limits.
    """
    classes: dict[tuple[bytes, ...], list[int]] = {}
    for k in range(reduced.n_clusters):
        groups = b"" if domain.allowed is None else np.packbits(domain.allowed[:, k]).tobytes()
        key = (domain.lower[k].tobytes(), domain.upper[k].tobytes(), groups)
        classes.setdefault(key, []).append(k)
    sizes = reduced.label_constraints.sizes
    if len(classes) == 1 and sizes is not None and not sizes.uniform:
        return _classes_by_limits(reduced, domain, sizes)
    sym_classes = []
    for clusters in classes.values():
        k = clusters[0]
        allowed = None if domain.allowed is None else domain.allowed[:, k]
        region = PricingRegion.of(reduced, domain.lower[k], domain.upper[k], allowed)
        sym_classes.append(SymmetryClass(region, tuple(clusters)))
    return sym_classes


def _classes_by_limits(
    reduced: ReducedProblem, domain: Domain, sizes: SizeLimits
) -> list[SymmetryClass]:
    """Classes of clusters with the same limits on sizes, the same box and all groups allowed."""
    allowed = None if domain.allowed is None else domain.allowed[:, 0]
    region = PricingRegion.of(reduced, domain.lower[0], domain.upper[0], allowed)
    pairs = list(zip(sizes.lower.tolist(), sizes.upper.tolist(), strict=True))
    return [
        SymmetryClass(
            replace(region, limits=limits, demand=sizes.demand),
            tuple(k for k, own in enumerate(pairs) if own == limits),
        )
        for limits in sorted(set(pairs))
    ]
