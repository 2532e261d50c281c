"""The SDP bound: what is solved, when cuts are added, when it ends, and what is claimed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.bounds.base import AbstractBound, BoundResult, Root, Setting
from certikmeans.bounds.sdp.admm import CUTS_PER_GROUP, LEAST_VIOLATION, Admm, Start
from certikmeans.bounds.sdp.cuts import NO_CUTS, merged, most_violated
from certikmeans.bounds.sdp.interior import load_clarabel, solve_interior
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.bounds.sdp.multipliers import MatrixMultipliers
from certikmeans.bounds.sdp.safe import safe_bound
from certikmeans.bounds.sdp.suggest import soft_clusters, suggested_centers
from certikmeans.errors import InputError
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Leaf
from certikmeans.stop import StopSignal

MOST_GROUPS = 2_500
CHECK_EVERY = 25  # iterations between two safe bounds
CONVERGED = 1e-7
# Not worth going on if so many checks bring less than these parts of the way and of the value.
PATIENCE = 6
LEAST_OF_THE_WAY = 0.04
LEAST_OF_THE_VALUE = 1e-6
# Unless the relaxation itself seems to reach the cutoff: then the proof is only late.
LONGER = 4
NEARLY_FEASIBLE = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class SdpRestart:
    """What a smaller part starts from: the best proof, and where the solver was."""

    proof: MatrixMultipliers
    last: Start


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Climbed:
    value: float
    proof: MatrixMultipliers
    last: Start
    iterations: int
    rounds: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What is needed to go on between two checks."""

    admm: dict[str, Any]
    best: _Climbed
    history: tuple[float, ...]


def _kept(admm: Admm, best: _Climbed, history: list[float]) -> _Kept:
    return _Kept(admm.kept(), best, tuple(history))


