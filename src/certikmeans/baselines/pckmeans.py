"""PCKMeans: pairs are soft constraints with a penalty."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from certikmeans._numbers import whole_number
from certikmeans._types import Floats, Ints
from certikmeans.baselines._base import (
    Baseline,
    MustLinkGroups,
    RunResult,
    RunStatus,
    best_of_restarts,
    check_open_interval,
)
from certikmeans.baselines._kernels import cluster_means, pck_pass
from certikmeans.kernels.graph import CsrGraph
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal


@final
class PCKMeans(Baseline):
    """Pairwise constrained k-means with soft pairs (Basu, Banerjee and Mooney 2004).

    Minimises half the sum of squares plus ``w`` for every broken pair. Pairs are closed first:
    points joined by must-links form neighbourhoods, and a cannot-link between two of them holds
    for all their points. The neighbourhoods also give the starting centres.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. Some may end up empty.
    w : float, default=1.0
        Price of a broken pair, in units of the squared features. A small price lets pairs be
        broken; a large one does not guarantee that none is.
    n_init : int, default=1
        Runs with different visiting orders; the one with the least objective counts.
    max_iter : int, default=300
        Passes per run.
    time_limit : float, optional
        Wall time for `fit`, in seconds. None: no limit.
    random_state : int, RandomState instance, optional
        Seed of the orders and of centres that no neighbourhood gives.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    inertia_ : float
        Sum of squares about the means, without prices.
    objective_ : float
        What the method minimises: ``inertia_ / 2`` plus the prices of broken closed pairs.
    feasible_ : bool
        Whether every stated pair is respected.
    violated_ : int
        Number of broken pairs, as stated.
    status_ : RunStatus
        ``"converged"``, ``"max_iter"`` or ``"time_limit"``.
    n_iter_ : int
        Passes of the best run.
    n_runs_ : int
        Runs made.
    n_features_in_ : int
        Number of features seen during `fit`.

    Notes
    -----
    Starting centres as published: the means of the K largest neighbourhoods; if there are fewer,
    a point with a cannot-link to every neighbourhood, if there is one, and then random
    perturbations of the overall mean, for which we take the standard deviation of each feature.
    The paper leaves open the order of the visits (here random, the same in every pass of a run),
    and points not labelled yet in the first pass (they cost nothing). It assumes consistent
    pairs: a cannot-link inside a neighbourhood has no price here, but counts as violated. An
    empty cluster keeps its centre.

    References
    ----------
    S. Basu, A. Banerjee, R. J. Mooney. Active semi-supervision for pairwise constrained
    clustering. SIAM International Conference on Data Mining 2004, 333-344.

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> cheap = PCKMeans(n_clusters=2, w=1e-3, random_state=0).fit(X, cannot_link=[(0, 1)])
    >>> dear = PCKMeans(n_clusters=2, w=1e3, random_state=0).fit(X, cannot_link=[(0, 1)])
    >>> cheap.violated_, dear.violated_
    (1, 0)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        w: float = 1.0,
        n_init: int = 1,
        max_iter: int = 300,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.w = w
        self.n_init = n_init
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        n_init = whole_number("n_init", self.n_init, least=1)
        whole_number("max_iter", self.max_iter, least=1)
        penalty = check_open_interval("w", self.w, 0.0, math.inf)
        groups = MustLinkGroups.of(problem)
        links = CsrGraph(*groups.neighbors(loops=False))

        def run(number: int) -> RunResult:
            rng = np.random.default_rng([seed, number])
            return self._run(problem, groups, links, penalty, rng, stop)

        restarts = best_of_restarts(problem, n_init, stop, run)
        self.n_runs_ = restarts.n_runs
        self.objective_ = restarts.best.objective
        return restarts.best

    def _run(
        self,
        problem: Problem,
        groups: MustLinkGroups,
        links: CsrGraph,
        penalty: float,
        rng: np.random.Generator,
        stop: StopSignal,
    ) -> RunResult:
        points = problem.points
        centers = _neighborhood_centers(problem, groups, rng)
        order = rng.permutation(problem.n_points)
        counts = np.zeros((groups.n_groups, problem.n_clusters), dtype=np.int64)
        labels = np.full(problem.n_points, -1)
        status, n_iter = RunStatus.MAX_ITER, 0
        while n_iter < self.max_iter:
            n_iter += 1
            moved = pck_pass(
                points, order, groups.of_point, links, centers, penalty, counts, labels
            )
            cluster_means(points, problem.weights, labels, centers)
            if moved == 0:
                status = RunStatus.CONVERGED
                break
            if stop.reason() is not None:
                status = RunStatus.TIME_LIMIT
                break
        away = points - centers[labels]
        objective = 0.5 * float(np.sum(away * away)) + penalty * _n_violated(groups, counts)
        return RunResult(labels, n_iter, status, objective)


def _n_violated(groups: MustLinkGroups, counts: Ints) -> int:
    """Violated pairs of the closure, from the labels per neighbourhood."""
    sizes = counts.sum(axis=1)
    split = (sizes * sizes - (counts * counts).sum(axis=1)).sum() // 2
    joined = (counts[groups.cannot_links[:, 0]] * counts[groups.cannot_links[:, 1]]).sum()
    return int(split + joined)


def _neighborhood_centers(
    problem: Problem, groups: MustLinkGroups, rng: np.random.Generator
) -> Floats:
    """Starting centres from neighbourhoods of two or more points, the largest first."""
    sizes = np.bincount(groups.of_point, minlength=groups.n_groups)
    known = np.flatnonzero(sizes > 1)
    known = known[np.argsort(-sizes[known], kind="stable")][: problem.n_clusters]
    spread = problem.points.std(axis=0)
    around = rng.normal(size=(problem.n_clusters, problem.n_features))
    centers: Floats = problem.points.mean(axis=0) + spread * around
    place = np.full(groups.n_groups, -1)
    place[known] = np.arange(len(known))
    slot = place[groups.of_point]
    members = slot >= 0
    cluster_means(problem.points[members], problem.weights[members], slot[members], centers)
    if 0 < len(known) < problem.n_clusters:
        # Neighbours are distinct, so a group linked to all others has as many neighbours.
        indptr, neighbors = groups.neighbors(loops=False)
        tails = np.repeat(np.arange(groups.n_groups), np.diff(indptr))
        seen = np.bincount(tails[place[neighbors] >= 0], minlength=groups.n_groups)
        apart_from_all = np.flatnonzero((seen == len(known)) & (sizes == 1))
        if len(apart_from_all):
            lone = np.flatnonzero(groups.of_point == apart_from_all[0])
            centers[len(known)] = problem.points[lone[0]]
    return centers
