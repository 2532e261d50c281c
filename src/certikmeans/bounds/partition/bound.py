"""The partition bound as a plug-in: small copies of the whole, each bounded by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import AbstractBound, BoundResult, Root, Setting
from certikmeans.bounds.partition.anticlusters import anticlusters
from certikmeans.bounds.partition.evidence import flat_row
from certikmeans.bounds.partition.run import PartProof, partition_bound
from certikmeans.errors import WorkerError
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import AbstractEvidence, Leaf
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class Parts(AbstractEvidence):
    """Groups, weights and multipliers of every part; about the whole."""

    parts: tuple[PartProof, ...]
    numbers: NDArray[np.int64]  # (n_groups,): what a group of the parts is called

    def renumbered(self, order: NDArray[np.int64]) -> Parts:
        """Return the same with group ``order[i]`` as group i."""
        return Parts(self.parts, np.argsort(order)[self.numbers])

    def joined(
        self, group_of: NDArray[np.int64], n_groups: int, inside: NDArray[np.float64]
    ) -> Parts:
        """The same: what holds for all labellings holds for those of a part."""
        return self

    def row(self) -> NDArray[np.float64]:
        """Return the numbers as the checker reads them."""
        return flat_row(self.parts, self.numbers)


@final
class PartitionBound(AbstractBound[Setting]):
    """``cost(S, w) >= sum_t cost(S_t, w_t)`` where the weights of the parts add up to w at most.

    Each part may choose labels and centres of its own, and is bounded by the semidefinite bound.
    Parts are small copies of the whole (`anticlusters`), so they lose little; see `run`. Boxes and
    viable pairs are not used.

    Parameters
    ----------
    size : int, optional
        Groups per part; by default as large as the time allows.
    """

    name: ClassVar[str] = "partition"
    uses_boxes: ClassVar[bool] = False
    in_nodes: ClassVar[bool] = False

    def __init__(self, *, size: int | None = None) -> None:
        self._size = size

    def rehearse(self, setting: Setting) -> None:
        """Cut the groups into two parts."""
        problem = setting.problem
        labels = np.arange(problem.n_groups) % problem.n_clusters
        anticlusters(problem, labels, 2, np.zeros(problem.n_groups, dtype=np.bool_))

    def prepare(self, setting: Setting) -> Setting:
        """There is nothing to prepare: parts depend on the labelling."""
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
        if root is None:
            middle = 0.5 * (part.lower + part.upper)
            labels = state.assigner.assign(middle).labels
        else:
            labels = root.news.labels()
        found = partition_bound(
            problem,
            labels,
            cutoff,
            stop,
            executor=None if root is None else root.executor,
            n_threads=1 if root is None else root.n_threads,
            size=self._size,
            seed=state.seed,
            on_bound=None if root is None else lambda value: root.news.prove(value, self.name),
            far=None if root is None else root.far,
            kept=None if root is None else root.kept,
            keep=(lambda state: None) if root is None else root.keep,
            on_work=None if root is None else root.on_work,
        )
        if found.failures and not found.parts:
            raise WorkerError(
                "a worker failed: no part of the partition bound came back",
                hint="the labelling and the bound from before are returned",
            )
        evidence = Parts(found.parts, np.arange(problem.n_groups)) if found.parts else None
        return BoundResult(
            found.value,
            Leaf(self.name, evidence) if evidence is not None else Leaf("trivial"),
            numbers={
                "parts": found.n_parts,
                "iterations": found.iterations,
                "failures": found.failures,
                "ceiling": found.upper,
            },
        )
