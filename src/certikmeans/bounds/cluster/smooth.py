"""Moving with many cuts: climb a smooth function just below the model, and sharpen it.

With many clusters, hundreds to thousands of cuts are active at the best multipliers, and a
projection on them takes longer than everything else. Here the largest worth of a family is
replaced by a smooth one, ``tau log(1 + sum over its cuts of exp(worth / tau))``, which lies above
it by at most ``tau log(number of cuts)``. What is left is smooth and concave in the multipliers;
one look at it costs two products with the sparse rows of the cuts, and thirty steps of a
quasi-Newton method bring it close to its top. Then ascents of the pricing look for clusters that
are worth more than the model knows, and ``tau`` comes down where the model was found right and the
climb has settled. The weights of the cuts in the soft maximum are a mixture of clusters: the
relaxation's own solution, in the limit.

There is no box here. Where the relaxation has a gap, its best multipliers lie outside the ranges
that complementary slackness leaves around a labelling (5,000 overlapping points in 20 clusters:
0.20 % inside, 0.18 % without), and the smooth climb does not run away as cutting planes would. The
labelling's own clusters are always among the cuts: they keep the model below its cost.
"""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.aim import Aim
from certikmeans.bounds.cluster.cuts import Cuts
from certikmeans.bounds.cluster.model import CutModel
from certikmeans.bounds.cluster.mover import AbstractMover, Effort, Position
from certikmeans.bounds.cluster.quasi_newton import climb
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]

STEPS = 30  # between two rounds of ascents
FIRST_STEP = 0.05  # as a part of the cost, spread evenly over all groups
# Softness, as a part of a cluster's share of the cost: at the start; where groups are so many that
# few ascents are affordable, and rounds have to count; and where a start is known.
SOFT, SOFT_WHEN_DEAR, SOFT_IN_A_NODE = 3e-3, 7e-4, 1e-4
# It comes down by these factors: where the ascents found hardly more than the model knew, and
# where they found some, in units of the softness. Where they found much, or the last climb gained
# more than a part of it, the softness stays; where they found very much, it was too sharp for what
# is known, and goes up again.
RIGHT, NEARLY_RIGHT, WRONG = 1.0, 4.0, 20.0
SHARPER, A_LITTLE_SHARPER, SOFTER = 0.7, 0.85, 1.5
SETTLED = 0.2
# At the end it is worth this part of the gap asked for, all cuts together.
SHARPEST = 0.05
# Clusters worth less than the best by more than so many times the softness have no weight to
# speak of.
NEAR = 3.0
# A cut with less than this part of the largest weight has none. It is idle if it is also worth
# less than the best by so much of a cluster's share of the cost: with those that have weight alone,
# a sharp model forgets what it will need again after the next move.
LEAST_WEIGHT = 1e-3
FAR_BELOW = 1e-3
# Per cluster: new cuts, and ascents from known clusters and from groups, at most and at least. As
# many again as the last round found are worth trying. Fewer than these miss clusters: while the
# model is soft that does no harm, but a sharp one stays wrong for hundreds of rounds.
MOST_NEW, MOST_STARTS, MOST_SAMPLED = 10, 30, 20
LEAST_WHEN_SOFT, LEAST_WHEN_SHARP = (5, 2), (15, 10)
STILL_SOFT = 0.1  # of the softness at the start
WORK = 5e6  # coordinates that ascents may touch, for every cluster
# Before an exact pricing, which takes longer than hundreds of ascents.
BOXES_PER_START, MOST_STARTS_BEFORE = 40.0, 1_000


