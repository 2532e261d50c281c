"""Which labellings are admissible: one type for every kind of constraint on the groups.

Stages do not look into a constraint. They ask two questions,

* *the cheapest admissible labels for a table of costs* (heuristics, upper bounds, the sample
  bound): answered by what `certikmeans.assignment.assigner_for` returns;
* *the admissible set of groups that is worth most* (pricing in the cluster bound): answered by
  the bound's pricer;

and what cannot answer for some rules refuses them by name, with `refuse`. A lower bound may also
leave out rules that it does not know: without them there are only more labellings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.graph import ApartGraph


class AbstractRules(ABC):
    """What a labelling of the groups has to respect. Must-links are gone: groups are whole."""

    kind: ClassVar[str]  # in the plural, for messages

    @property
    @abstractmethod
    def apart(self) -> ApartGraph:
        """The cannot-links among the rules."""

    @property
    @abstractmethod
    def only_apart(self) -> bool:
        """Whether there are no others."""

    @abstractmethod
    def respected_by(self, labels: NDArray[np.int64]) -> bool:
        """Whether a labelling is admissible."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CannotLinks(AbstractRules):
    """Two linked groups are never in one cluster."""

    kind: ClassVar[str] = "cannot-links"

    graph: ApartGraph

    @property
    def apart(self) -> ApartGraph:
        """The cannot-links."""
        return self.graph

    @property
    def only_apart(self) -> bool:
        """There is nothing else."""
        return True

    def respected_by(self, labels: NDArray[np.int64]) -> bool:
        """Whether no link has both ends in one cluster."""
        tails, heads = self.graph.edges().T
        return bool((labels[tails] != labels[heads]).all())


def refuse(rules: AbstractRules, what: str) -> NoReturn:
    """Say that ``what`` does not know these rules."""
    raise InputError(
        f"{what} cannot take account of {rules.kind}",
        hint="leave these constraints out, or choose another method",
    )
