"""Exact assignment of dense components: search, elimination, LP and MILP within limits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.assignment.params import DEFAULT_PARAMS, AssignmentParams
from certikmeans.kernels.assignment import (
    AssignmentLayout,
    component_tables,
    eliminate,
    gather_core,
    scatter_core,
)
from certikmeans.kernels.dense_assignment.dual_bound import CoreProblem, CoreSolution, core_value
from certikmeans.kernels.dense_assignment.heuristics import permute_classes
from certikmeans.kernels.dense_assignment.solve import UNFINISHED, search_core
from certikmeans.stop import StopSignal

# HiGHS has absolute tolerances: costs are scaled so that the most expensive label costs this.
_COST_SCALE = 1e4


@final
class LabelMilp:
    """Integer program for the cheapest labels of a core.

    One binary variable per vertex and allowed label: every vertex has one label, and the members of
    a clique use a label at most once. Costs are relative to the cheapest label of each vertex.
    """

    def __init__(
        self,
        costs: Floats,  # (n_core, n_labels)
        allowed: Mask,  # (n_core, n_labels)
        member_start: Ints,  # (n_cliques + 1,)
        member: Ints,
    ) -> None:
        self._shape = (len(member_start) - 1, costs.shape[1])
        self._n_core = len(costs)
        self._vertex, self._label = np.nonzero(allowed)
        column = np.full(allowed.shape, -1)
        column[self._vertex, self._label] = np.arange(len(self._vertex))
        rows, columns = [], []
        self._clique_row: list[tuple[int, int]] = []
        for clique, (begin, end) in enumerate(pairwise(member_start.tolist())):
            for label, own in enumerate(column[member[begin:end]].T):
                members_with_label = own[own >= 0]
                if len(members_with_label) > 1:
                    rows.append(np.full(len(members_with_label), len(self._clique_row)))
                    columns.append(members_with_label)
                    self._clique_row.append((clique, label))
        self._entries = (
            np.concatenate([*rows, np.empty(0, dtype=np.int64)]),
            np.concatenate([*columns, np.empty(0, dtype=np.int64)]),
        )
        least = np.where(allowed, costs, np.inf).min(axis=1)
        objective = costs[self._vertex, self._label] - least[self._vertex]
        max_cost = float(objective.max(initial=0.0))
        self._scale = _COST_SCALE / max_cost if max_cost > 0 else 1.0
        self._objective = objective * self._scale

    def _matrices(self) -> tuple[Any, Any]:
        """Constraint matrices of the vertices and of the cliques."""
        from scipy.sparse import coo_array

        n = len(self._vertex)
        one_each = coo_array((np.ones(n), (self._vertex, np.arange(n))), shape=(self._n_core, n))
        ones = np.ones(len(self._entries[0]))
        at_most = coo_array((ones, self._entries), shape=(len(self._clique_row), n))
        return one_each.tocsr(), at_most.tocsr()

    def clique_multipliers(self, seconds: float) -> Floats | None:
        """Dual values of the cliques in the linear relaxation, or None at the time limit."""
        from scipy.optimize import linprog

        one_each, at_most = self._matrices()
        if not self._clique_row:
            return None
        answer = linprog(
            self._objective,
            A_ub=at_most,
            b_ub=np.ones(at_most.shape[0]),
            A_eq=one_each,
            b_eq=np.ones(self._n_core),
            method="highs",
            options={"time_limit": seconds},
        )
        if answer.status != 0:
            return None
        multipliers = np.zeros(self._shape)
        clique, label = np.array(self._clique_row).T
        multipliers[clique, label] = np.maximum(0.0, -answer.ineqlin.marginals) / self._scale
        return multipliers

    def labels(self, seconds: float) -> Ints | None:
        """Labels by branch and cut, not verified, or None if none were found in time."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        one_each, at_most = self._matrices()
        answer = milp(
            self._objective,
            integrality=np.ones(len(self._vertex)),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(one_each, 1.0, 1.0),
                LinearConstraint(at_most, -np.inf, 1.0),
            ],
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if answer.x is None:
            return None
        core_labels = np.full(self._n_core, -1)
        picked = answer.x > 0.5
        core_labels[self._vertex[picked]] = self._label[picked]
        return core_labels


@final
@dataclass(frozen=True, slots=True, eq=False)
class ComponentSolution:
    """Best labels of a component and their lower bound."""

    labels: Ints  # (n_vertices,), feasible
    value: float  # inf: no labelling of finite cost is known
    lower_bound: float  # on every feasible labelling, up to the rounding of sums
    exact: bool


