"""What is asked: a labelling, the problem it is about in both forms, and how much time there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty.basis import Basis, Shown
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]

LEAST_SECONDS = 8.0  # whatever the proof took: nobody minds, and half an answer is none


@final
@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A labelling, and the problem it is about in both forms."""

    basis: Basis
    presolved: Presolved
    labels: Labels  # of the points
    groups: Labels  # of the groups
    cost: float
    slack: float
    time_limit: float | None = None

    @classmethod
    def of(
        cls,
        basis: Basis,
        labels: Labels,
        cost: float,
        slack: float,
        stop: StopSignal,
        time_limit: float | None = None,
    ) -> Case:
        """Presolve, unless the run has left that behind."""
        presolved = basis.presolved
        if presolved is None:
            found = presolve(basis.problem, stop, feasibility_seconds=0.0)
            if isinstance(found, InfeasibilityProof):  # there are labels: it cannot be
                raise AssertionError("a problem with a labelling was called infeasible")
            presolved = found
        groups = presolved.reduce_labels(labels)
        return cls(basis, presolved, labels, groups, cost, slack, time_limit)

    def seconds(self, least: float = LEAST_SECONDS) -> float:
        """How long it may take: as long as the proof, and ``least`` at least."""
        return max(least, self.basis.seconds) if self.time_limit is None else self.time_limit

    def shown(self) -> tuple[Shown, ...]:
        """What the run has left behind, if groups are numbered as they were."""
        basis, known = self.basis, self.basis.first_points
        if basis.presolved is None and (
            known is None or not np.array_equal(known, self.presolved.first_points)
        ):
            return ()
        return basis.shown
