"""The nearest multipliers at which a model made of cuts reaches a level, or that there are none.

    min 1/2 |t - r|^2   subject to   base + total.t - sum_f count_f v_f >= level,
                                     v_f >= e_i + g_i.t  for the cuts i of family f,
                                     v_f >= 0,   0 <= t <= high

is solved by a primal-dual interior-point method (Mehrotra's predictor and corrector). The worth
``v_f`` of a family is a variable of its own, so that the row ``g_i`` of a cut has entries at its
members alone: what an iteration factors is ``G D G'`` plus a diagonal, put together from the few
pairs of cuts that meet in a variable, with a border for ``v`` and the level. The weights of an
earlier, similar projection are a good start. Points inside are as good as points on the border:
the level is only a place to look at next, so a solution to a third is accurate enough.

Feasibility is decided by the cuts themselves: columns mixed with weights that sum up to the count
of each family cap the model by the sum of its maxima over the ranges of the variables. Where such
a ceiling is below the level no ``t`` exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from certikmeans.bounds.cluster.cuts import Cuts, Matrix, Reached, Vector
from certikmeans.kernels.cuts import by_variable, weighted_gram
from certikmeans.stop import StopSignal

MOST_STEPS = 60
# Complementarity left at the end, in units of the squared distance.
ACCURACY = 0.3
# How far inside its range every variable starts, as a part of the range.
INSIDE = 0.05
# Part of the way to the border of a step.
KEEP_INSIDE = 0.99
# A variable with a range below this part of the longest one is a constant.
NARROW = 1e-12
# Cubes of the number of cuts that a step gets through in a second, about: with thousands of cuts
# a step that is begun shortly before the end of a run would end long after it.
PER_SECOND = 3e10


def reach(
    cuts: Cuts,
    reference: Vector,
    level: float,
    tolerance: float,
    start: Vector | None = None,
    stop: StopSignal | None = None,
) -> Reached:
    """Find a point near ``reference`` where the model is at least ``level - tolerance``.

    Parameters
    ----------
    cuts : Cuts
        At least one.
    reference : ndarray of shape (n,)
    level : float
    tolerance : float
        > 0.
    start : ndarray of shape (p,), optional
        ``mu`` of a similar projection, 0 for cuts that are new.
    stop : StopSignal, optional
        Where it would come before the next step is done, the point is where it is then.

    Examples
    --------
    >>> from certikmeans.bounds.cluster.cuts import Rows
    >>> cuts = Cuts(
    ...     Rows.of(np.array([[1.0, 0.0]])), np.zeros(1), np.zeros(1, dtype=np.int64),
    ...     np.ones(1), np.ones(2), 0.0, np.ones(2),
    ... )
    >>> nearly = reach(cuts, np.zeros(2), 0.5, 1e-6).point  # the nearest is (0, 0.5)
    >>> bool(nearly[1] >= 0.5 - 1e-6), bool(np.abs(nearly - [0.0, 0.5]).max() < 0.2)
    (True, True)
    """
    return _Interior(cuts, reference, level, start).run(tolerance, stop or StopSignal())


def highest(
    cuts: Cuts,
    reference: Vector,
    accuracy: float,
    start: Vector | None = None,
    stop: StopSignal | None = None,
) -> Reached:
    """Find where the model is highest, to ``accuracy``: its ceiling is what is wanted.

    The same method with the height as objective instead of the distance.
    """
    return _Interior(cuts, reference, None, start).run(accuracy, stop or StopSignal())


@final
@dataclass(slots=True)
class _Step:
    """Changes of everything that moves."""

    t: Vector
    v: Vector
    slack: Vector
    mu: Vector
    below: Vector
    above: Vector

    def longest(self, state: _Interior) -> float:
        """Part of the step that leaves everything positive."""
        return min(
            _room(state.t_low, self.t),
            _room(state.t_high, -self.t),
            _room(state.slack, self.slack),
            _room(state.mu, self.mu),
            _room(state.below, self.below),
            _room(state.above, self.above),
        )


@final
class _Interior:
    """State of the iteration.

    Rows are the cuts, then ``v_f >= 0`` for each family, then the level; constants are left out.
    """

    def __init__(
        self, cuts: Cuts, reference: Vector, level: float | None, start: Vector | None
    ) -> None:
        self.cuts = cuts
        self.level = level
        self._all = len(reference)
        n_families = len(cuts.counts)
        self._moving = np.flatnonzero(cuts.high > NARROW * max(float(cuts.high.max()), 1e-300))
        self.rows = cuts.rows
        self._firsts = np.empty(self._all + 1, dtype=np.int64)
        nnz = len(cuts.rows.values)
        self._places, self._entries = np.empty(nnz, dtype=np.int32), np.empty(nnz)
        by_variable(
            cuts.rows.starts, cuts.rows.variables, cuts.rows.values,
            self._firsts, self._places, self._entries,
        )  # fmt: skip
        self.family = np.concatenate([cuts.family, np.arange(n_families)])
        self.constants = np.concatenate([cuts.constants, np.zeros(n_families)])
        self._gram = np.empty((len(cuts.rows), len(cuts.rows)))
        self._width = cuts.high[self._moving]
        self.total = cuts.total[self._moving]
        self.reference = reference[self._moving]
        self._begin(start)

    def _begin(self, start: Vector | None) -> None:
        """Somewhere inside, about as far from the border as the level is away."""
        cuts, width = self.cuts, self._width
        count = float(cuts.counts.sum())
        self.t = np.clip(self.reference, INSIDE * width, (1.0 - INSIDE) * width)
        worth = self.worth(self.t)
        v = np.full(len(cuts.counts), -np.inf)
        np.maximum.at(v, self.family, worth)
        reached = cuts.base + float(self.total @ self.t) - float(cuts.counts @ v)
        level = cuts.base if self.level is None else self.level
        missing = max(abs(level - reached), 1e-9 * abs(level), 1e-300)
        self.v = v - missing / count
        even = missing / cuts.mean_square()  # what the level alone would pull
        self._negligible = 1e-3 * ACCURACY * even * missing  # of a squared distance
        mu = np.full(len(worth), even * count / len(worth))
        if start is not None and start.any():
            known = float(start.sum())
            mu = np.full(len(worth), 0.1 * known / len(worth))
            mu[: len(start)] += start
        self.mu = np.append(mu, mu.sum() / count)
        self.slack = np.append(np.maximum(self.v[self.family] - worth, 0.1 * missing / count), 0.0)
        self.slack[-1] = 0.1 * missing
        if self.level is None:  # nothing to reach: the height has the fixed weight 1
            self.mu /= self.mu[-1]
            self.slack[-1] = 1e-300
        centrality = float(self.slack @ self.mu) / len(self.mu)
        self.t_low, self.t_high = self.t.copy(), width - self.t
        self.below, self.above = centrality / self.t_low, centrality / self.t_high

    def worth(self, t: Vector) -> Vector:
        """Worth of the columns, the empty ones included."""
        return self.constants + self.change_of_worth(t)

    def change_of_worth(self, t: Vector) -> Vector:
        """Change of it when ``t`` is added."""
        change = np.zeros(len(self.constants))
        change[: len(self.rows)] = self.rows.times(self._spread(t))
        return change

    def _spread(self, t: Vector) -> Vector:
        """All variables, the constants at 0."""
        full = np.zeros(self._all)
        full[self._moving] = t
        return full

    def pull(self, mu: Vector) -> Vector:
        """Derivative of ``mu`` times the rows by ``t``."""
        pull: Vector = mu[-1] * self.total - self.rows.mix(mu[: len(self.rows)])[self._moving]
        return pull

    def height(self) -> float:
        """Value that ``t`` and ``v`` stand for."""
        cuts = self.cuts
        return cuts.base + float(self.total @ self.t) - float(cuts.counts @ self.v)

    def run(self, tolerance: float, stop: StopSignal) -> Reached:
        """Iterate until the level is reached, or proven out of reach, or there is no time."""
        cuts, counts = self.cuts, self.cuts.counts
        step_seconds = len(self.rows) ** 3 / PER_SECOND
        ceiling, weights = np.inf, np.zeros(len(self.rows))
        steps = 0
        while True:
            mass = np.bincount(self.family, self.mu[:-1], minlength=len(counts))
            mixture = (self.mu[:-1] * (counts / mass)[self.family])[: len(self.rows)]
            cap = cuts.ceiling(mixture)
            if cap < ceiling:
                ceiling, weights = cap, mixture
            move = self.t - self.reference
            left = float(self.slack @ self.mu)
            left += float(self.t_low @ self.below) + float(self.t_high @ self.above)
            reached = cuts.value(self._spread(self.t))
            close = left <= max(ACCURACY * float(move @ move), self._negligible)
            if steps == MOST_STEPS or stop.cause() is not None or stop.remaining < step_seconds:
                break
            if self.level is None:
                if ceiling - reached <= tolerance:
                    break
            elif ceiling < self.level or (reached >= self.level - tolerance and close):
                break
            if not self._advance(left / (len(self.mu) + 2 * len(self.t))):
                break
            steps += 1
        return Reached(self._spread(self.t), self.mu[: len(self.rows)], weights, ceiling, steps)

    def _advance(self, centrality: float) -> bool:
        """Take one step; False if rounding leaves nothing to solve."""
        solver = self._solver()
        if solver is None:
            return False
        aimless = solver.step(
            -self.slack * self.mu, -self.t_low * self.below, -self.t_high * self.above
        )
        size = aimless.longest(self)
        after = float((self.slack + size * aimless.slack) @ (self.mu + size * aimless.mu))
        after += float((self.t_low + size * aimless.t) @ (self.below + size * aimless.below))
        after += float((self.t_high - size * aimless.t) @ (self.above + size * aimless.above))
        after /= len(self.mu) + 2 * len(self.t)
        aim = centrality * min(max((after / centrality) ** 3, 1e-3), 1.0)
        step = solver.step(
            aim - self.slack * self.mu - aimless.slack * aimless.mu,
            aim - self.t_low * self.below - aimless.t * aimless.below,
            aim - self.t_high * self.above + aimless.t * aimless.above,
        )
        size = KEEP_INSIDE * step.longest(self)
        if not np.isfinite(step.t @ step.t + step.mu @ step.mu + size):
            return False
        self.t = self.t + size * step.t
        self.t_low, self.t_high = self.t_low + size * step.t, self.t_high - size * step.t
        self.v = self.v + size * step.v
        self.slack, self.mu = self.slack + size * step.slack, self.mu + size * step.mu
        self.below, self.above = self.below + size * step.below, self.above + size * step.above
        return True

    def _solver(self) -> _Solver | None:
        """Factor what both steps of an iteration share."""
        stiff = 1.0 if self.level is not None else 0.0
        loose = 1.0 / (stiff + self.below / self.t_low + self.above / self.t_high)
        weighted_gram(self._firsts, self._places, self._entries, self._spread(loose), self._gram)
        diagonal = self.slack / self.mu
        np.einsum("ii->i", self._gram)[:] += diagonal[: len(self.rows)]
        try:
            # Seen by columns, what is the lower half by rows is the upper one: no copy is made.
            factor = cho_factor(self._gram.T, lower=False, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        solver = _Solver(self, loose, factor, diagonal)
        return solver if solver.sound else None


@final
class _Solver:
    """Solves for steps: ``t`` first out of the way, then the cuts, then ``v`` and the level."""

    def __init__(
        self, state: _Interior, loose: Vector, factor: tuple[Matrix, bool], diagonal: Vector
    ) -> None:
        self._state, self._loose, self._factor, self._diagonal = state, loose, factor, diagonal
        cuts = state.cuts
        self._lacking = np.append(
            state.v[state.family] - state.worth(state.t),
            state.height() - (state.level or 0.0),
        )
        self._lacking -= state.slack
        self._dual = state.pull(state.mu)
        if state.level is not None:
            self._dual -= state.t - state.reference
        self._dual += state.below - state.above
        p, n_families = len(state.rows), len(cuts.counts)
        # The border: v >= 0 and the level as rows, v as unknowns.
        border = np.zeros((p, n_families + 1))
        border[np.arange(p), cuts.family] = 1.0
        border[:, -1] = -state.change_of_worth(loose * state.total)[:p]
        self._border = border
        self._solved = cho_solve(factor, border, check_finite=False)
        schur = border.T @ self._solved
        # Unknowns v_1 .. v_f and the level's mu; v >= 0 has a diagonal alone.
        corner = np.zeros((n_families + 1, n_families + 1))
        corner[:-1, :-1] = -np.diag(1.0 / diagonal[p:-1])
        corner[:-1, -1] = corner[-1, :-1] = -cuts.counts
        corner[-1, -1] = float(loose @ (state.total * state.total)) + diagonal[-1]
        self._corner = corner - schur
        if state.level is None:  # the weight of the height stays as it is
            self._corner[-1] = 0.0
            self._corner[-1, -1] = 1.0

    @property
    def sound(self) -> bool:
        """Whether the border can be solved for."""
        determinant = np.linalg.det(self._corner / max(float(np.abs(self._corner).max()), 1e-300))
        return bool(np.isfinite(self._corner).all()) and determinant != 0.0

    def step(self, slack_aim: Vector, low_aim: Vector, high_aim: Vector) -> _Step:
        """Newton's step towards the given changes of the complementary products."""
        state, loose = self._state, self._loose
        p = len(state.rows)
        push = self._dual + low_aim / state.t_low - high_aim / state.t_high
        ahead = loose * push
        goal = slack_aim / state.mu - self._lacking
        goal[:-1] += state.change_of_worth(ahead)
        goal[-1] -= float(state.total @ ahead)
        masses = np.bincount(state.family, state.mu[:-1], minlength=len(state.v))
        unbalanced = state.cuts.counts * state.mu[-1] - masses
        first = cho_solve(self._factor, goal[:p], check_finite=False)
        # v >= 0: diagonal dmu + dv = goal, so dmu = (goal - dv) / diagonal.
        right = np.append(unbalanced - goal[p:-1] / self._diagonal[p:-1], goal[-1])
        right -= self._border.T @ first
        if state.level is None:
            right[-1] = slack_aim[-1] = 0.0
        inner = np.linalg.solve(self._corner, right)
        v, level_mu = inner[:-1], inner[-1]
        mu = np.concatenate(
            [first - self._solved @ inner, (goal[p:-1] - v) / self._diagonal[p:-1], [level_mu]]
        )
        t = loose * (push + state.pull(mu))
        slack = (slack_aim - state.slack * mu) / state.mu
        return _Step(
            t,
            v,
            slack,
            mu,
            (low_aim - state.below * t) / state.t_low,
            (high_aim + state.above * t) / state.t_high,
        )


def _room(values: Vector, changes: Vector) -> float:
    """Largest part, at most 1, of the changes that keeps the values from falling below 0."""
    worst = float(np.max(-changes / values, initial=0.0))
    return 1.0 if worst <= 1.0 else 1.0 / worst
