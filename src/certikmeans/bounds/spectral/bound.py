"""The spectral bound: the floor, then multipliers in closed form, then a few steps of ascent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.spectral.ascent import ascend
from certikmeans.bounds.spectral.closed_form import SpectralProof, closed_form
from certikmeans.bounds.spectral.dual_bound import eigenvalue_bound
from certikmeans.bounds.spectral.multipliers import SpectralMultipliers
from certikmeans.problem.domain import Domain
from certikmeans.proof import AbstractEvidence, LeafProof
from certikmeans.stop import StopSignal

# The ascent brings between a third and a half of what is missing, wherever it was measured, and
# may take ten seconds. So, where another bound waits, it is worth its time if that can be enough;
# and where groups are so many that nothing else gets to all of them, unless it is hopeless.
ASCENT_GAIN_FRACTION = 0.6
MANY_GROUPS = 10_000
MAX_EXTRA_GAP = 0.05


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectralEvidence(AbstractEvidence):
    """Multipliers that are functions of a labelling of all groups; parts use them as they are."""

    slack: ClassVar[float] = 2e-8
    certainty_max_groups: ClassVar[float] = math.inf

    multipliers: SpectralMultipliers

    def renumbered(self, order: NDArray[np.int64]) -> SpectralEvidence:
        """Return the same with group ``order[i]`` as group i."""
        return SpectralEvidence(self.multipliers.renumbered(np.argsort(order)))

    def joined(
        self, group_of: NDArray[np.int64], n_groups: int, inside: NDArray[np.float64]
    ) -> SpectralEvidence:
        """The same: what holds for all labellings holds for those of a part."""
        return self

    def row(self) -> NDArray[np.float64]:
        """Return the numbers as the checker reads them."""
        return self.multipliers.row()


@final
class SpectralBound(LowerBound[BoundInput]):
    """A few eigenvalues, at any number of groups and axes; see `floor`, `closed_form`, `ascent`.

    Valid for any multipliers (`safe`). Boxes and viable pairs of a part are not used, and the
    ascent pays at the root only.
    """

    name: ClassVar[str] = "spectral"
    uses_center_boxes: ClassVar[bool] = False
    usable_in_tree: ClassVar[bool] = False

    def setup(self, inputs: BoundInput) -> BoundInput:
        """There is nothing to prepare."""
        return inputs

    def compute(
        self,
        state: BoundInput,
        domain: Domain,
        cutoff: float,
        stop: StopSignal,
        warm_start: Any = None,
        ctx: BoundContext | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        problem = state.problem
        floor = eigenvalue_bound(problem)
        best = SpectralProof(floor, SpectralMultipliers.zeros(problem.n_groups))
        if ctx is not None:
            ctx.incumbent.update_bound(floor, self.name)
            if floor < cutoff and stop.reason() is None:
                best = self._improve(state, best, cutoff, stop, ctx)
        evidence = SpectralEvidence(best.evidence)
        return BoundResult(
            max(0.0, best.value),
            LeafProof(self.name, evidence if len(evidence.row()) else None),
        )

    def _improve(
        self,
        inputs: BoundInput,
        best: SpectralProof,
        cutoff: float,
        stop: StopSignal,
        ctx: BoundContext,
    ) -> SpectralProof:
        problem, labels = inputs.problem, ctx.incumbent.labels()
        found = closed_form(problem, labels, lambda: stop.reason() is not None, best.value)
        best = max(best, found, key=lambda proof: proof.value)
        ctx.incumbent.update_bound(best.value, self.name)
        if best.value >= cutoff or stop.reason() is not None:
            return best
        worthwhile = ascent_worthwhile(best.value, cutoff, inputs.gap, problem.n_groups)
        if ctx.time_boxed and not worthwhile:
            return best
        found = ascend(problem, best, stop=lambda: stop.reason() is not None)
        return max(best, found, key=lambda proof: proof.value)


def ascent_worthwhile(value: float, cutoff: float, gap: float, n_groups: int) -> bool:
    """Whether the ascent may reach the cutoff, or is the best that there is.

    >>> ascent_worthwhile(99.7, 99.9, 1e-3, 2_000), ascent_worthwhile(98.0, 99.9, 1e-3, 2_000)
    (False, False)
    >>> ascent_worthwhile(99.8, 99.9, 1e-3, 2_000), ascent_worthwhile(98.0, 99.9, 1e-3, 50_000)
    (True, True)
    """
    missing = 1.0 - (1.0 - gap) * value / cutoff  # of the cost
    within_reach = (1.0 - ASCENT_GAIN_FRACTION) * missing <= gap
    return within_reach or (n_groups > MANY_GROUPS and missing <= gap + MAX_EXTRA_GAP)
