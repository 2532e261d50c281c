"""Assignment fixing (the paper's sample determination): remove group-cluster pairs by proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.assignment import AbstractAssigner
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.kernels.assignment_fixing import (
    SUM_BLOCK,
    ComponentCosts,
    Components,
    RemovalLimits,
    remove_dominated,
    remove_pairs,
    total_least,
    update_marginals,
)
from certikmeans.kernels.box_costs import box_costs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True)
class FixingParams:
    """Settings of assignment fixing. They change what is removed, not its validity."""

    max_trees: int = 256  # spanning trees solved for one component with cycles
    max_visits: int = 20_000  # groups visited by them
    # The assigner's bound on relaxed components is computed where their own is at least this
    # fraction of the cutoff: below it would not remove anything.
    assigner_bound_ratio: float = 0.5
    max_rounds: int = 8  # relaxed components, and ties in the last bit, need more than two


DEFAULT_PARAMS = FixingParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class FixingResult:
    """Allowed pairs and bound after fixing.

    Attributes
    ----------
    allowed : ndarray of shape (n_groups, n_clusters) of bool
        A subset of the pairs allowed before. All False if ``lower_bound`` is infinite.
    lower_bound : float
        On the cost of every labelling of the domain that costs less than the cutoff; infinite
        if there is none.
    n_removed : int
        Number of pairs removed.
    n_fixed : int
        Groups with one allowed cluster.
    """

    allowed: Mask
    lower_bound: float
    n_removed: int
    n_fixed: int


@final
class AssignmentFixing:
    """Remove pairs (group, cluster) that no labelling of a domain below a cutoff can use.

    With a centre in its box ``M_k``, group ``s`` pays at least ``D[s,k] = w_s d_min(x_s, M_k)^2``
    in cluster ``k``. For a component ``C`` of the cannot-link graph let ``m_C`` be the least sum
    of ``D`` over its feasible labellings with allowed pairs, and ``m_C(s, k)`` the same with ``s``
    in ``k``. Must-link components are single groups since presolve, so must-links propagate
    automatically.

    **Elimination** (in place of Lemma 1 of the paper): remove ``(s, k)`` if ``m_C(s, k)`` plus the
    sum of ``m`` over all other components is at least the cutoff. Valid because components share
    nothing but the centres: a labelling with ``s`` in ``k`` pays at least ``m_C(s, k)`` in ``C``
    and at least ``m`` in each of the others. A pair without any feasible labelling has
    ``m_C(s, k) = inf``, which is the propagation of cannot-links. With exact ``m`` one round
    reaches the fixed point: a labelling below the cutoff does not use any removed pair.

    **Dominance** (``use_dominance=True``, in place of Lemma 2, the paper's forced assignment)
    guarantees less: *for all centres in the boxes, every labelling that is cheapest for them among
    the feasible allowed ones, and costs less than the cutoff, keeps its pairs.* A cluster may be
    empty; its centre is then any point of its box. Two rules, with
    ``E[s,k] = w_s d_max(x_s, M_k)^2``:

    - *A component*: remove ``(s, k)`` if ``m_C(s, k)`` exceeds the cost at ``E`` of some
      feasible allowed labelling of ``C``. A labelling with ``s`` in ``k`` is not cheapest: giving
      ``C`` those labels is feasible, since components are independent, and cheaper for the same
      centres.
      For a free group this is Lemma 2, one dominated cluster at a time.
    - *Groups that move together*: let each group of a set ``A`` have a target, allowed at first,
      with ``E[s,target] < D[s,k]`` for its dominated clusters ``k``. Suppose that no neighbour of
      a group in ``A`` can be in the group's target once every group of ``A`` in a dominated
      cluster has moved to its own target. Then the dominated clusters go: a labelling that
      uses one of them becomes cheaper for the same centres by these moves, and stays feasible.
      Such an ``A`` is found by dropping groups until the condition holds.

    Without ``use_dominance`` every labelling of the domain below the cutoff keeps its pairs. With
    it, a labelling that is not cheapest for its own means may lose some, but an optimal one, which
    is, does not; and a bound that holds for all centres in the boxes (sample, cluster,
    grouped) still is at most the cost of *every* labelling of the domain below the cutoff, because
    the cheapest labelling for the means of any of these is still there and costs no more. A bound
    that uses that the centres are means of the allowed groups is valid for optimal labellings only.

    Parameters
    ----------
    problem : ReducedProblem
    assigner : AbstractAssigner
        For the same problem. Supplies the sample bound where components are relaxed.
    use_dominance : bool
        Also apply the second rule.
    params : FixingParams

    Notes
    -----
    Trees take dynamic programming up and down. In a component with cycles the clusters of a few
    groups are enumerated, so that a spanning tree is left; if that would take more than 256
    trees, or visit more than 20,000 groups, some links are dropped in the sums, which weakens ``m``
    but keeps it a lower bound, and every link still forbids the only cluster left at one end
    to the other end.

    Immutable after construction, so threads may share it.

    **Rounding.** ``D`` is rounded down. Every ``m`` is a minimum of sums of nonnegative numbers,
    and no term passes through more than ``error / (4 EPS)`` operations: each computed sum is at
    most ``1 + error / 8`` times the exact one, and a value is compared with the cutoff after
    ``error`` times all that entered it has been taken off.

    Examples
    --------
    Two linked points, 0 and 1, are both closest to the first of two boxes, at 0 and at 5.5.

    >>> from certikmeans.assignment import make_assigner
    >>> from certikmeans.problem import CannotLinkGraph, CannotLinks
    >>> graph = CannotLinkGraph(
    ...     3, np.array([0, 1, 2, 2]), np.array([1, 0]), np.array([0, 2]), np.array([-1, 0]),
    ...     np.array([0]))
    >>> points = np.array([[0.0], [1.0], [10.0]])
    >>> problem = ReducedProblem(points, np.ones(3), CannotLinks(graph), 2, 0.0)
    >>> boxes = np.array([[0.0], [5.5]])
    >>> assigner = make_assigner(problem, feasible_labels=[0, 1, 0])
    >>> apply = AssignmentFixing(problem, assigner).apply
    >>> left = apply(Domain(boxes, boxes), cutoff=41.0, stop=StopSignal())
    >>> left.allowed.astype(int)
    array([[1, 0],
           [0, 1],
           [0, 1]])
    >>> round(left.lower_bound, 6), left.n_fixed
    (40.5, 3)
    """

    def __init__(
        self,
        problem: ReducedProblem,
        assigner: AbstractAssigner,
        *,
        use_dominance: bool = False,
        params: FixingParams = DEFAULT_PARAMS,
    ) -> None:
        self._problem = problem
        self._params = params
        self._use_dominance = use_dominance
        # A long search would cost more than the pairs it could remove.
        self._assigner = assigner.with_exact_time_limit(0.0)
        graph = problem.graph
        fixed_start, fixed, exact = plan_components(graph, problem.n_clusters, params)
        sizes = np.diff(graph.starts)
        self._components = Components(
            indptr=graph.indptr,
            neighbors=graph.neighbors,
            starts=graph.starts,
            parents=graph.parents,
            component=np.repeat(np.arange(graph.n_components), sizes),
            fixed_start=fixed_start,
            fixed=fixed,
            exact=exact,
        )
        self._largest = int(sizes.max(initial=0))
        depth = 4 * self._largest + SUM_BLOCK + problem.n_groups / SUM_BLOCK + 32
        self._error = 4.0 * depth * EPS
        # Squares can underflow: an absolute error.
        heaviest = 1.0 + float(problem.weights.max())
        self._absolute_error = problem.n_groups * problem.n_dims * heaviest * 1e-320

    def apply(self, domain: Domain, cutoff: float, stop: StopSignal) -> FixingResult:
        """Find the pairs that labellings of ``domain`` that cost less than ``cutoff`` can use.

        Parameters
        ----------
        domain : Domain
        cutoff : float
            Reduced cost. If infinite, only pairs excluded by cannot-links and allowed pairs (and
            the second rule) are removed.
        stop : StopSignal
            Ends early with fewer pairs removed.
        """
        graph, n_groups = self._problem.graph, self._problem.n_groups
        allowed = domain.allowed
        before = np.count_nonzero(allowed) if allowed is not None else n_groups * len(domain.lower)
        initial_costs = self._costs(domain, farthest=False)
        costs = initial_costs.copy()
        max_costs = self._costs(domain, farthest=True) if self._use_dominance else None
        limits = RemovalLimits(
            cutoff, self._component_upper_costs(max_costs), self._error, self._absolute_error
        )
        marginals = np.empty((graph.n_linked, len(domain.lower)))
        least = np.empty(graph.n_components)
        stale = np.ones(graph.n_components, dtype=np.bool_)
        known_bound, labels, labels_cost = -np.inf, np.zeros(0, dtype=np.int64), 0.0
        total = lower_bound = 0.0
        relaxed = not self._components.exact.all()
        for number in range(self._params.max_rounds):
            self._update(stale, costs, marginals, least)
            total = float(total_least(least, costs, graph.n_linked))
            threshold = self._params.assigner_bound_ratio * cutoff
            if number == 0 and relaxed and threshold <= total < np.inf:
                found = self._assigner.assign_costs(costs, stop=stop)
                lower_bound = found.lower_bound
                if found.cost < np.inf:
                    known_bound, labels, labels_cost = found.lower_bound, found.labels, found.cost
            lower_bound = max(lower_bound, total if total == np.inf else self._rounded_down(total))
            if lower_bound >= cutoff:
                costs[:] = lower_bound = np.inf
                break
            totals = ComponentCosts(
                marginals, least, total, known_bound, labels, total + labels_cost
            )
            removed = remove_pairs(self._components, totals, limits, initial_costs, costs, stale)
            if max_costs is not None:
                removed += remove_dominated(
                    self._components, max_costs, self._absolute_error, costs, stale
                )
            if removed == 0 or stop.reason() is not None:
                break
        left = costs < np.inf
        per_group = np.count_nonzero(left, axis=1)
        n_fixed = int(np.count_nonzero(per_group == 1))
        return FixingResult(left, lower_bound, int(before - per_group.sum()), n_fixed)

    def _costs(self, domain: Domain, *, farthest: bool) -> Floats:
        """Costs at ``d_min`` or ``d_max``; inf where a pair is not allowed."""
        problem = self._problem
        costs = np.empty((problem.n_groups, problem.n_clusters))
        box_costs(problem.points, problem.weights, domain.lower, domain.upper, farthest, costs)
        if domain.allowed is not None:
            costs[~domain.allowed] = np.inf
        return costs

    def _update(self, stale: Mask, costs: Floats, marginals: Floats, least: Floats) -> None:
        update_marginals(self._components, stale, costs, self._scratch(), marginals, least)

    def _component_upper_costs(self, max_costs: Floats | None) -> Floats:
        """Cost of some labelling at ``d_max``, rounded up, by component, then by free group."""
        graph = self._problem.graph
        n_free = self._problem.n_groups - graph.n_linked
        upper_costs = np.full(graph.n_components + n_free, np.inf)
        if max_costs is None:
            return upper_costs
        marginals = np.empty((graph.n_linked, max_costs.shape[1]))
        least = np.full(graph.n_components, np.inf)
        # The value of a relaxed component need not belong to a feasible labelling.
        self._update(self._components.exact.copy(), max_costs, marginals, least)
        upper_costs[: graph.n_components] = least
        upper_costs[graph.n_components :] = max_costs[graph.n_linked :].min(axis=1)
        return upper_costs * (1.0 + self._error) + 2.0 * self._absolute_error

    def _scratch(self) -> Floats:
        return np.empty((5, self._largest, self._problem.n_clusters))

    def _rounded_down(self, total: float) -> float:
        return max(0.0, total * (1.0 - self._error) - self._absolute_error)


def plan_components(
    graph: CannotLinkGraph, n_clusters: int, params: FixingParams = DEFAULT_PARAMS
) -> tuple[Ints, Ints, Mask]:
    """Choose the groups to enumerate so that a spanning tree is left of each component.

    Returns
    -------
    starts, groups : ndarray
        Those of component ``c`` are ``groups[starts[c] : starts[c + 1]]``: greedily, the one with
        most links outside the tree, while the limits allow.
    exact : ndarray of bool
        Every link outside the tree has an end among them.

    Examples
    --------
    >>> from certikmeans.problem.graph_builder import build_cannot_link_graph
    >>> graph, _ = build_cannot_link_graph(5, np.array([[0, 1], [1, 2], [2, 0], [3, 4]]))
    >>> starts, groups, exact = plan_components(graph, 3)
    >>> starts, groups, exact
    (array([0, 1, 1]), array([1]), array([ True,  True]))
    """
    edges = graph.edges()
    if len(edges):
        edges = edges[graph.parents[edges[:, 1]] != edges[:, 0]]
    component = np.searchsorted(graph.starts, edges[:, 0], side="right") - 1
    begin = np.searchsorted(component, np.arange(graph.n_components + 1))
    counts = np.zeros(graph.n_components + 1, dtype=np.int64)
    exact = graph.n_extra_edges == 0
    groups: list[int] = []
    for c in np.flatnonzero(~exact).tolist():
        size = int(graph.starts[c + 1] - graph.starts[c])
        max_trees = max(1, min(params.max_trees, params.max_visits // size))
        uncovered_edges, n_trees = edges[begin[c] : begin[c + 1]], n_clusters
        while len(uncovered_edges) and n_trees <= max_trees:
            group = int(np.bincount(uncovered_edges.ravel()).argmax())
            groups.append(group)
            counts[c + 1] += 1
            uncovered_edges = uncovered_edges[(uncovered_edges != group).all(axis=1)]
            n_trees *= n_clusters
        exact[c] = len(uncovered_edges) == 0
    return np.cumsum(counts), np.array(groups, dtype=np.int64), exact
