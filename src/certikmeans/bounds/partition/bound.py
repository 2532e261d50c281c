"""The partition bound as a plug-in: small copies of the whole, each bounded by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.partition.parts import PARTITION_PARAMS, PartitionParams, anticlusters
from certikmeans.bounds.partition.run import (
    PartitionState,
    PartProof,
    partition_bound,
)
from certikmeans.bounds.sdp.admm import iteration_work
from certikmeans.errors import WorkerError
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import AbstractEvidence, LeafProof

MIN_TASKS = 4  # of every part, in a turn of the schedule


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartitionEvidence(AbstractEvidence):
    """Groups, weights and multipliers of every part: evidence for the whole problem."""

    parts: tuple[PartProof, ...]
    numbers: Ints  # (n_groups,): number of every group in the certificate

    def renumbered(self, order: Ints) -> PartitionEvidence:
        """Return the same with group ``order[i]`` as group i."""
        return PartitionEvidence(self.parts, np.argsort(order)[self.numbers])

    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> PartitionEvidence:
        """Return the same evidence: a bound for all labellings holds for those of a domain."""
        return self

    def row(self) -> Floats:
        """Return the numbers as the checker reads them."""
        return encode_parts(self.parts, self.numbers)


@final
class PartitionBound(LowerBound[BoundInput]):
    """``cost(S, w) >= sum_t cost(S_t, w_t)`` where the weights of the parts add up to w at most.

    Each part may choose labels and centres of its own, and is bounded by the semidefinite bound.
    Parts are small copies of the whole (`anticlusters`), so the bound loses little; see `run.py`.
    Boxes and allowed clusters are not used.

    Parameters
    ----------
    size : int, optional
        Groups per part; by default as large as the time allows.
    params : PartitionParams
        Sizes of parts, and effort for them.
    """

    name: ClassVar[str] = "partition"
    uses_center_boxes: ClassVar[bool] = False
    usable_in_tree: ClassVar[bool] = False
    plans_by_work: ClassVar[bool] = True

    def __init__(
        self, *, size: int | None = None, params: PartitionParams = PARTITION_PARAMS
    ) -> None:
        self._size, self._params = size, params

    def rehearse(self, inputs: BoundInput) -> None:
        """Compile the kernels that split the groups into parts."""
        problem = inputs.problem
        labels = np.arange(problem.n_groups) % problem.n_clusters
        anticlusters(problem, labels, 2, np.zeros(problem.n_groups, dtype=np.bool_))

    def node_warm_start(self, warm_start: object) -> None:
        """Return None: the bound is for the root only."""

    def min_work(self, problem: ReducedProblem) -> float:
        """Return the work of a few tasks of all parts, of the least size."""
        params = self._params
        size = min(params.min_part_size, problem.n_groups)
        return MIN_TASKS * params.later_iterations * iteration_work(size) * problem.n_groups / size

    def setup(self, inputs: BoundInput) -> BoundInput:
        """Return the inputs: parts depend on the incumbent, so nothing can be precomputed."""
        return inputs

    def compute(
        self,
        model: BoundInput,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: PartitionState | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        problem = model.problem
        if model.keep_proof:  # certificates hold parts with pairs only
            problem = replace(problem, label_constraints=CannotLinks(problem.graph))
        if ctx.at_root:
            labels = ctx.incumbent.labels()
        else:
            middle = 0.5 * (domain.lower + domain.upper)
            labels, warm_start = model.assigner.assign(middle).labels, None
        found = partition_bound(
            problem,
            labels,
            cutoff,
            ctx,
            size=self._size,
            seed=model.seed,
            warm_start=warm_start,
            params=self._params,
        )
        if found.failures and not found.parts:
            raise WorkerError(
                "a worker failed: no part of the partition bound returned a result",
                hint="the labelling and the bound from before are returned",
            )
        evidence = (
            PartitionEvidence(found.parts, np.arange(problem.n_groups)) if found.parts else None
        )
        return BoundResult(
            found.value,
            LeafProof(self.name, evidence) if evidence is not None else LeafProof("trivial"),
            found.state,
            finished=found.value >= cutoff or (found.finished and ctx.stop.reason() is None),
            numbers={
                "parts": found.n_parts,
                "iterations": found.iterations,
                "failures": found.failures,
                "ceiling": found.upper,
            },
        )


def encode_parts(parts: Sequence[PartProof], numbers: Ints | None = None) -> Floats:
    """Encode the evidence of all parts as one row of numbers, in the format of certificates.

    The row has the number of parts, then for every part: the number m of its groups, the number c
    of its cuts, m groups, m weights, the ``m (m + 1) / 2`` multipliers of the upper triangle row by
    row, and four numbers for every cut: s, t, u, which are indices of groups within the part
    (u = -1 for a pair cut), and its multiplier. Group g of the problem has the number
    ``numbers[g]``.
    """
    pieces: list[Floats] = [np.array([len(parts)], dtype=np.float64)]
    for part in parts:
        rows = part.rows if numbers is None else numbers[part.rows]
        given = part.multipliers
        cuts = np.column_stack([given.cuts.astype(np.float64), given.scaled(given.cut_multipliers)])
        counts = np.array([len(rows), len(cuts)], dtype=np.float64)
        pieces += [counts, rows.astype(np.float64), part.weights]
        pieces += [given.scaled(given.triangle), cuts.ravel()]
    return np.concatenate(pieces)