@final
class SmoothMover(AbstractMover):
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
    converged: ClassVar[float] = 0.02
    worth_waiting: ClassVar[float] = 0.05

    def __init__(self, model: CutModel, cost: float, ascent: float, *, begun: bool) -> None:
        self.ceiling = np.inf
        self._model = model
        self._n_clusters = float(model.cuts.counts.sum())
        self._share = cost / self._n_clusters
        self._first_step = FIRST_STEP * cost / np.sqrt(len(model.cuts.total))
        dear = MOST_NEW * ascent > WORK
        self._softest = (SOFT_WHEN_DEAR if dear else SOFT) * self._share
        self._softness = SOFT_IN_A_NODE * self._share if begun else self._softest
        self._excess = 0.0
        self._found = MOST_NEW * self._n_clusters
        self._gain = np.inf

    def effort(self) -> Effort:
        """As much as the last round has found, and again."""
        k, found = self._n_clusters, self._found
        soft = self._softness > STILL_SOFT * self._softest
        columns, sampled = LEAST_WHEN_SOFT if soft else LEAST_WHEN_SHARP
        return Effort(
            new_cuts=int(MOST_NEW * k),
            column_starts=int(min(MOST_STARTS * k, max(columns * k, 2.0 * found))),
            sampled_starts=int(min(MOST_SAMPLED * k, max(sampled * k, found))),
            work=WORK * k,
            boxes_per_start=BOXES_PER_START,
            most_starts=MOST_STARTS_BEFORE,
        )

    def least_worth(self, known: float, total: float, aim: Aim) -> float:
        """A little less than the best: all of them have weight."""
        return known - NEAR * self._softness

    def see(self, excess: float, added: int) -> None:
        """How right the model was."""
        self._excess, self._found = excess, added

    def judge(self, closer: bool) -> None:
        """Nothing: the next climb goes on from here, best or not."""

    def move(self, at: Position, aim: Aim, stop: StopSignal) -> Vector:
        """Climb for a while."""
        self._sharpen(aim)
        self._model.forget_idle()
        soft = SoftModel(self._model.cuts, self._softness)
        start = self._model.scaled(at.here)
        climbed = climb(soft.value, start, self._first_step, STEPS, stop)
        self._gain = climbed.gain
        shares = soft.shares(climbed.point)
        weights = np.where(shares >= LEAST_WEIGHT * shares.max(), shares, 0.0)
        below = soft.below_best(climbed.point)
        self._model.weigh(weights, (weights > 0.0) | (below < FAR_BELOW * self._share))
        if self._settled():
            # At its top, the soft model is what the mixture costs less its entropy.
            self.ceiling = climbed.value + climbed.gain + soft.entropy(climbed.point)
        return self._model.unscaled(climbed.point)

    def _settled(self) -> bool:
        return self._gain <= SETTLED * self._n_clusters * self._softness

    def _sharpen(self, aim: Aim) -> None:
        """Come down where the model was right and the climb is at its top."""
        if self._excess > WRONG * self._softness:
            self._softness = min(SOFTER * self._softness, self._softest)
            return
        if not self._settled():
            return
        factor = 1.0
        if self._excess < NEARLY_RIGHT * self._softness:
            factor = SHARPER if self._excess < RIGHT * self._softness else A_LITTLE_SHARPER
        cuts = np.log(2.0 + len(self._model.columns))
        least = SHARPEST * aim.unit / (self._n_clusters * cuts)
        self._softness = max(factor * self._softness, min(self._softness, least))


@final
class SoftModel:
    """The model with a soft maximum over the cuts of each family, the empty cluster among them.

    Examples
    --------
    >>> from certikmeans.bounds.cluster.cuts import Rows
    >>> one = Cuts(
    ...     Rows.of(np.array([[1.0, 0.0]])), np.zeros(1), np.zeros(1, dtype=np.int64),
    ...     np.ones(1), np.ones(2), 0.0, np.ones(2),
    ... )
    >>> value, slope = SoftModel(one, 0.1).value(np.array([2.0, 3.0]))
    >>> round(value, 6), slope.round(6) + 0.0  # the model is 2 + 3 - max(0, 2)
    (3.0, array([0., 1.]))
    """

    def __init__(self, cuts: Cuts, softness: float) -> None:
        self._cuts = cuts
        self._softness = softness

    def value(self, t: Vector) -> tuple[float, Vector]:
        """Value and slope."""
        cuts = self._cuts
        most, logs, shares = self._soft(t)
        value = cuts.base + float(cuts.total @ t)
        value -= float(cuts.counts @ (most + self._softness * logs))
        return value, cuts.total - cuts.rows.mix(shares)

    def shares(self, t: Vector) -> Vector:
        """Weights of the cuts: how much of the clusters of its family each stands for."""
        return self._soft(t)[2]

    def below_best(self, t: Vector) -> Vector:
        """How much less than the best of its family every cut is worth."""
        worth = self._cuts.worth_at(t)
        return self._cuts.family_worth(t)[self._cuts.family] - worth

    def entropy(self, t: Vector) -> float:
        """What softness takes off the cost of the mixture."""
        cuts = self._cuts
        most, logs, shares = self._soft(t)
        surprise = logs[cuts.family] - (cuts.worth_at(t) - most[cuts.family]) / self._softness
        empty = np.maximum(cuts.counts - np.bincount(cuts.family, shares, len(cuts.counts)), 0.0)
        total = float(shares @ surprise) + float(empty @ (logs + most / self._softness))
        return self._softness * total

    def _soft(self, t: Vector) -> tuple[Vector, Vector, Vector]:
        """Largest worth of each family, log of the sum beyond it, shares of the cuts."""
        cuts = self._cuts
        worth = cuts.worth_at(t)
        most = np.zeros(len(cuts.counts))
        np.maximum.at(most, cuts.family, worth)
        parts = np.exp((worth - most[cuts.family]) / self._softness)
        sums = np.bincount(cuts.family, parts, len(cuts.counts)) + np.exp(-most / self._softness)
        return most, np.log(sums), parts * (cuts.counts / sums)[cuts.family]
