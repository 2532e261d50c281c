"""The bundle: move the multipliers until the bound reaches its goal, or can rise no more.

Every round prices the current multipliers by local ascents, adds the clusters found as cuts and
has the multipliers moved to where the cuts promise more. The exact pricing, which is what proves a
bound, is called only when no ascent contradicts the goal. How multipliers move is the business of a
mover: with few clusters a projection on few cuts (`level.py`), with many a smooth climb over
thousands (`smooth.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.aim import Aim, BundleStatistics, Outcome
from certikmeans.bounds.cluster.columns import Known
from certikmeans.bounds.cluster.families import Family
from certikmeans.bounds.cluster.level import LevelMover
from certikmeans.bounds.cluster.model import CutModel
from certikmeans.bounds.cluster.mover import AbstractMover, Position
from certikmeans.bounds.cluster.multipliers import MultiplierSpace
from certikmeans.bounds.cluster.patience import ROUNDS, Patience
from certikmeans.bounds.cluster.pricing import DOUBT_AFTER, Column, Pricer
from certikmeans.bounds.cluster.pricing_error import lagrangian_below, total_above
from certikmeans.bounds.cluster.smooth import SmoothMover
from certikmeans.stop import StopSignal
from certikmeans.streams import generator

Vector = NDArray[np.float64]

# Up to here projections on few cuts are moved by, beyond it the smooth climb. With many groups
# rounds are dear, and where clusters are apart a few projections are enough (21,000 points in 8
# clusters: 14 rounds instead of 82): so many are tried before the climb, from so many groups on.
FEW_CLUSTERS = 5
PROJECTIONS, PROJECTED_FROM = 30, 10_000
LEAST_STARTS, LEAST_COLUMN_STARTS = 4, 8  # whatever they take
USUAL_STEPS = 8  # of an ascent
LEAST_GAIN = 1e-3  # a step that gains less ends an ascent, in units of the gap asked for
MOST_ROUNDS = 1_000_000  # no limit: progress decides
# With a time limit: after so many seconds and this part of it the best position is priced exactly
# for a bound, with a share of the time spent, and again when a part of what is missing can be won.
FIRST_BOUND_AFTER, FIRST_BOUND_PART = 2.0, 0.1
SHARE_OF_EARLY_BOUNDS = 0.15
WORTH_A_BOUND = 0.3
# Without a bound yet, exact pricing gets at least this part of the time spent before.
RESERVED = 0.7
# Errors of a box that are added to what a cluster may be worth; and a little, for multipliers that
# are larger than those of the start.
ROUNDINGS = 2.5
GIVEN = ("pricer", "_on_bound")  # not part of the state


@final
class Bundle:
    """State of one run. Bounds that it proves only go up; `run` may be called again."""

    def __init__(
        self,
        pricer: Pricer,
        space: MultiplierSpace,
        families: Sequence[Family],
        known: Known,
        seed: int = 0,
        on_bound: Callable[[float], None] = lambda value: None,
        doubt_after: float = DOUBT_AFTER,
    ) -> None:
        self.pricer = pricer
        self.space = space
        self.families = families
        self.model = CutModel(space, families)
        self.statistics = BundleStatistics()
        self.proven = -np.inf
        self.proven_lam = space.low
        self._doubt_after = doubt_after
        self._rng = generator(seed, "bounds.cluster.bundle")
        self._on_bound = on_bound
        self._position = space.start
        self._n_clusters = pricer.reduced.n_clusters
        self._rounding = ROUNDINGS * self._n_clusters * pricer.error(space.multipliers(space.start))
        self._ascent = float(pricer.reduced.points.size * USUAL_STEPS)  # coordinates it touches
        self._centre = self._position  # the best position so far, by the model
        self._incumbent = [column for _, column in known.own]
        self.mover = self._begin(known)
        self._early_seconds = 0.0  # of exact pricings for early bounds, and
        self._exact_seconds = 0.0  # of the last of them
        self._round_seconds = 0.0  # of the last round
        self._last_boxes = 0  # of an exact pricing
        # Exact pricing has found nothing yet that ascents from known clusters do not lead to.
        self._familiar = known.familiar
        self._lost = False  # exact pricing makes no progress here: no use in trying again
        self._patience = Patience()
        self._projected_until = PROJECTIONS  # round after which the climb begins
        self._going_on = False

    def _begin(self, known: Known) -> AbstractMover:
        """Cut with what is known already."""
        many = self._n_clusters > FEW_CLUSTERS
        for number, column in known.own:
            # Where the model is climbed without a box, they keep it from rising for ever.
            if many or self.families[number].may_hold(column):
                self.model.add([column], number)
        self.model.keep_for_good()
        lam = self.space.multipliers(self._position)
        for number, family in enumerate(self.families):
            self.model.add([c for c in known.others if family.may_hold(c)], number)
            inside = [place for place in known.places if family.holds(place)]
            if inside:
                found = self.pricer.climb(lam, inside, region=family.region, steps=1)
                self.model.add(found, number)
        dear = self.pricer.reduced.n_groups >= PROJECTED_FROM
        if not many or (dear and known.hopeful):
            return LevelMover(self.model)
        return self._smooth(begun=known.in_a_node)

    def _smooth(self, *, begun: bool) -> SmoothMover:
        cost = sum(column.cost for column in self._incumbent)
        return SmoothMover(self.model, cost, self._ascent, begun=begun)

    @property
    def ceiling(self) -> float:
        """About the most that multipliers can give, as far as it is known."""
        return self.mover.ceiling

    def kept(self) -> dict[str, Any]:
        """What it needs to go on, between two rounds."""
        return {name: value for name, value in vars(self).items() if name not in GIVEN}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on, when run again, where another one was."""
        vars(self).update(kept)
        self._going_on = True

    def follow(self, before: Bundle) -> None:
        """Take over what another one, in another box, has proven and counted."""
        self.statistics = before.statistics
        self.proven, self.proven_lam = before.proven, before.proven_lam
        self.model.follow(before.model)

    @property
    def best_position(self) -> Vector:
        """The best position so far, by the model: variables of the space."""
        return self._centre

    def best_multipliers(self) -> Vector:
        """The best position so far, by the model."""
        return self.space.multipliers(self._centre)

    def run(
        self,
        aim: Aim,
        stop: StopSignal,
        *,
        pause_if_unreachable: bool = False,
        most_rounds: int = MOST_ROUNDS,
        patience: int = ROUNDS,
        on_round: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Raise the proven bound to ``aim.goal``, or as far as is worth while.

        At most ``most_rounds`` rounds, and for as long as ``patience`` rounds bring it closer.
        """
        began = time.monotonic()
        reserved, outcome = True, None
        if not self._going_on:
            self._patience = Patience(patience)
            self._projected_until = self.statistics.rounds + PROJECTIONS
        self._going_on = False
        for _ in range(most_rounds):
            if stop.cause() is not None:
                outcome = Outcome.STOPPED
            if outcome is not None:
                break
            if self._lost:
                return Outcome.EXHAUSTED
            if pause_if_unreachable and self.ceiling < aim.goal:
                return Outcome.UNREACHABLE
            on_round()
            if reserved and stop.remaining < RESERVED * (time.monotonic() - began):
                reserved = False
                self._harvest(aim, stop)  # while there is time for it
            self._publish(aim, stop, time.monotonic() - began)
            round_began = time.monotonic()
            outcome = self._round(aim, stop)
            self._round_seconds = time.monotonic() - round_began
            best = self.model.value(self._centre)
            if outcome is None and self._patience.is_over(min(self.ceiling, aim.level) - best):
                outcome = Outcome.EXHAUSTED
            tried = outcome is Outcome.EXHAUSTED or self.statistics.rounds >= self._projected_until
            if tried and self.mover.stays_in_box and self._n_clusters > FEW_CLUSTERS:
                self.mover, self._position = self._smooth(begun=False), self._centre
                self._patience, outcome = Patience(patience), None
        if outcome is not Outcome.PROVEN:
            self._harvest(aim, stop)
        return outcome or Outcome.EXHAUSTED

    def _harvest(self, aim: Aim, stop: StopSignal) -> None:
        """Prove what the best position is good for, unless that is known already."""
        if self.model.value(self._centre) > self.proven + 2.0 * self.mover.converged * aim.unit:
            self._prove(self._centre, aim, stop, test=False)

    def _publish(self, aim: Aim, stop: StopSignal, elapsed: float) -> None:
        """Prove a bound early where a time limit could come before the goal."""
        first = max(FIRST_BOUND_AFTER, FIRST_BOUND_PART * (elapsed + stop.remaining))
        if stop.remaining == np.inf or elapsed < first:
            return
        leash = SHARE_OF_EARLY_BOUNDS * elapsed - self._early_seconds
        worth_it = WORTH_A_BOUND * (aim.goal - self.proven)
        if stop.remaining < 1.5 * (self._round_seconds + self._exact_seconds):
            leash = stop.remaining  # the last chance
            worth_it = 2.0 * self.mover.converged * aim.unit
        if leash <= 0.0 or self.model.value(self._centre) - self.proven < worth_it:
            return
        began = time.monotonic()
        self._prove(self._centre, aim, stop, test=False, leash=leash)
        self._exact_seconds = time.monotonic() - began
        self._early_seconds += self._exact_seconds

    def _round(self, aim: Aim, stop: StopSignal) -> Outcome | None:
        """Price, cut, perhaps prove, and move."""
        self.statistics.rounds += 1
        position = self._position
        self._climb(position, aim, stop)
        reached = self.model.value(position)
        enough = aim.goal + self._taken_by_rounding(aim)
        if reached >= enough:
            reached = self._climb_harder(position, aim, stop)
        if reached >= enough:
            self._prove(position, aim, stop, test=True)
            if self.proven >= aim.goal:
                return Outcome.PROVEN
            if self.model.value(position) >= reached:
                return Outcome.EXHAUSTED  # the cluster in the way cannot be found: nothing to cut
        closer = self.model.value(position) >= self.model.value(self._centre)
        if closer:
            self._centre = position
        self.mover.judge(closer)
        best = self.model.value(self._centre)
        least = max(
            self.mover.converged * aim.unit, self.mover.worth_waiting * (aim.goal - self.ceiling)
        )
        if self.ceiling - best <= least:
            if self._climb_harder(self._centre, aim, stop) >= best:
                self._harvest(aim, stop)
            if self.model.value(self._centre) >= best:
                return Outcome.EXHAUSTED
        began = time.perf_counter()
        self._position = self.mover.move(Position(position, self._centre, best), aim, stop)
        self.statistics.projection_seconds += time.perf_counter() - began
        return None

    def _taken_by_rounding(self, aim: Aim) -> float:
        """What exact pricing takes off for rounding: the model has to be that much higher.

        It grows as the square of the number of groups: a percent of the gap asked for at 1e8. No
        more than half of what cuts are asked for beyond the goal; where that is not enough, nothing
        would be.
        """
        return min(self._rounding, 0.5 * (aim.level - aim.goal))

    def _climb_harder(self, position: Vector, aim: Aim, stop: StopSignal) -> float:
        """Climb from everywhere: cheaper than to search in vain. Returns the model's value."""
        if self._last_boxes >= self.mover.effort().boxes_per_start:
            self._climb(position, aim, stop, harder=True)
        return self.model.value(position)

    def _climb(self, position: Vector, aim: Aim, stop: StopSignal, *, harder: bool = False) -> None:
        """Climb from the clusters that are worth most now, and from some of the groups."""
        began = time.perf_counter()
        lam = self.space.multipliers(position)
        worth = self.model.worth_at(position)
        known = self.model.family_worth(position)
        excess, added = 0.0, 0
        for number, family in enumerate(self.families):
            columns = self.pricer.climb(
                lam,
                self._many_starts(number) if harder else self._starts(number, worth),
                region=family.region,
                least_gain=LEAST_GAIN * aim.unit / self._n_clusters,
                stop=stop,
            )
            least = self.mover.least_worth(float(known[number]), float(lam.sum()), aim)
            found = [column for column in columns if column.value > least]
            if found:
                excess = max(excess, found[0].value - float(known[number]))
            added += self.model.add(self._spread(found), number)
        self.mover.see(excess, added)
        self.statistics.climb_seconds += time.perf_counter() - began

    def _spread(self, columns: list[Column]) -> list[Column]:
        """Choose columns to cut with: the best one near each incumbent cluster, the next, ..."""
        most = self.mover.effort().new_cuts
        if len(columns) <= most:
            return columns
        centres = np.stack([column.centre for column in self._incumbent])
        rank = np.empty(len(columns), dtype=np.int64)
        seen = np.zeros(len(centres), dtype=np.int64)
        for i, column in enumerate(columns):
            nearest = int(np.argmin(((centres - column.centre) ** 2).sum(axis=1)))
            rank[i] = seen[nearest]
            seen[nearest] += 1
        return [columns[int(i)] for i in np.argsort(rank, kind="stable")[:most]]

    def _starts(self, number: int, worth: Vector) -> list[Vector]:
        """Places to climb from: the incumbent's, the best columns of the family, some groups."""
        reduced, family, effort = self.pricer.reduced, self.families[number], self.mover.effort()
        affordable = int(max(effort.work / self._ascent, LEAST_STARTS))
        n_sampled = min(effort.sampled_starts, affordable, reduced.n_groups)
        n_sampled = 0 if self._familiar else -(-n_sampled // len(self.families))
        n_columns = min(effort.column_starts, max(affordable, LEAST_COLUMN_STARTS))
        mine = self.model.columns_of(number)
        mine.sort(key=lambda i: -worth[i])
        starts = [column.centre for column in self._incumbent if family.holds(column.centre)]
        starts += [self.model.columns[i].centre for i in mine[:n_columns]]
        rows = self._rng.choice(reduced.n_groups, size=n_sampled, replace=False)
        starts += list(reduced.points[rows])
        return [family.region.clamp(start) for start in starts]

    def _many_starts(self, number: int) -> list[Vector]:
        """As many places as are worth a look before a search like the last one."""
        points, region = self.pricer.reduced.points, self.families[number].region
        effort = self.mover.effort()
        count = int(min(self._last_boxes / effort.boxes_per_start, effort.most_starts))
        first, second = self._rng.integers(len(points), size=(2, count))
        share = self._rng.uniform(size=(count, 1))
        return list(region.clamp(points[first] + share * (points[second] - points[first])))

    def _prove(
        self, position: Vector, aim: Aim, stop: StopSignal, *, test: bool, leash: float = np.inf
    ) -> None:
        """Price exactly; clusters that contradict the model become cuts.

        A test is about the goal: the first contradiction ends it. Otherwise the best bound
        at this position is wanted, within a small tolerance. What the model leaves between
        itself and the value wanted is shared out evenly among the clusters. A leash, in seconds,
        ends it early: a weaker bound is a bound.
        """
        began = time.perf_counter()
        lam = self.space.multipliers(position)
        reached = self.model.value(position)
        slack = self.mover.converged * aim.unit
        enough = aim.goal + self._taken_by_rounding(aim)
        want = 0.9 * enough + 0.1 * reached if test else min(reached - slack, enough)
        known = self.model.family_worth(position)
        doubt_after, until = self._doubt_after, stop
        if leash < np.inf:
            until = stop.within(leash)
        elif np.isinf(doubt_after):
            # Half of the time left may go into one exact pricing; but something has to end it.
            if stop.remaining < np.inf:
                until = stop.within(0.5 * stop.remaining)
            else:
                doubt_after = DOUBT_AFTER
        spent = 0.0
        for number, family in enumerate(self.families):
            priced = self.pricer.exact(
                lam,
                float(known[number]) + (reached - want) / self._n_clusters,
                until,
                tolerance=None if test else slack / self._n_clusters,
                region=family.region,
                doubt_after=doubt_after,
            )
            spent = total_above(spent, family.count, priced.upper)
            self.statistics.exact_pricings += 1
            self.statistics.boxes += priced.boxes
            self._last_boxes = priced.boxes
            if leash == np.inf:
                self._lost |= not (priced.complete or priced.centres or stop.cause() is not None)
            if priced.centres:
                self._familiar = False
                starts = priced.centres[: self.mover.effort().new_cuts]
                self.model.add(self.pricer.climb(lam, starts, region=family.region), number)
                if test and number + 1 < len(self.families):
                    spent = np.inf  # refuted: the other families need not be priced
                    break
        bound = lagrangian_below(lam, spent)
        if bound > self.proven:
            self.proven, self.proven_lam = bound, lam
            self._on_bound(bound)
        self.statistics.exact_seconds += time.perf_counter() - began
