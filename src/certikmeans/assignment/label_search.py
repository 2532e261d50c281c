"""Local search for labels under any mix of constraints: annealing, repair and descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.constraint_model.model import LabelConstraints
from certikmeans.kernels.costs import cluster_costs
from certikmeans.kernels.label_search.annealing import mean_cost, nearest_labels, recolor
from certikmeans.kernels.label_search.descent import (
    MoveLimits,
    MoveScratch,
    descend,
    swap_groups,
)
from certikmeans.kernels.label_search.repair import repair
from certikmeans.kernels.label_search.state import (
    LabelRules,
    SearchData,
    SearchState,
    fill_state,
)
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator
from certikmeans.stop import StopSignal

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class LabelSearchParams:
    """Settings of the search; temperatures and penalties are in units of the mean cost."""

    n_sweeps: int = 60
    start_temperature: float = 0.5
    end_temperature: float = 0.01
    start_penalty: float = 0.3  # of a violated constraint
    end_penalty: float = 8.0
    max_repair_steps: int = 20_000
    repair_steps_per_call: int = 200
    max_repair_candidates: int = 200  # groups tried in a step of the repair
    max_passes: int = 100  # of the descent
    max_ejected: int = 3
    max_chain_length: int = 200
    n_swap_candidates: int = 12
    # Groups times clusters in a call of a kernel: the deadline is checked between calls.
    entries_per_call: int = 1_000_000
    min_gain_fraction: float = 1e-12  # of the total cost; smaller gains are rounding

    def __post_init__(self) -> None:
        if min(self.n_sweeps, self.max_passes, self.entries_per_call) < 1:
            raise ValueError("sweeps, passes and entries per call must be positive")


DEFAULT_PARAMS = LabelSearchParams()

MAX_ATTEMPTS = 20  # of a search for feasible labels
LEAST_SCALE = 1e-290  # of costs that are all 0


def label_rules(constraints: LabelConstraints, n_clusters: int) -> LabelRules:
    """Arrays of all kinds of constraints for compiled code."""
    graph = constraints.cannot_links
    n = graph.n_vertices
    nothing, none_each = np.empty(0, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    soft_indptr, soft_neighbors, soft_bonus = none_each, nothing, np.empty(0)
    if constraints.soft is not None:
        soft_indptr, soft_neighbors, soft_bonus = constraints.soft.adjacency()
    set_indptr, set_members = np.zeros(1, dtype=np.int64), nothing
    group_indptr, group_sets = none_each, nothing
    if constraints.sets is not None:
        family = constraints.sets
        set_indptr, set_members = family.indptr, family.members
        group_indptr, group_sets = family.group_indptr, family.group_sets
    demand, lower, upper = np.empty(0), np.zeros(n_clusters), np.full(n_clusters, np.inf)
    if constraints.sizes is not None:
        sizes = constraints.sizes
        slack = 0.5 * sizes.tolerance
        demand, lower, upper = sizes.demand, sizes.lower - slack, sizes.upper + slack
    arrays = (
        graph.indptr, graph.neighbors, soft_indptr, soft_neighbors, soft_bonus, set_indptr,
        set_members, group_indptr, group_sets, demand, lower, upper,
    )  # fmt: skip
    return LabelRules(*(_writable(array) for array in arrays))


def _writable(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A contiguous array that may be written: kernels are compiled for one array type only."""
    return array.copy() if not array.flags.writeable else np.ascontiguousarray(array)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """Labels with the means of their clusters, and their cost, penalties included."""

    labels: IntArray
    means: FloatArray
    cost: float
    feasible: bool


