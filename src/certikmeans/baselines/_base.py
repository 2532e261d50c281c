"""Base class of the baselines: input, must-link groups, restarts and fitted attributes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from certikmeans._estimator_utils import (
    check_enough_samples,
    finite_weights,
    raise_infeasible,
    seed_from,
)
from certikmeans._types import Floats, Ints
from certikmeans.errors import CertikmeansError, InputError
from certikmeans.kernels.costs import labels_cost
from certikmeans.options import Options
from certikmeans.presolve.infeasibility_proofs import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.problem import Problem
from certikmeans.problem.arrays import distinct, squared_distances
from certikmeans.stop import StopSignal

# Time for proving infeasibility, in seconds; not part of any method.
_EXPLANATION_SECONDS = 60.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class MustLinkGroups:
    """Transitive closure of the pairs: groups of points, and cannot-links between them."""

    of_point: Ints  # (n_points,), numbered by smallest member
    n_groups: int
    cannot_links: Ints  # (m, 2) distinct, first < second
    conflicting: Ints  # groups with a cannot-link inside
    component: Ints  # (n_groups,) component of the cannot-link graph

    @classmethod
    def of(cls, problem: Problem) -> MustLinkGroups:
        """Build the groups of ``problem``.

        >>> problem = Problem.from_data(
        ...     [[0.0], [1.0], [2.0]], 2, must_link=[(0, 1)], cannot_link=[(0, 2), (1, 2)])
        >>> MustLinkGroups.of(problem).cannot_links
        array([[0, 1]])
        """
        of_point = must_link_groups(problem.n_points, problem.must_link)
        n_groups = int(of_point.max()) + 1
        ends = np.sort(of_point[problem.cannot_link], axis=1)
        inside = ends[:, 0] == ends[:, 1]
        keys = distinct(ends[~inside, 0] * np.int64(n_groups) + ends[~inside, 1])
        cannot_links = np.stack([keys // n_groups, keys % n_groups], axis=1)
        ones = np.ones(len(cannot_links), dtype=np.int8)
        graph = coo_array(
            (ones, (cannot_links[:, 0], cannot_links[:, 1])), shape=(n_groups, n_groups)
        )
        _, component = connected_components(graph, directed=False)
        return cls(of_point, n_groups, cannot_links, np.unique(ends[inside, 0]), component)

    def neighbors(self, *, loops: bool) -> tuple[Ints, Ints]:
        """Adjacency in compressed rows; contradicted groups are their own neighbours."""
        own = self.conflicting if loops else self.conflicting[:0]
        tails = np.concatenate([self.cannot_links[:, 0], self.cannot_links[:, 1], own])
        heads = np.concatenate([self.cannot_links[:, 1], self.cannot_links[:, 0], own])
        indptr = np.zeros(self.n_groups + 1, dtype=np.int64)
        np.cumsum(np.bincount(tails, minlength=self.n_groups), out=indptr[1:])
        return indptr, heads[np.lexsort((heads, tails))]

    def total(self, per_point: Floats) -> Floats:
        """Sum the rows of a table over the members of each group."""
        if self.n_groups == len(self.of_point):
            return per_point
        return np.stack(
            [np.bincount(self.of_point, column, self.n_groups) for column in per_point.T], axis=1
        )


def raise_if_infeasible(problem: Problem) -> None:
    """Raise `InfeasibleError` with a proof if the problem is shown to be infeasible."""
    proof = presolve(problem, StopSignal(_EXPLANATION_SECONDS))
    if isinstance(proof, InfeasibilityProof):
        raise_infeasible(proof)


class RunStatus(StrEnum):
    """How a heuristic ended. None of them proves anything."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    FAILED = "failed"


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """Result of one run of a method."""

    labels: Ints | None  # (n_points,); None if the method found none
    n_iter: int
    status: StrEnum
    objective: float | None = None  # of the method; None for the sum of squares


@final
@dataclass(frozen=True, slots=True, eq=False)
class RestartResult:
    """The best of several runs."""

    best: RunResult
    n_runs: int
    n_failed: int


