"""Crossover by regions: of two labellings, the better one wherever they differ.

Two good labellings with many clusters agree nearly everywhere. Where they do not, the clusters of
the one that share groups with clusters of the other form regions, and what happens in one region
hardly matters to the next. So a region can be taken over from the one that is cheaper there: of
two labellings that differ in r regions, the best of 2^r mixtures takes one look. The model is the
partition crossover for tours (Whitley, Hains and Howe 2009).

A region may have a cluster more, or one less, than what it replaces. Such pieces are kept until a
partner comes along: of K ways to add a cluster somewhere and K ways to do without one elsewhere,
each tried once, the best of all K^2 swaps is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.heuristics.base import Centers
from certikmeans.heuristics.local_search import LocalOptimum
from certikmeans.kernels.lloyd.near_moves import cost_of, join_regions
from certikmeans.problem import ReducedProblem

# Two clusters belong to one region if they share more than this part of the smaller one. With 0
# regions are exact. If that joins everything to everything, groups at a border that are dealt out
# differently are let pass: gains are estimates then.
SHARED = (0.0, 0.05, 0.2)
# A region that is cheaper by less, as a part of the whole cost, is the same.
LEAST_GAIN = 1e-9
# Pieces of either kind that are combined.
PARTNERS = 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Clusters of a labelling, and what could stand in their place."""

    replaced: tuple[int, ...]
    centers: Centers
    gain: float  # decrease in cost, about

    @property
    def more(self) -> int:
        """Clusters more than before."""
        return len(self.centers) - len(self.replaced)


def cluster_costs(problem: ReducedProblem, optimum: LocalOptimum) -> NDArray[np.float64]:
    """Cost of every cluster."""
    costs = np.empty(problem.n_clusters)
    cost_of(problem.points, problem.weights, optimum.centers, optimum.labels, costs)
    return costs


def pieces_of(
    problem: ReducedProblem,
    best: LocalOptimum,
    costs: NDArray[np.float64],
    other: LocalOptimum,
    least_shared: float,
) -> list[Piece]:
    """Regions in which ``other`` differs from ``best``, whose clusters cost ``costs``.

    Those that gain nothing are left out, unless they have a cluster less.
    """
    k = problem.n_clusters
    shared = np.bincount(best.labels * k + other.labels, problem.weights, k * k).reshape(k, k)
    region_of = np.empty(2 * k, dtype=np.int64)
    count = join_regions(shared, least_shared, region_of)
    ours, theirs = region_of[:k], region_of[k:]
    gains = np.bincount(ours, costs, count)
    gains -= np.bincount(theirs, cluster_costs(problem, other), count)
    more = np.bincount(theirs, minlength=count) - np.bincount(ours, minlength=count)
    useful = ((gains > LEAST_GAIN * best.cost) & (more >= 0) & (more <= 1)) | (more == -1)
    return [
        Piece(
            tuple(np.flatnonzero(ours == number).tolist()),
            other.centers[theirs == number],
            float(gains[number]),
        )
        for number in np.flatnonzero(useful).tolist()
    ]


def with_pieces(best: LocalOptimum, pieces: list[Piece]) -> Centers:
    """Centres with the pieces put in; they must not overlap, nor change the number in all."""
    kept = np.ones(len(best.centers), dtype=bool)
    for piece in pieces:
        kept[list(piece.replaced)] = False
    return np.concatenate([best.centers[kept], *(piece.centers for piece in pieces)])


@final
class Pool:
    """Pieces found so far for one labelling, waiting for a partner."""

    def __init__(self, problem: ReducedProblem, best: LocalOptimum) -> None:
        self.best = best
        self._problem = problem
        self._costs = cluster_costs(problem, best)
        self._least = LEAST_GAIN * best.cost
        self._waiting: dict[tuple[int, tuple[int, ...]], Piece] = {}
        self._tried: set[tuple[float, ...]] = set()

    def kept(self) -> tuple[dict[tuple[int, tuple[int, ...]], Piece], set[tuple[float, ...]]]:
        """What the pool would need to go on: pieces that wait, and mixtures that were tried."""
        return dict(self._waiting), set(self._tried)

    def go_on(
        self,
        waiting: dict[tuple[int, tuple[int, ...]], Piece],
        tried: set[tuple[float, ...]],
    ) -> None:
        """Go on where a pool for the same labelling was."""
        self._waiting, self._tried = dict(waiting), set(tried)

    def mixture(self, other: LocalOptimum) -> Centers | None:
        """Best centres known now, with what ``other`` has; None: nothing new that is better."""
        for least_shared in SHARED:
            found = pieces_of(self._problem, self.best, self._costs, other, least_shared)
            chosen = [one for one in found if one.more == 0 and len(one.replaced) > 1]
            if least_shared == 0.0:
                self._keep([one for one in found if one.more != 0])
                chosen += self._partners({number for one in chosen for number in one.replaced})
            signature = tuple(piece.gain for piece in chosen)
            if chosen and signature not in self._tried:
                self._tried.add(signature)
                return with_pieces(self.best, chosen)
        return None

    def _keep(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            key = (piece.more, piece.replaced)
            known = self._waiting.get(key)
            if known is None or piece.gain > known.gain:
                self._waiting[key] = piece

    def _partners(self, taken: set[int]) -> list[Piece]:
        """Pieces with a cluster more and as many with one less, that gain together."""
        by_gain = sorted(self._waiting.values(), key=lambda piece: -piece.gain)
        richer = [piece for piece in by_gain if piece.more == 1][:PARTNERS]
        poorer = [piece for piece in by_gain if piece.more == -1][:PARTNERS]
        pairs = [(one.gain + two.gain, one, two) for one in richer for two in poorer]
        chosen: list[Piece] = []
        for gain, one, two in sorted(pairs, key=lambda pair: -pair[0]):
            if gain <= self._least:
                break
            numbers = one.replaced + two.replaced
            if len(set(numbers)) == len(numbers) and not taken & set(numbers):
                chosen += [one, two]
                taken |= set(numbers)
        return chosen
