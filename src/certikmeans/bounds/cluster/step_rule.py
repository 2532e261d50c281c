"""Step rules of the bundle: targets, the rule interface, level projection, smoothed ascent."""

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
    """What the bundle did and where its time went."""

    rounds: int = 0
    exact_pricings: int = 0
    boxes: int = 0
    climb_seconds: float = 0.0
    exact_seconds: float = 0.0
    projection_seconds: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Target:
    """What to reach, in units of the reduced cost."""

    bound: float  # the bound asked for
    level: float  # what the cuts are asked for: a little more
    abs_gap: float  # the gap asked for: goal is about the incumbent's cost minus this


class BundleStatus(StrEnum):
    """Why a bundle ended."""

    PROVEN = "the goal is proven"
    UNREACHABLE = "no multipliers in the incumbent's box reach the goal"
    EXHAUSTED = "the bound is as high as it gets"
    STOPPED = "time is up"


# Where the multipliers go next: what every way of moving them promises to the bundle.

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class PricingBudget:
    """What the ascents of a round may be."""

    new_cuts: int
    column_starts: int  # from the clusters that are worth most
    sampled_starts: int  # from some of the groups
    max_work: float  # coordinates that all of them may touch, about
    boxes_per_start: float  # before an exact pricing: one start per so many boxes of the last one,
    max_starts: int  # but no more than so many


@final
@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """Where the bundle stands when it asks to be moved."""

    current: Vector  # variables of the space
    best: Vector  # the best so far, by the model
    value: float  # of the model at the best


class StepRule(ABC):
    """Moves multipliers to where the cuts known so far promise more. Concrete ones are final.

    ``upper_bound`` is the most that the model can give, as far as it is known: infinite at first.
    Nothing that is proven rests on it; it says when to look for a better labelling, or to split.
    """

    stays_in_box: ClassVar[bool]  # whether multipliers keep to the ranges of the labelling
    # A best position this close to the ceiling is as high as it gets: in units of the gap asked
    # for, and as a part of what will be missing where the goal is out of reach: a split gains more.
    convergence_tol: ClassVar[float]
    relative_convergence_tol: ClassVar[float]
    upper_bound: float

    @abstractmethod
    def pricing_budget(self) -> PricingBudget:
        """How hard the next ascents may try."""

    @abstractmethod
    def min_column_value(self, known: float, total: float, target: Target) -> float:
        """What a cluster has to be worth to become a cut.

        ``known`` is the largest known worth in its family, ``total`` the sum of all multipliers.
        """

    @abstractmethod
    def observe_pricing(self, excess: float, added: int) -> None:
        """Take note of the last ascents: the largest worth beyond what was known, and new cuts."""

    @abstractmethod
    def observe_step(self, closer: bool) -> None:
        """Take note of whether the last move led to the best position so far."""

    @abstractmethod
    def next_position(self, at: Iterate, target: Target, stop: StopSignal) -> Vector:
        """Return the next position."""


# Moving with few cuts: project the best position on "every cut reaches the level".

# What a round may take. A few cuts per round converge as well, and cost less.
PRICING_BUDGET = PricingBudget(
    new_cuts=12,
    column_starts=8,
    sampled_starts=24,
    max_work=2e7,
    boxes_per_start=200.0,
    max_starts=400,
)
# Level: this far from the best position so far to the goal; less after a round that led nowhere,
# more after one that did; and less than that towards what the cuts allow, if that is lower.
MAX_LEVEL_FRACTION, MIN_LEVEL_FRACTION, LEVEL_DECREASE, LEVEL_INCREASE = 1.0, 0.5, 0.8, 1.1
BOUND_FRACTION = 0.6


