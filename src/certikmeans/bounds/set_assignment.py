"""Bound by linear assignments between cannot-link sets, in any dimension.

For the groups I of a cluster, of weight W,

    sum of squares of I = 1/W  sum over pairs s, t in I of w_s w_t |x_s - x_t|^2.

Take disjoint cannot-link sets. Their members are in different clusters, and two sets S, T with
``|S| + |T| > K`` meet in at least ``|S| + |T| - K`` clusters: what their members cost together
there is at least the value of a linear assignment problem. A cluster has at most one member of
every set, so its members of these sets weigh at most ``W* = sum over sets of the largest weight``,
and other groups only add to the cost:

    cost >= 1/W*  sum over pairs of sets of LAP(S, T).

For sets of K members of weight 1 there is equality but for the clusters that the pairs choose:
W* is the size of all clusters. The bound is loose by what the pairs gain by different matchings.

Sets are divided into batches, whose bounds add up, because the number of pairs grows with the
square. In a batch, sets are ordered by size, and the best leading segment counts: small sets add
to W* but hardly to the sum.

**Rounding.** Costs of matchings are rounded down, and bounded from below by dual variables that may
be any (`matching_bound`). Sums of m terms are lowered by ``m EPS``, W* is rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.kernels.set_matchings import matching_sums
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import AbstractEvidence, LeafProof
from certikmeans.rounding import EPS
from certikmeans.stop import UNITS_PER_SECOND

MIN_BATCH, MAX_BATCH = 20, 200  # sets
MATCHING_WORK = 8.0  # units of work of a matching, times the cube of K
WORK = 5.0 * UNITS_PER_SECOND  # affordable, beyond that of the smallest batches


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetBatches:
    """Disjoint sets of groups in batches, ordered by size within each."""

    problem: ReducedProblem
    batches: tuple[tuple[Ints, ...], ...]
    keep_proof: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetEvidence(AbstractEvidence):
    """Disjoint sets in batches and the multipliers of all matchings in a batch: for all groups."""

    batches: tuple[tuple[Ints, ...], ...]
    multipliers: tuple[Floats, ...]  # (n_matchings, n_clusters) of every batch
    numbers: Ints  # (n_groups,): number of every group in the certificate

    def renumbered(self, order: Ints) -> SetEvidence:
        """Return the same with group ``order[i]`` as group i."""
        return replace(self, numbers=np.argsort(order)[self.numbers])

    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> SetEvidence:
        """Return the same evidence: a bound for all labellings holds for those of a domain."""
        return self

    def row(self) -> Floats:
        """Number of batches; for each the number of its sets, their sizes, members, multipliers."""
        parts: list[Any] = [[len(self.batches)]]
        for batch, multipliers in zip(self.batches, self.multipliers, strict=True):
            parts += [[len(batch)], [len(one) for one in batch]]
            parts += [*(self.numbers[one] for one in batch), multipliers.ravel()]
        return np.concatenate(parts).astype(np.float64)


@final
class SetAssignmentBound(LowerBound[SetBatches]):
    """Linear assignments between cannot-link sets; 0 without sets of more than K / 2 members.

    Boxes and allowed clusters of a domain are not used.
    """

    name: ClassVar[str] = "sets"
    uses_center_boxes: ClassVar[bool] = False
    usable_in_tree: ClassVar[bool] = False

    def node_warm_start(self, warm_start: object) -> None:
        """Return None: the bound is for the root only."""

    def rehearse(self, inputs: BoundInput) -> None:
        """Compile the kernel."""
        points, weights = np.zeros((2, 1)), np.ones(2)
        indptr, members = np.array([0, 1, 2]), np.array([0, 1])
        matching_sums(points, weights, indptr, members, 1, np.empty(2), np.empty((1, 1)))

    def setup(self, inputs: BoundInput) -> SetBatches:
        """Choose disjoint sets and divide them into batches."""
        problem = inputs.problem
        sets = problem.label_constraints.sets
        chosen = [] if sets is None else disjoint_sets(sets, problem.n_clusters)
        batches = batches_of(chosen, problem.n_clusters, problem.n_dims)
        return SetBatches(problem, batches, inputs.keep_proof)

    def compute(
        self,
        model: SetBatches,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: Any = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        problem, finished = model.problem, True
        values: list[float] = []
        segments: list[tuple[Ints, ...]] = []
        for batch in model.batches:
            if ctx.stop.reason() is not None:
                finished = False
                break
            value, length = batch_value(problem, batch)
            values.append(value)
            segments.append(batch[:length])
            ctx.report(work=_batch_work(len(batch), problem.n_clusters, problem.n_dims))
        value = max(0.0, math.nextafter(math.fsum(values), -math.inf))
        ctx.report(value)
        numbers = {"batches": len(values)}
        evidence = _evidence(problem, segments) if model.keep_proof else None
        leaf = LeafProof(self.name, evidence) if value > 0.0 else LeafProof("trivial")
        return BoundResult(value, leaf, numbers=numbers, finished=finished)


def disjoint_sets(sets: CannotLinkSets, n_clusters: int) -> list[Ints]:
    """Disjoint subsets of the sets, the largest first, of more than K / 2 members."""
    taken = np.zeros(sets.n_groups, dtype=np.bool_)
    found = []
    for number in np.argsort(-sets.sizes, kind="stable").tolist():
        members = sets.members_of(number)
        members = members[~taken[members]]
        if 2 * len(members) > n_clusters:
            taken[members] = True
            found.append(members)
    return sorted(found, key=len, reverse=True)


def batches_of(sets: list[Ints], n_clusters: int, n_dims: int) -> tuple[tuple[Ints, ...], ...]:
    """Batches of alike sizes, as large as the work allows."""
    if len(sets) < 2:
        return ()
    size = MIN_BATCH
    while size < MAX_BATCH and size < len(sets):
        larger = min(size + 10, MAX_BATCH)
        if len(sets) / larger * _batch_work(larger, n_clusters, n_dims) > WORK:
            break
        size = larger
    count = max(1, round(len(sets) / size))
    return tuple(tuple(sets[first::count]) for first in range(count))


def batch_value(problem: ReducedProblem, batch: tuple[Ints, ...]) -> tuple[float, int]:
    """Best value of the leading segments of a batch, rounded down, and the length of the best."""
    sums = np.empty(len(batch))
    _fill_sums(problem, batch, sums, np.empty((1, problem.n_clusters)))
    heaviest = np.array([problem.weights[one].max() for one in batch])
    error = (len(batch) + 4) * EPS
    totals = np.cumsum(sums) * (1.0 - error)
    values = totals / (np.cumsum(heaviest) * (1.0 + error)) * (1.0 - error)
    best = int(np.argmax(values))
    return float(values[best]), best + 1


def _fill_sums(
    problem: ReducedProblem,
    batch: tuple[Ints, ...],
    sums: Floats,
    multipliers: Floats,
) -> None:
    sizes = [len(one) for one in batch]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    members = np.concatenate(batch)
    matching_sums(
        problem.points, problem.weights, indptr, members, problem.n_clusters, sums, multipliers
    )


def _evidence(problem: ReducedProblem, segments: list[tuple[Ints, ...]]) -> SetEvidence:
    """Multipliers of all matchings in the segments; these are solved again."""
    found = []
    for segment in segments:
        sizes = np.array([len(one) for one in segment])
        meet = sizes[:, None] + sizes[None, :] > problem.n_clusters
        multipliers = np.zeros((int(np.tril(meet, -1).sum()), problem.n_clusters))
        if len(multipliers):
            _fill_sums(problem, segment, np.empty(len(segment)), multipliers)
        found.append(multipliers)
    return SetEvidence(tuple(segments), tuple(found), np.arange(problem.n_groups))


def _batch_work(size: int, n_clusters: int, n_dims: int) -> float:
    """Units of work of all pairs of a batch."""
    pairs = 0.5 * size * size
    return pairs * n_clusters**2 * (MATCHING_WORK * n_clusters + n_dims)