class Baseline(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A published method as a scikit-learn estimator.

    The sum of squares is always that of ``labels_`` about the means of its clusters, whatever
    the method itself minimises, so that results of different methods can be compared.
    """

    _takes_weights: ClassVar[bool] = False

    n_clusters: int
    time_limit: float | None
    random_state: Any

    @abstractmethod
    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        """Run the method; may set further attributes."""

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
        sample_weight: ArrayLike | float | None = None,
    ) -> Self:
        """Cluster ``X`` under the pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, dense and finite. Computed in float64.
        y : None
            Ignored.
        must_link, cannot_link : array-like of shape (n_pairs, 2) or Links, optional
            Pairs of row numbers of X, counted from 0. Order and repetition do not matter.
        sample_weight : array-like of shape (n_samples,) or float, optional
            Positive. Rejected by methods that were published without weights.

        Returns
        -------
        self
            Fitted. See ``feasible_`` and ``status_`` before using ``labels_``.
        """
        points = validate_data(self, X, dtype=np.float64, order="C")
        check_enough_samples(self.n_clusters, len(points))
        problem = Problem.from_data(
            points,
            self.n_clusters,
            must_link=must_link,
            cannot_link=cannot_link,
            weights=self._weights(sample_weight, len(points)),
        )
        limit = Options(time_limit=self.time_limit).time_limit
        result = self._search(problem, StopSignal(limit), seed_from(self.random_state))
        self._publish(problem, result)
        return self

    def _weights(self, sample_weight: Any, n_samples: int) -> Floats | None:
        if sample_weight is not None and not self._takes_weights:
            raise InputError(
                f"sample_weight: {type(self).__name__} was published without weights",
                hint="leave sample_weight out, or use ConstrainedKMeans, which takes weights",
            )
        return finite_weights(sample_weight, n_samples)

    def _publish(self, problem: Problem, result: RunResult) -> None:
        """Set the attributes of a fitted estimator."""
        self.n_iter_ = result.n_iter
        self.status_ = result.status
        self.cluster_centers_ = np.full((problem.n_clusters, problem.n_features), np.nan)
        if result.labels is None:
            self.labels_ = np.full(problem.n_points, -1, dtype=np.int64)
            self.inertia_ = math.inf
            self.violated_ = len(problem.must_link) + len(problem.cannot_link)
            self.feasible_ = False
            return
        self.labels_ = result.labels
        self.inertia_ = float(
            labels_cost(problem.points, problem.weights, self.labels_, self.cluster_centers_)
        )
        self.violated_ = count_violated(problem, self.labels_)
        self.feasible_ = self.violated_ == 0

    def predict(self, X: ArrayLike) -> Ints:
        """Index of the nearest centre for each sample, one by one and without pairs."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        if not math.isfinite(self.inertia_):
            raise CertikmeansError(
                f"{type(self).__name__} found no labelling, so there are no centres",
                hint="see status_; more restarts, more time or fewer pairs may help",
            )
        nearest: Ints = squared_distances(points, self.cluster_centers_).argmin(axis=1)
        return nearest


def cost_of(problem: Problem, labels: Ints) -> float:
    """Sum of squares about the means of the clusters, rounded up.

    >>> cost_of(Problem.from_data([[0.0], [2.0]], 1), np.array([0, 0])) >= 2.0
    True
    """
    centers = np.empty((problem.n_clusters, problem.n_features))
    return float(labels_cost(problem.points, problem.weights, labels, centers))


def count_violated(problem: Problem, labels: Ints) -> int:
    """Count the pairs that ``labels`` violates.

    >>> problem = Problem.from_data([[0.0], [1.0]], 1, cannot_link=[(0, 1)])
    >>> count_violated(problem, np.array([0, 0]))
    1
    """
    split = labels[problem.must_link[:, 0]] != labels[problem.must_link[:, 1]]
    joined = labels[problem.cannot_link[:, 0]] == labels[problem.cannot_link[:, 1]]
    return int(np.count_nonzero(split) + np.count_nonzero(joined))


def best_of_restarts(
    problem: Problem,
    n_runs: int,
    stop: StopSignal,
    run: Callable[[int], RunResult],
) -> RestartResult:
    """Best of at most ``n_runs`` runs within the time limit; always at least one.

    If the time limit prevented some runs, that is the status, even if the best run converged.
    """
    best: RunResult | None = None
    least, done, failed = math.inf, 0, 0
    for number in range(n_runs):
        if best is not None and stop.reason() is not None:
            break
        result = run(number)
        done += 1
        if result.labels is None:
            failed += 1
            best = result if best is None else best
            continue
        cost = result.objective
        if cost is None:
            cost = cost_of(problem, result.labels)
        if cost < least:
            best, least = result, cost
    assert best is not None
    if done < n_runs and best.labels is not None:
        best = RunResult(best.labels, best.n_iter, RunStatus.TIME_LIMIT, best.objective)
    return RestartResult(best, done, failed)


def check_open_interval(name: str, value: Any, low: float, high: float) -> float:
    """Return ``value`` as a float strictly between ``low`` and ``high``."""
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not low < number < high:
        raise InputError(
            f"{name}: {value!r} is not a number between {low:g} and {high:g}",
            hint="the bounds themselves are excluded",
        )
    return number
