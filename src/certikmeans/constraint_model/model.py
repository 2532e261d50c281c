"""The model of all constraints on the labels of reduced groups.

Stages do not depend on the kind of a constraint. They need few operations:

* *are these labels feasible, and what do violated soft pairs cost*: `LabelConstraints`;
* *the cheapest feasible labels for a table of costs* (heuristics, upper bounds): an assigner of
  `certikmeans.assignment.make_assigner`;
* *the best set of groups for given values, with a proven upper bound* (pricing in the cluster
  bound): `certikmeans.kernels.pricing.point_bound`;
* *the constraints after a branching decision*: `LabelConstraints.merged`.

Code that **bounds from below** may ignore constraints that it does not know, which is a relaxation:
``cannot_links`` are the hard pairs among all constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn, final

import numpy as np

from certikmeans._types import Ints
from certikmeans.constraint_model.base import ConstraintKind
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.errors import InputError


class LabelConstraints(ABC):
    """Constraints on labels of the groups. Must-links are not among them: they form the groups."""

    kind: ClassVar[str]  # in the plural, for messages

    @property
    @abstractmethod
    def cannot_links(self) -> CannotLinkGraph:
        """The cannot-links among the constraints, sufficient for a lower bound."""

    @property
    @abstractmethod
    def is_cannot_link_only(self) -> bool:
        """Whether there are no other constraints."""

    @property
    def sets(self) -> CannotLinkSets | None:
        """Cannot-link sets, or None."""
        return None

    @property
    def sizes(self) -> SizeLimits | None:
        """Limits on cluster sizes, or None."""
        return None

    @property
    def soft(self) -> SoftPairs | None:
        """Soft pairs, or None."""
        return None

    @property
    def mergeable(self) -> bool:
        """Whether `merged` is supported, as branching on pairs needs."""
        return self.is_cannot_link_only

    @abstractmethod
    def satisfied_by(self, labels: Ints) -> bool:
        """Whether labels are feasible."""

    def penalty(self, labels: Ints) -> float:
        """Price of the violated soft pairs, rounded up."""
        return 0.0

    def aligned(self, labels: Ints) -> Ints:
        """Number the clusters such that each satisfies its own limits."""
        return labels

    @abstractmethod
    def component_starts(self) -> Ints:
        """First rows of the components, and the number of rows at the end.

        A sample takes whole components.
        """

    @abstractmethod
    def subset(self, rows: Ints) -> LabelConstraints:
        """Constraints of the groups ``rows``, ascending, which form whole components."""

    def merged(self, group_of: Ints, graph: CannotLinkGraph) -> LabelConstraints:
        """Constraints after merging groups; ``graph`` has the cannot-links after it."""
        raise_unsupported(self, "merging groups")

    def neighbors_of(self, group: int) -> Ints:
        """Groups that cannot share a cluster with this one."""
        graph = self.cannot_links
        return graph.neighbors[graph.indptr[group] : graph.indptr[group + 1]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CannotLinks(LabelConstraints):
    """Linked groups must not share a cluster."""

    kind: ClassVar[str] = "cannot-links"

    graph: CannotLinkGraph

    @property
    def cannot_links(self) -> CannotLinkGraph:
        """The cannot-links."""
        return self.graph

    @property
    def is_cannot_link_only(self) -> bool:
        """Always True."""
        return True

    def satisfied_by(self, labels: Ints) -> bool:
        """Whether no link has both ends in one cluster."""
        return _links_satisfied(self.graph, labels)

    def component_starts(self) -> Ints:
        """First rows of the components; a free group is one."""
        graph = self.graph
        free = np.arange(graph.n_linked, graph.n_vertices + 1)
        return np.concatenate([graph.starts[:-1], free]).astype(np.int64)

    def subset(self, rows: Ints) -> CannotLinks:
        """The links of whole components."""
        return CannotLinks(self.graph.subset(rows))

    def merged(self, group_of: Ints, graph: CannotLinkGraph) -> CannotLinks:
        """The given links."""
        return CannotLinks(graph)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConstraintModel(LabelConstraints):
    """Cannot-links together with other kinds."""

    kind: ClassVar[str] = "combined constraints"

    graph: CannotLinkGraph
    set_family: CannotLinkSets | None = None
    size_limits: SizeLimits | None = None
    soft_pairs: SoftPairs | None = None

    @classmethod
    def of(
        cls,
        graph: CannotLinkGraph,
        sets: CannotLinkSets | None = None,
        sizes: SizeLimits | None = None,
        soft: SoftPairs | None = None,
    ) -> LabelConstraints:
        """Model of these kinds; the plain cannot-links if there are no others."""
        if sets is None and sizes is None and soft is None:
            return CannotLinks(graph)
        return cls(graph, sets, sizes, soft)

    @property
    def cannot_links(self) -> CannotLinkGraph:
        """The hard pairs that are in no set."""
        return self.graph

    @property
    def is_cannot_link_only(self) -> bool:
        """Always False."""
        return False

    @property
    def sets(self) -> CannotLinkSets | None:
        """Cannot-link sets, or None."""
        return self.set_family

    @property
    def sizes(self) -> SizeLimits | None:
        """Limits on cluster sizes, or None."""
        return self.size_limits

    @property
    def soft(self) -> SoftPairs | None:
        """Soft pairs, or None."""
        return self.soft_pairs

    @property
    def mergeable(self) -> bool:
        """Always True."""
        return True

    @property
    def kinds(self) -> tuple[ConstraintKind, ...]:
        """The kinds beside the cannot-links."""
        found = (self.set_family, self.size_limits, self.soft_pairs)
        return tuple(one for one in found if one is not None)

    def satisfied_by(self, labels: Ints) -> bool:
        """Whether every hard constraint holds."""
        return _links_satisfied(self.graph, labels) and all(
            one.satisfied_by(labels) for one in self.kinds
        )

    def penalty(self, labels: Ints) -> float:
        """Price of the violated soft pairs, rounded up."""
        return 0.0 if self.soft_pairs is None else self.soft_pairs.penalty(labels)

    def aligned(self, labels: Ints) -> Ints:
        """Number the clusters such that each satisfies its own limits."""
        return labels if self.size_limits is None else self.size_limits.aligned(labels)

    def component_starts(self) -> Ints:
        """First rows of the components of cannot-links; `subset` restricts the other kinds."""
        return CannotLinks(self.graph).component_starts()

    def subset(self, rows: Ints) -> ConstraintModel:
        """Constraints among rows of a sample; limits on sizes are scaled."""
        kinds = {
            "set_family": self.set_family,
            "size_limits": self.size_limits,
            "soft_pairs": self.soft_pairs,
        }
        found = {name: None if one is None else one.subset(rows) for name, one in kinds.items()}
        return replace(self, graph=self.graph.subset(rows), **found)  # type: ignore[arg-type]

    def merged(self, group_of: Ints, graph: CannotLinkGraph) -> LabelConstraints:
        """All kinds for the merged groups."""
        n_groups = graph.n_vertices
        soft = self.soft_pairs
        return ConstraintModel(
            graph,
            None if self.set_family is None else self.set_family.merged(group_of, n_groups),
            None if self.size_limits is None else self.size_limits.merged(group_of, n_groups),
            None if soft is None else soft.merged(group_of, n_groups),
        )

    def neighbors_of(self, group: int) -> Ints:
        """Groups with a cannot-link to this one, or in a common set."""
        graph = self.graph
        linked = graph.neighbors[graph.indptr[group] : graph.indptr[group + 1]]
        if self.set_family is None:
            return linked
        return np.union1d(linked, self.set_family.excluded_partners(group))


def _links_satisfied(graph: CannotLinkGraph, labels: Ints) -> bool:
    tails, heads = graph.edges().T
    return bool((labels[tails] != labels[heads]).all())


def forbidden_pairs(label_constraints: LabelConstraints) -> Ints:
    """All pairs that cannot share a cluster, sets expanded, for bounds with dense matrices."""
    edges, sets = label_constraints.cannot_links.edges(), label_constraints.sets
    if sets is None:
        return edges
    both: Ints = np.unique(np.concatenate([edges, sets.pairs()]), axis=0)
    return both


def raise_unsupported(label_constraints: LabelConstraints, what: str) -> NoReturn:
    """Raise an error: ``what`` does not support these constraints."""
    raise InputError(
        f"{what} cannot take account of {label_constraints.kind}",
        hint="leave these constraints out, or choose another method",
    )
