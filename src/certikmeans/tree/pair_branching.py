"""Ryan-Foster branching: a pair of groups becomes a must-link or a cannot-link.

**Selection of the pair.** A bound with strong branching returns one. Otherwise it is a pair that is
fractional in the solution of the relaxation (`bounds/ryan_foster.py`). Without a fractional
solution (other bounds, or an integral one), groups are placed one after the other: the group with
the largest cost in its cheapest cluster is paired with the representative of that cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints
from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.ryan_foster import Pair, fractional_pairs
from certikmeans.constraint_model.model import raise_unsupported
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import LeafProof, PairSplit
from certikmeans.stop import StopSignal
from certikmeans.tree.node import BranchingScheme, NodeResult, NodeTask, Split, node_overhead
from certikmeans.tree.primal import (
    MAX_LLOYD_STEPS,
    certificate_leaf,
    improving_labels,
    round_centers,
)


def choose_branching_pair(problem: ReducedProblem, found: BoundResult) -> Pair | None:
    """Return the pair of groups to branch on, or None if all are decided."""
    if found.pair is not None:
        return found.pair
    pairs = fractional_pairs(problem, found.fractional, 1)
    return pairs[0] if pairs else undecided_pair(problem)


def undecided_pair(problem: ReducedProblem) -> Pair | None:
    """Return a pair that places the groups one after the other, or None when all are placed.

    Heavy groups with cannot-links to each other represent the clusters. Any other group has at
    least one representative without a cannot-link to it, or becomes one.
    """
    chosen = _representatives(problem)
    forbidden = np.zeros((problem.n_groups, len(chosen)), dtype=bool)
    for column, group in enumerate(chosen):
        forbidden[problem.label_constraints.neighbors_of(group), column] = True
    weights = problem.weights[:, None]
    offsets = problem.points[:, None, :] - problem.points[chosen][None, :, :]
    reduced_mass = weights * problem.weights[chosen] / (weights + problem.weights[chosen])
    cost = reduced_mass * np.einsum("ijk,ijk->ij", offsets, offsets)
    cost[forbidden] = np.inf
    cheapest = cost.min(axis=1)
    cheapest[chosen] = np.inf
    group = int(np.argmax(np.where(np.isinf(cheapest), -1.0, cheapest)))
    if np.isinf(cheapest[group]):
        return None
    return group, chosen[int(np.argmin(cost[group]))]


def _representatives(problem: ReducedProblem) -> list[int]:
    """Groups with pairwise cannot-links, chosen greedily by weight; at least one, at most K."""
    chosen: list[int] = []
    candidates = np.ones(problem.n_groups, dtype=bool)  # have a cannot-link to all so far
    for s in np.argsort(-problem.weights, kind="stable"):
        if candidates[s]:
            chosen.append(int(s))
            forbidden = np.zeros(problem.n_groups, dtype=bool)
            forbidden[problem.label_constraints.neighbors_of(int(s))] = True
            candidates &= forbidden
            if not candidates.any():
                break
    return chosen


COLORING_SECONDS = 5.0  # time limit of the coloring of a node


@final
@dataclass(frozen=True, slots=True)
class PairDomain:
    """All labellings that also satisfy these pairs of original points."""

    must_link: tuple[Pair, ...] = ()
    cannot_link: tuple[Pair, ...] = ()

    def apply_to(self, presolved: PresolvedProblem) -> PresolvedProblem | None:
        """Return the problem with these pairs, or None if they are contradictory."""
        return presolved.with_pairs(_pair_array(self.must_link), _pair_array(self.cannot_link))


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairWarmStart:
    """Warm start of the children of ``domain``, in terms of the groups of ``domain``."""

    domain: PairDomain
    inner: Any


@final
class PairBranching(BranchingScheme[PairDomain]):
    """Branching scheme whose domains are must-link and cannot-link decisions.

    The pairs are added to the reduced problem, which is bounded as any other problem.

    Parameters
    ----------
    presolved : PresolvedProblem
        The problem at the root.
    bound : LowerBound
    inputs : BoundInput
        Input of the bound at the root; every node has its own.
    """

    def __init__(
        self, presolved: PresolvedProblem, bound: LowerBound[Any], inputs: BoundInput
    ) -> None:
        if not presolved.reduced.label_constraints.mergeable:
            raise_unsupported(presolved.reduced.label_constraints, "branching on pairs")
        self.name = bound.name
        self.overhead = node_overhead(presolved.reduced)
        self._presolved = presolved
        self._bound = bound
        self._inputs = inputs

    def root(self, found: BoundResult, stop: StopSignal) -> NodeResult[PairDomain]:
        """Return the result for the problem without further pairs."""
        presolved, inputs = self._presolved, self._inputs
        return NodeResult(
            bound=presolved.postsolve_bound(found.value),
            leaf=certificate_leaf(presolved, found.leaf, inputs.keep_proof),
            warm_start=PairWarmStart(PairDomain(), found.warm_start),
            split=_choose_split(presolved, found),
            labels=round_centers(presolved, inputs.assigner, found.centers, stop),
            domain=PairDomain(),
        )

    def compute(self, task: NodeTask[PairDomain]) -> NodeResult[PairDomain]:
        """Bound a domain, propose labels, choose a split."""
        domain = task.domain
        merged = domain.apply_to(self._presolved)
        presolved = (
            None if merged is None else merged.with_feasible_labels(task.stop, COLORING_SECONDS)
        )
        if presolved is None:
            return NodeResult(np.inf, LeafProof("infeasible"), None, None, (), domain)
        if presolved.feasible_labels is None:  # stopped, or coloring was too hard
            split = _original_split(presolved, undecided_pair(presolved.reduced))
            return NodeResult(0.0, LeafProof("trivial"), None, split, (), domain)
        assigner = make_assigner(presolved.reduced, presolved.feasible_labels)
        run = assigner.lloyd(
            self._initial_centers(presolved, task.labels),
            np.full(presolved.reduced.n_groups, -1, dtype=np.int64),
            MAX_LLOYD_STEPS,
            stop=task.stop,
        )
        inputs = replace(self._inputs, problem=presolved.reduced, assigner=assigner)
        found = self._compute_bound(presolved, inputs, task, run.centers)
        bound = presolved.postsolve_bound(found.value)
        return NodeResult(
            bound=bound,
            leaf=certificate_leaf(presolved, found.leaf, inputs.keep_proof),
            warm_start=PairWarmStart(domain, found.warm_start),
            split=_choose_split(presolved, found) if bound < task.cutoff else None,
            labels=(
                *improving_labels(presolved, [run], task.cost),
                *round_centers(presolved, assigner, found.centers, task.stop, task.cost),
            ),
            domain=domain,
        )

    def incumbent_payload(self, labels: Ints) -> NDArray[np.integer[Any]]:
        """Return the labels of the groups at the root, in the smallest integer type."""
        small = np.min_scalar_type(self._presolved.reduced.n_clusters)
        return self._presolved.presolve_labels(labels).astype(small)

    def _initial_centers(
        self, presolved: PresolvedProblem, labels: NDArray[np.integer[Any]]
    ) -> Floats:
        """Return the means of labels of the root's groups, which may violate the added pairs."""
        own = labels.astype(np.int64)
        for step in presolved.steps[len(self._presolved.steps) :]:
            own = step.presolve_labels(own)
        sums, masses = presolved.reduced.cluster_sums(own)
        return sums / np.maximum(masses, 1e-300)[:, None]

    def children(self, domain: PairDomain, split: Split) -> tuple[PairDomain, PairDomain]:
        """Add the pair as a must-link, or as a cannot-link."""
        assert isinstance(split, PairSplit)
        pair = (split.first, split.second)
        return (
            PairDomain((*domain.must_link, pair), domain.cannot_link),
            PairDomain(domain.must_link, (*domain.cannot_link, pair)),
        )

    def to_original(self, domain: PairDomain) -> PairDomain:
        """Return the same domain: its pairs are pairs of original points."""
        return domain

    def restrict_proof(self, leaf: LeafProof, domain: PairDomain, child: PairDomain) -> LeafProof:
        """Return the leaf of a domain in terms of the groups of a child."""
        if leaf.evidence is None or domain.must_link == child.must_link:
            return leaf
        before, after = self._group_map(domain), self._group_map(child)
        first = np.unique(before, return_index=True)[1]
        joined, n_joined = after[first], int(after.max()) + 1
        inside = self._within_group_costs(after, n_joined)
        inside -= np.bincount(joined, self._within_group_costs(before, len(first)), n_joined)
        return LeafProof(leaf.kind, leaf.evidence.joined(joined, n_joined, inside))

    def _group_map(self, domain: PairDomain) -> Ints:
        """Return the group of the domain for every group of the root, ordered by first points."""
        rows = np.empty(self._presolved.reduced.n_groups, dtype=np.int64)
        rows[np.argsort(self._presolved.group_representatives)] = np.arange(len(rows))
        pairs = rows[self._presolved.group_of_point[_pair_array(domain.must_link)]]
        return must_link_groups(len(rows), pairs)

    def _within_group_costs(self, groups: Ints, count: int) -> Floats:
        """Return the sum of squares of every group about its mean, over the groups of the root."""
        order = np.argsort(self._presolved.group_representatives)
        reduced = self._presolved.reduced
        weights = reduced.weights[order]
        masses = np.bincount(groups, weights, count)
        total = np.zeros(count)
        for column in reduced.points[order].T:
            means = np.bincount(groups, weights * column, count) / masses
            total += np.bincount(groups, weights * (column - means[groups]) ** 2, count)
        return total

    def _compute_bound(
        self,
        presolved: PresolvedProblem,
        inputs: BoundInput,
        task: NodeTask[PairDomain],
        centers: Floats,
    ) -> BoundResult:
        """Compute the selected bound."""
        reduced, bound = presolved.reduced, self._bound
        cutoff = presolved.presolve_bound(task.cutoff)
        if cutoff <= 0.0:  # the cost inside groups is enough
            return BoundResult(0.0, LeafProof("trivial"))
        inner = self._map_warm_start(task.warm_start, presolved, centers)
        whole = Domain.root(reduced)
        ctx = BoundContext(task.stop)
        found = bound.compute(bound.setup(inputs), whole, cutoff, ctx, inner)
        # There are feasible labels: an infinite bound can only mean "nothing below the cutoff".
        return replace(found, value=cutoff) if np.isposinf(found.value) else found

    def _map_warm_start(
        self,
        warm_start: PairWarmStart | None,
        after: PresolvedProblem,
        centers: Floats,
    ) -> Any:
        """Return the warm start of the parent in terms of the groups of this problem."""
        if warm_start is None or warm_start.inner is None:
            return None
        before = warm_start.domain.apply_to(self._presolved)
        assert before is not None  # it has been bounded
        joined = np.empty(before.reduced.n_groups, dtype=np.int64)
        kept = self._presolved.group_of_point < self._presolved.reduced.n_groups
        joined[before.group_of_point[kept]] = after.group_of_point[kept]
        return self._bound.map_warm_start(
            warm_start.inner, before.reduced, after.reduced, joined, centers
        )


def _pair_array(pairs: tuple[Pair, ...]) -> Ints:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _choose_split(presolved: PresolvedProblem, found: BoundResult) -> PairSplit | None:
    """Choose a pair of points, or None if all are decided."""
    return _original_split(presolved, choose_branching_pair(presolved.reduced, found))


def _original_split(presolved: PresolvedProblem, pair: Pair | None) -> PairSplit | None:
    """Return a pair of groups as a pair of original points, the first of each."""
    if pair is None:
        return None
    first, second = np.sort(presolved.group_representatives[list(pair)]).tolist()
    return PairSplit(first, second)
