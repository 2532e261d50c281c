"""Columns: the clusters that a bundle has found, from labels and for what comes next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import Mixture
from certikmeans.bounds.cluster.families import Family
from certikmeans.bounds.cluster.model import CutModel
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.problem import ReducedProblem
from certikmeans.problem.tables import row_blocks

# Columns handed on to the parts of a part: the heaviest ones.
KEPT_COLUMNS = 40
LEAST_WEIGHT = 1e-6
# With many clusters their means alone, so many for each cluster.
KEPT_PLACES = 100

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What a bundle begins with.

    ``own`` has the clusters of a labelling in the part, by the number of their family; ``others``
    are clusters found before, and ``places`` are centres of more of them, of which the groups are
    forgotten.
    """

    own: Sequence[tuple[int, Column]]
    others: Sequence[Column] = ()
    places: Sequence[Vector] = ()
    in_a_node: bool = False
    familiar: bool = False  # ascents from known clusters were all that exact pricing could find
    hopeful: bool = True  # the goal may be in reach


def columns_of(reduced: ReducedProblem, labels: NDArray[np.int64]) -> list[Column]:
    """One column per cluster of the labels, worth nothing where multipliers are costs."""
    used = np.flatnonzero(np.bincount(labels))
    return [column_of(reduced, labels == k) for k in used]


def column_of(reduced: ReducedProblem, members: NDArray[Any]) -> Column:
    """Column of a set that is not empty."""
    rows = np.flatnonzero(members)
    weights, points = reduced.weights[rows], reduced.points[rows]
    mass = float(weights.sum())
    mean = weights @ points / mass
    cost = 0.0
    for block in row_blocks(points):
        away = points[block] - mean
        cost += float(weights[block] @ np.einsum("ij,ij->i", away, away))
    return Column.of(mean, members, mass, cost, 0.0)


def heaviest_columns(columns: Sequence[Column], weights: Vector) -> tuple[Column, ...]:
    """Columns to hand on."""
    order = np.argsort(-weights, kind="stable")[:KEPT_COLUMNS]
    return tuple(columns[int(i)] for i in order)


def heaviest_places(
    columns: Sequence[Column], weights: Vector, reduced: ReducedProblem
) -> NDArray[np.float64]:
    """Means of columns to hand on: what they hold is found again there."""
    order = np.argsort(-weights, kind="stable")[: KEPT_PLACES * reduced.n_clusters]
    chosen = [columns[int(i)].centre for i in order if weights[i] > 0.0]
    return np.array(chosen).reshape(len(chosen), reduced.n_axes)


def columns_to_recombine(model: CutModel, incumbent: Sequence[Column]) -> list[Column]:
    """The incumbent's own clusters, then what is known, in the order of weight in the mixture."""
    order = np.argsort(-model.weights, kind="stable")
    return [*incumbent, *(model.columns[int(i)] for i in order)]


def mixture_of(
    columns: Sequence[Column], weights: Vector, clusters_of: Callable[[int], tuple[int, ...]]
) -> Mixture | None:
    """The relaxation's own solution: columns in proportion to the weights that cap the model."""
    chosen = np.flatnonzero(weights > LEAST_WEIGHT)
    if len(chosen) == 0:
        return None
    return Mixture(
        members=np.stack([columns[int(i)].members for i in chosen]),
        centers=np.stack([columns[int(i)].centre for i in chosen]),
        weights=weights[chosen],
        clusters=tuple(clusters_of(int(i)) for i in chosen),
    )


def rounded_mixture(
    mixture: Mixture | None, families: Sequence[Family], centers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Centres of the heaviest columns of every family."""
    if mixture is None:
        return ()
    rounded = centers.copy()
    for family in families:
        mine = [i for i, clusters in enumerate(mixture.clusters) if clusters == family.clusters]
        mine.sort(key=lambda i: -mixture.weights[i])
        for k, i in zip(family.clusters, mine, strict=False):
            rounded[k] = mixture.centers[i]
    return (rounded,)
