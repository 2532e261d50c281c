"""Crossover of two solutions: matched centers, hyperplane cuts and partition crossover."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.heuristics.base import Centers
from certikmeans.heuristics.local_search import LocalOptimum
from certikmeans.kernels.lloyd.neighborhood_moves import join_regions, sum_of_squares
from certikmeans.kernels.lloyd.seeding import pick_by_cost
from certikmeans.problem import ReducedProblem

# Up to here all orders are tried: sooner done than the library for more is loaded.
MAX_ENUMERATED = 6


def match_centers(first: Centers, second: Centers) -> NDArray[np.int64]:
    """For every centre of the first, one of the second: squared distances add up to the least.

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
def _permutations(n: int) -> NDArray[np.int64]:
    found = np.array(list(permutations(range(n))), dtype=np.int64)
    found.flags.writeable = False
    return found


# Children of two labellings: centres of the one or of the other, pair by pair, one of them moved.
#
# The model is HG-means (Gribel and Vidal 2019).


def crossover_mutate(
    problem: ReducedProblem, first: Centers, second: Centers, rng: np.random.Generator
) -> Centers:
    """Centres of either parent at random, paired by distance; then one is moved to where it pays.

    The centre that is moved goes to a group, drawn by what groups cost without it.
    """
    partner = match_centers(first, second)
    from_first = rng.random(len(first)) < 0.5
    child = np.where(from_first[:, None], first, second[partner])
    moved = int(rng.integers(len(child)))
    row = pick_by_cost(problem.points, problem.weights, child, moved, float(rng.random()))
    child[moved] = problem.points[row]
    return child


def hyperplane_crossover(first: Centers, second: Centers, rng: np.random.Generator) -> Centers:
    """Centres of the one on this side of a line, of the other beyond it."""
    partner = match_centers(first, second)
    along = (first + second[partner]) @ rng.normal(size=first.shape[1])
    share = rng.uniform(0.2, 0.8)
    mine = along <= np.quantile(along, share)
    return np.where(mine[:, None], first, second[partner])


# Crossover by regions: of two labellings, the better one wherever they differ.
#
# Two good labellings with many clusters agree nearly everywhere. Where they do not, the clusters of
# the one that share groups with clusters of the other form regions, and what happens in one region
# hardly matters to the next. So a region can be taken over from the one that is cheaper there: of
# two labellings that differ in r regions, the best of 2^r mixtures takes one look. The model is the
# partition crossover for tours (Whitley, Hains and Howe 2009).
#
# A region may have a cluster more, or one less, than what it replaces. Such pieces are kept until a
# partner comes along: of K ways to add a cluster somewhere and K ways to do without one elsewhere,
# each tried once, the best of all K^2 swaps is known.

# Two clusters belong to one region if they share more than this part of the smaller one. With 0
# regions are exact. If that joins everything to everything, groups at a border that are dealt out
# differently are let pass: gains are estimates then.
OVERLAP_THRESHOLDS = (0.0, 0.05, 0.2)
# A region that is cheaper by less, as a part of the whole cost, is the same.
MIN_RELATIVE_GAIN = 1e-9
# Pieces of either kind that are combined.
MAX_PARTNERS = 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """Clusters of a labelling, and what could stand in their place."""

    replaced: tuple[int, ...]
    centers: Centers
    gain: float  # decrease in cost, about

    @property
    def extra_clusters(self) -> int:
        """Clusters more than before."""
        return len(self.centers) - len(self.replaced)


def cluster_costs(problem: ReducedProblem, optimum: LocalOptimum) -> NDArray[np.float64]:
    """Cost of every cluster."""
    costs = np.empty(problem.n_clusters)
    sum_of_squares(problem.points, problem.weights, optimum.centers, optimum.labels, costs)
    return costs