@final
class LevelStep(StepRule):
    """The level is the goal itself, not a step towards it, while it can be reached.

    A projection that is infeasible proves that no multipliers in the box reach the level.
    """

    stays_in_box: ClassVar[bool] = True
    convergence_tol: ClassVar[float] = 0.1
    relative_convergence_tol: ClassVar[float] = 0.25

    def __init__(self, model: CutModel) -> None:
        self.upper_bound = np.inf
        self._model = model
        self._counts = model.cuts.counts
        self._level = np.inf
        self._level_fraction = MAX_LEVEL_FRACTION

    def pricing_budget(self) -> PricingBudget:
        """Always the same."""
        return PRICING_BUDGET

    def min_column_value(self, known: float, total: float, target: Target) -> float:
        """What the level leaves to a cluster; with several families, what is known already."""
        if len(self._counts) > 1:
            return known
        return float((total - min(self._level, target.level)) / self._counts[0])

    def observe_pricing(self, excess: float, added: int) -> None:
        """Nothing: the projection sees the cuts."""

    def observe_step(self, closer: bool) -> None:
        """Reach farther after a success."""
        if closer:
            self._level_fraction = min(LEVEL_INCREASE * self._level_fraction, MAX_LEVEL_FRACTION)
        else:
            self._level_fraction = max(LEVEL_DECREASE * self._level_fraction, MIN_LEVEL_FRACTION)

    def next_position(self, at: Iterate, target: Target, stop: StopSignal) -> Vector:
        """Project on the level; lower it when the cuts themselves say that it is too high."""
        least, best = self.convergence_tol * target.abs_gap, at.value
        while True:
            self._level = best + self._level_fraction * (target.level - best)
            if self.upper_bound < target.level:
                level_fraction = min(self._level_fraction, BOUND_FRACTION)
                self._level = min(
                    self._level, best + level_fraction * max(self.upper_bound - best, least)
                )
            tolerance = 0.1 * max(min(target.abs_gap, self._level - best), 0.1 * least)
            projected = self._model.project(at.best, self._level, tolerance)
            if not projected.infeasible(self._level):
                break
            self.upper_bound = min(self.upper_bound, projected.upper_bound)
            if self.upper_bound - best <= least:
                break
        self._model.drop_oldest()
        return projected.position


# Moving with many cuts: climb a smooth function just below the model, and sharpen it.
#
# With many clusters, hundreds to thousands of cuts are active at the best multipliers, and a
# projection on them takes longer than everything else. Here the largest worth of a family is
# replaced by a smooth one, ``tau log(1 + sum over its cuts of exp(column_values / tau))``, which lies above
# it by at most ``tau log(number of cuts)``. What is left is smooth and concave in the multipliers;
# one look at it costs two products with the sparse rows of the cuts, and thirty steps of a
# quasi-Newton method bring it close to its top. Then ascents of the pricing look for clusters that
# are worth more than the model knows, and ``tau`` comes down where the model was found right and the
# climb has settled. The weights of the cuts in the soft maximum are a mixture of clusters: the
# relaxation's own solution, in the limit.
#
# There is no box here. Where the relaxation has a gap, its best multipliers lie outside the ranges
# that complementary slackness leaves around a labelling (5,000 overlapping points in 20 clusters:
# 0.20 % inside, 0.18 % without), and the smooth climb does not run away as cutting planes would. The
# labelling's own clusters are always among the cuts: they keep the model below its cost.

