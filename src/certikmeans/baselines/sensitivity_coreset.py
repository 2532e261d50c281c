"""Sensitivity sampling: k-means on a small weighted coreset."""

from __future__ import annotations

import math
from typing import ClassVar, final

import numpy as np

from certikmeans._numbers import whole_number
from certikmeans._types import Floats, Ints
from certikmeans.baselines._base import (
    Baseline,
    RunResult,
    RunStatus,
    best_of_restarts,
    check_open_interval,
)
from certikmeans.baselines._kmeans import best_kmeans
from certikmeans.errors import InputError
from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.presolve.reductions import AggregatedPoints, aggregate, must_link_groups
from certikmeans.problem import Problem
from certikmeans.problem.arrays import squared_distances
from certikmeans.stop import StopSignal


@final
class SensitivityCoreset(Baseline):
    """K-means on a coreset drawn by sensitivity (Feldman and Langberg 2011). Must-links only.

    Must-link groups become weighted points, which changes the cost by a constant. Of these a
    sample is drawn in proportion to an upper bound on how much a point can matter for any set of
    centres, and reweighted so that costs are right on average. K-means on the sample gives
    centres; every group then joins the nearest one.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. Some may end up empty.
    c : float, default=2.0
        Oversampling: the rough solution that sensitivities are measured from has ``c K`` centres.
    eps : float, default=0.1
        Relative error of costs that the size of the sample aims at.
    delta : float, default=0.1
        Probability with which that may fail.
    coreset_size : int, optional
        Number of draws. None: ``K ln(K / delta) / eps^2``, rounded up; if that is at least the
        number of groups, all of them are taken and nothing is drawn.
    n_init : int, default=1
        Coresets drawn; the one whose labels have the least sum of squares counts.
    kmeans_n_init : int, default=10
        Starts of k-means (k-means++) on each coreset.
    max_iter : int, default=300
        Iterations of k-means per start.
    time_limit : float, optional
        Wall time for `fit`, in seconds. None: no limit.
    random_state : int, RandomState instance, optional
        Seed of all draws.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters, over all samples.
    inertia_ : float
        Sum of squares about the means, over all samples.
    coreset_indices_ : ndarray
        Distinct groups of the best coreset, numbered by their smallest member.
    coreset_weights_ : ndarray
        Their weights.
    feasible_ : bool
        Whether every must-link is respected: always.
    violated_ : int
        0.
    status_ : RunStatus
        ``"converged"``, ``"max_iter"`` or ``"time_limit"``.
    n_iter_ : int
        Iterations of k-means on the best coreset.
    n_runs_ : int
        Coresets drawn.
    n_features_in_ : int
        Number of features seen during `fit`.

    Notes
    -----
    With ``A`` the rough solution (k-means++ seeds), ``W_a`` the weight of the points nearest to
    ``a`` and ``phi`` the cost of ``A``, a point is drawn with probability

        q(x) = w d(x, A)^2 / (2 phi)  +  w / (2 |A| W_a)

    and each draw weighs ``w / (m q)``. The theory gives the size up to a constant and
    logarithms; the formula above is our choice, and so is the use of ``c``, of which the paper
    that quotes ``c = 2, eps = 0.1, delta = 0.1`` says only that it oversamples. Cannot-links are
    refused: costs are then no longer sums over points, which sampling rests on.

    References
    ----------
    D. Feldman, M. Langberg. A unified framework for approximating and clustering data. STOC 2011,
    569-578.
    C. Schwiegelshohn, O. A. Sheikh-Omar. An empirical evaluation of k-means coresets. ESA 2022.

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = SensitivityCoreset(n_clusters=2, random_state=0).fit(X, must_link=[(0, 1)])
    >>> round(model.inertia_, 6), model.feasible_
    (1.0, True)
    """

    _takes_weights: ClassVar[bool] = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        c: float = 2.0,
        eps: float = 0.1,
        delta: float = 0.1,
        coreset_size: int | None = None,
        n_init: int = 1,
        kmeans_n_init: int = 10,
        max_iter: int = 300,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.c = c
        self.eps = eps
        self.delta = delta
        self.coreset_size = coreset_size
        self.n_init = n_init
        self.kmeans_n_init = kmeans_n_init
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        n_init = whole_number("n_init", self.n_init, least=1)
        whole_number("kmeans_n_init", self.kmeans_n_init, least=1)
        whole_number("max_iter", self.max_iter, least=1)
        if len(problem.cannot_link):
            raise InputError(
                f"cannot_link: SensitivityCoreset takes must-links only, got "
                f"{len(problem.cannot_link)} cannot-links",
                hint="leave them out, or use another method",
            )
        groups = must_link_groups(problem.n_points, problem.must_link)
        whole = aggregate(problem.points, problem.weights, groups)
        size = self._size(problem.n_clusters, len(whole.weights))
        drawn: list[tuple[Ints, Floats]] = []
        found: list[RunResult] = []

        def run(number: int) -> RunResult:
            rng = np.random.default_rng([seed, number])
            drawn.append(self._draw(whole, problem.n_clusters, size, rng))
            found.append(self._cluster(whole, *drawn[-1], problem.n_clusters, rng, stop))
            return found[-1]

        restarts = best_of_restarts(problem, n_init, stop, run)
        self.n_runs_ = restarts.n_runs
        best = next(i for i, one in enumerate(found) if one.labels is restarts.best.labels)
        self.coreset_indices_, self.coreset_weights_ = drawn[best]
        return restarts.best

    def _size(self, n_clusters: int, n_groups: int) -> int | None:
        """Return the number of draws; None to take every group."""
        check_open_interval("c", self.c, 0.0, math.inf)
        eps = check_open_interval("eps", self.eps, 0.0, 1.0)
        delta = check_open_interval("delta", self.delta, 0.0, 1.0)
        if self.coreset_size is not None:
            return whole_number("coreset_size", self.coreset_size, least=n_clusters)
        size = math.ceil(n_clusters * math.log(n_clusters / delta) / eps**2)
        return size if size < n_groups else None

    def _draw(
        self, whole: AggregatedPoints, n_clusters: int, size: int | None, rng: np.random.Generator
    ) -> tuple[Ints, Floats]:
        """Rows of a coreset and their weights."""
        points, weights = whole.means, whole.weights
        n_groups = len(weights)
        if size is None:
            return np.arange(n_groups), weights
        seeds = np.empty(min(n_groups, math.ceil(self.c * n_clusters)), dtype=np.int64)
        kmeanspp_seeds(points, weights, rng.random((len(seeds), 1)), seeds)
        distances = squared_distances(points, points[seeds])
        nearest = distances.argmin(axis=1)
        costs = weights * distances[np.arange(n_groups), nearest]
        masses = np.bincount(nearest, weights, minlength=len(seeds))
        shares = weights / (np.count_nonzero(masses) * masses[nearest])
        if costs.sum() > 0.0:
            shares = 0.5 * shares + 0.5 * costs / costs.sum()
        shares /= shares.sum()
        counts = np.bincount(rng.choice(n_groups, size=size, p=shares), minlength=n_groups)
        rows = np.flatnonzero(counts)
        return rows, counts[rows] * weights[rows] / (size * shares[rows])

    def _cluster(
        self,
        whole: AggregatedPoints,
        rows: Ints,
        masses: Floats,
        n_clusters: int,
        rng: np.random.Generator,
        stop: StopSignal,
    ) -> RunResult:
        """K-means on the coreset; every group to the nearest of its centres."""
        kmeans = best_kmeans(
            whole.means[rows],
            masses,
            min(n_clusters, len(rows)),
            rng,
            n_init=self.kmeans_n_init,
            max_iter=self.max_iter,
            stop=stop,
        )
        labels = squared_distances(whole.means, kmeans.centers).argmin(axis=1)
        status = RunStatus.CONVERGED if kmeans.converged else RunStatus.MAX_ITER
        if kmeans.interrupted:
            status = RunStatus.TIME_LIMIT
        return RunResult(labels[whole.group_of_point], kmeans.n_iter, status)