@final
class LabelSearch:
    """Search for cheap feasible labels of a problem.

    Immutable, so threads may share it. Results depend on the arguments alone, unless the stop
    signal ends a search early.

    Notes
    -----
    `anneal` draws labels by heat bath while the temperature falls and the price of violations
    rises, then repairs what is still violated by a tabu search. `descend` improves feasible labels
    by moves, ejections, Kempe chains and swaps, and never gives feasibility up. Both work on a
    table of costs, or on sums of squares whose means move with the labels.
    """

    def __init__(self, problem: ReducedProblem, params: LabelSearchParams = DEFAULT_PARAMS) -> None:
        self.params = params
        self._problem = problem
        self._constraints = problem.label_constraints
        self._rules = label_rules(problem.label_constraints, problem.n_clusters)
        self._points = _writable(problem.points)
        self._weights = _writable(problem.weights)
        self._entangled = self._rules.links.size + self._rules.set_members.size > 0
        self._sized = self._rules.demand.size > 0

    def anneal(
        self,
        labels: IntArray | None,
        centers: FloatArray,
        number: int,
        *,
        costs: FloatArray | None = None,
        temperature: float | None = None,
        stop: StopSignal | None = None,
    ) -> IntArray | None:
        """Feasible labels near cheapest ones, or None if none were found.

        Parameters
        ----------
        labels : ndarray of shape (n_groups,), optional
            To start from; any labels in range. By default the nearest ones.
        centers : ndarray of shape (n_clusters, n_dims)
            To start from.
        number : int
            Of the random stream.
        costs : ndarray of shape (n_groups, n_clusters), optional
            Costs of the labels; then centres are not used.
        temperature : float, optional
            In place of that of the parameters.
        """
        params, data = self.params, self._data(costs)
        state = self._state(centers, costs)
        if labels is None:
            nearest_labels(data, state)
        else:
            state.labels[:] = labels
        _refill(data, state, centers)
        rng = generator(number, "assignment.annealing")
        bits = rng.integers(1, 2**63, size=1).astype(np.uint64)
        start = params.start_temperature if temperature is None else temperature
        steps = np.linspace(0.0, 1.0, params.n_sweeps)
        temperatures = start * (params.end_temperature / start) ** steps
        penalties = params.start_penalty * (params.end_penalty / params.start_penalty) ** steps
        scale, moving = 1.0, costs is None
        chunk = max(1, params.entries_per_call // self._problem.n_clusters)
        for sweep in range(params.n_sweeps):
            scale = max(float(mean_cost(data, state)), LEAST_SCALE)
            order = rng.permutation(self._problem.n_groups)
            changes = 0
            for first in range(0, len(order), chunk):
                if stop is not None and sweep and stop.reason() is not None:
                    return None
                changes += recolor(
                    data, state, order[first : first + chunk], scale * float(temperatures[sweep]),
                    scale * float(penalties[sweep]), bits,
                )  # fmt: skip
            if moving:
                fill_state(data, state)
            if changes == 0 and sweep > params.n_sweeps // 2:
                break
        if self._repair(data, state, scale * params.end_penalty, bits, stop):
            return state.labels
        return None

    def _repair(
        self,
        data: SearchData,
        state: SearchState,
        weight: float,
        bits: NDArray[np.uint64],
        stop: StopSignal | None,
    ) -> bool:
        params = self.params
        for _ in range(params.max_repair_steps // params.repair_steps_per_call):
            if repair(
                data, state, params.repair_steps_per_call, params.max_repair_candidates, weight,
                bits,
            ):  # fmt: skip
                return self._constraints.satisfied_by(state.labels)
            weight *= 1.2
            if stop is not None and stop.reason() is not None:
                return False
        return False

    def descend(
        self,
        labels: IntArray,
        *,
        costs: FloatArray | None = None,
        stop: StopSignal | None = None,
    ) -> Labelling:
        """Improve feasible labels until no move gains; they are returned if nothing helps."""
        params, problem, data = self.params, self._problem, self._data(costs)
        state = self._state(np.zeros((problem.n_clusters, problem.n_dims)), costs)
        state.labels[:] = labels
        fill_state(data, state)
        n = problem.n_groups
        cost = float(mean_cost(data, state)) * n
        limits = MoveLimits(
            params.min_gain_fraction * cost, params.max_ejected,
            params.max_chain_length, min(params.n_swap_candidates, n),
        )  # fmt: skip
        length = max(params.max_chain_length, params.max_ejected + 1, 2)
        scratch = MoveScratch(
            np.full(n, -1, dtype=np.int64), np.empty(length, dtype=np.int64),
            np.empty(length, dtype=np.int64), np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        chunk = max(1, params.entries_per_call // (4 * problem.n_clusters))
        swaps = self._entangled or self._sized
        for _ in range(params.max_passes):
            moves, stopped = 0, False
            for first in range(0, n, chunk):
                stopped = stop is not None and stop.reason() is not None
                if stopped:
                    break
                moves += descend(data, state, first, min(first + chunk, n), limits, scratch)
            if not stopped and moves == 0 and swaps:
                moves += swap_groups(data, state, limits, scratch)
            if moves == 0 or stopped:
                break
        found = self.evaluate(state.labels, costs)
        return found if found.feasible else self.evaluate(np.array(labels), costs)

    def evaluate(self, labels: IntArray, costs: FloatArray | None = None) -> Labelling:
        """Means and cost of labels."""
        problem = self._problem
        means = np.zeros((problem.n_clusters, problem.n_dims))
        if costs is None:
            sums, masses = problem.cluster_sums(labels)
            filled = masses > 0.0
            means[filled] = sums[filled] / masses[filled, None]
            each = np.empty(problem.n_clusters)
            cost = float(cluster_costs(problem.points, problem.weights, means, labels, each))
        else:
            cost = float(costs[np.arange(problem.n_groups), labels].sum())
        cost += self._constraints.penalty(labels)
        return Labelling(labels, means, cost, self._constraints.satisfied_by(labels))

    def _data(self, costs: FloatArray | None) -> SearchData:
        table = np.empty((0, 0)) if costs is None else costs
        return SearchData(self._points, self._weights, table, self._rules)

    def _state(self, centers: FloatArray, costs: FloatArray | None) -> SearchState:
        problem, rules = self._problem, self._rules
        n, k, d = problem.n_groups, problem.n_clusters, problem.n_dims
        with_soft = rules.soft_bonus.size > 0
        return SearchState(
            labels=np.zeros(n, dtype=np.int64),
            clashes=np.zeros((n, k), dtype=np.int32),
            bonus=np.zeros((n, k) if with_soft else (0, 0)),
            occupancy=np.zeros((len(rules.set_indptr) - 1, k), dtype=np.int32),
            totals=np.zeros(k),
            counts=np.zeros(k, dtype=np.int64),
            masses=np.zeros(k),
            sums=np.zeros((k, d)),
            means=np.array(centers, dtype=np.float64, order="C"),
        )


def _refill(data: SearchData, state: SearchState, centers: FloatArray) -> None:
    """Compute the sums, but keep the given centres for the first sweep."""
    fill_state(data, state)
    state.means[:] = centers


def search_feasible_labels(
    constraints: LabelConstraints, n_clusters: int, start: IntArray | None, stop: StopSignal
) -> IntArray | None:
    """Feasible labels without regard to costs, or None if none were found."""
    n = constraints.cannot_links.n_vertices
    problem = ReducedProblem(np.zeros((n, 1)), np.ones(n), constraints, n_clusters, 0.0)
    search = LabelSearch(problem)
    for attempt in range(MAX_ATTEMPTS):
        found = search.anneal(
            start if attempt == 0 else None, np.zeros((n_clusters, 1)), attempt,
            costs=np.zeros((n, n_clusters)), stop=stop,
        )  # fmt: skip
        if found is not None or stop.reason() is not None:
            return found
    return None
