"""Cluster bound at the root for given labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.cluster import ClusterBound
from certikmeans.bounds.cluster.driver import ClusterParams
from certikmeans.bounds.cluster.initial_point import columns_of
from certikmeans.incumbent import NullIncumbent
from certikmeans.parallel import TaskPool
from certikmeans.problem.data import Domain


class FixedIncumbent(NullIncumbent):
    """Incumbent that begins with given labels."""

    def __init__(self, labels, on_bound):
        super().__init__(labels)
        self._on_bound = on_bound

    def update_incumbent(self, labels, source, iterations=0):
        self._labels = labels

    def update_bound(self, value, source):
        assert source == "cluster"
        self._on_bound(value)


@dataclass(frozen=True, eq=False, kw_only=True)
class RootBoundContext(BoundContext):
    """Calls ``improve`` with the columns that the bound has found."""

    improve: Callable[[Any], None]

    def improve_incumbent(self, clusters):
        self.improve(clusters)


@dataclass
class RootBound:
    value: float
    multipliers: np.ndarray
    labels: np.ndarray  # the best labelling known at the end
    reached: bool  # whether the target is proven


def cluster_bound(
    reduced,
    labels,
    *,
    target_gap,
    stop,
    executor=None,
    improve=None,
    on_bound=lambda value: None,
    **params,
):
    """Bound at the root; ``improve`` gets the columns if the target is unreachable."""
    labels = np.asarray(labels)
    incumbent = FixedIncumbent(labels, on_bound)

    def improve_incumbent(columns):
        if improve is not None:
            incumbent.update_incumbent(improve(columns), "test")

    bound = ClusterBound(ClusterParams(**params))
    state = bound.setup(BoundInput(reduced, CannotLinkAssigner(reduced, labels), target_gap))
    ctx = RootBoundContext(
        stop,
        at_root=True,
        incumbent=incumbent,
        pool=TaskPool(executor),
        name="cluster",
        improve=improve_incumbent,
    )
    whole = Domain.root(reduced)
    found = bound.compute(state, whole, np.inf, ctx)
    cost = sum(column.cost for column in columns_of(reduced, incumbent.labels()))
    required = cost - target_gap * (cost + reduced.offset)
    evidence = found.leaf.evidence
    multipliers = np.zeros(reduced.n_groups) if evidence is None else evidence.values
    return RootBound(
        found.value, multipliers, incumbent.labels(), found.value >= required - 1e-12 * cost
    )
