"""Which bound the nodes use: made anew for every problem, started from a larger part."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import AbstractBound
from certikmeans.bounds.cluster.plugin import ClusterBound, translate_restart
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem


def check_size(name: str, problem: ReducedProblem) -> None:
    """Raise if a bound that was asked for cannot be had for so many groups."""
    if name == "sdp":
        from certikmeans.bounds.sdp.bound import check_size as check_sdp_size

        check_sdp_size(problem)


@final
@dataclass(frozen=True, slots=True)
class BoundMaker:
    """Makes the bound of a given name; ``sample`` is part of every node and needs none."""

    name: str  # cluster, grouped, sample or sdp
    gap: float
    seed: int

    def make(
        self,
        assigner: Assigner,
        executor: Executor | None = None,
        on_bound: Callable[[float], None] | None = None,
    ) -> AbstractBound[Any, Subproblem] | None:
        """Make the bound; None for ``sample``. ``on_bound`` is told what a slow one has proven."""
        match self.name:
            case "cluster":
                return ClusterBound(assigner, self.gap, executor, self.seed)
            case "grouped":
                from certikmeans.bounds.grouped import GroupedBound

                return GroupedBound(executor=executor)
            case "sdp":
                from certikmeans.bounds.sdp import SdpBound

                return SdpBound(on_bound=on_bound)
            case "sample":
                return None
            case _:
                raise ValueError(f"no bound is called {self.name!r}")

    def translate(
        self, restart: Any, before: Presolved, after: Presolved, centers: NDArray[np.float64]
    ) -> Any:
        """Carry a start over to a part with more pairs; None where the bound has no way to."""
        if self.name not in ("cluster", "sdp"):
            return None
        joined = before.reduce_labels(after.row_of_point)
        if self.name == "sdp":
            from certikmeans.bounds.sdp import translate_restart as translate_sdp

            return translate_sdp(restart, before.reduced, after.reduced, joined)
        moved = translate_restart(restart, before.reduced, after.reduced, joined)
        return replace(moved, centers=centers)
