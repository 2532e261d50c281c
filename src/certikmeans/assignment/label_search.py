"""Local search for labels under any mix of constraints: annealing, repair and descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints
from certikmeans.assignment.transportation import repair_labels
from certikmeans.constraint_model.model import LabelConstraints
from certikmeans.kernels.costs import cluster_costs
from certikmeans.kernels.label_search.annealing import (
    mean_cost,
    nearest_labels,
    recenter,
    recolor,
)
from certikmeans.kernels.label_search.descent import (
    MoveLimits,
    MoveScratch,
    descend,
    swap_groups,
)
from certikmeans.kernels.label_search.repair import conflicted_groups, repair
from certikmeans.kernels.label_search.state import (
    LabelRules,
    SearchData,
    SearchState,
    fill_state,
)
from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True)
class LabelSearchParams:
    """Settings of the search; temperatures and penalties are in units of the mean cost."""

    n_sweeps: int = 80
    min_sweeps: int = 30
    full_sweep_entries: int = 400_000  # groups times clusters; with more there are fewer sweeps
    order_block: int = 256  # groups visited in order, such that memory is read in order
    start_temperature: float = 1.0
    end_temperature: float = 0.1
    start_penalty: float = 2.0  # of a violated constraint
    end_penalty: float = 4.0
    time_fraction: float = 0.5  # of the time left, for annealing
    # With more groups in violated constraints after annealing, sweeps over them come before the
    # repair: a step of the repair moves one group.
    max_listed: int = 2_000
    max_cooling_sweeps: int = 40
    cooling_price_factor: float = 1.15
    max_repair_steps: int = 20_000
    repair_steps_per_call: int = 200
    max_repair_candidates: int = 200  # groups tried in a step of the repair
    max_passes: int = 100  # of the descent
    max_ejected: int = 3
    max_chain_length: int = 200
    n_swap_candidates: int = 12
    # Groups times clusters in a call of a kernel: the deadline is checked between calls.
    entries_per_call: int = 400_000
    min_gain_fraction: float = 1e-12  # of the total cost; smaller gains are rounding
    min_pass_gain: float = 1e-7  # of the total cost; passes that gain less end a descent

    def __post_init__(self) -> None:
        if min(self.n_sweeps, self.max_passes, self.entries_per_call) < 1:
            raise ValueError("sweeps, passes and entries per call must be positive")


DEFAULT_PARAMS = LabelSearchParams()

MAX_ATTEMPTS = 20  # of a search for feasible labels
MAX_SAMPLE_ATTEMPTS = 3  # of the same in a sample
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

    labels: Ints
    means: Floats
    cost: float
    feasible: bool


@final
class _Pace:
    """Number of the next sweep; where the time is short, sweeps are left out evenly."""

    def __init__(self, n_sweeps: int, time_fraction: float, stop: StopSignal | None) -> None:
        self._n_sweeps = n_sweeps
        self._stop = stop
        self._begin = 0.0 if stop is None else stop.elapsed
        self._granted = np.inf if stop is None else time_fraction * stop.remaining
        self._done = 0
        self.sweep = 0

    @property
    def finished(self) -> bool:
        """Whether the last sweep is done."""
        return self.sweep >= self._n_sweeps

    def advance(self) -> None:
        """Go on to the next sweep that the time allows; the last one is never left out."""
        self._done += 1
        step = 1
        if self._stop is not None and self._granted < np.inf:
            spent = self._stop.elapsed - self._begin
            left = max(1.0, (self._granted - spent) * self._done / max(spent, 1e-9))
            step = max(1, round((self._n_sweeps - self.sweep) / left))
        last = self.sweep == self._n_sweeps - 1
        self.sweep = self._n_sweeps if last else min(self.sweep + step, self._n_sweeps - 1)


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
        labels: Ints | None,
        centers: Floats,
        number: int,
        *,
        costs: Floats | None = None,
        temperature: float | None = None,
        stop: StopSignal | None = None,
    ) -> Ints | None:
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
        fill_state(data, state)
        state.means[:] = centers  # for the first sweep
        rng = generator(number, "assignment.annealing")
        bits = rng.integers(1, 2**63, size=1).astype(np.uint64)
        start = params.start_temperature if temperature is None else temperature
        n_sweeps = self.n_sweeps
        steps = np.linspace(0.0, 1.0, n_sweeps)
        temperatures = start * (params.end_temperature / start) ** steps
        penalties = params.start_penalty * (params.end_penalty / params.start_penalty) ** steps
        scale = LEAST_SCALE
        chunk = max(1, params.entries_per_call // self._problem.n_clusters)
        pace = _Pace(n_sweeps, params.time_fraction, stop)
        while not pace.finished:
            scale = max(float(mean_cost(data, state)), LEAST_SCALE)
            order = self._order(rng)
            changes = 0
            heat, price = temperatures[pace.sweep], penalties[pace.sweep]
            for first in range(0, len(order), chunk):
                changes += recolor(
                    data, state, order[first : first + chunk], scale * float(heat),
                    scale * float(price), bits,
                )  # fmt: skip
                if pace.sweep and stop is not None and stop.reason() is not None:
                    return None
            if costs is None:
                recenter(data, state)
            pace.advance()
        heat, price = float(temperatures[-1]) * scale, params.end_penalty * scale
        price = self._cool(data, state, heat, price, bits, stop)
        if self._repair(data, state, price, bits, stop):
            return state.labels
        return None

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps of an annealing."""
        params, problem = self.params, self._problem
        entries = problem.n_groups * problem.n_clusters
        share = min(1.0, params.full_sweep_entries / entries)
        return max(min(params.min_sweeps, params.n_sweeps), round(params.n_sweeps * share))

    def _order(self, rng: np.random.Generator) -> Ints:
        """Random order of the groups; of blocks of them where there are many."""
        n, block = self._problem.n_groups, self.params.order_block
        if n < 64 * block:
            return rng.permutation(n)
        starts = rng.permutation(-(-n // block)) * block
        order = (starts[:, None] + np.arange(block)[None, :]).ravel()
        return order[order < n]

    def _cool(
        self,
        data: SearchData,
        state: SearchState,
        heat: float,
        price: float,
        bits: NDArray[np.uint64],
        stop: StopSignal | None,
    ) -> float:
        """Draw the labels of groups in violated constraints at a rising price; return the price."""
        params = self.params
        groups = np.arange(self._problem.n_groups)
        for _ in range(params.max_cooling_sweeps):
            count = int(conflicted_groups(data, state, groups))
            stopped = stop is not None and stop.reason() is not None
            if count <= params.max_listed or stopped:
                break
            recolor(data, state, groups[:count], heat, price, bits)
            if data.costs.size == 0:
                recenter(data, state)
            price *= params.cooling_price_factor
        return price

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
        labels: Ints,
        *,
        costs: Floats | None = None,
        stop: StopSignal | None = None,
    ) -> Labelling:
        """Improve feasible labels until no move gains; they are returned if nothing helps."""
        params, problem, data = self.params, self._problem, self._data(costs)
        state = self._state(np.zeros((problem.n_clusters, problem.n_dims)), costs)
        state.labels[:] = labels
        fill_state(data, state)
        n = problem.n_groups
        cost = float(mean_cost(data, state)) * n
        small = params.min_pass_gain * cost
        limits = MoveLimits(
            params.min_gain_fraction * cost, params.max_ejected,
            params.max_chain_length, min(params.n_swap_candidates, n),
        )  # fmt: skip
        length = max(params.max_chain_length, params.max_ejected + 1, 2)
        scratch = MoveScratch(
            np.full(n, -1, dtype=np.int64), np.empty(length, dtype=np.int64),
            np.empty(length, dtype=np.int64), np.zeros(1, dtype=np.int64),
            np.empty(params.max_ejected, dtype=np.int64),
        )  # fmt: skip
        chunk = max(1, params.entries_per_call // (4 * problem.n_clusters))
        swaps = self._entangled or self._sized
        for _ in range(params.max_passes):
            gain, stopped = 0.0, False
            for first in range(0, n, chunk):
                stopped = stop is not None and stop.reason() is not None
                if stopped:
                    break
                gain += descend(data, state, first, min(first + chunk, n), limits, scratch)
            if not stopped and gain <= small and swaps:
                gain += swap_groups(data, state, limits, scratch)
            if gain <= small or stopped:
                break
        found = self.evaluate(state.labels, costs)
        return found if found.feasible else self.evaluate(np.array(labels), costs)

    def evaluate(self, labels: Ints, costs: Floats | None = None) -> Labelling:
        """Means and cost of labels."""
        problem = self._problem
        if costs is None:
            means = problem.cluster_means(labels)
            each = np.empty(problem.n_clusters)
            cost = float(cluster_costs(problem.points, problem.weights, means, labels, each))
        else:
            means = np.zeros((problem.n_clusters, problem.n_dims))
            cost = float(costs[np.arange(problem.n_groups), labels].sum())
        cost += self._constraints.penalty(labels)
        return Labelling(labels, means, cost, self._constraints.satisfied_by(labels))

    def _data(self, costs: Floats | None) -> SearchData:
        table = np.empty((0, 0)) if costs is None else costs
        return SearchData(self._points, self._weights, table, self._rules)

    def _state(self, centers: Floats, costs: Floats | None) -> SearchState:
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


def search_feasible_labels(
    constraints: LabelConstraints,
    n_clusters: int,
    start: Ints | None,
    points: Floats | None,
    stop: StopSignal,
    max_attempts: int = MAX_ATTEMPTS,
) -> Ints | None:
    """Feasible labels, or None if none were found.

    The attempts anneal from random centres among ``points``, if they are given; the first without
    them, or the second, from ``start`` without regard to costs.
    """
    n = constraints.cannot_links.n_vertices
    places = np.zeros((n, 1)) if points is None else points
    problem = ReducedProblem(places, np.ones(n), constraints, n_clusters, 0.0)
    search = LabelSearch(problem)
    for attempt in range(max_attempts):
        if start is not None and attempt == (0 if points is None else 1):
            costs = np.zeros((n, n_clusters))
            found = search.anneal(start, places[:n_clusters], attempt, costs=costs, stop=stop)
        else:
            rng = generator(attempt, "assignment.annealing")
            seeds = np.empty(n_clusters, dtype=np.int64)
            kmeanspp_seeds(_writable(places), np.ones(n), rng.random((n_clusters, 4)), seeds)
            found = search.anneal(None, places[seeds], attempt, stop=stop)
        if found is not None or stop.reason() is not None:
            return found
    return None


def feasible_labels_near(problem: ReducedProblem, labels: Ints, stop: StopSignal) -> Ints | None:
    """Feasible labels from those of a larger problem, or None if none were found.

    The members of a sample satisfy pairs and sets as they did, but not the scaled limits on sizes.
    """
    constraints = problem.label_constraints
    if constraints.satisfied_by(labels):
        return constraints.aligned(labels)
    sizes = constraints.sizes
    if sizes is not None:
        repaired = repair_labels(np.zeros((problem.n_groups, problem.n_clusters)), sizes, labels)
        if repaired is not None and constraints.satisfied_by(repaired):
            return constraints.aligned(repaired)
    return search_feasible_labels(
        constraints, problem.n_clusters, labels, problem.points, stop, MAX_SAMPLE_ATTEMPTS
    )
