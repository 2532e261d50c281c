"""Contract of one kind of constraint on the labels of reduced groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from certikmeans._types import Ints


class ConstraintKind(ABC):
    """Constraints of one kind between reduced groups. Immutable.

    Must-links are not a kind: presolve merges them into groups.
    """

    name: ClassVar[str]  # in the plural, for messages

    @abstractmethod
    def satisfied_by(self, labels: Ints) -> bool:
        """Whether no hard constraint is violated."""

    def penalty(self, labels: Ints) -> float:
        """Price of the violated soft constraints, rounded up; 0 for hard kinds."""
        return 0.0

    @abstractmethod
    def subset(self, rows: Ints) -> ConstraintKind | None:
        """Constraints among the groups ``rows``, ascending; None if there are none.

        For samples: what involves other groups is dropped or scaled.
        """

    @abstractmethod
    def merged(self, group_of: Ints, n_groups: int) -> ConstraintKind | None:
        """Constraints after group ``g`` became a part of ``group_of[g]``.

        Raises
        ------
        Contradiction
            If no labelling satisfies them any more.
        """

    def excluded_partners(self, group: int) -> Ints:
        """Groups that cannot share a cluster with this one."""
        return np.empty(0, dtype=np.int64)


class Contradiction(Exception):
    """Merged groups violate a hard constraint in every labelling."""