@final
class DenseComponent:
    """Core of one component with its costs, best labels and bound so far."""

    def __init__(
        self,
        layout: AssignmentLayout,
        cyclic_component: int,
        costs: Floats,
        guess: Ints,
        feasible_labels: Ints,
        params: AssignmentParams = DEFAULT_PARAMS,
    ) -> None:
        cores = layout.cores
        first, last = int(cores.start[cyclic_component]), int(cores.start[cyclic_component + 1])
        cliques = slice(
            int(cores.clique_start[cyclic_component]),
            int(cores.clique_start[cyclic_component + 1]) + 1,
        )
        vertices = cores.vertex[first:last]
        self.layout, self.cyclic_component = layout, cyclic_component
        self.params = params
        self.core = CoreProblem(
            link_start=cores.link_start[first : last + 1],
            link=cores.link,
            member_start=cores.member_start[cliques],
            member=cores.member,
            costs=costs,
        )
        self.feasible_labels = feasible_labels[vertices]
        self.core_labels = guess[vertices]
        self.multipliers: Floats = np.zeros((len(self.core.member_start) - 1, costs.shape[1]))
        self.allowed: Mask = np.isfinite(costs)
        self.margin = 0.0
        self.value, self.lower_bound, self.exact = np.inf, 0.0, False

    @property
    def too_large_to_search(self) -> bool:
        """Whether it has too many multipliers for any search."""
        return self.multipliers.size > self.params.max_multipliers

    def use_initial_labels(self) -> None:
        """Take the better of guess and renamed feasible labels; chain moves improve them later."""
        core_labels, renamed = self.core_labels.copy(), np.empty_like(self.core_labels)
        value = core_value(self.core, core_labels)
        if permute_classes(self.core.costs, self.feasible_labels, renamed):
            other = core_value(self.core, renamed)
            if other < value:
                core_labels, value = renamed, other
        self.core_labels, self.value = core_labels, float(value)

    def search(self, work: int) -> None:
        """Branch and bound from the best labels so far."""
        core_labels = self.core_labels.copy()
        found: CoreSolution = search_core(
            self.core,
            self.feasible_labels,
            work,
            self.margin,
            self.multipliers,
            core_labels,
            self.allowed,
        )
        self.margin = found.margin
        self.lower_bound = max(self.lower_bound, found.lower_bound)
        self.exact = found.status != UNFINISHED
        if found.value < self.value:
            self.core_labels, self.value = core_labels, found.value

    def eliminate(self) -> None:
        """Bucket elimination, if its tables are small enough."""
        n_entries = int(self.layout.tables.size[self.cyclic_component])
        if n_entries == 0:
            return
        core_labels = np.empty_like(self.core_labels)
        tables = component_tables(self.layout.tables, self.layout.cores, self.cyclic_component)
        value = eliminate(tables, self.core.costs, np.empty(n_entries), core_labels)
        self.lower_bound, self.exact = value, True
        if value < np.inf:
            self.core_labels, self.value = core_labels, value

    def linear_program(self, seconds: float) -> None:
        """Take multipliers from the linear relaxation; any nonnegative ones are valid."""
        program = self._program()
        multipliers = program.clique_multipliers(seconds)
        if multipliers is not None:
            self.multipliers = multipliers

    def integer_program(self, seconds: float) -> None:
        """Take labels from the integer program; its bound is not rigorous and not used."""
        program = self._program()
        core_labels = program.labels(seconds)
        if core_labels is not None:
            value = core_value(self.core, core_labels)
            if value < self.value:
                self.core_labels, self.value = core_labels, value

    def _program(self) -> LabelMilp:
        core = self.core
        return LabelMilp(core.costs, self.allowed, core.member_start, core.member)


def solve_dense_component(
    layout: AssignmentLayout,
    cyclic_component: int,
    unary: Floats,
    guess: Ints,
    feasible_labels: Ints,
    seconds: float,
    stop: StopSignal | None = None,
    params: AssignmentParams = DEFAULT_PARAMS,
) -> ComponentSolution:
    """Cheapest feasible labels of a component with cycles, or the best found in time.

    A huge component gets the better of guess and renamed feasible labels. Else a short search;
    elimination with large tables; then longer searches: with multipliers of a linear program, from
    labels of an integer program, and with increasing work, until one of them proves its labels
    optimal or the time is over.

    Parameters
    ----------
    unary : ndarray of shape (n_vertices, n_labels)
        Costs >= 0, infinite = forbidden. Overwritten.
    guess : ndarray of shape (n_vertices,)
        Labels to start from; any numbers.
    feasible_labels : ndarray of shape (n_vertices,)
        Any feasible labels.
    seconds : float
        With 0, one short search only.
    """
    n_core = int(layout.cores.start[cyclic_component + 1] - layout.cores.start[cyclic_component])
    costs = np.empty((n_core, unary.shape[1]))
    gather_core(layout.cores, cyclic_component, unary, costs)
    core = DenseComponent(layout, cyclic_component, costs, guess, feasible_labels, params)
    if core.too_large_to_search:
        core.use_initial_labels()
    else:
        core.search(params.short_search_work)
    if not core.exact and not core.too_large_to_search and seconds > 0:
        limited_stop = StopSignal(seconds) if stop is None else stop.with_time_limit(seconds)
        _run_exact_methods(core, limited_stop)
    if core.value == np.inf:
        lower_bound = np.inf if core.exact else core.lower_bound
        return ComponentSolution(feasible_labels.copy(), np.inf, lower_bound, core.exact)
    labels = np.empty(len(unary), dtype=np.int64)
    scatter_core(layout.cores, cyclic_component, unary, core.core_labels, labels)
    lower_bound = min(core.lower_bound, core.value)
    return ComponentSolution(labels, float(core.value), lower_bound, core.exact)


def _run_exact_methods(core: DenseComponent, limited_stop: StopSignal) -> None:
    """Run the exact methods, cheapest first, until the labels are proven optimal or time is up."""
    core.eliminate()
    for prepare in (None, core.linear_program, core.integer_program):
        if core.exact or limited_stop.reason() is not None:
            return
        if prepare is not None:
            prepare(0.5 * limited_stop.remaining)
        core.search(core.params.long_search_work)
    work = 2 * core.params.long_search_work
    max_work = core.params.max_search_work
    while not core.exact and limited_stop.reason() is None and work <= max_work:
        core.search(work)
        work *= 2
