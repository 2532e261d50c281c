"""Semidefinite bound for soft pairs: penalties count by the least size of a cluster.

The semidefinite relaxation sees the share ``m_i / |C|`` of a penalty, for a lower limit m_i on the
size of the cluster C of an end i (`bounds.sdp.penalties`). Where the user does not limit sizes,
choose any limits m. Let b(m) bound the cost of every labelling that violates them
(`light_clusters`), and v(m) that of all others, by the relaxation with these limits. Then

    cost >= min(v(m), b(m)).

The first limits are the largest ones for which b(m) reaches the cutoff, so that only v(m) matters.
Where v(m) stalls below it, larger limits are better: b(m) need only exceed what is aimed at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.light_clusters import LightBounds, light_cluster_bounds
from certikmeans.bounds.sdp.bound import MAX_GROUPS, MIN_CHECKS, SdpBound, SdpWarmStart, check_work
from certikmeans.bounds.sdp.limits import AssumedSizes
from certikmeans.bounds.sdp.model import MatrixMultipliers, SdpModel
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import AbstractEvidence, LeafProof

MAX_ROUNDS = 4
# The next aim lies this share of the way from the last one down to the value reached.
AIM_STEP = 0.75


@final
@dataclass(frozen=True, slots=True, eq=False)
class SoftPairEvidence(AbstractEvidence):
    """Sizes of clusters, and multipliers: evidence for the whole problem.

    ``light`` proves that labellings without these sizes are expensive, ``inner`` bounds all others.
    For two clusters the checker derives the former from the points.
    """

    assumed: AssumedSizes | None
    light: MatrixMultipliers | None
    inner: MatrixMultipliers

    def renumbered(self, order: Ints) -> SoftPairEvidence:
        """Return the same with group ``order[i]`` as group i."""
        assumed, light = self.assumed, self.light
        return SoftPairEvidence(
            None if assumed is None else replace(assumed, least=assumed.least[order]),
            None if light is None else light.renumbered(order),
            self.inner.renumbered(order),
        )

    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> SoftPairEvidence:
        """Return the same evidence: a bound for all labellings holds for those of a domain."""
        return self

    def row(self) -> Floats:
        """Whether sizes are assumed; then whether no cluster is empty, how many numbers prove it.

        These follow: the sizes, the proof, and the row of the semidefinite bound.
        """
        if self.assumed is None:
            return np.concatenate([[0.0], self.inner.row()])
        light = np.empty(0) if self.light is None else self.light.row()
        head = [1.0, float(self.assumed.nonempty), float(len(light))]
        return np.concatenate([head, self.assumed.least, light, self.inner.row()])


@final
@dataclass(frozen=True, slots=True, eq=False)
class SoftPairState:
    """State of the computation: bounds b, the limit m in use, and the state of its relaxation."""

    light: LightBounds | None
    aim: float  # labellings with smaller clusters cost this much at least
    rounds: int
    value: float  # best so far
    inner: SdpWarmStart | None
    evidence: SoftPairEvidence | None = None  # for the value


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _LimitedContext(BoundContext):
    """Context of the relaxation with a limit on sizes: values are reported up to b(m)."""

    outer: BoundContext
    limit: float
    state: SoftPairState = field(repr=False)

    def report(self, value: float | None = None, *, work: float = 0.0, **counts: int) -> None:
        """Report the smaller of both bounds."""
        value = None if value is None else min(value, self.limit)
        self.outer.report(value, work=work, **counts)

    def checkpoint(self, warm_start: Any) -> None:
        """Store the state of both."""
        self.outer.checkpoint(replace(self.state, inner=warm_start))


@final
class SoftPairBound(LowerBound[ReducedProblem]):
    """The semidefinite bound with a limit on sizes that it proves itself.

    Without soft pairs, or with weights, the semidefinite bound alone. Boxes and allowed clusters
    of a domain are not used.

    Parameters
    ----------
    max_iterations : int
        Of every relaxation.
    """

    name: ClassVar[str] = "soft"
    uses_center_boxes: ClassVar[bool] = False
    usable_in_tree: ClassVar[bool] = False

    def __init__(self, *, max_iterations: int = 2_000) -> None:
        self._sdp = SdpBound(max_iterations=max_iterations)

    def unsupported_reason(self, problem: ReducedProblem) -> str | None:
        """Dense matrices have a limit."""
        if problem.n_groups <= MAX_GROUPS:
            return None
        return f"{problem.n_groups} groups are too many for dense matrices, at most {MAX_GROUPS}"

    def min_work(self, problem: ReducedProblem) -> float:
        """Return the work of a few checks of two relaxations."""
        return 2 * MIN_CHECKS * check_work(problem.n_groups)

    def node_warm_start(self, warm_start: object) -> None:
        """Return None: the bound is for the root only."""

    def setup(self, inputs: BoundInput) -> ReducedProblem:
        """Return the problem: the relaxation depends on the limit on sizes."""
        return inputs.problem

    def compute(
        self,
        model: ReducedProblem,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: SoftPairState | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        state = warm_start
        if state is None:
            light = None
            if model.label_constraints.soft is not None:
                with one_blas_thread():
                    light = light_cluster_bounds(model, ctx.stop)
                if ctx.stop.reason() is not None:  # from its values a run would not repeat
                    return BoundResult(0.0, LeafProof("trivial"), finished=False)
            state = SoftPairState(light, cutoff, 0, 0.0, None)
        while True:
            assumed, limit = None, math.inf
            if state.light is not None and math.isfinite(state.aim):
                assumed, limit = state.light.reaching(state.aim)
            inner_ctx = _LimitedContext(
                stop=ctx.stop,
                at_root=ctx.at_root,
                incumbent=ctx.incumbent,
                pool=ctx.pool,
                time_boxed=ctx.time_boxed,
                name=ctx.name,
                outer=ctx,
                limit=limit,
                state=state,
            )
            inner = SdpModel.of(model, assumed=assumed)
            found = self._sdp.compute(inner, domain, min(cutoff, limit), inner_ctx, state.inner)
            value = max(state.value, min(found.value, limit))
            if value > state.value or state.evidence is None:
                proof = None if state.light is None else state.light.multipliers
                evidence = SoftPairEvidence(assumed, proof, found.warm_start.proof)
                state = replace(state, evidence=evidence)
            state = replace(state, value=value, inner=found.warm_start)
            if value >= cutoff or not found.finished:
                break
            if assumed is None or state.rounds + 1 >= MAX_ROUNDS:
                break
            start = self._sdp.node_warm_start(found.warm_start)
            aim = state.aim - AIM_STEP * (state.aim - value)
            state = replace(state, aim=aim, rounds=state.rounds + 1, inner=start)
        least = 0 if assumed is None else int(assumed.least.min())
        return replace(
            found,
            value=state.value,
            leaf=LeafProof(self.name, state.evidence),
            warm_start=state,
            numbers={**found.numbers, "min_size": least},
        )
