"""BLPKM-CC: k-means with an optimal assignment step under the pairs."""

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
)
from certikmeans.baselines._kernels import cluster_means
from certikmeans.baselines._kmeans import INITS, initial_centers
from certikmeans.options import check_choice
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal


@final
class BLPKMCC(Baseline):
    """BLPKM-CC (Baumann 2020): the assignment step is a binary linear program.

    From random points as centres, assign all points at least total distance such that every
    pair is respected and no cluster is empty; move the centres to the means; repeat while the
    total distance falls.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_init : int, default=1
        Runs from different starts; the one with the least sum of squares counts.
    distance : {"euclidean", "squared"}, default="euclidean"
        What the program minimises. The published method adds up distances, not their squares,
        which k-means minimises: ``"squared"`` gives lower sums of squares.
    assignment : {"milp", "exact"}, default="milp"
        ``"milp"``: `scipy.optimize.milp` (HiGHS), to a gap of zero. ``"exact"``: our own solver
        for the same step, many times faster. Its labels cost the same, except where a
        cannot-link component is so entangled that the search gives up after two seconds.
    allow_empty : bool, default=False
        Whether clusters may stay empty. The published program forbids it.
    init : {"random", "k-means++"}, default="random"
        Starting centres: distinct points of the data, uniform or far apart.
    max_iter : int, default=100
        Assignment steps per run.
    time_limit : float, optional
        Wall time for `fit`, in seconds. None: no limit. A program that is interrupted counts
        with the best labels it has, if any.
    random_state : int, RandomState instance, optional
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. All -1 if none was found.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters; NaN without labels.
    inertia_ : float
        Sum of squares about the means; infinite without labels.
    feasible_ : bool
        Whether every pair is respected: always, unless no labels were found.
    violated_ : int
        Number of violated pairs.
    status_ : RunStatus
        ``"converged"``, ``"max_iter"``, ``"time_limit"``, or ``"failed"`` if no labels were
        found in time, or if the groups are too few to fill every cluster.
    n_iter_ : int
        Assignment steps of the best run.
    n_runs_, n_failed_ : int
        Runs made, and how many of them found no labels.
    n_features_in_ : int
        Number of features seen during `fit`.

    Raises
    ------
    InfeasibleError
        No labelling satisfies every pair; ``error.proof`` shows why.

    Notes
    -----
    The program states must-links as equations. Here must-linked points share one variable, and
    only those components of the cannot-link graph enter whose nearest centres clash; the
    optimum is the same, the program far smaller. That distances are not squared, that no cluster
    is empty, the starts and the end of a run are taken from the author's public repository
    (phil85/BLPKM-CC), read for these facts; the paper's text was not available.

    References
    ----------
    P. Baumann. A binary linear programming-based k-means algorithm for clustering with must-link
    and cannot-link constraints. IEEE IEEM 2020, doi 10.1109/IEEM45057.2020.9309775.

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = BLPKMCC(n_clusters=2, random_state=0).fit(X, cannot_link=[(0, 1), (2, 3)])
    >>> model.feasible_, model.status_
    (True, <RunStatus.CONVERGED: 'converged'>)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 1,
        distance: str = "euclidean",
        assignment: str = "milp",
        allow_empty: bool = False,
        init: str = "random",
        max_iter: int = 100,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.distance = distance
        self.assignment = assignment
        self.allow_empty = allow_empty
        self.init = init
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        n_init = whole_number("n_init", self.n_init, least=1)
        whole_number("max_iter", self.max_iter, least=1)
        check_choice("init", self.init, INITS)
        check_choice("distance", self.distance, DISTANCES)
        check_choice("assignment", self.assignment, ASSIGNMENTS)
        step = OptimalAssignment(
            problem,
            distance=self.distance,
            method=self.assignment,
            fill=not self.allow_empty,
            stop=stop,
        )

        def run(number: int) -> RunResult:
            rng = np.random.default_rng([seed, number])
            return self._run(problem, step, initial_centers(problem, self.init, rng), stop)

        restarts = best_of_restarts(problem, n_init, stop, run)
        self.n_runs_, self.n_failed_ = restarts.n_runs, restarts.n_failed
        return restarts.best

    def _run(
        self,
        problem: Problem,
        step: OptimalAssignment,
        centers: Floats,
        stop: StopSignal,
    ) -> RunResult:
        best, least, n_iter = None, np.inf, 0
        while n_iter < self.max_iter:
            n_iter += 1
            labels = step.labels(centers)
            if labels is None:
                # An earlier step had labels, so this one ran out of time.
                return RunResult(
                    best, n_iter, RunStatus.FAILED if best is None else RunStatus.TIME_LIMIT
                )
            cluster_means(problem.points, problem.weights, labels, centers)
            total = step.total(centers, labels)
            if total >= least:
                # When time is up, the program may have ended before its optimum.
                late = stop.reason() is not None
                status = RunStatus.TIME_LIMIT if late else RunStatus.CONVERGED
                return RunResult(best, n_iter, status)
            best, least = labels, total
            if stop.reason() is not None:
                return RunResult(best, n_iter, RunStatus.TIME_LIMIT)
        return RunResult(best, n_iter, RunStatus.MAX_ITER)
