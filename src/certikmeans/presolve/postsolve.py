"""Postsolve: the inverse of every presolve step for labels and for lower bounds.

Fix a labelling. With ``W`` the diagonal of weights, the cost of points ``X`` (one per row) is
``|P W^(1/2) X|_F^2`` where ``P`` projects out the cluster means: a seminorm, squared. Hence

* moving the rows by ``E`` moves the *root* of the cost by at most ``|W^(1/2) E|_F``,
* multiplying by ``Q`` on the right multiplies the root by at most ``|Q|_2``,
* raising weights by a factor of at most ``f`` raises the cost by at most ``f``,
* shifting all rows by one vector changes nothing, and neither do rows of weight 0.

None of this depends on the labelling, so it holds for the best one, and a lower bound on the
reduced problem is carried back step by step, the last one first. Every number kept here is
rounded to the safe side (`certikmeans.rounding`).

A bound on the sum of squares *and* penalties of soft pairs is carried back by the same steps: each
is a function ``f`` of the sum of squares with slope at most 1, so ``f(s) + p >= f(s + p)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.rounding import round_down

Labels = Ints
Points = Floats


class PostsolveStep(ABC):
    """Inverse of one presolve step, and its effect on labels and points."""

    @abstractmethod
    def postsolve_labels(self, labels: Labels) -> Labels:
        """Labels before the step, given labels after it."""

    @abstractmethod
    def postsolve_bound(self, value: float) -> float:
        """A lower bound before the step, given one after it; finite and nonnegative."""

    @abstractmethod
    def presolve_labels(self, labels: Labels) -> Labels:
        """Labels after the step, given labels before it."""

    @abstractmethod
    def presolve_points(self, points: Points) -> Points:
        """Points after the step, given points before it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Centering(PostsolveStep):
    """Shift of the mean to the origin."""

    center: Floats  # (n_features,)
    error: float  # at least ``|W^(1/2) E|_F`` for the rounding of the differences

    def postsolve_labels(self, labels: Labels) -> Labels:
        """Unchanged."""
        return labels

    def postsolve_bound(self, value: float) -> float:
        """Subtract the rounding error."""
        root = round_down(max(0.0, round_down(math.sqrt(value)) - self.error))
        return round_down(root * root)

    def presolve_labels(self, labels: Labels) -> Labels:
        """Unchanged."""
        return labels

    def presolve_points(self, points: Points) -> Points:
        """Shift."""
        return points - self.center


@final
@dataclass(frozen=True, slots=True, eq=False)
class MustLinkMerge(PostsolveStep):
    """Aggregation of must-linked points into weighted groups, in a given order."""

    group_of: Labels  # (n_before,)
    n_groups: int
    offset: float  # at most the sum of squares inside the groups
    mean_error: float  # at least ``|W^(1/2) E|_F`` for the rounding of the means
    weight_factor: float  # at least the largest ratio of a computed group weight to the exact one

    def postsolve_labels(self, labels: Labels) -> Labels:
        """Every point gets the label of its group."""
        return labels[self.group_of]

    def postsolve_bound(self, value: float) -> float:
        """Subtract the rounding error; add the cost inside the groups.

        >>> exact = MustLinkMerge(np.array([0, 0]), 1, 2.0, 0.0, 1.0)
        >>> 6.99 < exact.postsolve_bound(5.0) <= 7.0
        True
        """
        root = round_down(math.sqrt(value / self.weight_factor))
        root = max(0.0, root - self.mean_error)
        return round_down(round_down(root * root) + self.offset)

    def presolve_labels(self, labels: Labels) -> Labels:
        """Label of any member of each group."""
        reduced = np.empty(self.n_groups, dtype=np.int64)
        reduced[self.group_of] = labels
        return reduced

    def presolve_points(self, points: Points) -> Points:
        """Unchanged: points are not aggregated."""
        return points


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rotation(PostsolveStep):
    """Multiplication of the rows by axes."""

    axes: Floats  # (n_features, n_dims), orthonormal columns up to rounding
    rounding_error: float  # at least ``|W^(1/2) E|_F`` for the rounding of the product
    stretch: float  # at least the largest singular value of ``axes``

    def postsolve_labels(self, labels: Labels) -> Labels:
        """Unchanged."""
        return labels

    def postsolve_bound(self, value: float) -> float:
        """Subtract the rounding error, and divide by the largest stretch of the axes."""
        root = round_down(math.sqrt(value))
        root = round_down(max(0.0, root - self.rounding_error) / self.stretch)
        return round_down(root * root)

    def presolve_labels(self, labels: Labels) -> Labels:
        """Unchanged."""
        return labels

    def presolve_points(self, points: Points) -> Points:
        """Multiply by the axes."""
        return np.ascontiguousarray(points @ self.axes)


@final
@dataclass(frozen=True, slots=True, eq=False)
class FixedPenalty(PostsolveStep):
    """Penalties of soft pairs that every labelling pays, and the rounding of the others."""

    amount: float  # at most the difference of the penalties; negative by a rounding error

    def postsolve_labels(self, labels: Labels) -> Labels:
        """Unchanged."""
        return labels

    def postsolve_bound(self, value: float) -> float:
        """Add the penalties."""
        return round_down(max(0.0, value + self.amount))

    def presolve_labels(self, labels: Labels) -> Labels:
        """Unchanged."""
        return labels

    def presolve_points(self, points: Points) -> Points:
        """Unchanged."""
        return points


@final
@dataclass(frozen=True, slots=True, eq=False)
class ZeroWeightRemoval(PostsolveStep):
    """Removal of the last groups, which have weight 0 and no cannot-links.

    They cost nothing in any cluster. Each takes the label of the nearest centre.
    """

    kept: Points  # (n_kept, n_dims)
    weights: Floats  # (n_kept,)
    weightless: Points  # (n_removed, n_dims)

    def postsolve_labels(self, labels: Labels) -> Labels:
        """Assign removed groups to the nearest cluster."""
        used, compact = np.unique(labels, return_inverse=True)
        masses = np.bincount(compact, self.weights)
        sums = [np.bincount(compact, self.weights * column) for column in self.kept.T]
        means = np.stack(sums, axis=1) / masses[:, None]
        squares = np.zeros((len(self.weightless), len(means)))
        for column, mean in zip(self.weightless.T, means.T, strict=True):
            squares += (column[:, None] - mean[None, :]) ** 2
        return np.concatenate([labels, used[np.argmin(squares, axis=1)]])

    def postsolve_bound(self, value: float) -> float:
        """Unchanged."""
        return value

    def presolve_labels(self, labels: Labels) -> Labels:
        """Drop the removed groups."""
        return labels[: len(self.kept)]

    def presolve_points(self, points: Points) -> Points:
        """Unchanged."""
        return points
