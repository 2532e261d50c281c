"""COP-k-means: k-means whose assignment pass never violates a pair, and may fail."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import whole_number
from certikmeans.baselines._base import (
    Baseline,
    MustLinkGroups,
    RunResult,
    RunStatus,
    best_of_restarts,
)
from certikmeans.baselines._kernels import cluster_means, cop_pass
from certikmeans.baselines._kmeans import INITS, initial_centers
from certikmeans.options import check_choice
from certikmeans.presolve.reductions import AggregatedPoints, aggregate
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal


@final
class COPKMeans(Baseline):
    """COP-k-means (Wagstaff, Cardie, Rogers and Schrödl 2001).

    Points are visited one by one; each joins the nearest centre whose cluster breaks none of its
    pairs with points visited before in the same pass. If there is no such cluster the method
    fails, although the problem may have a solution. Pairs are closed under transitivity first.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. Some may end up empty.
    n_init : int, default=1
        Runs from different starts; the best that did not fail counts. The paper has one.
    shuffle : bool, default=False
        Whether each run visits the points in a random order of its own. False is as published:
        the order in which they are given.
    init : {"random", "k-means++"}, default="random"
        Starting centres: distinct points of the data, uniform or far apart.
    max_iter : int, default=300
        Passes per run. Greedy passes need not lower the cost, so a run can cycle.
    time_limit : float, optional
        Wall time for `fit`, in seconds. None: no limit.
    random_state : int, RandomState instance, optional
        Seed of the starts and orders.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. All -1 if every run failed.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters; NaN if every run failed.
    inertia_ : float
        Sum of squares about the means; infinite if every run failed.
    feasible_ : bool
        Whether a run succeeded: then every pair is respected.
    violated_ : int
        Number of broken pairs: 0, or all if every run failed.
    status_ : RunStatus
        ``"converged"``, ``"max_iter"``, ``"time_limit"`` or ``"failed"``.
    n_iter_ : int
        Passes of the best run.
    n_runs_, n_failed_ : int
        Runs made, and how many of them got stuck.
    n_features_in_ : int
        Number of features seen during `fit`.

    Notes
    -----
    The paper does not say what becomes of an empty cluster: here its centre stays where it is.
    Ties go to the lower cluster number.

    References
    ----------
    K. Wagstaff, C. Cardie, S. Rogers, S. Schrödl. Constrained k-means clustering with background
    knowledge. ICML 2001, 577-584.

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = COPKMeans(n_clusters=2, n_init=5, random_state=0)
    >>> model.fit(X, cannot_link=[(0, 1)]).feasible_
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 1,
        shuffle: bool = False,
        init: str = "random",
        max_iter: int = 300,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.shuffle = shuffle
        self.init = init
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        n_init = whole_number("n_init", self.n_init, least=1)
        whole_number("max_iter", self.max_iter, least=1)
        check_choice("init", self.init, INITS)
        groups = MustLinkGroups.of(problem)
        collapsed = aggregate(problem.points, problem.weights, groups.of_point)
        links = groups.neighbors(loops=True)

        def run(number: int) -> RunResult:
            rng = np.random.default_rng([seed, number])
            return self._run(problem, groups, collapsed, links, rng, stop)

        restarts = best_of_restarts(problem, n_init, stop, run)
        self.n_runs_, self.n_failed_ = restarts.n_runs, restarts.n_failed
        return restarts.best

    def _run(
        self,
        problem: Problem,
        groups: MustLinkGroups,
        collapsed: AggregatedPoints,
        links: tuple[NDArray[np.int64], NDArray[np.int64]],
        rng: np.random.Generator,
        stop: StopSignal,
    ) -> RunResult:
        centers = initial_centers(problem, self.init, rng)
        visits = np.arange(problem.n_points)
        if self.shuffle:
            rng.shuffle(visits)
        _, turn = np.unique(groups.of_point[visits], return_index=True)
        first, order = visits[turn], np.argsort(turn)
        before = np.full(groups.n_groups, -1)
        labels = np.empty_like(before)
        status = RunStatus.MAX_ITER
        n_iter = 0
        while n_iter < self.max_iter:
            n_iter += 1
            if cop_pass(problem.points, first, order, *links, centers, labels) >= 0:
                return RunResult(None, n_iter, RunStatus.FAILED)
            if np.array_equal(labels, before):
                status = RunStatus.CONVERGED
                break
            cluster_means(collapsed.means, collapsed.weights, labels, centers)
            labels, before = before, labels
            if stop.reason() is not None:
                status = RunStatus.TIME_LIMIT
                break
        # After a swap the labels of the last pass are those called "before".
        return RunResult(before[groups.of_point], n_iter, status)
