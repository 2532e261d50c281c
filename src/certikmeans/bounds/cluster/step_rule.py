"""Step rules of the bundle: how the multipliers move from one round to the next.

`LevelStep` projects on a level set of the model of few cuts, `SmoothedAscent` maximizes a smoothed
model of many cuts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.cut_model import CutModel, Cuts
from certikmeans.bounds.cluster.lbfgs import maximize
from certikmeans.stop import StopSignal


@dataclass(slots=True)
class BundleStats:
    """Counts and times of a bundle."""

    rounds: int = 0
    exact_pricings: int = 0
    boxes: int = 0
    climb_seconds: float = 0.0
    exact_seconds: float = 0.0
    projection_seconds: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Target:
    """Target of a bundle, in units of the reduced cost."""

    bound: float  # lower bound to prove
    level: float  # value of the model to aim at, slightly larger
    abs_gap: float  # unit of tolerances: the incumbent's cost minus the bound, about


class BundleStatus(StrEnum):
    """Why a bundle ended."""

    PROVEN = "the target is proven"
    UNREACHABLE = "no multipliers in the incumbent's box reach the target"
    EXHAUSTED = "converged or stalled below the target"
    STOPPED = "stopped"


Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class PricingBudget:
    """Limits on the heuristic pricing of a round."""

    new_cuts: int
    column_starts: int  # ascents from the known columns of largest value
    sampled_starts: int  # ascents from random groups
    max_work: float  # evaluations of a coordinate in all ascents, about
    # Ascents before an exact pricing: one per this many boxes of the last exact pricing, at most
    # ``max_starts``.
    boxes_per_start: float
    max_starts: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """State of the bundle before a step, in variables of the dual box."""

    current: Vector
    best: Vector  # by the value of the model
    value: float  # of the model at ``best``


class StepRule(ABC):
    """Moves the multipliers to where the model is larger. Concrete classes are final.

    ``upper_bound`` is an estimate of the maximum of the model, infinite at first. No proof depends
    on it; it decides when to improve the incumbent, or to branch.
    """

    stays_in_box: ClassVar[bool]  # whether multipliers stay in the dual box
    # The bundle has converged if the best value is this close to the upper bound: in units of the
    # gap, and relative to the distance of the upper bound from an unreachable target, where
    # branching gains more.
    convergence_tol: ClassVar[float]
    relative_convergence_tol: ClassVar[float]
    upper_bound: float

    @abstractmethod
    def pricing_budget(self) -> PricingBudget:
        """Limits on the next heuristic pricing."""

    @abstractmethod
    def min_column_value(self, known: float, total: float, target: Target) -> float:
        """Smallest value of a column that becomes a cut.

        ``known`` is the largest value of a known column of its symmetry class, ``total`` the sum
        of all multipliers.
        """

    @abstractmethod
    def observe_pricing(self, excess: float, added: int) -> None:
        """Record the last pricing: largest value beyond that of known columns, and new cuts."""

    @abstractmethod
    def observe_step(self, closer: bool) -> None:
        """Record whether the last step led to the best position so far."""

    @abstractmethod
    def next_position(self, iterate: Iterate, target: Target, stop: StopSignal) -> Vector:
        """Return the next position."""


@final
@dataclass(frozen=True, slots=True)
class LevelStepParams:
    """Settings of level steps."""

    # A few cuts per round converge as well as many, and cost less.
    pricing_budget: PricingBudget = PricingBudget(
        new_cuts=12,
        column_starts=8,
        sampled_starts=24,
        max_work=2e7,
        boxes_per_start=200.0,
        max_starts=400,
    )
    # The level, as a fraction of the way from the best value to the target: decreased after a step
    # without improvement, increased after one with.
    max_level_fraction: float = 1.0
    min_level_fraction: float = 0.5
    level_decrease: float = 0.8
    level_increase: float = 1.1
    bound_fraction: float = 0.6  # of the way to the upper bound, if that is below the target

    def __post_init__(self) -> None:
        if not 0.0 < self.min_level_fraction <= self.max_level_fraction <= 1.0:
            raise ValueError("0 < min_level_fraction <= max_level_fraction <= 1 is required")
        if not 0.0 < self.level_decrease <= 1.0 <= self.level_increase:
            raise ValueError("level_decrease has to be in (0, 1], level_increase at least 1")


@final
class LevelStep(StepRule):
    """Projects the best position on the set where all cuts reach a level.

    The level is the target itself as long as it can be reached. An infeasible projection proves
    that no multipliers in the box reach the level.
    """

    stays_in_box: ClassVar[bool] = True
    convergence_tol: ClassVar[float] = 0.1
    relative_convergence_tol: ClassVar[float] = 0.25

    def __init__(self, model: CutModel, params: LevelStepParams | None = None) -> None:
        self._params = params or LevelStepParams()
        self.upper_bound = np.inf
        self._model = model
        self._counts = model.cuts.counts
        self._level = np.inf
        self._level_fraction = self._params.max_level_fraction

    def pricing_budget(self) -> PricingBudget:
        """Constant limits."""
        return self._params.pricing_budget

    def min_column_value(self, known: float, total: float, target: Target) -> float:
        """Value at which the model falls below the level; with several classes, the known value."""
        if len(self._counts) > 1:
            return known
        return float((total - min(self._level, target.level)) / self._counts[0])

    def observe_pricing(self, excess: float, added: int) -> None:
        """Do nothing: the projection uses the cuts themselves."""

    def observe_step(self, closer: bool) -> None:
        """Raise the level after an improvement, lower it otherwise."""
        params, fraction = self._params, self._level_fraction
        if closer:
            self._level_fraction = min(params.level_increase * fraction, params.max_level_fraction)
        else:
            self._level_fraction = max(params.level_decrease * fraction, params.min_level_fraction)

    def next_position(self, iterate: Iterate, target: Target, stop: StopSignal) -> Vector:
        """Project on the level; lower it while the projection is infeasible."""
        least, best = self.convergence_tol * target.abs_gap, iterate.value
        while True:
            self._level = best + self._level_fraction * (target.level - best)
            if self.upper_bound < target.level:
                level_fraction = min(self._level_fraction, self._params.bound_fraction)
                self._level = min(
                    self._level, best + level_fraction * max(self.upper_bound - best, least)
                )
            tolerance = 0.1 * max(min(target.abs_gap, self._level - best), 0.1 * least)
            projected = self._model.project(iterate.best, self._level, tolerance, stop)
            if not projected.infeasible(self._level) or stop.reason() is not None:
                break
            self.upper_bound = min(self.upper_bound, projected.upper_bound)
            if self.upper_bound - best <= least:
                break
        self._model.drop_oldest()
        return projected.position


@final
@dataclass(frozen=True, slots=True)
class SmoothedAscentParams:
    """Settings of smoothed ascents."""

    # Steps of L-BFGS per round. With sets many cuts are missing at first, and long ascents end
    # where the model is wrong: they are short, and the model is smoother, until it is accurate.
    ascent_steps: int = 30
    first_steps_sets: int = 8
    first_step: float = 0.05  # relative to the cost, spread evenly over all variables
    # Initial temperature, relative to the mean cost of a cluster: usually; with so many groups
    # that few ascents are affordable and rounds have to be few; after a warm start.
    initial_temperature: float = 3e-3
    initial_temperature_large: float = 7e-4
    initial_temperature_sets: float = 1e-2
    initial_temperature_warm: float = 1e-4
    # The last pricing found columns of larger value than the model knows; this excess, in units of
    # the temperature, decides: below ``accurate`` the temperature falls by ``cooling``, below
    # ``nearly_accurate`` by ``slow_cooling``, above ``inaccurate`` the model was too sharp for the
    # known columns and the temperature rises by ``reheating``. It stays while the last ascent
    # gained more than ``gain_tol``, in units of the temperature times the number of clusters.
    accurate: float = 1.0
    nearly_accurate: float = 4.0
    inaccurate: float = 20.0
    cooling: float = 0.7
    slow_cooling: float = 0.85
    reheating: float = 1.5
    gain_tol: float = 0.2
    final_temperature: float = 0.05  # smoothing error at the end, relative to the gap
    value_window: float = 3.0  # columns this far below the best, in temperatures, have no weight
    # Weights below this fraction of the largest are set to 0. A cut of weight 0 is idle if its
    # value is below the best by more than the margin, relative to the mean cost of a cluster:
    # keeping only cuts of positive weight, a sharp model loses cuts needed after the next step.
    min_weight: float = 1e-3
    idle_margin: float = 1e-3
    # Per cluster: new cuts, and ascents from known columns and from groups, at most and at least;
    # between them, as many as the last round found. While the model is smooth (temperature above
    # ``warm_ratio`` times the initial one) missed columns do no harm, but a sharp model stays
    # inaccurate for hundreds of rounds.
    max_new_cuts: int = 10
    max_column_starts: int = 30
    max_sampled_starts: int = 20
    min_starts_warm: tuple[int, int] = (5, 2)
    min_starts_cold: tuple[int, int] = (15, 10)
    warm_ratio: float = 0.1
    work_per_cluster: float = 5e6  # evaluations of a coordinate in ascents
    # Before an exact pricing, which takes longer than hundreds of ascents.
    boxes_per_start: float = 40.0
    max_starts_before_exact: int = 1_000

    def __post_init__(self) -> None:
        if not 0.0 < self.cooling <= self.slow_cooling <= 1.0 <= self.reheating:
            raise ValueError("0 < cooling <= slow_cooling <= 1 <= reheating is required")
        if not self.accurate <= self.nearly_accurate <= self.inaccurate:
            raise ValueError("accurate <= nearly_accurate <= inaccurate is required")


SMOOTHED_ASCENT_PARAMS = SmoothedAscentParams()


@final
class SmoothedAscent(StepRule):
    """Maximizes a smoothed model, without a box, and reduces the smoothing.

    With many clusters, hundreds to thousands of cuts are active at the best multipliers, and a
    projection on them takes longer than everything else. Here the largest value of a class is
    replaced by ``tau log(1 + sum over its cuts of exp(value / tau))``, which is larger by at most
    ``tau log(number of cuts)``. The result is smooth and concave in the multipliers; an evaluation
    costs two products with the sparse rows of the cuts, and thirty steps of L-BFGS bring it close
    to its maximum. Then heuristic pricing searches for columns of larger value than the model
    knows, and the temperature ``tau`` falls if the model was accurate and the ascent has converged.
    The weights of the cuts in the smoothed maximum are a convex combination of clusters: in the
    limit, the fractional solution of the relaxation.

    If the relaxation has a gap, its best multipliers lie outside the ranges that complementary
    slackness leaves around a labelling (5,000 overlapping points in 20 clusters: 0.20 % inside,
    0.18 % without a box), and the smoothed ascent is stable without a box, unlike cutting planes.
    The clusters of the labelling are always among the cuts: they keep the model below its cost.

    Parameters
    ----------
    model : CutModel
        Its weights and idle cuts are updated by every step.
    cost : float
        Of the labelling, > 0: unit of temperatures and steps.
    ascent_work : float
        Evaluations of a coordinate in one ascent of the pricing, about.
    warm_started : bool
        Whether the initial multipliers are nearly optimal, as in a node.
    with_sets : bool
        Whether the constraints are disjoint cannot-link sets.
    params : SmoothedAscentParams
    """

    stays_in_box: ClassVar[bool] = False
    convergence_tol: ClassVar[float] = 0.02
    relative_convergence_tol: ClassVar[float] = 0.05

    def __init__(
        self,
        model: CutModel,
        cost: float,
        ascent_work: float,
        *,
        warm_started: bool,
        with_sets: bool = False,
        params: SmoothedAscentParams = SMOOTHED_ASCENT_PARAMS,
    ) -> None:
        self._params = params
        self.upper_bound = np.inf
        self._model = model
        self._n_clusters = float(model.cuts.counts.sum())
        self._mean_cluster_cost = cost / self._n_clusters
        self._first_step = params.first_step * cost / np.sqrt(len(model.cuts.total))
        expensive = params.max_new_cuts * ascent_work > params.work_per_cluster
        usual = params.initial_temperature_sets if with_sets else params.initial_temperature
        self._max_temperature = (
            params.initial_temperature_large if expensive else usual
        ) * self._mean_cluster_cost
        self._first_steps = params.first_steps_sets if with_sets else params.ascent_steps
        self._temperature = (
            params.initial_temperature_warm * self._mean_cluster_cost
            if warm_started
            else self._max_temperature
        )
        self._excess = 0.0
        self._found = params.max_new_cuts * self._n_clusters
        self._gain = np.inf

    def pricing_budget(self) -> PricingBudget:
        """Limits in proportion to the columns found by the last pricing."""
        params, k, found = self._params, self._n_clusters, self._found
        columns, sampled = params.min_starts_warm if self._is_smooth() else params.min_starts_cold
        return PricingBudget(
            new_cuts=int(params.max_new_cuts * k),
            column_starts=int(min(params.max_column_starts * k, max(columns * k, 2.0 * found))),
            sampled_starts=int(min(params.max_sampled_starts * k, max(sampled * k, found))),
            max_work=params.work_per_cluster * k,
            boxes_per_start=params.boxes_per_start,
            max_starts=params.max_starts_before_exact,
        )

    def min_column_value(self, known: float, total: float, target: Target) -> float:
        """Slightly less than the best value: such columns have weight in the smoothed model."""
        return known - self._params.value_window * self._temperature

    def observe_pricing(self, excess: float, added: int) -> None:
        """Record how accurate the model was."""
        self._excess, self._found = excess, added

    def observe_step(self, closer: bool) -> None:
        """Do nothing: the next ascent starts at the current position."""

    def next_position(self, iterate: Iterate, target: Target, stop: StopSignal) -> Vector:
        """Maximize the smoothed model by a limited number of steps."""
        params = self._params
        self._update_temperature(target)
        self._model.drop_idle()
        smoothed = LogSumExpModel(self._model.cuts, self._temperature)
        start = self._model.scaled(iterate.current)
        steps = self._first_steps if self._is_smooth() else params.ascent_steps
        ascended = maximize(smoothed.value, start, self._first_step, steps, stop)
        self._gain = ascended.gain
        cut_weights = smoothed.cut_weights(ascended.point)
        weights = np.where(cut_weights >= params.min_weight * cut_weights.max(), cut_weights, 0.0)
        deficits = smoothed.value_deficits(ascended.point)
        active = (weights > 0.0) | (deficits < params.idle_margin * self._mean_cluster_cost)
        self._model.set_weights(weights, active)
        if self._ascent_converged():
            # The maximum of the smoothed model is the cost of the fractional solution minus its
            # entropy term.
            self.upper_bound = ascended.value + ascended.gain + smoothed.entropy(ascended.point)
        return self._model.unscaled(ascended.point)

    def _is_smooth(self) -> bool:
        return self._temperature > self._params.warm_ratio * self._max_temperature

    def _ascent_converged(self) -> bool:
        return self._gain <= self._params.gain_tol * self._n_clusters * self._temperature

    def _update_temperature(self, target: Target) -> None:
        """Cool if the model was accurate and the ascent has converged."""
        params = self._params
        if self._excess > params.inaccurate * self._temperature:
            self._temperature = min(params.reheating * self._temperature, self._max_temperature)
            return
        if not self._ascent_converged():
            return
        factor = 1.0
        if self._excess < params.nearly_accurate * self._temperature:
            accurate = self._excess < params.accurate * self._temperature
            factor = params.cooling if accurate else params.slow_cooling
        cuts = np.log(2.0 + len(self._model.columns))
        least = params.final_temperature * target.abs_gap / (self._n_clusters * cuts)
        self._temperature = max(factor * self._temperature, min(self._temperature, least))


@final
class LogSumExpModel:
    """The model with a log-sum-exp over the cuts of each symmetry class and the empty set.

    Examples
    --------
    >>> from certikmeans.bounds.cluster.cut_model import SparseRows
    >>> one = Cuts(
    ...     SparseRows.of(np.array([[1.0, 0.0]])), np.zeros(1), np.zeros(1, dtype=np.int64),
    ...     np.ones(1), np.ones(2), 0.0, np.ones(2),
    ... )
    >>> value, gradient = LogSumExpModel(one, 0.1).value(np.array([2.0, 3.0]))
    >>> round(value, 6), gradient.round(6) + 0.0  # the model is 2 + 3 - max(0, 2)
    (3.0, array([0., 1.]))
    """

    def __init__(self, cuts: Cuts, temperature: float) -> None:
        self._cuts = cuts
        self._temperature = temperature

    def value(self, t: Vector) -> tuple[float, Vector]:
        """Value and gradient."""
        cuts = self._cuts
        largest, logs, cut_weights = self._logsumexp(t)
        value = cuts.base + float(cuts.total @ t)
        value -= float(cuts.counts @ (largest + self._temperature * logs))
        return value, cuts.total - cuts.rows.rmatvec(cut_weights)

    def cut_weights(self, t: Vector) -> Vector:
        """Weights of the cuts in the smoothed maxima; at most the count in each class."""
        return self._logsumexp(t)[2]

    def value_deficits(self, t: Vector) -> Vector:
        """Distance of the value of every cut from the largest one of its class."""
        column_values = self._cuts.column_values(t)
        return self._cuts.class_values(t)[self._cuts.sym_class] - column_values

    def entropy(self, t: Vector) -> float:
        """Entropy term of the smoothed model."""
        cuts = self._cuts
        largest, logs, cut_weights = self._logsumexp(t)
        log_weights = (
            logs[cuts.sym_class]
            - (cuts.column_values(t) - largest[cuts.sym_class]) / self._temperature
        )
        empty = np.maximum(
            cuts.counts - np.bincount(cuts.sym_class, cut_weights, len(cuts.counts)), 0.0
        )
        empty[np.isinf(cuts.empty_values())] = 0.0
        total = float(cut_weights @ log_weights) + float(
            empty @ (logs + largest / self._temperature)
        )
        return self._temperature * total

    def _logsumexp(self, t: Vector) -> tuple[Vector, Vector, Vector]:
        """Largest value of each class, log of the scaled sum of exponentials, cut weights."""
        cuts = self._cuts
        column_values = cuts.column_values(t)
        empty = cuts.empty_values()
        largest = empty.copy()
        np.maximum.at(largest, cuts.sym_class, column_values)
        terms = np.exp((column_values - largest[cuts.sym_class]) / self._temperature)
        sums = np.bincount(cuts.sym_class, terms, len(cuts.counts))
        sums = sums + np.exp((empty - largest) / self._temperature)
        return largest, np.log(sums), terms * (cuts.counts / sums)[cuts.sym_class]
