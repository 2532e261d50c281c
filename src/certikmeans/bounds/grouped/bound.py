"""The grouped bound: Lagrangian decomposition over groups of samples."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.grouped import scip
from certikmeans.bounds.grouped.bundle import (
    AscentState,
    ChunkSolver,
    GroupedDual,
    ascend,
    average_over_classes,
    continue_ascent,
    make_chunks,
    solve_chunk,
    symmetry_classes,
)
from certikmeans.bounds.grouped.sample_groups import SampleGroups, make_sample_groups
from certikmeans.errors import InputError
from certikmeans.kernels.box_costs import box_costs
from certikmeans.kernels.grouped.preprocessing import reduce_allowed
from certikmeans.kernels.grouped.solve import GroupSolutions, SearchLimits
from certikmeans.problem.data import Domain
from certikmeans.proof import LeafProof

SOLVERS: dict[str, ChunkSolver] = {"compiled": solve_chunk, "scip": scip.solve_chunk}


@final
@dataclass(frozen=True, slots=True, eq=False)
class GroupedWarmStart:
    """Multipliers and labels of the groups, for a node or the root.

    ``ascent`` is set where a computation was stopped; another one continues from there.
    """

    nu: Floats  # (G, K, d)
    labels: Ints  # (n,) in the order of the groups
    ascent: AscentState | None = None


@final
class GroupedBound(LowerBound[SampleGroups]):
    """Lagrangian decomposition over groups of samples (the paper's ``SG + LD``).

    Every group has its own copy of the centres. "All copies are equal" is relaxed with
    multipliers, which leaves group ``g`` with a linear term ``nu_g.mu``, and ``sum_g nu_g = 0``:

        cost  >=  sum_g  min over feasible allowed labels of g and mu in the boxes of
                         sum_{s in g} w_s |x_s - mu_label(s)|^2 + nu_g.mu

    Valid for any such ``nu``: a labelling in the domain has one choice of the centres in the boxes
    that serves all groups (its means; any for empty clusters), and there the linear terms
    cancel. Multipliers come from a bundle method; every evaluation is a valid bound.

    Parameters
    ----------
    solver : {"compiled", "scip"}
        Solver of the group problems. SCIP is the reference: its tolerances are not rigorous,
        so a margin is subtracted from its values.
    max_evaluations : int
        Maximum number of evaluations of the dual per domain.
    node_limit : int
        Nodes of the search per group and evaluation (in proportion fewer if the group has more
        than 90 pairs of sample and cluster); beyond, its bound is weaker but valid.
    quick_limit : int
        Nodes of the plain search, before the Russian doll search starts.
    relative_tolerance : float
        Branches this close to the best labelling of a group are pruned; the bound accounts for it.
    max_group_size : int, optional
        Instead of the paper's ``min(162 / d - K, 10 K)``.
    """

    name: ClassVar[str] = "grouped"
    certifiable: ClassVar[bool] = False

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
        self._limits = SearchLimits(relative_tolerance, quick_limit, node_limit)
        self._max_group_size = max_group_size

    def rehearse(self, inputs: BoundInput) -> None:
        """Run the bundle on several groups."""
        small, whole = GroupedBound(max_group_size=4), Domain.root(inputs.problem)
        small.compute(small.setup(inputs), whole, np.inf, BoundContext())

    def setup(self, inputs: BoundInput) -> SampleGroups:
        """Form the sample groups."""
        return make_sample_groups(inputs.problem, self._max_group_size)

    def compute(
        self,
        model: SampleGroups,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: GroupedWarmStart | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``.

        Chunks of groups run on the pool of ``ctx``; the value does not depend on it.
        """
        domain, allowed = _normalized_domain(model, domain)
        nearest = np.empty(allowed.shape)
        farthest = np.empty(allowed.shape)
        unit_weights = np.ones(len(model.points))
        box_costs(model.points, unit_weights, domain.lower, domain.upper, False, nearest)
        box_costs(model.points, unit_weights, domain.lower, domain.upper, True, farthest)
        classes = symmetry_classes(domain.lower, domain.upper, allowed)
        if not reduce_allowed(nearest, farthest, model.link_start, model.link, allowed):
            return BoundResult(np.inf, LeafProof(self.name), warm_start)
        if warm_start is None:
            shape = (model.n_sets, *domain.lower.shape)
            warm_start = GroupedWarmStart(np.zeros(shape), np.full(len(model.order), -1))
        lagrangian = GroupedDual(
            model,
            domain,
            make_chunks(model, domain, allowed, nearest),
            self._solve,
            self._limits,
            ctx.pool,
            ctx.stop,
        )
        progress = _AscentProgress(ctx, lagrangian)
        if warm_start.ascent is not None:
            ascent = copy.deepcopy(warm_start.ascent)
            progress.consistent = warm_start.ascent
            best, history = continue_ascent(
                lagrangian, ascent, cutoff, self._max_evaluations, progress.checkpoint
            )
        else:
            first = lagrangian.compute(
                average_over_classes(warm_start.nu, classes), warm_start.labels
            )
            best, history = ascend(
                lagrangian, first, classes, cutoff, self._max_evaluations, progress.checkpoint
            )
        ctx.report(work=lagrangian.take_work())
        finished = best.value >= cutoff or ctx.stop.reason() is None
        return BoundResult(
            best.value,
            LeafProof(self.name),
            GroupedWarmStart(
                best.nu,
                best.solutions.labels,
                None if finished or not ctx.at_root else progress.consistent,
            ),
            _candidate_centers(best.solutions, domain, model),
            numbers={
                "evaluations": len(history),
                "nodes": int(best.solutions.nodes.sum()),
                "history": history,
            },
            finished=finished,
        )

    def node_warm_start(self, warm_start: GroupedWarmStart | None) -> GroupedWarmStart | None:
        """Multipliers and labels, without the state of the ascent."""
        return None if warm_start is None else replace(warm_start, ascent=None)


@final
class _AscentProgress:
    """Last state of an ascent at the root in which no evaluation was cut short.

    Nothing is saved after a stop: the last evaluation may have been interrupted.
    """

    def __init__(self, ctx: BoundContext, lagrangian: GroupedDual) -> None:
        self._ctx = ctx
        self._lagrangian = lagrangian
        self.consistent: AscentState | None = None

    def checkpoint(self, ascent: AscentState) -> None:
        if self._ctx.at_root and self._ctx.stop.reason() is None:
            best = ascent.bundle.best
            self._ctx.checkpoint(GroupedWarmStart(best.nu, best.solutions.labels, ascent))
            self.consistent = copy.deepcopy(ascent)  # the ascent continues
        self._ctx.report(work=self._lagrangian.take_work())


def _normalized_domain(groups: SampleGroups, domain: Domain) -> tuple[Domain, Mask]:
    """The domain with nonempty boxes, and the allowed clusters in the order of the groups.

    A cluster whose box is empty has no members; its centre then does not matter, and any point
    serves as its box.
    """
    if domain.allowed is None:
        allowed = np.ones((len(groups.order), len(domain.lower)), dtype=np.bool_)
    else:
        allowed = np.ascontiguousarray(domain.allowed[groups.order])
    empty = np.any(domain.lower > domain.upper, axis=1)
    if empty.any():
        allowed[:, empty] = False
        points = np.where(np.expand_dims(empty, 1), domain.lower, domain.upper)
        domain = Domain(domain.lower, points, domain.allowed)
    return domain, allowed


def _candidate_centers(
    solutions: GroupSolutions, domain: Domain, groups: SampleGroups
) -> tuple[Floats, ...]:
    """Weighted average of the centres of all groups, and the centres of the largest group."""
    masses = solutions.masses
    total = masses.sum(axis=0)
    even = np.where(total > 0.0, masses / np.where(total > 0.0, total, 1.0), 1.0 / len(masses))
    average = np.einsum("gk,gkj->kj", even, solutions.centers)
    largest = int(np.argmax(np.diff(groups.starts)))
    return tuple(
        np.clip(centers, domain.lower, domain.upper)
        for centers in (average, solutions.centers[largest])
    )