def differing_fragments(
    problem: ReducedProblem,
    best: LocalOptimum,
    costs: NDArray[np.float64],
    other: LocalOptimum,
    min_overlap: float,
) -> list[Fragment]:
    """Regions in which ``other`` differs from ``best``, whose clusters cost ``costs``.

    Those that gain nothing are left out, unless they have a cluster less.
    """
    k = problem.n_clusters
    overlap = np.bincount(best.labels * k + other.labels, problem.weights, k * k).reshape(k, k)
    region_of = np.empty(2 * k, dtype=np.int64)
    count = join_regions(overlap, min_overlap, region_of)
    ours, theirs = region_of[:k], region_of[k:]
    gains = np.bincount(ours, costs, count)
    gains -= np.bincount(theirs, cluster_costs(problem, other), count)
    extra_clusters = np.bincount(theirs, minlength=count) - np.bincount(ours, minlength=count)
    useful = (
        (gains > MIN_RELATIVE_GAIN * best.cost) & (extra_clusters >= 0) & (extra_clusters <= 1)
    ) | (extra_clusters == -1)
    return [
        Fragment(
            tuple(np.flatnonzero(ours == number).tolist()),
            other.centers[theirs == number],
            float(gains[number]),
        )
        for number in np.flatnonzero(useful).tolist()
    ]


def apply_fragments(best: LocalOptimum, fragments: list[Fragment]) -> Centers:
    """Centres with the pieces put in; they must not overlap, nor change the number in all."""
    saved = np.ones(len(best.centers), dtype=bool)
    for fragment in fragments:
        saved[list(fragment.replaced)] = False
    return np.concatenate([best.centers[saved], *(fragment.centers for fragment in fragments)])


@final
class FragmentPool:
    """Pieces found so far for one labelling, waiting for a partner."""

    def __init__(self, problem: ReducedProblem, best: LocalOptimum) -> None:
        self.best = best
        self._problem = problem
        self._costs = cluster_costs(problem, best)
        self._min_gain = MIN_RELATIVE_GAIN * best.cost
        self._unpaired: dict[tuple[int, tuple[int, ...]], Fragment] = {}
        self._tried: set[tuple[float, ...]] = set()

    def saved(self) -> tuple[dict[tuple[int, tuple[int, ...]], Fragment], set[tuple[float, ...]]]:
        """What the pool would need to go on: pieces that wait, and mixtures that were tried."""
        return dict(self._unpaired), set(self._tried)

    def restore(
        self,
        unpaired: dict[tuple[int, tuple[int, ...]], Fragment],
        tried: set[tuple[float, ...]],
    ) -> None:
        """Go on where a pool for the same labelling was."""
        self._unpaired, self._tried = dict(unpaired), set(tried)

    def combined(self, other: LocalOptimum) -> Centers | None:
        """Best centres known now, with what ``other`` has; None: nothing new that is better."""
        for min_overlap in OVERLAP_THRESHOLDS:
            found = differing_fragments(self._problem, self.best, self._costs, other, min_overlap)
            chosen = [one for one in found if one.extra_clusters == 0 and len(one.replaced) > 1]
            if min_overlap == 0.0:
                self._store([one for one in found if one.extra_clusters != 0])
                chosen += self._partners({number for one in chosen for number in one.replaced})
            signature = tuple(fragment.gain for fragment in chosen)
            if chosen and signature not in self._tried:
                self._tried.add(signature)
                return apply_fragments(self.best, chosen)
        return None

    def _store(self, fragments: list[Fragment]) -> None:
        for fragment in fragments:
            key = (fragment.extra_clusters, fragment.replaced)
            known = self._unpaired.get(key)
            if known is None or fragment.gain > known.gain:
                self._unpaired[key] = fragment

    def _partners(self, taken: set[int]) -> list[Fragment]:
        """Pieces with a cluster more and as many with one less, that gain together."""
        by_gain = sorted(self._unpaired.values(), key=lambda fragment: -fragment.gain)
        with_extra = [fragment for fragment in by_gain if fragment.extra_clusters == 1][
            :MAX_PARTNERS
        ]
        with_fewer = [fragment for fragment in by_gain if fragment.extra_clusters == -1][
            :MAX_PARTNERS
        ]
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
