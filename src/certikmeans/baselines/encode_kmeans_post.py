"""encode-kmeans-post: unconstrained k-means, then an optimal reassignment under the pairs."""

from __future__ import annotations

from typing import final

import numpy as np

from certikmeans._numbers import whole_number
from certikmeans._types import Floats
from certikmeans.baselines._assignment import ASSIGNMENTS, DISTANCES, OptimalAssignment
from certikmeans.baselines._base import (
    Baseline,
    RunResult,
    RunStatus,
    best_of_restarts,
    check_open_interval,
)
from certikmeans.baselines._kernels import cluster_means
from certikmeans.baselines._kmeans import best_kmeans
from certikmeans.options import check_choice
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal

_KMEANS_ITERATIONS = 300


@final
class EncodeKMeansPost(Baseline):
    """Post-processing of k-means (Nghiem, Vrain, Dao and Davidson 2020).

    Cluster without pairs; then, with the centres fixed, find the labels of least total cost that
    respect every pair, by a binary linear program.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. Some may end up empty.
    update_centers : bool, default=False
        False: one reassignment, the post-processing itself. True: move the centres to the means
        and reassign, until fewer than ``tol`` of the labels change.
    n_init : int, default=1
        Repetitions of the whole method; the one with the least sum of squares counts.
    kmeans_n_init : int, default=20
        Starts of k-means (k-means++) in each; the best enters the program.
    distance : {"euclidean", "squared"}, default="squared"
        What the program minimises.
    assignment : {"milp", "exact"}, default="milp"
        ``"milp"``: `scipy.optimize.milp` (HiGHS), to a gap of zero. ``"exact"``: our own solver
        for the same step, many times faster. Its labels cost the same, except where a
        cannot-link component is so entangled that the search gives up after two seconds.
    tol : float, default=1e-3
        Share of changed labels below which centre updates end.
    max_iter : int, default=300
        Reassignments per repetition with ``update_centers``.
    time_limit : float, optional
        Wall time for `fit`, in seconds. None: no limit.
    random_state : int, RandomState instance, optional
        Seed of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. All -1 if none was found.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters, not the centres of k-means; NaN without labels.
    inertia_ : float
        Sum of squares about the means; infinite without labels.
    feasible_ : bool
        Whether every pair is respected: always, unless no labels were found.
    violated_ : int
        Number of violated pairs.
    status_ : RunStatus
        ``"converged"``, ``"max_iter"``, ``"time_limit"``, or ``"failed"`` if no labels were
        found in time.
    n_iter_ : int
        Reassignments of the best repetition.
    n_runs_, n_failed_ : int
        Repetitions made, and how many of them found no labels.
    n_features_in_ : int
        Number of features seen during `fit`.

    Raises
    ------
    InfeasibleError
        No labelling satisfies every pair; ``error.proof`` shows why.

    Notes
    -----
    The paper applies k-means to an encoding of images or texts by a deep network; for tables of
    numbers there is nothing to encode, and k-means sees the features as they are. It states the
    objective as a matrix of allocation scores of whatever method is processed; for k-means we
    take squared distances, which k-means itself minimises. An empty cluster keeps its centre.
    The program is reduced as in `BLPKMCC`, without changing its optimum.

    The paper's text was not available. The 20 starts and ``tol`` are those of the authors' public
    script of this name (dung321046/ConstrainedClusteringViaPostProcessing), read for these facts;
    that script also updates the centres, so ``update_centers=True`` is closer to it.

    References
    ----------
    N.-V.-D. Nghiem, C. Vrain, T.-B.-H. Dao, I. Davidson. Constrained clustering via
    post-processing. Discovery Science 2020.

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = EncodeKMeansPost(n_clusters=2, random_state=0).fit(X, must_link=[(1, 2)])
    >>> model.feasible_, model.n_iter_
    (True, 1)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        update_centers: bool = False,
        n_init: int = 1,
        kmeans_n_init: int = 20,
        distance: str = "squared",
        assignment: str = "milp",
        tol: float = 1e-3,
        max_iter: int = 300,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.update_centers = update_centers
        self.n_init = n_init
        self.kmeans_n_init = kmeans_n_init
        self.distance = distance
        self.assignment = assignment
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        n_init = whole_number("n_init", self.n_init, least=1)
        whole_number("kmeans_n_init", self.kmeans_n_init, least=1)
        whole_number("max_iter", self.max_iter, least=1)
        check_open_interval("tol", self.tol, 0.0, 1.0)
        check_choice("distance", self.distance, DISTANCES)
        check_choice("assignment", self.assignment, ASSIGNMENTS)
        step = OptimalAssignment(
            problem, distance=self.distance, method=self.assignment, fill=False, stop=stop
        )

        def run(number: int) -> RunResult:
            kmeans = best_kmeans(
                problem.points,
                problem.weights,
                problem.n_clusters,
                np.random.default_rng([seed, number]),
                n_init=self.kmeans_n_init,
                max_iter=_KMEANS_ITERATIONS,
                stop=stop,
            )
            result = self._reassign(problem, step, kmeans.centers, stop)
            if kmeans.interrupted and result.labels is not None:
                return RunResult(result.labels, result.n_iter, RunStatus.TIME_LIMIT)
            return result

        restarts = best_of_restarts(problem, n_init, stop, run)
        self.n_runs_, self.n_failed_ = restarts.n_runs, restarts.n_failed
        return restarts.best

    def _reassign(
        self, problem: Problem, step: OptimalAssignment, centers: Floats, stop: StopSignal
    ) -> RunResult:
        before = None
        for n_iter in range(1, self.max_iter + 1):
            labels = step.labels(centers)
            if labels is None:
                # An earlier step had labels, so this one ran out of time.
                late = RunStatus.FAILED if before is None else RunStatus.TIME_LIMIT
                return RunResult(before, n_iter, late)
            converged = before is not None and np.mean(labels != before) < self.tol
            # First: when time is up, the program may have ended before its optimum.
            if stop.reason() is not None:
                return RunResult(labels, n_iter, RunStatus.TIME_LIMIT)
            if converged or not self.update_centers:
                return RunResult(labels, n_iter, RunStatus.CONVERGED)
            cluster_means(problem.points, problem.weights, labels, centers)
            before = labels
        return RunResult(before, self.max_iter, RunStatus.MAX_ITER)
