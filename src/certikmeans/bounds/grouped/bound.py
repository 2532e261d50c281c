"""The grouped bound: what is evaluated, in which order, and what is claimed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import AbstractBound, BoundResult, Root, Setting
from certikmeans.bounds.grouped import compiled, scip
from certikmeans.bounds.grouped.chunks import Answers, ChunkSolver, Effort, make_chunks
from certikmeans.bounds.grouped.groups import Groups, make_groups
from certikmeans.bounds.grouped.lagrangian import Evaluated, Lagrangian
from certikmeans.bounds.grouped.multipliers import (
    Climb,
    climb,
    climb_on,
    even_out,
    same_boxes,
)
from certikmeans.errors import InputError
from certikmeans.execution import Crew
from certikmeans.kernels.grouped.viable import distance_ranges, narrow
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Leaf
from certikmeans.stop import StopSignal

SOLVERS: dict[str, ChunkSolver] = {"compiled": compiled.solve_chunk, "scip": scip.solve_chunk}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Restart:
    """Multipliers and labels of the groups: where the next part starts from."""

    nu: NDArray[np.float64]  # (G, K, d)
    labels: NDArray[np.int64]  # (n,) in the order of the groups


@final
class GroupedBound(AbstractBound[Groups]):
    """Lagrangian decomposition over groups of samples (the paper's ``SG + LD``).

    Every group has its own copy of the centres. "All copies are equal" is relaxed with
    multipliers, which leaves group ``g`` with a linear term ``nu_g.mu``, and ``sum_g nu_g = 0``:

        cost  >=  sum_g  min over proper viable labels of g and mu in the boxes of
                         sum_{s in g} w_s |x_s - mu_label(s)|^2 + nu_g.mu

    Valid for any such ``nu``: a labelling of the part has one position of the centres in the boxes
    that serves all groups (its means; anywhere for empty clusters), and there the linear terms
    cancel. Multipliers come from a bundle method; every evaluation is a valid bound.

    Parameters
    ----------
    solver : {"compiled", "scip"}
        Who solves the group problems. SCIP is the reference: its tolerances are not rigorous,
        so its values have a margin taken off.
    max_evaluations : int
        Evaluations of the Lagrangian per part, at most.
    node_limit : int
        Nodes of the search per group and evaluation (in proportion fewer if the group has more
        than 90 pairs of sample and cluster); beyond, its bound is weaker but valid.
    quick_limit : int
        Nodes of the plain search, before the one that solves parts of the group first begins.
    relative_tolerance : float
        Branches this close to the best labelling of a group are not followed; the bound counts it.
    max_group_size : int, optional
        Instead of the paper's ``min(162 / d - K, 10 K)``.
    """

    name: ClassVar[str] = "grouped"
    has_evidence: ClassVar[bool] = False

    def __init__(
        self,
        *,
        solver: Literal["compiled", "scip"] = "compiled",
        max_evaluations: int = 40,
        node_limit: int = 50_000,
        quick_limit: int = 50,
        relative_tolerance: float = 1e-6,
        max_group_size: int | None = None,
    ) -> None:
        if solver not in SOLVERS:
            raise InputError(
                f"unknown solver {solver!r} for the group problems",
                hint="use 'compiled' or 'scip'",
            )
        self._solve = SOLVERS[solver]
        self._max_evaluations = max_evaluations
        self._effort = Effort(relative_tolerance, quick_limit, node_limit)
        self._max_group_size = max_group_size

    def rehearse(self, setting: Setting) -> None:
        """Let several groups agree on their centres."""
        small, whole = GroupedBound(max_group_size=4), Subproblem.root(setting.problem)
        small.evaluate(small.prepare(setting), whole, np.inf, StopSignal())

    def prepare(self, setting: Setting) -> Groups:
        """Form the groups."""
        return make_groups(setting.problem, self._max_group_size)

    def evaluate(
        self,
        state: Groups,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
        root: Root | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``.

        Chunks of groups run on the executor of ``root``; the value does not depend on it.
        """
        part, viable = _usable(state, part)
        nearest = np.empty(viable.shape)
        farthest = np.empty(viable.shape)
        distance_ranges(state.points, part.lower, part.upper, nearest, farthest)
        classes = same_boxes(part.lower, part.upper, viable)
        if not narrow(nearest, farthest, state.link_start, state.link, viable):
            return BoundResult(np.inf, Leaf(self.name), restart)
        if restart is None:
            shape = (state.n_sets, *part.lower.shape)
            restart = Restart(np.zeros(shape), np.full(len(state.order), -1))
        lagrangian = Lagrangian(
            state,
            part,
            make_chunks(state, part, viable, nearest),
            self._solve,
            self._effort,
            Crew() if root is None else Crew(root.executor, root.far, root.n_threads),
            stop,
        )
        keep = _keeper(root, stop)
        if root is not None and isinstance(root.kept, Climb):
            at = copy.deepcopy(root.kept)
            best, history = climb_on(lagrangian, at, cutoff, self._max_evaluations, keep)
        else:
            first = lagrangian.evaluate(even_out(restart.nu, classes), restart.labels)
            best, history = climb(lagrangian, first, classes, cutoff, self._max_evaluations, keep)
        return self._result(best, history, part, state)

    def _result(
        self, best: Evaluated, history: list[float], part: Subproblem, groups: Groups
    ) -> BoundResult:
        return BoundResult(
            best.value,
            Leaf(self.name),
            Restart(best.nu, best.answers.labels),
            _suggestions(best.answers, part, groups),
            numbers={
                "evaluations": len(history),
                "nodes": int(best.answers.nodes.sum()),
                "history": history,
            },
        )


def _keeper(root: Root | None, stop: StopSignal) -> Callable[[Climb], None]:
    """Who is told how far an ascent at the root is: as it is then, since it goes on.

    An evaluation that may have been cut short is made again.
    """

    def keep(at: Climb) -> None:
        if root is not None and stop.cause() is None:
            snapshot = copy.deepcopy(at)
            root.keep(lambda: snapshot)

    return keep


def _usable(groups: Groups, part: Subproblem) -> tuple[Subproblem, NDArray[np.bool_]]:
    """The part with proper boxes, and who may go where, in the order of the groups.

    A cluster whose box is empty has no members; its centre then plays no part, and any point
    serves as its box.
    """
    if part.viable is None:
        viable = np.ones((len(groups.order), len(part.lower)), dtype=np.bool_)
    else:
        viable = np.ascontiguousarray(part.viable[groups.order])
    empty = np.any(part.lower > part.upper, axis=1)
    if empty.any():
        viable[:, empty] = False
        points = np.where(np.expand_dims(empty, 1), part.lower, part.upper)
        part = Subproblem(part.lower, points, part.viable)
    return part, viable


def _suggestions(
    answers: Answers, part: Subproblem, groups: Groups
) -> tuple[NDArray[np.float64], ...]:
    """Centres averaged over the groups by the weight of their clusters; those of the largest."""
    masses = answers.masses
    total = masses.sum(axis=0)
    even = np.where(total > 0.0, masses / np.where(total > 0.0, total, 1.0), 1.0 / len(masses))
    average = np.einsum("gk,gkj->kj", even, answers.centers)
    largest = int(np.argmax(np.diff(groups.starts)))
    return tuple(
        np.clip(centers, part.lower, part.upper) for centers in (average, answers.centers[largest])
    )
