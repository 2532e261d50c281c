"""Bundle method: update the multipliers until the bound reaches its target or stalls.

Every round prices the current multipliers by local ascents, adds the columns found as cuts and
moves the multipliers to where the model of cuts is higher. Exact pricing, which proves a bound, is
called only when no ascent refutes the target. The step rule decides how multipliers move
(`step_rule.py`): with few clusters by projection on few cuts, with many by smoothed ascent.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import StallDetector
from certikmeans.bounds.cluster.cut_model import CutModel
from certikmeans.bounds.cluster.dual_box import DualBox
from certikmeans.bounds.cluster.initial_point import BundleStart
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.cluster.pricing_error import lagrangian_lower_bound, sum_upper_bound
from certikmeans.bounds.cluster.step_rule import (
    BundleStats,
    BundleStatus,
    Iterate,
    LevelStep,
    LevelStepParams,
    SmoothedAscent,
    StepRule,
    Target,
)
from certikmeans.bounds.cluster.symmetry import SymmetryClass
from certikmeans.random_streams import generator
from certikmeans.stop import EffortMeter, StopCause, StopSignal

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class BundleParams:
    """Settings of a bundle."""

    # A bundle stalls if its distance to the target has not fallen below ``stall_ratio`` times its
    # former value for this many rounds.
    stall_rounds: int = 80
    stall_ratio: float = 0.95
    max_rounds: int = 1_000_000  # in effect no limit: the bundle ends when it stalls
    # Up to this many clusters the step rule is the level step, with more the smoothed ascent. With
    # many groups rounds are expensive, and for well separated clusters a few projections suffice
    # (21,000 points in 8 clusters: 14 rounds instead of 82): from ``projection_min_groups`` groups
    # on, up to ``max_initial_projections`` of them precede the smoothed ascent.
    max_clusters_for_level: int = 5
    max_initial_projections: int = 30
    projection_min_groups: int = 10_000
    min_starts: int = 4  # of ascents, regardless of the work limit
    min_column_starts: int = 8
    pair_work: int = 10  # of a pair at one end in a selection, in coordinates
    typical_ascent_steps: int = 8
    min_gain: float = 1e-3  # a step that gains less ends an ascent, in units of the required gap
    # With a time limit: after this many seconds and this fraction of it the stability center is
    # priced exactly for an early bound, within a fraction of the time spent; again whenever
    # ``early_bound_min_gain`` of the distance to the target can be gained.
    first_bound_after: float = 2.0
    first_bound_fraction: float = 0.1
    first_bound_fraction_slow: float = 0.4
    early_bound_time_fraction: float = 0.15
    early_bound_min_gain: float = 0.3
    # The stability center is priced exactly when the time left falls below this multiple of the
    # time spent.
    reserved_time_ratio: float = 0.7
    # Number of pricing errors added to the upper bound of a cluster's value, with a margin for
    # multipliers larger than the initial ones.
    rounding_safety: float = 2.5
    # Where prices prove less than the model of columns promises, the model has to exceed the target
    # by this more, in units of the gap, before the next proof.
    proof_margin_step: float = 0.1
    # With sets: tolerance of a pricing that is no test, relative to the distance from the target.
    early_tolerance: float = 0.03
    min_resolution: float = 0.1  # of boxes in a proof, in units of the tolerance
    # The box of the multipliers of size cuts is wide, and proves late that a level is out of reach.
    min_level_fraction_cuts: float = 0.05

    def __post_init__(self) -> None:
        if min(self.stall_rounds, self.max_rounds) < 1 or not 0.0 < self.stall_ratio <= 1.0:
            raise ValueError("numbers of rounds must be positive, and stall_ratio at most 1")


DEFAULT_PARAMS = BundleParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class BundleState:
    """Everything that a `Bundle` needs to continue between two rounds, except its pricer."""

    dual_box: DualBox
    sym_classes: Sequence[SymmetryClass]
    model: CutModel
    step_rule: StepRule
    stall_detector: StallDetector
    statistics: BundleStats
    rng: np.random.Generator
    incumbent: list[Column]
    position: Vector
    stability_center: Vector
    lower_bound: float
    lower_bound_multipliers: Vector
    stall_check_after: float
    rounding: float
    early_seconds: float
    exact_seconds: float
    round_seconds: float
    last_boxes: int
    columns_sufficient: bool
    pricing_failed: bool
    projected_until: int
    proof_margin: float
    params: BundleParams


@final
class Bundle:
    """Multipliers, cuts and proven bound of one run; `run` may be called again."""

    def __init__(
        self,
        pricer: Pricer,
        dual_box: DualBox,
        sym_classes: Sequence[SymmetryClass],
        known: BundleStart,
        seed: int = 0,
        on_bound: Callable[[float], None] = lambda value: None,
        stall_check_after: float | None = None,
        params: BundleParams = DEFAULT_PARAMS,
    ) -> None:
        self.pricer = pricer
        self.params = params
        self.dual_box = dual_box
        self.sym_classes = sym_classes
        constraints = pricer.constraints
        self.model = CutModel(
            dual_box,
            sym_classes,
            constant=0.0 if constraints is None else constraints.constant,
            empty=pricer.min_value == 0.0,
        )
        self.statistics = BundleStats()
        self.lower_bound = -np.inf
        self.lower_bound_multipliers = dual_box.low
        self._stall_check_after = (
            pricer.params.stall_check_after if stall_check_after is None else stall_check_after
        )
        self._rng = generator(seed, "bounds.cluster.bundle")
        self._on_bound = on_bound
        self._position = dual_box.start
        self._n_clusters = pricer.reduced.n_clusters
        self._rounding = (
            self.params.rounding_safety
            * self._n_clusters
            * pricer.error(dual_box.multipliers(dual_box.start))
        )
        self._ascent_work = _ascent_work(pricer, params)
        self._stability_center = self._position  # the best position so far, by the model
        self._incumbent = [column for _, column in known.incumbent]
        self.step_rule = self._initialize(known)
        self._early_seconds = 0.0  # total time of exact pricings for early bounds
        self._exact_seconds = 0.0  # time of the last of them
        self._round_seconds = 0.0  # of the last round
        self._last_boxes = 0  # boxes of the last exact pricing
        # Exact pricing has found nothing yet that ascents from known clusters do not lead to.
        self._columns_sufficient = known.multipliers_proven
        self._pricing_failed = False  # exact pricing stalled: it is not called again
        self._stall_detector = StallDetector(self.params.stall_ratio, self.params.stall_rounds)
        # Round after which the smoothed ascent replaces the projections.
        self._projected_until = self.params.max_initial_projections
        # Prices overestimate the value of a cluster: the model has to exceed the target by this.
        self._proof_margin = 0.0
        self._resumed, self._out_of_work = False, False
        self.stopped_state: BundleState | None = None  # set where `run` was stopped

    def _initialize(self, known: BundleStart) -> StepRule:
        """Add the cuts of known columns and choose the step rule."""
        many = self._n_clusters > self.params.max_clusters_for_level
        for number, column in known.incumbent:
            # Without a dual box, the cuts of the incumbent keep the model bounded.
            if many or self.sym_classes[number].admits(column):
                self.model.add([column], number)
        self.model.make_permanent()
        lam = self.dual_box.multipliers(self._position)
        for number, sym_class in enumerate(self.sym_classes):
            self.model.add([c for c in known.columns if sym_class.admits(c)], number)
            inside = [center for center in known.column_centers if sym_class.contains(center)]
            if inside:
                found = self.pricer.price_heuristic(lam, inside, region=sym_class.region, steps=1)
                self.model.add(found, number)
        expensive = self.pricer.reduced.n_groups >= self.params.projection_min_groups
        if not many or (expensive and known.target_reachable):
            params = LevelStepParams(min_level_fraction=self.params.min_level_fraction_cuts)
            return LevelStep(self.model, params if self.dual_box.n_cuts else None)
        return self._make_smoothed_ascent(warm_started=known.in_node)

    def _make_smoothed_ascent(self, *, warm_started: bool) -> SmoothedAscent:
        cost = sum(column.cost for column in self._incumbent)
        if self.pricer.constraints is not None:
            cost += self.pricer.constraints.constant
        return SmoothedAscent(
            self.model,
            cost,
            self._ascent_work,
            warm_started=warm_started,
            with_sets=self.pricer.only_disjoint_sets,
        )

    @property
    def upper_bound(self) -> float:
        """Estimate of the maximum of the dual function; infinite if unknown."""
        return self.step_rule.upper_bound

    def state(self) -> BundleState:
        """Return the state between two rounds; it shares objects with this bundle."""
        return BundleState(
            dual_box=self.dual_box,
            sym_classes=self.sym_classes,
            model=self.model,
            step_rule=self.step_rule,
            stall_detector=self._stall_detector,
            statistics=self.statistics,
            rng=self._rng,
            incumbent=self._incumbent,
            position=self._position,
            stability_center=self._stability_center,
            lower_bound=self.lower_bound,
            lower_bound_multipliers=self.lower_bound_multipliers,
            stall_check_after=self._stall_check_after,
            rounding=self._rounding,
            early_seconds=self._early_seconds,
            exact_seconds=self._exact_seconds,
            round_seconds=self._round_seconds,
            last_boxes=self._last_boxes,
            columns_sufficient=self._columns_sufficient,
            pricing_failed=self._pricing_failed,
            projected_until=self._projected_until,
            proof_margin=self._proof_margin,
            params=self.params,
        )

    @classmethod
    def from_state(
        cls, pricer: Pricer, on_bound: Callable[[float], None], state: BundleState
    ) -> Bundle:
        """Return a bundle whose next `run` continues where another one was stopped."""
        state = copy.deepcopy(state)
        bundle = cls.__new__(cls)
        bundle.pricer, bundle._on_bound, bundle.params = pricer, on_bound, state.params
        bundle._n_clusters = pricer.reduced.n_clusters
        bundle._ascent_work = _ascent_work(pricer, state.params)
        bundle.dual_box, bundle.sym_classes = state.dual_box, state.sym_classes
        bundle.model, bundle.step_rule = state.model, state.step_rule
        bundle._stall_detector, bundle.statistics = state.stall_detector, state.statistics
        bundle._rng, bundle._incumbent = state.rng, state.incumbent
        bundle._position, bundle._stability_center = state.position, state.stability_center
        bundle.lower_bound = state.lower_bound
        bundle.lower_bound_multipliers = state.lower_bound_multipliers
        bundle._stall_check_after, bundle._rounding = state.stall_check_after, state.rounding
        bundle._early_seconds, bundle._exact_seconds = state.early_seconds, state.exact_seconds
        bundle._round_seconds, bundle._last_boxes = state.round_seconds, state.last_boxes
        bundle._columns_sufficient = state.columns_sufficient
        bundle._pricing_failed = state.pricing_failed
        bundle._projected_until = state.projected_until
        bundle._proof_margin = state.proof_margin
        bundle._resumed, bundle.stopped_state, bundle._out_of_work = True, None, False
        return bundle

    def inherit(self, previous: Bundle) -> None:
        """Copy the proven bound and the statistics of a bundle in another dual box."""
        self.statistics = previous.statistics
        self.lower_bound = previous.lower_bound
        self.lower_bound_multipliers = previous.lower_bound_multipliers
        self.model.inherit(previous.model)

    @property
    def best_position(self) -> Vector:
        """Position of the largest model value so far, in variables of the dual box."""
        return self._stability_center

    def best_multipliers(self) -> Vector:
        """Multipliers at the best position so far."""
        return self.dual_box.multipliers(self._stability_center)

    def run(
        self,
        target: Target,
        stop: StopSignal,
        *,
        stop_if_unreachable: bool = False,
        max_rounds: int | None = None,
        stall_rounds: int | None = None,
        on_round: Callable[[], None] = lambda: None,
    ) -> BundleStatus:
        """Raise the proven bound to ``target.bound``, or until the bundle converges or stalls.

        It ends after ``max_rounds`` rounds, or after ``stall_rounds`` rounds without progress.
        """
        max_rounds = self.params.max_rounds if max_rounds is None else max_rounds
        stall_rounds = self.params.stall_rounds if stall_rounds is None else stall_rounds
        effort, round_began = EffortMeter(stop), 0.0
        reserved, status = True, None
        if not self._resumed:
            self._stall_detector = StallDetector(self.params.stall_ratio, stall_rounds)
            self._projected_until = self.statistics.rounds + self.params.max_initial_projections
        self._resumed, self.stopped_state, self._out_of_work = False, None, False
        for _ in range(max_rounds):
            if status is not None:
                break
            if stop.reason() is not None:
                status = BundleStatus.STOPPED
                self.stopped_state = copy.deepcopy(self.state())
                break
            if self._pricing_failed:
                return BundleStatus.EXHAUSTED
            if stop_if_unreachable and self.upper_bound < target.bound:
                return BundleStatus.UNREACHABLE
            if reserved and effort.remaining < self.params.reserved_time_ratio * effort.elapsed:
                reserved = False
                self.certify_best(target, stop)  # while there is time for it
            self._early_bound(target, stop, effort)
            self._round_seconds, round_began = effort.elapsed - round_began, effort.elapsed
            status = self._round(target, stop)
            if self._out_of_work and status is not BundleStatus.PROVEN:
                status = BundleStatus.STOPPED  # exact pricing is repeated with a larger limit
                self.stopped_state = copy.deepcopy(self.state())
                break
            best = self.model.value(self._stability_center)
            if status is None and self._stall_detector.stalled(
                min(self.upper_bound, target.level) - best
            ):
                status = BundleStatus.EXHAUSTED
            projected = (
                status is BundleStatus.EXHAUSTED or self.statistics.rounds >= self._projected_until
            )
            if (
                projected
                and self.step_rule.stays_in_box
                and self._n_clusters > self.params.max_clusters_for_level
            ):
                self.step_rule = self._make_smoothed_ascent(warm_started=False)
                self._position = self._stability_center
                self._stall_detector = StallDetector(self.params.stall_ratio, stall_rounds)
                status = None
            if status is None:
                on_round()
        if status is not BundleStatus.PROVEN:
            self.certify_best(target, stop)
        return status or BundleStatus.EXHAUSTED

    def certify_best(self, target: Target, stop: StopSignal) -> None:
        """Price the stability center exactly, unless the proven bound is nearly its model value."""
        if (
            self.model.value(self._stability_center)
            > self.lower_bound + 2.0 * self.step_rule.convergence_tol * target.abs_gap
        ):
            self._price_exactly(self._stability_center, target, stop, test=False)

    def _early_bound(self, target: Target, stop: StopSignal, effort: EffortMeter) -> None:
        """Prove a bound early if a limit may end the run before the target is reached."""
        elapsed, remaining = effort.elapsed, effort.remaining
        slow = self.pricer.constraints is not None and self.pricer.slow_ascents
        fraction = (
            self.params.first_bound_fraction_slow if slow else self.params.first_bound_fraction
        )
        first = max(self.params.first_bound_after, fraction * (elapsed + remaining))
        if remaining == np.inf or elapsed < first:
            return
        time_limit = self.params.early_bound_time_fraction * elapsed - self._early_seconds
        required_gain = self.params.early_bound_min_gain * (target.bound - self.lower_bound)
        if remaining < 1.5 * (self._round_seconds + self._exact_seconds):
            time_limit = remaining  # the last chance
            required_gain = 2.0 * self.step_rule.convergence_tol * target.abs_gap
        if (
            time_limit <= 0.0
            or self.model.value(self._stability_center) - self.lower_bound < required_gain
        ):
            return
        self._price_exactly(self._stability_center, target, stop, test=False, time_limit=time_limit)
        self._exact_seconds = effort.elapsed - elapsed
        self._early_seconds += self._exact_seconds

    def _round(self, target: Target, stop: StopSignal) -> BundleStatus | None:
        """Price, cut, perhaps prove, and move."""
        self.statistics.rounds += 1
        position = self._position
        self._heuristic_pricing(position, target, stop)
        reached = self.model.value(position)
        required = target.bound + self._rounding_allowance(target) + self._proof_margin
        if reached >= required:
            reached = self._intensified_pricing(position, target, stop)
        if reached >= required:
            self._price_exactly(position, target, stop, test=True)
            if self.lower_bound >= target.bound:
                return BundleStatus.PROVEN
            if self.model.value(position) >= reached:
                # No column above the model was found: there is nothing to cut.
                margin = self._proof_margin + self.params.proof_margin_step * target.abs_gap
                if self.pricer.constraints is None or target.bound + margin >= target.level:
                    return BundleStatus.EXHAUSTED
                self._proof_margin = margin
        closer = self.model.value(position) >= self.model.value(self._stability_center)
        if closer:
            self._stability_center = position
        self.step_rule.observe_step(closer)
        best = self.model.value(self._stability_center)
        least = max(
            self.step_rule.convergence_tol * target.abs_gap,
            self.step_rule.relative_convergence_tol * (target.bound - self.upper_bound),
        )
        if self.upper_bound - best <= least:
            if self._intensified_pricing(self._stability_center, target, stop) >= best:
                self.certify_best(target, stop)
            if self.model.value(self._stability_center) >= best:
                return BundleStatus.EXHAUSTED
        began = time.perf_counter()
        self._position = self.step_rule.next_position(
            Iterate(position, self._stability_center, best), target, stop
        )
        self.statistics.projection_seconds += time.perf_counter() - began
        return None

    def _rounding_allowance(self, target: Target) -> float:
        """Rounding error of exact pricing, by which the model has to exceed the target.

        It grows as the square of the number of groups: a percent of the required gap at 1e8. It is
        limited to half the distance between level and target: if that does not suffice, no larger
        allowance would.
        """
        return min(self._rounding, 0.5 * (target.level - target.bound))

    def _intensified_pricing(self, position: Vector, target: Target, stop: StopSignal) -> float:
        """Price with many starts, cheaper than a failing exact pricing; returns the model value."""
        if self._last_boxes >= self.step_rule.pricing_budget().boxes_per_start:
            self._heuristic_pricing(position, target, stop, intensify=True)
        return self.model.value(position)

    def _heuristic_pricing(
        self, position: Vector, target: Target, stop: StopSignal, *, intensify: bool = False
    ) -> None:
        """Price by ascents from the columns of largest value and from some of the groups."""
        began = time.perf_counter()
        lam = self.dual_box.multipliers(position)
        column_values = self.model.column_values(position)
        known = self.model.class_values(position)
        total = float(lam[: self.pricer.reduced.n_groups].sum()) - self.dual_box.cut_total(lam)
        excess, added = 0.0, 0
        for number, sym_class in enumerate(self.sym_classes):
            if intensify:
                starts = self._intensified_starts(number)
            else:
                starts = self._ascent_starts(number, column_values)
            columns = self.pricer.price_heuristic(
                lam,
                starts,
                region=sym_class.region,
                min_gain=self.params.min_gain * target.abs_gap / self._n_clusters,
                stop=stop,
            )
            least = self.step_rule.min_column_value(float(known[number]), total, target)
            found = [column for column in columns if column.value > least]
            if found:
                excess = max(excess, found[0].value - float(known[number]))
            added += self.model.add(self._diversify(found), number)
        self.step_rule.observe_pricing(excess, added)
        self.statistics.climb_seconds += time.perf_counter() - began

    def _diversify(self, columns: list[Column]) -> list[Column]:
        """Select columns to add as cuts: the best near each incumbent cluster, then the next."""
        max_columns = self.step_rule.pricing_budget().new_cuts
        if len(columns) <= max_columns:
            return columns
        centers = np.stack([column.center for column in self._incumbent])
        rank = np.empty(len(columns), dtype=np.int64)
        seen = np.zeros(len(centers), dtype=np.int64)
        for i, column in enumerate(columns):
            nearest = int(np.argmin(((centers - column.center) ** 2).sum(axis=1)))
            rank[i] = seen[nearest]
            seen[nearest] += 1
        return [columns[int(i)] for i in np.argsort(rank, kind="stable")[:max_columns]]

    def _ascent_starts(self, number: int, column_values: Vector) -> list[Vector]:
        """Starts of ascents: incumbent centres, the best columns of the class, some groups."""
        reduced, sym_class = self.pricer.reduced, self.sym_classes[number]
        pricing_budget = self.step_rule.pricing_budget()
        least, least_columns = self.params.min_starts, self.params.min_column_starts
        if self.pricer.slow_ascents:
            least, least_columns = least // 2, least_columns // 2
        affordable = int(max(pricing_budget.max_work / self._ascent_work, least))
        n_sampled = min(pricing_budget.sampled_starts, affordable, reduced.n_groups)
        n_sampled = 0 if self._columns_sufficient else -(-n_sampled // len(self.sym_classes))
        n_columns = min(pricing_budget.column_starts, max(affordable, least_columns))
        mine = self.model.columns_of(number)
        mine.sort(key=lambda i: -column_values[i])
        starts = [column.center for column in self._incumbent if sym_class.contains(column.center)]
        starts += [self.model.columns[i].center for i in mine[:n_columns]]
        rows = self._rng.choice(reduced.n_groups, size=n_sampled, replace=False)
        starts += list(reduced.points[rows])
        return [sym_class.region.clamp(start) for start in starts]

    def _intensified_starts(self, number: int) -> list[Vector]:
        """Random starts, as many as take much less time than the last exact pricing."""
        points, region = self.pricer.reduced.points, self.sym_classes[number].region
        pricing_budget = self.step_rule.pricing_budget()
        count = int(
            min(self._last_boxes / pricing_budget.boxes_per_start, pricing_budget.max_starts)
        )
        first, second = self._rng.integers(len(points), size=(2, count))
        fraction = self._rng.uniform(size=(count, 1))
        return list(region.clamp(points[first] + fraction * (points[second] - points[first])))

    def _price_exactly(
        self,
        position: Vector,
        target: Target,
        stop: StopSignal,
        *,
        test: bool,
        time_limit: float = np.inf,
    ) -> None:
        """Price exactly; columns of larger value than the model assumes become cuts.

        With ``test``, the position is tested against the target: the first column that refutes it
        ends the pricing. Otherwise the result is the bound at this position, within a small
        tolerance. The difference between the model and the required value is divided evenly among
        the clusters. A time limit, in seconds, ends the pricing with a weaker but valid bound.
        """
        began = time.perf_counter()
        lam = self.dual_box.multipliers(position)
        reached = self.model.value(position)
        slack = self.step_rule.convergence_tol * target.abs_gap
        required = target.bound + self._rounding_allowance(target)
        if self.pricer.only_disjoint_sets:  # far from the target it need not be exact
            slack = max(slack, self.params.early_tolerance * (required - reached))
        want = 0.9 * required + 0.1 * reached if test else min(reached - slack, required)
        resolution = 0.3 * (reached - want) if test else slack
        resolution = max(resolution, self.params.min_resolution * slack) / self._n_clusters
        known = self.model.class_values(position)
        stall_check_after, until = self._stall_check_after, stop
        remaining = EffortMeter(stop).remaining
        if time_limit < np.inf:
            until = stop.with_effort_limit(time_limit)
        elif np.isinf(stall_check_after) and remaining < np.inf:
            # Half of what is left may go into one exact pricing.
            until = stop.with_effort_limit(0.5 * remaining)
        else:
            until = stop.with_effort_limit(np.inf)
            if np.isinf(stall_check_after):  # something has to end it
                stall_check_after = self.pricer.params.stall_check_after
        sigma_sum = 0.0
        for number, sym_class in enumerate(self.sym_classes):
            priced = self.pricer.price_exact(
                lam,
                float(known[number]) + (reached - want) / self._n_clusters,
                until,
                tolerance=None if test else slack / self._n_clusters,
                region=sym_class.region,
                stall_check_after=stall_check_after,
                resolution=resolution,
            )
            sigma_sum = sum_upper_bound(sigma_sum, sym_class.count, priced.upper)
            self.statistics.exact_pricings += 1
            self.statistics.boxes += priced.boxes
            self._last_boxes = priced.boxes
            if time_limit == np.inf and not (priced.complete or priced.centers):
                # A turn with a work limit ends a pricing by work or, in a run with a time limit,
                # by the clock: it may end with a larger limit.
                limited = until.reason() is StopCause.WORK_LIMIT or (
                    until.reason() is StopCause.TIME_LIMIT and stop.remaining_work < np.inf
                )
                if limited:
                    self._out_of_work = True
                else:
                    self._pricing_failed |= stop.reason() is None
            if priced.centers:
                self._columns_sufficient = False
                starts = priced.centers[: self.step_rule.pricing_budget().new_cuts]
                self.model.add(priced.columns, number)
                self.model.add(
                    self.pricer.price_heuristic(lam, starts, region=sym_class.region), number
                )
                if test and number + 1 < len(self.sym_classes):
                    sigma_sum = np.inf  # refuted: the other classes need not be priced
                    break
        bound = lagrangian_lower_bound(
            lam[: self.pricer.reduced.n_groups],
            sigma_sum,
            self.pricer.penalty_constant - self.dual_box.cut_total(lam),
        )
        if bound > self.lower_bound:
            self.lower_bound, self.lower_bound_multipliers = bound, lam
            self._on_bound(bound)
        self.statistics.exact_seconds += time.perf_counter() - began


def _ascent_work(pricer: Pricer, params: BundleParams) -> float:
    """Coordinates that a typical ascent touches."""
    work = pricer.reduced.points.size
    if pricer.constraints is not None:
        work += params.pair_work * len(pricer.constraints.arrays.pair_neighbors)
    return float(work * params.typical_ascent_steps)
