"""Local search by annealed labels, for entangled cannot-links and mixtures of constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final
from zlib import crc32

import numpy as np

from certikmeans.assignment import AbstractAssigner
from certikmeans.assignment.label_search import LabelSearch
from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.heuristics.base import Centers, HeuristicContext, Labels
from certikmeans.heuristics.local_search import (
    LocalOptimum,
    LocalSearch,
    NeighborhoodSearch,
    initial_centers,
)
from certikmeans.problem import ReducedProblem

FIRST_START = 1_000_000  # number of a random start that no search draws by itself
ENTRY_WORK = 30.0  # multiplications that take as long as drawing one of the labels of a group


@final
@dataclass(frozen=True, slots=True)
class AnnealedSearchParams:
    """Settings of the annealed local search."""

    # From this many cannot-links per linked group on, exact assignment no longer pays: with few
    # and with many clusters.
    min_links_per_group: float = 3.5
    min_links_per_group_many: float = 1.4
    max_few_clusters: int = 10
    # Groups times clusters above which exact labels under cannot-link sets take too long.
    max_matched_entries: int = 450_000
    # Start of the temperature for centres from other local optima, in units of the mean cost.
    offspring_temperature: float = 0.3

    def __post_init__(self) -> None:
        if self.offspring_temperature <= 0.0:
            raise ValueError("offspring_temperature must be positive")


DEFAULT_PARAMS = AnnealedSearchParams()


def is_entangled(
    problem: ReducedProblem,
    assigner: AbstractAssigner,
    params: AnnealedSearchParams = DEFAULT_PARAMS,
) -> bool:
    """Whether constraints hang together so much that cheapest labels take a long search."""
    constraints = problem.label_constraints
    if not constraints.is_cannot_link_only:
        if not isinstance(constraints, ConstraintModel):
            return False
        entries = problem.n_groups * problem.n_clusters
        many_sets = constraints.sets is not None and entries > params.max_matched_entries
        if assigner.needs_search or many_sets:
            return True
    graph = constraints.cannot_links
    few = problem.n_clusters <= params.max_few_clusters
    least = params.min_links_per_group if few else params.min_links_per_group_many
    many = graph.n_linked > 0 and len(graph.neighbors) >= 2.0 * least * graph.n_linked
    return many and (assigner.needs_search or not constraints.is_cannot_link_only)


@final
class AnnealedSearch:
    """Annealing from centres, repair, and descent among feasible labels.

    With the interface of `LocalSearch`. The random numbers of a trial follow from the seed and the
    centres, so trials may run in any order.
    """

    def __init__(
        self,
        problem: ReducedProblem,
        search: LabelSearch | None = None,
        temperature: float | None = None,
    ) -> None:
        self._problem = problem
        self._search = LabelSearch(problem) if search is None else search
        self._temperature = temperature

    def with_temperature(self, temperature: float) -> AnnealedSearch:
        """Copy that starts from another temperature."""
        return AnnealedSearch(self._problem, self._search, temperature)

    @property
    def work(self) -> float:
        """Estimated multiplications of a trial: for repeatable budgets."""
        problem = self._problem
        entries = problem.n_groups * problem.n_clusters * (problem.n_dims + ENTRY_WORK)
        return float(self._search.n_sweeps * entries)

    def from_centers(self, centers: Centers, ctx: HeuristicContext) -> LocalOptimum:
        """Anneal from ``centers`` and descend; if stopped early, the labels are feasible."""
        number = crc32(np.ascontiguousarray(centers).tobytes(), ctx.seed & 0xFFFFFFFF)
        labels = self._search.anneal(
            None, centers, number, temperature=self._temperature, stop=ctx.stop
        )
        if labels is None:
            labels = self._renamed(ctx.feasible_labels, centers)
        return self._descend(labels, ctx)

    def from_labels(self, labels: Labels, ctx: HeuristicContext) -> LocalOptimum:
        """Descend from a feasible labelling."""
        return self._descend(labels, ctx)

    def _descend(self, labels: Labels, ctx: HeuristicContext) -> LocalOptimum:
        found = self._search.descend(labels, stop=ctx.stop)
        return LocalOptimum(found.labels, found.means, found.cost, self._search.n_sweeps)

    def _renamed(self, labels: Labels, centers: Centers) -> Labels:
        """Number the clusters of feasible labels such that they are near the centres."""
        constraints = self._problem.label_constraints
        if constraints.sizes is not None and not constraints.sizes.uniform:
            return constraints.aligned(labels)
        from scipy.optimize import linear_sum_assignment  # loaded here: slow to import

        means = self._problem.cluster_means(labels)
        distances = ((means[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        masses = np.bincount(labels, self._problem.weights, len(centers))
        renamed: Labels = linear_sum_assignment(masses[:, None] * distances)[1][labels]
        return renamed.astype(np.int64)


AnyLocalSearch = LocalSearch | NeighborhoodSearch | AnnealedSearch


def local_search(
    problem: ReducedProblem, assigner: AbstractAssigner, *, many_clusters: bool
) -> AnyLocalSearch:
    """Local search for the constraints of a problem."""
    if is_entangled(problem, assigner):
        return AnnealedSearch(problem)
    if many_clusters and problem.label_constraints.is_cannot_link_only:
        return NeighborhoodSearch(problem, assigner)
    return LocalSearch(problem, assigner)


def offspring_search(
    search: AnyLocalSearch,
    params: AnnealedSearchParams = DEFAULT_PARAMS,
) -> AnyLocalSearch:
    """Return the local search for centres from other local optima."""
    if isinstance(search, AnnealedSearch):
        return search.with_temperature(params.offspring_temperature)
    return search


def first_centers(
    search: AnyLocalSearch, problem: ReducedProblem, feasible: Centers, seed: int
) -> Centers:
    """Centres of the first trial where none are given: the means of feasible labels.

    These often lie close together, where annealing takes long to leave: random ones then.
    """
    if isinstance(search, AnnealedSearch):
        return initial_centers(problem, seed, FIRST_START)
    return feasible
