"""The semidefinite relaxation of PC-SOS-SDP at the root: a safe bound, and labels by rounding."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from certikmeans._estimator_utils import raise_infeasible
from certikmeans._numbers import whole_number
from certikmeans._types import Floats, Ints
from certikmeans.assignment import AbstractAssigner, make_assigner
from certikmeans.baselines._base import Baseline, RunResult, cost_of
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult
from certikmeans.bounds.sdp import SdpBound
from certikmeans.errors import InputError
from certikmeans.options import Options, check_choice
from certikmeans.presolve.infeasibility_proofs import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.status import Status
from certikmeans.stop import StopSignal
from certikmeans.tolerances import gap_reached, relative_gap, target_bound

SOLVERS = ("admm", "clarabel")
# Iterations before the first rounding, which gives the target of the bound.
FIRST_ITERATIONS = 100
# Bound and rounding alternate as long as rounding improves the labels.
MAX_ROUNDS = 4


@final
class PengWeiSDP(Baseline):
    """The Peng-Wei relaxation with pairwise constraints, pair and triangle cuts; no branching.

    Must-link groups become weighted points, cannot-links zeros of the matrix. The solution is
    rounded to centres, and Lloyd with optimal assignments under the pairs follows. The lower bound
    is rigorous for any multipliers, rounding included, independent of the solver.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. Some may end up empty.
    solver : {"admm", "clarabel"}, default="admm"
        First-order solver of this package, for up to 2,500 must-link groups; or clarabel, from the
        extra ``certikmeans[sdp]``, for a few dozen.
    cuts : bool, default=True
        Whether to add pair and triangle cuts.
    gap : float, default=1e-3
        Relative gap at which to stop.
    max_iter : int, default=2000
        Iterations of ``admm``, at most; for ``clarabel``, rounds of cuts are limited instead.
    time_limit : float, optional
        Wall time for `fit`, in seconds. None: no limit.
    random_state : None
        Not used: the method is deterministic. Here because all baselines have it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. All -1 if none was found in time.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters; NaN without labels.
    inertia_ : float
        Sum of squares about the means; infinite without labels.
    lower_bound_ : float
        At most the sum of squares of every labelling that respects the pairs. Rigorous.
    gap_ : float
        ``(inertia_ - lower_bound_) / inertia_``, at least 0; infinite without labels.
    status_ : Status
        ``"optimal"`` within the gap, ``"feasible"``, or ``"unknown"`` without labels.
    n_cuts_ : int
        Cuts in the proof.
    feasible_ : bool
        Whether every pair is satisfied.
    violated_ : int
        Number of violated pairs.
    n_iter_ : int
        Iterations of the solver; for clarabel, programs solved.
    n_features_in_ : int
        Number of features seen during `fit`.

    Raises
    ------
    InfeasibleError
        No labelling satisfies every pair; ``error.proof`` shows why.
    InputError
        More than 2,500 must-link groups.
    MissingExtraError
        ``solver="clarabel"`` and clarabel is not installed.

    Notes
    -----
    PC-SOS-SDP solves the relaxation with SDPNAL+, adds cuts in rounds, and branches on pairs. Here
    is its root node; ``certikmeans.solve(problem, bound="sdp", branching="pairs")`` branches.

    References
    ----------
    J. Peng, Y. Wei. Approximating k-means-type clustering via semidefinite programming. SIAM
    Journal on Optimization 18 (2007).
    V. Piccialli, A. Russo Russo, A. M. Sudoso. An exact algorithm for semi-supervised minimum
    sum-of-squares clustering. Computers & Operations Research 147 (2022).

    Examples
    --------
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = PengWeiSDP(n_clusters=2).fit(X, must_link=[(1, 2)])
    >>> round(model.inertia_, 3), model.status_, model.lower_bound_ <= model.inertia_
    (48.667, <Status.OPTIMAL: 'optimal'>, True)
    """

    _takes_weights: ClassVar[bool] = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        solver: str = "admm",
        cuts: bool = True,
        gap: float = 1e-3,
        max_iter: int = 2_000,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.solver = solver
        self.cuts = cuts
        self.gap = gap
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    def _search(self, problem: Problem, stop: StopSignal, seed: int) -> RunResult:
        check_choice("solver", self.solver, SOLVERS)
        gap = Options(gap=self.gap).gap
        left = whole_number("max_iter", self.max_iter, least=1)
        self._bound(1)  # raises early if the solver is missing
        self.lower_bound_, self.gap_, self.n_cuts_ = 0.0, np.inf, 0
        done = presolve(problem, stop)
        if isinstance(done, InfeasibilityProof):
            raise_infeasible(done)
        if done.feasible_labels is None:
            return RunResult(None, 0, Status.UNKNOWN)
        assigner = make_assigner(done.reduced, done.feasible_labels)
        labels, cost = None, np.inf
        cutoff, spent, warm_start = np.inf, 0, None
        for turn in range(MAX_ROUNDS):
            limit = min(left, FIRST_ITERATIONS) if turn == 0 else left
            found = self._compute_bound(assigner, done, limit, cutoff, stop, warm_start)
            warm_start = found.warm_start
            spent += found.numbers["iterations"]
            left -= found.numbers["iterations"]
            self.n_cuts_ = found.numbers["cuts"]
            self.lower_bound_ = max(self.lower_bound_, done.postsolve_bound(found.value))
            better = labels is None
            for centers in found.centers:
                candidate = done.postsolve_labels(_lloyd_labels(done, assigner, centers, stop))
                value = cost_of(problem, candidate)
                if value < cost:
                    labels, cost, better = candidate, value, True
            self.gap_ = relative_gap(cost, self.lower_bound_)
            closed = gap_reached(cost, self.lower_bound_, gap)
            exhausted = left <= 0 or (turn > 0 and not better)
            if closed or exhausted or stop.reason() is not None:
                break
            cutoff = done.presolve_bound(target_bound(cost, gap))
        return RunResult(labels, spent, Status.OPTIMAL if closed else Status.FEASIBLE)

    def _compute_bound(
        self,
        assigner: AbstractAssigner,
        done: PresolvedProblem,
        limit: int,
        cutoff: float,
        stop: StopSignal,
        warm_start: Any,
    ) -> BoundResult:
        bound = self._bound(limit)
        unsupported_reason = bound.unsupported_reason(done.reduced)
        if unsupported_reason is not None:
            raise InputError(
                f"sdp: {unsupported_reason}", hint="state more must-links, or take a sample"
            )
        state = bound.setup(BoundInput(done.reduced, assigner))
        ctx = BoundContext(stop)
        return bound.compute(state, Domain.root(done.reduced), cutoff, ctx, warm_start)

    def _bound(self, limit: int) -> SdpBound:
        solver: Any = self.solver
        return SdpBound(solver=solver, cuts=bool(self.cuts), max_iterations=limit)


def _lloyd_labels(
    done: PresolvedProblem, assigner: AbstractAssigner, centers: Floats, stop: StopSignal
) -> Ints:
    """Labels of the groups after Lloyd with optimal assignments."""
    labels = np.empty(done.reduced.n_groups, dtype=np.int64)
    return assigner.lloyd(centers, labels, stop=stop).labels
