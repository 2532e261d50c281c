"""The SDP bound: choice of the solver, rounds of cuts, stall detection, warm starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.sdp.admm import DEFAULT_PARAMS, Admm, AdmmState, iteration_work
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.interior_point import load_clarabel, solve_interior_point
from certikmeans.bounds.sdp.model import (
    NO_CUTS,
    MatrixMultipliers,
    SdpModel,
    append_cuts,
    find_violated_cuts,
)
from certikmeans.bounds.sdp.primal_rounding import fractional_clusters, round_to_centers
from certikmeans.errors import InputError
from certikmeans.kernels.sdp import EntryLimits, leading_sums, project_on_size_cuts
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import LeafProof

MAX_GROUPS = 2_500
MIN_CHECKS = 4  # safe bounds in a turn of the schedule
CHECK_INTERVAL = 25  # iterations between two safe bounds
ITERATION_OVERHEAD = 7e5  # units of work of an iteration with hardly any groups
CONVERGENCE_TOLERANCE = 1e-7
# Stalled if this many checks gain less than these fractions of the gap to the cutoff and of the
# value.
STALL_CHECKS = 6
MIN_GAP_FRACTION = 0.04
MIN_RELATIVE_GAIN = 1e-6
# If a nearly feasible iterate reaches the cutoff, the safe bound lags behind it: the window is
# longer by this factor.
LATE_PROOF_FACTOR = 4
NEARLY_FEASIBLE = 1e-3


def check_work(n_groups: int) -> float:
    """Return the units of work of the iterations between two safe bounds."""
    return CHECK_INTERVAL * (iteration_work(n_groups) + ITERATION_OVERHEAD)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SdpIterate:
    """Best proof so far, and the iterate of the solver."""

    value: float
    proof: MatrixMultipliers
    admm_state: AdmmState
    iterations: int
    rounds: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class SdpProgress:
    """State of the computation between two checks."""

    admm: dict[str, Any] | None  # None before the first iteration
    best: SdpIterate
    history: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SdpWarmStart:
    """Multipliers of the best proof and iterate of the solver, for a node or the root.

    ``progress`` is set where a computation was stopped; another one continues from there.
    """

    proof: MatrixMultipliers
    admm_state: AdmmState
    progress: SdpProgress | None = None


@final
class SdpBound(LowerBound[SdpModel]):
    """The Peng-Wei semidefinite relaxation with pair and triangle cuts, rounding included.

    Valid for any multipliers (`safe_bound`), so validity does not depend on how accurately the
    relaxation was solved. Boxes and allowed clusters of a domain are not used: a bound for all
    labellings holds for those of a domain. In a tree it is useful with branching on pairs, which
    changes the problem.

    Parameters
    ----------
    solver : {"admm", "clarabel"}
        Solver that computes the multipliers. ``admm``, part of this package, takes up to 2,500
        groups; ``clarabel``,
        from the extra ``sdp``, is the reference for small problems.
    cuts : bool
        Whether to add pair and triangle cuts.
    max_iterations : int
        Of ``admm``.
    max_rounds : int
        Rounds of cuts for ``clarabel``.
    """

    name: ClassVar[str] = "sdp"
    uses_center_boxes: ClassVar[bool] = False
    has_fractional_solution: ClassVar[bool] = True

    def __init__(
        self,
        *,
        solver: Literal["admm", "clarabel"] = "admm",
        cuts: bool = True,
        max_iterations: int = 2_000,
        max_rounds: int = 6,
    ) -> None:
        if solver not in ("admm", "clarabel"):
            raise InputError(f"solver: {solver!r} is unknown", hint="choose admm or clarabel")
        if solver == "clarabel":
            load_clarabel()
        self._solver = solver
        self._cuts = cuts
        self._max_iterations = max_iterations
        self._max_rounds = max_rounds

    def unsupported_reason(self, problem: ReducedProblem) -> str | None:
        """Dense matrices have a limit."""
        if problem.n_groups <= MAX_GROUPS:
            return None
        return f"{problem.n_groups} groups are too many for dense matrices, at most {MAX_GROUPS}"

    def min_work(self, problem: ReducedProblem) -> float:
        """Return the work of a few checks."""
        return MIN_CHECKS * check_work(problem.n_groups)

    def rehearse(self, inputs: BoundInput) -> None:
        """Compile the kernels of size cuts."""
        limits = EntryLimits(np.zeros(2), np.full(4, np.inf))
        members, numbers = np.array([[0, -1]]), np.zeros((2, 1))
        project_on_size_cuts(np.eye(2), limits, members, np.ones(2), numbers[0], numbers[1], 1)
        leading_sums(np.eye(2), np.array([[0, 1]]), np.empty((1, 2)))

    def setup(self, inputs: BoundInput) -> SdpModel:
        """Build the matrices."""
        return SdpModel.of(inputs.problem)

    def compute(
        self,
        model: SdpModel,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: SdpWarmStart | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        # Products are too small for threads of their own, which wait for each other: with two,
        # and another program beside them, a proof of 569 groups took 15 s instead of 4.
        with one_blas_thread():
            found, progress = self._solve(model, cutoff, ctx, warm_start)
            problem = model.problem
            finished = found.value >= cutoff or ctx.stop.reason() is None
            if finished:
                ctx.report(work=check_work(model.n_groups))  # of the last check
            return BoundResult(
                value=found.value,
                leaf=LeafProof(self.name, found.proof),
                warm_start=SdpWarmStart(found.proof, found.admm_state, progress),
                centers=(round_to_centers(problem, found.admm_state.z),),
                fractional=fractional_clusters(problem, found.admm_state.z),
                numbers={
                    "iterations": found.iterations,
                    "rounds": found.rounds,
                    "cuts": len(found.proof.cuts),
                },
                finished=finished,
            )

    def node_warm_start(self, warm_start: SdpWarmStart | None) -> SdpWarmStart | None:
        """Multipliers and matrix, without the internal state of the solver."""
        return None if warm_start is None else replace(warm_start, progress=None)

    def map_warm_start(
        self,
        warm_start: SdpWarmStart,
        before: ReducedProblem,
        after: ReducedProblem,
        joined: Ints,
        centers: Floats,
    ) -> SdpWarmStart:
        """Map a warm start to a problem in which group s is merged into group ``joined[s]``.

        Multipliers are added, which does not weaken the bound; entries of Z are averaged by
        weight, which keeps ``Z w = 1``.
        """
        shares = np.zeros((after.n_groups, before.n_groups))
        shares[joined, np.arange(before.n_groups)] = before.weights / after.weights[joined]
        admm_state = warm_start.admm_state
        mapped = AdmmState(
            admm_state.multipliers.aggregate(joined, after.n_groups),
            shares @ admm_state.z @ shares.T,
            admm_state.penalty,
        )
        return SdpWarmStart(warm_start.proof.aggregate(joined, after.n_groups), mapped)

    def _solve(
        self,
        model: SdpModel,
        cutoff: float,
        ctx: BoundContext,
        warm_start: SdpWarmStart | None,
    ) -> tuple[SdpIterate, SdpProgress | None]:
        n = model.n_groups
        if warm_start is None:
            proof = MatrixMultipliers.zeros(n)
            start = AdmmState(proof, np.full((n, n), 1.0 / model.mass))
        elif warm_start.progress is not None and self._solver == "admm":
            return self._solve_admm(model, cutoff, ctx, warm_start.progress)
        else:
            proof, start = warm_start.proof, warm_start.admm_state
        value = safe_bound(model, proof)
        first = SdpIterate(value, proof, start, 0, 0)
        # One cluster: the bound is exact. As many as groups, or all in one place: the cost is 0.
        trivial = model.n_clusters == 1 or model.n_clusters >= n or model.total <= 0.0
        if trivial or value >= cutoff or ctx.stop.reason() is not None:
            return first, None
        if self._solver == "clarabel":
            return self._solve_interior_point(model, cutoff, ctx, first), None
        return self._solve_admm(model, cutoff, ctx, SdpProgress(None, first, (value,)))

    def _solve_admm(
        self, model: SdpModel, cutoff: float, ctx: BoundContext, progress: SdpProgress
    ) -> tuple[SdpIterate, SdpProgress | None]:
        """Iterate until the cutoff is reached, progress stalls, or the run is stopped.

        If stopped, the second value is the state at the last check, from which interrupted
        iterations are repeated; otherwise None.
        """
        stop, best, rounds = ctx.stop, progress.best, progress.best.rounds
        history = list(progress.history)
        admm = Admm(model, best.admm_state)
        if progress.admm is not None:
            admm.restore(progress.admm)
            ctx.report(best.value)
            if best.value >= cutoff:
                return best, None
        while True:
            if stop.reason() is not None:
                return best, SdpProgress(admm.snapshot(), best, tuple(history))
            if admm.iterations:
                state = SdpProgress(admm.snapshot(), best, tuple(history))
                ctx.checkpoint(SdpWarmStart(best.proof, best.admm_state, state))
            left = self._max_iterations - admm.iterations
            residual = admm.run(min(CHECK_INTERVAL, left), stop, cuts=self._cuts)
            rounds += int(admm.n_cuts_added > 0)
            best = _update_best(model, best, admm.state, ctx, admm.iterations, rounds)
            if best.value >= cutoff:
                return best, None
            if stop.reason() is not None:  # within the iterations: the length of a check varies
                return best, SdpProgress(admm.snapshot(), best, tuple(history))
            history.append(best.value)
            within_reach = residual <= NEARLY_FEASIBLE and admm.objective >= cutoff
            window = STALL_CHECKS * (LATE_PROOF_FACTOR if within_reach else 1)
            if _stalled(history[-1 - window :], window, cutoff):
                return best, None
            if admm.iterations >= self._max_iterations:
                return best, None
            if residual <= CONVERGENCE_TOLERANCE and admm.n_cuts_added == 0:
                return best, None
            ctx.report(work=check_work(model.n_groups))

    def _solve_interior_point(
        self, model: SdpModel, cutoff: float, ctx: BoundContext, best: SdpIterate
    ) -> SdpIterate:
        cuts = NO_CUTS
        for rounds in range(self._max_rounds + 1 if self._cuts else 1):
            solution = solve_interior_point(model, cuts, ctx.stop)
            admm_state = AdmmState(solution.multipliers, solution.z)
            best = _update_best(model, best, admm_state, ctx, rounds + 1, rounds)
            if best.value >= cutoff or ctx.stop.reason() is not None:
                break
            count = DEFAULT_PARAMS.cuts_per_group * model.n_groups
            new_cuts = find_violated_cuts(solution.z, DEFAULT_PARAMS.min_violation, count)
            before = len(cuts)
            cuts = append_cuts(cuts, np.zeros(before), new_cuts, model.n_groups)[0]
            if len(cuts) == before:
                break
        return best


def _update_best(
    model: SdpModel,
    best: SdpIterate,
    admm_state: AdmmState,
    ctx: BoundContext,
    iterations: int,
    rounds: int,
) -> SdpIterate:
    """Best proof so far, with the current iterate of the solver."""
    value = safe_bound(model, admm_state.multipliers)
    if value <= best.value:
        return SdpIterate(best.value, best.proof, admm_state, iterations, rounds)
    ctx.report(value, rounds=1)
    return SdpIterate(value, admm_state.multipliers, admm_state, iterations, rounds)


def _stalled(history: list[float], window: int, cutoff: float) -> bool:
    """Whether the last checks gained too little to reach the cutoff."""
    if len(history) <= window:
        return False
    gain = history[-1] - history[0]
    gap = cutoff - history[-1]
    needed = MIN_GAP_FRACTION * gap if math.isfinite(gap) else 0.0
    return gain <= max(needed, MIN_RELATIVE_GAIN * history[-1])
