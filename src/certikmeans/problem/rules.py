"""Which labellings are admissible: one type for every kind of constraint on the groups.

Stages do not look into a constraint. They ask two questions,

* *the cheapest admissible labels for a table of costs* (heuristics, upper bounds, the sample
  bound): answered by what `certikmeans.assignment.assigner_for` returns, one class per kind;
* *the admissible set of groups that is worth most* (pricing in the cluster bound): answered by
  the bound's pricer.

Whoever **makes labellings** asks the first, or asks whether there is anything but cannot-links
(``only_apart``); what cannot keep to some rules refuses them by name, with `refuse`. Whoever
**bounds from below** may leave out what it does not know, for without it there are only more
labellings: ``apart`` are the cannot-links, whatever else there is. docs/decisions/0007 says what
a new kind would touch.
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
        """The cannot-links among the rules: what a lower bound may work with alone."""

    @property
    @abstractmethod
    def only_apart(self) -> bool:
        """Whether there are no others."""

    @abstractmethod
    def respected_by(self, labels: NDArray[np.int64]) -> bool:
        """Whether a labelling is admissible."""

    @abstractmethod
    def unit_starts(self) -> NDArray[np.int64]:
        """First rows of the units, and the number of rows at the end.

        Groups of one unit restrict each other; no rule is about two units.
        """

    @abstractmethod
    def among(self, rows: NDArray[np.int64]) -> AbstractRules:
        """The rules of some groups: ``rows``, ascending, are those of whole units."""

    def apart_from(self, group: int) -> NDArray[np.int64]:
        """The groups that are never in one cluster with this one, by a cannot-link."""
        graph = self.apart
        return graph.neighbors[graph.indptr[group] : graph.indptr[group + 1]]


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

    def unit_starts(self) -> NDArray[np.int64]:
        """First rows of the components; a free group is a unit of its own."""
        graph = self.graph
        free = np.arange(graph.n_linked, graph.n_vertices + 1)
        return np.concatenate([graph.starts[:-1], free]).astype(np.int64)

    def among(self, rows: NDArray[np.int64]) -> CannotLinks:
        """The links of whole components."""
        return CannotLinks(self.graph.among(rows))


def refuse(rules: AbstractRules, what: str) -> NoReturn:
    """Say that ``what`` does not know these rules."""
    raise InputError(
        f"{what} cannot take account of {rules.kind}",
        hint="leave these constraints out, or choose another method",
    )
