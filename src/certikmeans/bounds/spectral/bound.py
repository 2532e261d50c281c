"""The spectral bound: eigenvalue bound, multipliers in closed form, then a few ascent steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.spectral.ascent import ascend
from certikmeans.bounds.spectral.closed_form import SpectralProof, closed_form
from certikmeans.bounds.spectral.dual_bound import eigenvalue_bound
from certikmeans.bounds.spectral.gram import SpectralMultipliers
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import AbstractEvidence, LeafProof

# In all measurements the ascent closed between a third and a half of the gap, in up to ten seconds.
# If another bound is scheduled afterwards, it therefore runs only if that may suffice,
# or if there are so many groups that no other bound handles all of them and the gap is not larger
# than MAX_EXTRA_GAP above the required one.
ASCENT_GAIN_FRACTION = 0.6
MANY_GROUPS = 10_000
CLOSED_FORM_WORK = 40.0  # units per coordinate
MAX_EXTRA_GAP = 0.05


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectralEvidence(AbstractEvidence):
    """Multipliers that are functions of a labelling of all groups; the same in every domain."""

    slack: ClassVar[float] = 2e-8
    certainty_max_groups: ClassVar[float] = math.inf

    multipliers: SpectralMultipliers

    def renumbered(self, order: Ints) -> SpectralEvidence:
        """Return the same with group ``order[i]`` as group i."""
        return SpectralEvidence(self.multipliers.renumbered(np.argsort(order)))

    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> SpectralEvidence:
        """Return the same evidence: a bound for all labellings holds for those of a domain."""
        return self

    def row(self) -> Floats:
        """Return the numbers as the checker reads them."""
        return self.multipliers.row()


class SpectralStage(StrEnum):
    """Stage of the spectral bound that was completed last."""

    EIGENVALUES = "eigenvalues"
    CLOSED_FORM = "closed_form"
    DONE = "done"


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectralWarmStart:
    """Last completed stage, its proof, and the best proof so far.

    The two differ where a stage was cut short; it is repeated from ``proof``, so that the result
    is that of a computation without a stop.
    """

    floor: float  # eigenvalue bound
    proof: SpectralProof
    best: SpectralProof
    stage: SpectralStage = SpectralStage.EIGENVALUES


@final
class SpectralBound(LowerBound[BoundInput]):
    """A few eigenvalues, for any number of groups and axes.

    The stages are `eigenvalue_bound`, `closed_form` and `ascend`. Valid for any multipliers
    (`dual_bound.safe_value`). Boxes and allowed clusters of a domain are not used, and the ascent
    runs at the root only.
    """

    name: ClassVar[str] = "spectral"
    uses_center_boxes: ClassVar[bool] = False
    usable_in_tree: ClassVar[bool] = False

    def node_warm_start(self, warm_start: object) -> None:
        """Return None: the bound is for the root only."""

    def setup(self, inputs: BoundInput) -> BoundInput:
        """Return the inputs: there is nothing to precompute."""
        return inputs

    def compute(
        self,
        model: BoundInput,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: SpectralWarmStart | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        problem = model.problem
        if warm_start is None:
            floor = eigenvalue_bound(problem)
            best = SpectralProof(floor, SpectralMultipliers.zeros(problem.n_groups))
            warm_start = SpectralWarmStart(floor, best, best)
        ctx.report(warm_start.best.value)
        if ctx.at_root:
            warm_start = self._improve(model, warm_start, cutoff, ctx)
        evidence = SpectralEvidence(warm_start.best.evidence)
        return BoundResult(
            max(0.0, warm_start.best.value),
            LeafProof(self.name, evidence if len(evidence.row()) else None),
            warm_start if ctx.at_root else None,
            finished=not ctx.at_root
            or warm_start.stage is SpectralStage.DONE
            or warm_start.best.value >= cutoff,
        )

    def _improve(
        self, inputs: BoundInput, state: SpectralWarmStart, cutoff: float, ctx: BoundContext
    ) -> SpectralWarmStart:
        """Run the remaining stages; an interrupted stage is repeated when resumed."""
        problem, stop = inputs.problem, ctx.stop

        def stopped() -> bool:
            return stop.reason() is not None

        if state.best.value >= cutoff or stopped():
            return state
        if state.stage is SpectralStage.EIGENVALUES:
            found = closed_form(problem, ctx.incumbent.labels(), stopped, state.floor)
            best = max(state.best, found, key=lambda proof: proof.value)
            ctx.report(best.value)
            if stopped():
                return replace(state, best=best)
            proof = max(state.proof, found, key=lambda proof: proof.value)
            state = SpectralWarmStart(state.floor, proof, best, SpectralStage.CLOSED_FORM)
            ctx.report(work=closed_form_work(problem))
        if state.stage is not SpectralStage.CLOSED_FORM:
            return state
        if state.best.value >= cutoff or stopped():
            return state
        worthwhile = ascent_worthwhile(state.best.value, cutoff, inputs.gap, problem.n_groups)
        if ctx.time_boxed and not worthwhile:
            return replace(state, stage=SpectralStage.DONE)
        found = ascend(problem, state.proof, stop=stopped, on_work=stop.add_work)
        best = max(state.best, found, key=lambda proof: proof.value)
        if stopped():
            return replace(state, best=best)
        return replace(state, proof=best, best=best, stage=SpectralStage.DONE)


def closed_form_work(problem: ReducedProblem) -> float:
    """Units of work of the closed form: every group against every pair of clusters."""
    pairs = problem.n_clusters * (problem.n_clusters - 1) / 2
    return float(problem.n_groups * (CLOSED_FORM_WORK * problem.n_dims + pairs))


def ascent_worthwhile(value: float, cutoff: float, gap: float, n_groups: int) -> bool:
    """Whether the ascent may reach the cutoff, or no other bound handles so many groups.

    >>> ascent_worthwhile(99.7, 99.9, 1e-3, 2_000), ascent_worthwhile(98.0, 99.9, 1e-3, 2_000)
    (False, False)
    >>> ascent_worthwhile(99.8, 99.9, 1e-3, 2_000), ascent_worthwhile(98.0, 99.9, 1e-3, 50_000)
    (True, True)
    """
    missing = 1.0 - (1.0 - gap) * value / cutoff  # of the cost
    within_reach = (1.0 - ASCENT_GAIN_FRACTION) * missing <= gap
    return within_reach or (n_groups > MANY_GROUPS and missing <= gap + MAX_EXTRA_GAP)
