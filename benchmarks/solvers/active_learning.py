"""Query strategies for pairs, ours and published ones, evaluated with the same solver.

Written from the papers:

* explore and consolidate: Basu, Banerjee and Mooney, "Active semi-supervision for pairwise
  constrained clustering", SDM 2004;
* min-max: Mallapragada, Jin and Jain, "Active query selection for semi-supervised clustering",
  ICPR 2008 (Gaussian kernel, width at the 20th percentile of the distances);
* normalised point-based uncertainty: Xiong, Azimi and Fern, "Active learning of constraints for
  semi-supervised clustering", TKDE 2014 (random forest of 50 trees as similarity).

Answers implied by earlier ones are not counted, for any strategy.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from benchmarks.solvers.base import AbstractSolver, SolverOutcome, finite, tiny_problem
from certikmeans import Problem, Result, solve

Floats = NDArray[np.float64]


class BudgetExhaustedError(Exception):
    """The query budget of a round is exhausted."""


@final
class Oracle:
    """Oracle with the true classes; counts queries and infers implied answers."""

    def __init__(self, classes: tuple[int, ...]) -> None:
        self._classes = classes
        self._group = list(range(len(classes)))
        self._apart: set[tuple[int, int]] = set()
        self.must: list[tuple[int, int]] = []
        self.cannot: list[tuple[int, int]] = []
        self.allowed = 0

    @property
    def answered(self) -> int:
        """Number of answers so far."""
        return len(self.must) + len(self.cannot)

    def group(self, i: int) -> int:
        """Return the representative of the must-link component of i."""
        while self._group[i] != i:
            self._group[i] = self._group[self._group[i]]
            i = self._group[i]
        return i

    def known(self, i: int, j: int) -> bool | None:
        """Return the implied answer, or None."""
        a, b = self.group(i), self.group(j)
        if a == b:
            return True
        return False if (min(a, b), max(a, b)) in self._apart else None

    def ask(self, i: int, j: int) -> bool:
        """Answer whether two points are of the same class."""
        known = self.known(i, j)
        if known is not None:
            return known
        if self.answered >= self.allowed:
            raise BudgetExhaustedError
        a, b = self.group(i), self.group(j)
        if self._classes[i] == self._classes[j]:
            self.must.append((i, j))
            self._group[b] = a
            self._apart = {
                (min(p, q), max(p, q))
                for p, q in ((self.group(x), self.group(y)) for x, y in self._apart)
            }
            return True
        self.cannot.append((i, j))
        self._apart.add((min(a, b), max(a, b)))
        return False


class AbstractStrategy(ABC):
    """Query strategy: chooses pairs, given the answers so far."""

    name: ClassVar[str]

    def __init__(self, points: Floats, k: int, seed: int) -> None:
        self.points, self.k = points, k
        self.rng = np.random.default_rng(seed)

    @abstractmethod
    def round(self, oracle: Oracle, result: Result) -> None:
        """Query until `BudgetExhaustedError` or until no query is left."""


@final
class RandomPairs(AbstractStrategy):
    """Pairs drawn at random."""

    name: ClassVar[str] = "random"

    def round(self, oracle: Oracle, result: Result) -> None:
        """Query random pairs."""
        for _ in range(10_000):
            i, j = self.rng.choice(len(self.points), 2, replace=False).tolist()
            oracle.ask(i, j)


@final
class CertaintyQueries(AbstractStrategy):
    """`Result.questions`; where all is certain within the slack, with more slack."""

    name: ClassVar[str] = "certikmeans"
    slacks: ClassVar[tuple[float, ...]] = (1e-3, 5e-3, 2e-2)

    def round(self, oracle: Oracle, result: Result) -> None:
        """Query the pairs of `Result.questions`."""
        for slack in self.slacks:
            for question in result.questions(200, slack=slack):
                oracle.ask(*question.pair)


class NeighborhoodStrategy(AbstractStrategy):
    """Grows sets of points of known, mutually different classes."""

    def __init__(self, points: Floats, k: int, seed: int) -> None:
        super().__init__(points, k, seed)
        self.sets: list[list[int]] = []

    def place(self, oracle: Oracle, point: int, order: list[int]) -> None:
        """Query one set after the other; start a new set if the point belongs to none."""
        for number in order:
            if oracle.ask(point, self.sets[number][0]):
                self.sets[number].append(point)
                return
        self.sets.append([point])

    def taken(self) -> list[int]:
        """All points in sets."""
        return [point for one in self.sets for point in one]

    def explore(self, oracle: Oracle) -> None:
        """Farthest first, until there are K sets."""
        if not self.sets:
            self.sets.append([int(self.rng.integers(len(self.points)))])
        while len(self.sets) < self.k and len(self.taken()) < len(self.points):
            away = _distances(self.points, self.points[self.taken()]).min(axis=1)
            self.place(oracle, int(np.argmax(away)), list(range(len(self.sets))))

    def by_centroid(self, point: int) -> list[int]:
        """Sets, the nearest centroid first."""
        means = np.stack([self.points[one].mean(axis=0) for one in self.sets])
        order: list[int] = np.argsort(_distances(self.points[[point]], means)[0]).tolist()
        return order


@final
class ExploreConsolidate(NeighborhoodStrategy):
    """Explore, then points at random."""

    name: ClassVar[str] = "explore-consolidate"

    def round(self, oracle: Oracle, result: Result) -> None:
        """Explore; then place points drawn at random."""
        self.explore(oracle)
        rest = np.setdiff1d(np.arange(len(self.points)), self.taken())
        for point in self.rng.permutation(rest).tolist():
            self.place(oracle, point, self.by_centroid(point))


@final
class MinMax(NeighborhoodStrategy):
    """Explore, then the point least similar to all queried points."""

    name: ClassVar[str] = "min-max"

    def round(self, oracle: Oracle, result: Result) -> None:
        """Explore; then place the least similar."""
        self.explore(oracle)
        squares = _distances(self.points, self.points)
        width = max(float(np.quantile(np.sqrt(squares), 0.2)), 1e-12)
        like = np.exp(-squares / (2.0 * width * width))
        while len(self.taken()) < len(self.points):
            most = like[:, self.taken()].max(axis=1)
            most[self.taken()] = np.inf
            point = int(np.argmin(most))
            order = np.argsort([-like[point, one].max() for one in self.sets]).tolist()
            self.place(oracle, point, order)


@final
class Uncertainty(NeighborhoodStrategy):
    """The point with the most uncertain set per expected query."""

    name: ClassVar[str] = "npu"

    def round(self, oracle: Oracle, result: Result) -> None:
        """Select points by the proximity in a random forest trained on the clusters."""
        from sklearn.ensemble import RandomForestClassifier

        if not self.sets:
            self.sets.append([int(self.rng.integers(len(self.points)))])
        assert result.labels is not None
        forest = RandomForestClassifier(50, random_state=int(self.rng.integers(2**31)))
        leaves = forest.fit(self.points, result.labels).apply(self.points)
        while len(self.taken()) < len(self.points):
            share = np.stack(
                [
                    np.mean([(leaves == leaves[p]).mean(axis=1) for p in one], axis=0)
                    for one in self.sets
                ],
                axis=1,
            )
            share = (share + 1e-9) / (share + 1e-9).sum(axis=1, keepdims=True)
            entropy = -(share * np.log(share)).sum(axis=1)
            ranked = -np.sort(-share, axis=1)
            needed = ranked @ np.arange(1.0, share.shape[1] + 1.0)
            score = entropy / needed if share.shape[1] > 1 else self.rng.random(len(share))
            score[self.taken()] = -np.inf
            point = int(np.argmax(score))
            self.place(oracle, point, np.argsort(-share[point]).tolist())


STRATEGIES: dict[str, type[AbstractStrategy]] = {
    one.name: one
    for one in (CertaintyQueries, RandomPairs, ExploreConsolidate, MinMax, Uncertainty)
}


def _distances(points: Floats, others: Floats) -> Floats:
    squares: Floats = (
        np.sum(points * points, axis=1)[:, None]
        + np.sum(others * others, axis=1)
        - 2.0 * points @ others.T
    )
    return np.maximum(squares, 0.0)


@final
@dataclass(frozen=True)
class ActiveLearningSolver(AbstractSolver):
    """Alternate solving and querying; record the agreement with the classes per round."""

    strategy: str
    classes: tuple[int, ...] = field(repr=False)
    answers: tuple[int, ...] = (0, 10, 20, 40, 60, 80, 100)
    seconds: float = 2.0  # for every solve

    @property
    def name(self) -> str:
        """Name of the query strategy."""
        return self.strategy

    @property
    def options(self) -> dict[str, Any]:
        """What the curve is about."""
        return {"answers": list(self.answers), "seconds": self.seconds}

    def warm_up(self) -> None:
        """Compile."""
        for must in (False, True):
            solve(tiny_problem(must=must)).certainty()

    def seconds_needed(self, limit: float) -> float:
        """Solving, and finding questions."""
        return 3.0 * limit + 60.0

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """One curve."""
        from sklearn.metrics import adjusted_rand_score

        began = time.perf_counter()
        oracle = Oracle(self.classes)
        strategy = STRATEGIES[self.strategy](problem.points, problem.n_clusters, seed)
        curve: list[tuple[int, float]] = []
        result = solve(problem, time_limit=self.seconds, seed=seed)
        for allowed in self.answers:
            oracle.allowed = allowed
            if allowed > 0:
                with contextlib.suppress(BudgetExhaustedError):
                    strategy.round(oracle, result)
                now = Problem.from_data(
                    problem.points,
                    problem.n_clusters,
                    must_link=oracle.must or None,
                    cannot_link=oracle.cannot or None,
                )
                start = result.centers
                if start is not None and not np.isfinite(start).all():
                    start = None
                result = solve(now, time_limit=self.seconds, seed=seed, initial_centers=start)
            assert result.labels is not None
            curve.append((oracle.answered, float(adjusted_rand_score(self.classes, result.labels))))
        return SolverOutcome(
            labels=None,  # of another problem: with the answers as pairs
            lower_bound=finite(result.lower_bound),
            nodes=None,
            seconds=time.perf_counter() - began,
            stop_reason="asked",
            details={"curve": curve},
        )
