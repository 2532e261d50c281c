"""The spectral bound: the floor, then multipliers in closed form, then a few steps of ascent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import AbstractBound, BoundResult, Root, Setting
from certikmeans.bounds.spectral.ascent import improved
from certikmeans.bounds.spectral.closed_form import SpectralProof, closed_form
from certikmeans.bounds.spectral.evidence import SpectralEvidence
from certikmeans.bounds.spectral.floor import spectral_floor
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import AbstractEvidence, Leaf
from certikmeans.stop import StopSignal

# The ascent brings between a third and a half of what is missing, wherever it was measured, and
# may take ten seconds. So, where another bound waits, it is worth its time if that can be enough;
# and where groups are so many that nothing else gets to all of them, unless it is hopeless.
BRINGS = 0.6
MANY_GROUPS = 10_000
NEAR_ENOUGH = 0.05


@final
@dataclass(frozen=True, slots=True, eq=False)
class AboutTheWhole(AbstractEvidence):
    """Multipliers that are functions of a labelling of all groups; parts use them as they are."""

    slack: ClassVar[float] = 2e-8
    says_more_up_to: ClassVar[float] = math.inf

    inner: SpectralEvidence

    def renumbered(self, order: NDArray[np.int64]) -> AboutTheWhole:
        """Return the same with group ``order[i]`` as group i."""
        return AboutTheWhole(self.inner.renumbered(np.argsort(order)))

    def joined(
        self, group_of: NDArray[np.int64], n_groups: int, inside: NDArray[np.float64]
    ) -> AboutTheWhole:
        """The same: what holds for all labellings holds for those of a part."""
        return self

    def row(self) -> NDArray[np.float64]:
        """Return the numbers as the checker reads them."""
        return self.inner.row()


@final
class SpectralBound(AbstractBound[Setting]):
    """A few eigenvalues, at any number of groups and axes; see `floor`, `closed_form`, `ascent`.

    Valid for any multipliers (`safe`). Boxes and viable pairs of a part are not used, and the
    ascent pays at the root only.
    """

    name: ClassVar[str] = "spectral"
    uses_boxes: ClassVar[bool] = False
    in_nodes: ClassVar[bool] = False

    def prepare(self, setting: Setting) -> Setting:
        """There is nothing to prepare."""
        return setting

    def evaluate(
        self,
        state: Setting,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
        root: Root | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""
        problem = state.problem
        floor = spectral_floor(problem)
        best = SpectralProof(floor, SpectralEvidence.none(problem.n_groups))
        if root is not None:
            root.news.prove(floor, self.name)
            if floor < cutoff and stop.cause() is None:
                best = self._climbed(state, best, cutoff, stop, root)
        evidence = AboutTheWhole(best.evidence)
        return BoundResult(
            max(0.0, best.value),
            Leaf(self.name, evidence if len(evidence.row()) else None),
        )

    def _climbed(
        self,
        setting: Setting,
        best: SpectralProof,
        cutoff: float,
        stop: StopSignal,
        root: Root,
    ) -> SpectralProof:
        problem, labels = setting.problem, root.news.labels()
        found = closed_form(problem, labels, lambda: stop.cause() is not None, best.value)
        best = max(best, found, key=lambda proof: proof.value)
        root.news.prove(best.value, self.name)
        if best.value >= cutoff or stop.cause() is not None:
            return best
        worth = worth_climbing(best.value, cutoff, setting.gap, problem.n_groups)
        if root.in_a_hurry and not worth:
            return best
        found = improved(problem, best, stop=lambda: stop.cause() is not None)
        return max(best, found, key=lambda proof: proof.value)


def worth_climbing(value: float, cutoff: float, gap: float, n_groups: int) -> bool:
    """Whether the ascent may reach the cutoff, or is the best that there is.

    >>> worth_climbing(99.7, 99.9, 1e-3, 2_000), worth_climbing(98.0, 99.9, 1e-3, 2_000)
    (False, False)
    >>> worth_climbing(99.8, 99.9, 1e-3, 2_000), worth_climbing(98.0, 99.9, 1e-3, 50_000)
    (True, True)
    """
    missing = 1.0 - (1.0 - gap) * value / cutoff  # of the cost
    within_reach = (1.0 - BRINGS) * missing <= gap
    return within_reach or (n_groups > MANY_GROUPS and missing <= gap + NEAR_ENOUGH)