@final
class SdpBound(AbstractBound[SdpModel]):
    """The Peng-Wei semidefinite relaxation with pair and triangle cuts, made safe.

    Valid for any multipliers (`safe_bound`), so nothing depends on how well the relaxation was
    solved. Boxes and viable pairs of a part are not used: what holds for all labellings holds for
    those of a part. So in a tree it pays with branching on pairs, which changes the problem.

    Parameters
    ----------
    solver : {"admm", "clarabel"}
        Who finds the multipliers. ``admm`` is our own and takes up to 2,500 groups; ``clarabel``,
        from the extra ``sdp``, is the reference for small problems.
    cuts : bool
        Whether to add pair and triangle cuts.
    max_iterations : int
        Of ``admm``.
    max_rounds : int
        Rounds of cuts for ``clarabel``.
    """

    name: ClassVar[str] = "sdp"
    uses_boxes: ClassVar[bool] = False
    suggests_pairs: ClassVar[bool] = True

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

    def obstacle(self, problem: ReducedProblem) -> str | None:
        """Dense matrices have a limit."""
        if problem.n_groups <= MOST_GROUPS:
            return None
        return f"{problem.n_groups} groups are too many for dense matrices, at most {MOST_GROUPS}"

    def prepare(self, setting: Setting) -> SdpModel:
        """Build the matrices."""
        return SdpModel.of(setting.problem)

    def evaluate(
        self,
        state: SdpModel,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
        root: Root | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""

        def tell(value: float) -> None:
            if root is not None:
                root.on_work(rounds=1)
                root.news.prove(value, self.name)

        # Products are too small for threads of their own, which wait for each other: with two,
        # and another program beside them, a proof of 569 groups took 15 s instead of 4.
        with threadpool_limits(limits=1):
            found = self._climb(state, cutoff, stop, restart, tell, root)
            problem = state.problem
            return BoundResult(
                value=found.value,
                leaf=Leaf(self.name, found.proof),
                restart=SdpRestart(found.proof, found.last),
                centers=(suggested_centers(problem, found.last.z),),
                mixture=soft_clusters(problem, found.last.z),
                numbers={
                    "iterations": found.iterations,
                    "rounds": found.rounds,
                    "cuts": len(found.proof.cuts),
                },
            )

    def carried_over(
        self,
        restart: SdpRestart,
        before: ReducedProblem,
        after: ReducedProblem,
        joined: NDArray[np.int64],
        centers: NDArray[np.float64],
    ) -> SdpRestart:
        """Carry a start over to a problem in which group s has become part of ``joined[s]``.

        Multipliers add up, which costs nothing of the bound; entries of Z are averaged by weight,
        which keeps ``Z w = 1``.
        """
        shares = np.zeros((after.n_groups, before.n_groups))
        shares[joined, np.arange(before.n_groups)] = before.weights / after.weights[joined]
        last = restart.last
        moved = Start(
            last.multipliers.added_up(joined, after.n_groups),
            shares @ last.z @ shares.T,
            last.penalty,
        )
        return SdpRestart(restart.proof.added_up(joined, after.n_groups), moved)

    def _climb(
        self,
        model: SdpModel,
        cutoff: float,
        stop: StopSignal,
        restart: SdpRestart | None,
        tell: Callable[[float], None],
        root: Root | None,
    ) -> _Climbed:
        n = model.n_groups
        if restart is None:
            proof = MatrixMultipliers.none(n)
            start = Start(proof, np.full((n, n), 1.0 / model.mass))
        else:
            proof, start = restart.proof, restart.last
        value = safe_bound(model, proof)
        first = _Climbed(value, proof, start, 0, 0)
        # One cluster: the bound is exact. As many as groups, or all in one place: the cost is 0.
        trivial = model.n_clusters == 1 or model.n_clusters >= n or model.total <= 0.0
        if trivial or value >= cutoff or stop.cause() is not None:
            return first
        if self._solver == "clarabel":
            return self._by_interior(model, cutoff, stop, first, tell)
        return self._by_admm(model, cutoff, stop, first, tell, root)

    def _by_admm(
        self,
        model: SdpModel,
        cutoff: float,
        stop: StopSignal,
        best: _Climbed,
        tell: Callable[[float], None],
        root: Root | None,
    ) -> _Climbed:
        admm = Admm(model, best.last)
        history = [best.value]
        rounds = 0
        before: _Kept | None = None if root is None else root.kept
        if before is not None:
            admm.restore(before.admm)
            best, history, rounds = before.best, list(before.history), before.best.rounds
            tell(best.value)
        while True:
            if root is not None and admm.iterations:
                root.keep(functools.partial(_kept, admm, best, history))
            left = self._max_iterations - admm.iterations
            residual = admm.climb(min(CHECK_EVERY, left), stop, cuts=self._cuts)
            rounds += int(admm.added > 0)
            best = _better(model, best, admm.state, tell, admm.iterations, rounds)
            history.append(best.value)
            if best.value >= cutoff or stop.cause() is not None:
                return best
            within_reach = residual <= NEARLY_FEASIBLE and admm.objective >= cutoff
            patience = PATIENCE * (LONGER if within_reach else 1)
            if _stalled(history[-1 - patience :], patience, cutoff):
                return best
            if admm.iterations >= self._max_iterations:
                return best
            if residual <= CONVERGED and admm.added == 0:
                return best

    def _by_interior(
        self,
        model: SdpModel,
        cutoff: float,
        stop: StopSignal,
        best: _Climbed,
        tell: Callable[[float], None],
    ) -> _Climbed:
        cuts = NO_CUTS
        for rounds in range(self._max_rounds + 1 if self._cuts else 1):
            answer = solve_interior(model, cuts, stop)
            last = Start(answer.multipliers, answer.z)
            best = _better(model, best, last, tell, rounds + 1, rounds)
            if best.value >= cutoff or stop.cause() is not None:
                break
            count = CUTS_PER_GROUP * model.n_groups
            extra = most_violated(answer.z, LEAST_VIOLATION, count)
            before = len(cuts)
            cuts = merged(cuts, np.zeros(before), extra, model.n_groups)[0]
            if len(cuts) == before:
                break
        return best


def _better(
    model: SdpModel,
    best: _Climbed,
    last: Start,
    tell: Callable[[float], None],
    iterations: int,
    rounds: int,
) -> _Climbed:
    """The better of two proofs, and where the solver is."""
    value = safe_bound(model, last.multipliers)
    if value <= best.value:
        return _Climbed(best.value, best.proof, last, iterations, rounds)
    tell(value)
    return _Climbed(value, last.multipliers, last, iterations, rounds)


def _stalled(history: list[float], patience: int, cutoff: float) -> bool:
    """Whether the last checks brought too little to hope for the cutoff."""
    if len(history) <= patience:
        return False
    gain = history[-1] - history[0]
    way = cutoff - history[-1]
    needed = LEAST_OF_THE_WAY * way if math.isfinite(way) else 0.0
    return gain <= max(needed, LEAST_OF_THE_VALUE * history[-1])