ASCENT_STEPS = 30  # between two rounds of ascents
FIRST_STEP = 0.05  # as a part of the cost, spread evenly over all groups
# Softness, as a part of a cluster's share of the cost: at the start; where groups are so many that
# few ascents are affordable, and rounds have to count; and where a start is known.
INITIAL_TEMPERATURE, INITIAL_TEMPERATURE_LARGE, INITIAL_TEMPERATURE_NODE = 3e-3, 7e-4, 1e-4
# It comes down by these factors: where the ascents found hardly more than the model knew, and
# where they found some, in units of the softness. Where they found much, or the last climb gained
# more than a part of it, the softness stays; where they found very much, it was too sharp for what
# is known, and goes up again.
ACCURATE, NEARLY_ACCURATE, INACCURATE = 1.0, 4.0, 20.0
COOLING, SLOW_COOLING, REHEATING = 0.7, 0.85, 1.5
GAIN_TOL = 0.2
# At the end it is worth this part of the gap asked for, all cuts together.
FINAL_TEMPERATURE = 0.05
# Clusters worth less than the best by more than so many times the softness have no weight to
# speak of.
VALUE_WINDOW = 3.0
# A cut with less than this part of the largest weight has none. It is idle if it is also worth
# less than the best by so much of a cluster's share of the cost: with those that have weight alone,
# a sharp model forgets what it will need again after the next move.
MIN_WEIGHT = 1e-3
IDLE_MARGIN = 1e-3
# Per cluster: new cuts, and ascents from known clusters and from groups, at most and at least. As
# many again as the last round found are worth trying. Fewer than these miss clusters: while the
# model is soft that does no harm, but a sharp one stays wrong for hundreds of rounds.
MAX_NEW_CUTS, MAX_STARTS, MAX_SAMPLED_STARTS = 10, 30, 20
MIN_STARTS_WARM, MIN_STARTS_COLD = (5, 2), (15, 10)
WARM_RATIO = 0.1  # of the softness at the start
WORK_PER_CLUSTER = 5e6  # coordinates that ascents may touch, for every cluster
# Before an exact pricing, which takes longer than hundreds of ascents.
BOXES_PER_START, MAX_STARTS_BEFORE_EXACT = 40.0, 1_000


@final
class SmoothedAscent(StepRule):
    """Climbs the soft model from where it is.

    Parameters
    ----------
    model : CutModel
        What is known. Its weights and who is idle are kept up to date.
    cost : float
        Of the labelling, > 0: units of everything else.
    ascent : float
        Coordinates that an ascent touches, about.
    begun : bool
        Whether the multipliers are known to be good nearly everywhere, as in a node.
    """

    stays_in_box: ClassVar[bool] = False
    convergence_tol: ClassVar[float] = 0.02
    relative_convergence_tol: ClassVar[float] = 0.05

    def __init__(
        self, model: CutModel, cost: float, ascent_work: float, *, warm_started: bool
    ) -> None:
        self.upper_bound = np.inf
        self._model = model
        self._n_clusters = float(model.cuts.counts.sum())
        self._mean_cluster_cost = cost / self._n_clusters
        self._first_step = FIRST_STEP * cost / np.sqrt(len(model.cuts.total))
        expensive = MAX_NEW_CUTS * ascent_work > WORK_PER_CLUSTER
        self._max_temperature = (
            INITIAL_TEMPERATURE_LARGE if expensive else INITIAL_TEMPERATURE
        ) * self._mean_cluster_cost
        self._temperature = (
            INITIAL_TEMPERATURE_NODE * self._mean_cluster_cost
            if warm_started
            else self._max_temperature
        )
        self._excess = 0.0
        self._found = MAX_NEW_CUTS * self._n_clusters
        self._gain = np.inf

    def pricing_budget(self) -> PricingBudget:
        """As much as the last round has found, and again."""
        k, found = self._n_clusters, self._found
        soft = self._temperature > WARM_RATIO * self._max_temperature
        columns, sampled = MIN_STARTS_WARM if soft else MIN_STARTS_COLD
        return PricingBudget(
            new_cuts=int(MAX_NEW_CUTS * k),
            column_starts=int(min(MAX_STARTS * k, max(columns * k, 2.0 * found))),
            sampled_starts=int(min(MAX_SAMPLED_STARTS * k, max(sampled * k, found))),
            max_work=WORK_PER_CLUSTER * k,
            boxes_per_start=BOXES_PER_START,
            max_starts=MAX_STARTS_BEFORE_EXACT,
        )

    def min_column_value(self, known: float, total: float, target: Target) -> float:
        """A little less than the best: all of them have weight."""
        return known - VALUE_WINDOW * self._temperature

    def observe_pricing(self, excess: float, added: int) -> None:
        """How right the model was."""
        self._excess, self._found = excess, added

    def observe_step(self, closer: bool) -> None:
        """Nothing: the next climb goes on from here, best or not."""

    def next_position(self, at: Iterate, target: Target, stop: StopSignal) -> Vector:
        """Climb for a while."""
        self._update_temperature(target)
        self._model.drop_idle()
        soft = LogSumExpModel(self._model.cuts, self._temperature)
        start = self._model.scaled(at.current)
        ascended = maximize(soft.value, start, self._first_step, ASCENT_STEPS, stop)
        self._gain = ascended.gain
        cut_weights = soft.cut_weights(ascended.point)
        weights = np.where(cut_weights >= MIN_WEIGHT * cut_weights.max(), cut_weights, 0.0)
        below = soft.value_deficits(ascended.point)
        self._model.set_weights(
            weights, (weights > 0.0) | (below < IDLE_MARGIN * self._mean_cluster_cost)
        )
        if self._ascent_converged():
            # At its top, the soft model is what the mixture costs less its entropy.
            self.upper_bound = ascended.value + ascended.gain + soft.entropy(ascended.point)
        return self._model.unscaled(ascended.point)

    def _ascent_converged(self) -> bool:
        return self._gain <= GAIN_TOL * self._n_clusters * self._temperature

    def _update_temperature(self, target: Target) -> None:
        """Come down where the model was right and the climb is at its top."""
        if self._excess > INACCURATE * self._temperature:
            self._temperature = min(REHEATING * self._temperature, self._max_temperature)
            return
        if not self._ascent_converged():
            return
        factor = 1.0
        if self._excess < NEARLY_ACCURATE * self._temperature:
            factor = COOLING if self._excess < ACCURATE * self._temperature else SLOW_COOLING
        cuts = np.log(2.0 + len(self._model.columns))
        least = FINAL_TEMPERATURE * target.abs_gap / (self._n_clusters * cuts)
        self._temperature = max(factor * self._temperature, min(self._temperature, least))


