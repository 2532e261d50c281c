"""Crossover of two solutions: matched centers, hyperplane cuts and partition crossover."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.heuristics.base import Centers
from certikmeans.heuristics.local_search import LocalOptimum
from certikmeans.kernels.costs import cluster_costs
from certikmeans.kernels.graph import overlap_components
from certikmeans.kernels.lloyd.seeding import pick_by_cost
from certikmeans.problem import ReducedProblem

# Up to this many centres all permutations are tried: faster than loading scipy.optimize.
MAX_ENUMERATED = 6


@final
@dataclass(frozen=True, slots=True)
class CrossoverParams:
    """Settings of the partition crossover."""

    # Two clusters belong to one region if their overlap exceeds this fraction of the smaller one.
    # With 0 regions are exact. If that joins all clusters into one region, small overlaps at
    # borders are ignored, and gains become estimates. Tried in order.
    overlap_thresholds: tuple[float, ...] = (0.0, 0.05, 0.2)
    min_relative_gain: float = 1e-9  # of the total cost; regions that differ by less are equal
    max_partners: int = 12  # fragments of either sign that are combined

    def __post_init__(self) -> None:
        if not self.overlap_thresholds or self.overlap_thresholds[0] != 0.0:
            raise ValueError("overlap_thresholds must begin with 0: only exact regions are pooled")


DEFAULT_PARAMS = CrossoverParams()


def match_centers(first: Centers, second: Centers) -> Ints:
    """Match centres one to one with the least sum of squared distances.

    >>> match_centers(np.array([[0.0], [5.0], [9.0]]), np.array([[8.0], [1.0], [4.0]]))
    array([1, 2, 0])
    """
    away = first[:, None, :] - second[None, :, :]
    costs = np.einsum("ijk,ijk->ij", away, away)
    if len(costs) <= MAX_ENUMERATED:
        orders = _permutations(len(costs))
        totals = costs[np.arange(len(costs)), orders].sum(axis=1)
        return np.asarray(orders[int(np.argmin(totals))])
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(costs)[1], dtype=np.int64)


@cache
def _permutations(n: int) -> Ints:
    found = np.array(list(permutations(range(n))), dtype=np.int64)
    found.flags.writeable = False
    return found


def crossover_mutate(
    problem: ReducedProblem, first: Centers, second: Centers, rng: np.random.Generator
) -> Centers:
    """Crossover and mutation of HG-means (Gribel and Vidal 2019).

    Of every matched pair of centres one is taken at random. Then one centre is moved to a group
    drawn in proportion to its cost without that centre.
    """
    partner = match_centers(first, second)
    from_first = rng.random(len(first)) < 0.5
    child = np.where(from_first[:, None], first, second[partner])
    moved = int(rng.integers(len(child)))
    row = pick_by_cost(problem.points, problem.weights, child, moved, float(rng.random()))
    child[moved] = problem.points[row]
    return child


def hyperplane_crossover(first: Centers, second: Centers, rng: np.random.Generator) -> Centers:
    """Take centres of one parent on one side of a random hyperplane, of the other on the other."""
    partner = match_centers(first, second)
    along = (first + second[partner]) @ rng.normal(size=first.shape[1])
    quantile = rng.uniform(0.2, 0.8)
    from_first = along <= np.quantile(along, quantile)
    return np.where(from_first[:, None], first, second[partner])


# Partition crossover takes the better of two labellings in every region where they differ.
#
# Two good labellings with many clusters agree nearly everywhere. Where they do not, the clusters of
# the one that share groups with clusters of the other form regions, and regions are nearly
# independent of each other. So each region can be taken from the labelling that is cheaper there:
# for labellings that differ in r regions, this finds the best of 2^r combinations at once. The
# model is the partition crossover for tours (Whitley, Hains and Howe 2009).
#
# A region may have a cluster more, or one less, than what it replaces. Such fragments are pooled
# until they can be paired: of K ways to add a cluster somewhere and K ways to remove one elsewhere,
# each tried once, the best of all K^2 swaps is known.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """Clusters of a labelling, and centres that could replace them."""

    replaced: tuple[int, ...]
    centers: Centers
    gain: float  # estimated decrease in cost

    @property
    def extra_clusters(self) -> int:
        """Number of centres minus number of replaced clusters."""
        return len(self.centers) - len(self.replaced)


FragmentKey = tuple[int, tuple[int, ...]]  # extra clusters, replaced clusters


def costs_by_cluster(problem: ReducedProblem, optimum: LocalOptimum) -> Floats:
    """Cost of every cluster."""
    costs = np.empty(problem.n_clusters)
    cluster_costs(problem.points, problem.weights, optimum.centers, optimum.labels, costs)
    return costs


@final
class FragmentPool:
    """Fragments with unbalanced cluster counts for one labelling, kept until they can be paired."""

    def __init__(
        self,
        problem: ReducedProblem,
        best: LocalOptimum,
        params: CrossoverParams = DEFAULT_PARAMS,
    ) -> None:
        self.best = best
        self._problem = problem
        self._params = params
        self._costs = costs_by_cluster(problem, best)
        self._min_gain = params.min_relative_gain * best.cost
        self._unpaired: dict[FragmentKey, Fragment] = {}
        self._tried: set[tuple[float, ...]] = set()

    def saved(self) -> tuple[dict[FragmentKey, Fragment], set[tuple[float, ...]]]:
        """State for `restore`: unpaired fragments, and signatures of combinations already tried."""
        return dict(self._unpaired), set(self._tried)

    def restore(self, unpaired: dict[FragmentKey, Fragment], tried: set[tuple[float, ...]]) -> None:
        """Continue from the state of a pool for the same labelling."""
        self._unpaired, self._tried = dict(unpaired), set(tried)

    def combined(self, other: LocalOptimum) -> Centers | None:
        """Best untried combination with the regions of ``other``, or None."""
        for min_overlap in self._params.overlap_thresholds:
            found = self._differing_fragments(other, min_overlap)
            chosen = [one for one in found if one.extra_clusters == 0 and len(one.replaced) > 1]
            if min_overlap == 0.0:
                self._store([one for one in found if one.extra_clusters != 0])
                chosen += self._partners({number for one in chosen for number in one.replaced})
            signature = tuple(fragment.gain for fragment in chosen)
            if chosen and signature not in self._tried:
                self._tried.add(signature)
                return self._apply(chosen)
        return None

    def _differing_fragments(self, other: LocalOptimum, min_overlap: float) -> list[Fragment]:
        """Regions in which ``other`` differs from the best and gains, or has a cluster less."""
        k = self._problem.n_clusters
        overlap = np.bincount(self.best.labels * k + other.labels, self._problem.weights, k * k)
        region_of = np.empty(2 * k, dtype=np.int64)
        count = overlap_components(overlap.reshape(k, k), min_overlap, region_of)
        ours, theirs = region_of[:k], region_of[k:]
        gains = np.bincount(ours, self._costs, count)
        gains -= np.bincount(theirs, costs_by_cluster(self._problem, other), count)
        extra = np.bincount(theirs, minlength=count) - np.bincount(ours, minlength=count)
        useful = ((gains > self._min_gain) & (extra >= 0) & (extra <= 1)) | (extra == -1)
        return [
            Fragment(
                tuple(np.flatnonzero(ours == number).tolist()),
                other.centers[theirs == number],
                float(gains[number]),
            )
            for number in np.flatnonzero(useful).tolist()
        ]

    def _apply(self, fragments: list[Fragment]) -> Centers:
        """Centres of the best with disjoint fragments inserted; their number must not change."""
        retained = np.ones(len(self.best.centers), dtype=bool)
        for fragment in fragments:
            retained[list(fragment.replaced)] = False
        inserted = (fragment.centers for fragment in fragments)
        return np.concatenate([self.best.centers[retained], *inserted])

    def _store(self, fragments: list[Fragment]) -> None:
        for fragment in fragments:
            key = (fragment.extra_clusters, fragment.replaced)
            known = self._unpaired.get(key)
            if known is None or fragment.gain > known.gain:
                self._unpaired[key] = fragment

    def _partners(self, taken: set[int]) -> list[Fragment]:
        """Pairs of a fragment with a cluster more and one with a cluster less that gain together.

        They are disjoint from each other and from the clusters in ``taken``.
        """
        by_gain = sorted(self._unpaired.values(), key=lambda fragment: -fragment.gain)
        most = self._params.max_partners
        with_extra = [fragment for fragment in by_gain if fragment.extra_clusters == 1][:most]
        with_fewer = [fragment for fragment in by_gain if fragment.extra_clusters == -1][:most]
        pairs = [(one.gain + two.gain, one, two) for one in with_extra for two in with_fewer]
        chosen: list[Fragment] = []
        for gain, one, two in sorted(pairs, key=lambda pair: -pair[0]):
            if gain <= self._min_gain:
                break
            numbers = one.replaced + two.replaced
            if len(set(numbers)) == len(numbers) and not taken & set(numbers):
                chosen += [one, two]
                taken |= set(numbers)
        return chosen