@final
class LogSumExpModel:
    """The model with a soft maximum over the cuts of each family, the empty cluster among them.

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
        """Value and slope."""
        cuts = self._cuts
        most, logs, cut_weights = self._logsumexp(t)
        value = cuts.base + float(cuts.total @ t)
        value -= float(cuts.counts @ (most + self._temperature * logs))
        return value, cuts.total - cuts.rows.rmatvec(cut_weights)

    def cut_weights(self, t: Vector) -> Vector:
        """Weights of the cuts: how much of the clusters of its family each stands for."""
        return self._logsumexp(t)[2]

    def value_deficits(self, t: Vector) -> Vector:
        """How much less than the best of its family every cut is worth."""
        column_values = self._cuts.column_values(t)
        return self._cuts.class_values(t)[self._cuts.sym_class] - column_values

    def entropy(self, t: Vector) -> float:
        """What softness takes off the cost of the mixture."""
        cuts = self._cuts
        most, logs, cut_weights = self._logsumexp(t)
        log_weights = (
            logs[cuts.sym_class]
            - (cuts.column_values(t) - most[cuts.sym_class]) / self._temperature
        )
        empty = np.maximum(
            cuts.counts - np.bincount(cuts.sym_class, cut_weights, len(cuts.counts)), 0.0
        )
        total = float(cut_weights @ log_weights) + float(empty @ (logs + most / self._temperature))
        return self._temperature * total

    def _logsumexp(self, t: Vector) -> tuple[Vector, Vector, Vector]:
        """Largest worth of each family, log of the sum beyond it, shares of the cuts."""
        cuts = self._cuts
        column_values = cuts.column_values(t)
        most = np.zeros(len(cuts.counts))
        np.maximum.at(most, cuts.sym_class, column_values)
        parts = np.exp((column_values - most[cuts.sym_class]) / self._temperature)
        sums = np.bincount(cuts.sym_class, parts, len(cuts.counts)) + np.exp(
            -most / self._temperature
        )
        return most, np.log(sums), parts * (cuts.counts / sums)[cuts.sym_class]
