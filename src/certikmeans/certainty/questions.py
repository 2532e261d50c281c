"""Which pair to ask for next: those whose answer decides most.

A point in doubt is asked about together with a point that stands for a cluster it can be in. "Yes"
puts it there; "no" leaves one cluster fewer. Everything that is certain is answered already, and so
is what a given pair says: points of one must-link group are one question, a cannot-link to the
group that stands for a cluster is a "no". Of two groups with a cannot-link between them that can be
in the same two clusters, the answer for one is the answer for the other: one question.

Points are in doubt where certainty says that they can be elsewhere: the least costly first, a group
for all its points. Where certainty has nothing to say, what it costs to move the group alone takes
its place: a labelling that is known to exist, so a doubt that is real, though not all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty.report import Certainty
from certikmeans.presolve.must_link import must_link_groups
from certikmeans.problem import Problem

Labels = NDArray[np.int64]
Neighbours = Mapping[int, Set[int]]


@final
@dataclass(frozen=True, slots=True)
class Question:
    """Do these two points belong together?

    ``point`` is in doubt; ``example`` stands for ``cluster``. An answer decides something about
    ``points``: the point, and those that must link with it. ``settles``: whatever it is, they are
    placed.
    """

    point: int
    example: int
    cluster: int
    points: int
    settles: bool

    @property
    def pair(self) -> tuple[int, int]:
        """The two points."""
        return self.point, self.example


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Doubts:
    """What it costs to have each group in each cluster, and which of that is still open."""

    group_of: Labels  # (n_points,)
    first: Labels  # (n_groups,): smallest row
    sizes: Labels  # (n_groups,)
    home: Labels  # (n_groups,): cluster
    price: NDArray[np.float64]  # (n_groups, n_clusters)
    open: NDArray[np.bool_]  # (n_groups, n_clusters)


def find_questions(
    problem: Problem, labels: Labels, centers: NDArray[np.float64], sure: Certainty, most: int
) -> tuple[Question, ...]:
    """At most ``most`` pairs, those that decide most first."""
    doubts = _doubts(problem, labels, centers, sure)
    examples = _examples(problem, labels, centers, doubts)
    apart = _known_apart(problem, doubts)
    away = doubts.price.copy()
    away[np.arange(len(away)), doubts.home] = np.inf
    cheapest = np.where(doubts.open, away, np.inf).min(axis=1)
    # Cheap doubts of large groups first; a group that nothing keeps in place comes before all.
    order = np.argsort(cheapest / doubts.sizes, kind="stable")
    rounds: list[list[Question]] = [[] for _ in range(problem.n_clusters)]
    placed: set[int] = set()  # groups that the questions so far place, whatever the answers
    asked: set[frozenset[int]] = set()  # two that stand for clusters may ask for each other
    for s in order[np.isfinite(cheapest[order])].tolist():
        if len(rounds[0]) >= most:
            break
        if _follows(doubts, apart, placed, s):
            placed.add(s)
            continue
        clusters = _worth_asking(doubts, examples, apart, s)
        if len(clusters) == 1:
            placed.add(s)
        for turn, k in enumerate(clusters):
            pair = frozenset((s, int(doubts.group_of[examples[k]])))
            if pair not in asked:
                asked.add(pair)
                question = Question(
                    int(doubts.first[s]), int(examples[k]), k, int(doubts.sizes[s]),
                    settles=len(clusters) == 1,
                )  # fmt: skip
                rounds[turn].append(question)
    return tuple([question for turn in rounds for question in turn][: max(0, most)])


def _worth_asking(doubts: _Doubts, examples: Labels, apart: Neighbours, s: int) -> list[int]:
    """Clusters to ask group ``s`` about, in order; the last one follows from the others."""
    # A cannot-link to the example is a "no" already.
    near = apart.get(s, frozenset())
    clusters = [
        k
        for k in np.argsort(doubts.price[s], kind="stable").tolist()
        if doubts.open[s, k] and examples[k] >= 0 and int(doubts.group_of[examples[k]]) not in near
    ]
    # Its own cluster first: the likeliest answer places it.
    home = int(doubts.home[s])
    clusters.sort(key=lambda k: k != home)
    itself = [k for k in clusters if int(doubts.group_of[examples[k]]) == s]
    # Who stands for a cluster cannot be compared with it: the others are, one by one.
    return [k for k in clusters if k not in itself] if itself else clusters[:-1]


def _follows(doubts: _Doubts, apart: Neighbours, placed: set[int], s: int) -> bool:
    """Whether the place of a neighbour, which will be known, leaves one cluster only."""
    mine = doubts.open[s]
    return int(mine.sum()) == 2 and any(
        t in placed and np.array_equal(doubts.open[t], mine) for t in apart.get(s, ())
    )


def _doubts(
    problem: Problem, labels: Labels, centers: NDArray[np.float64], sure: Certainty
) -> _Doubts:
    group_of = must_link_groups(problem.n_points, problem.must_link)
    n_groups = int(group_of.max()) + 1
    first = np.full(n_groups, problem.n_points)
    np.minimum.at(first, group_of, np.arange(problem.n_points))
    sizes = np.bincount(group_of, minlength=n_groups)
    home, price = labels[first], sure.prices[first]
    open_to = sure.possible[first].copy()
    # Where clusters cannot be told apart, proofs do not say who is in doubt; what it costs to move
    # one group does.
    merged = {k for family in sure.families if len(family) > 1 for k in family}
    if merged:
        alone = _costs_of_moving(problem, labels, centers, group_of, n_groups)
        blind = np.isin(home, list(merged))
        price = np.where(blind[:, None], alone, price)
        near = np.argsort(alone, axis=1, kind="stable")[:, :2]
        two = np.zeros_like(open_to)
        np.put_along_axis(two, near, True, axis=1)
        two[np.arange(n_groups), home] = True
        open_to = np.where(blind[:, None], two, open_to)
    # Points of weight 0 cost nothing wherever they are: no answer changes what is paid.
    weightless = np.bincount(group_of, problem.weights, n_groups) == 0.0
    open_to[weightless] = False
    return _Doubts(group_of, first, sizes, home, price, open_to)


def _costs_of_moving(
    problem: Problem,
    labels: Labels,
    centers: NDArray[np.float64],
    group_of: Labels,
    n_groups: int,
) -> NDArray[np.float64]:
    """What the whole costs more if one group alone goes to another cluster; cannot-links aside."""
    k = problem.n_clusters
    mass = np.bincount(group_of, problem.weights, n_groups)
    safe = np.where(mass > 0.0, mass, 1.0)
    means = np.stack(
        [np.bincount(group_of, problem.weights * column, n_groups) for column in problem.points.T],
        axis=1,
    ) / safe[:, None]  # fmt: skip
    masses = np.bincount(labels, problem.weights, k)
    first = np.full(n_groups, problem.n_points)
    np.minimum.at(first, group_of, np.arange(problem.n_points))
    home = labels[first]
    squares = np.stack([np.sum((means - centre) ** 2, axis=1) for centre in centers], axis=1)
    squares = np.where(np.isnan(squares), 0.0, squares)
    joining = mass[:, None] * masses / np.maximum(masses + mass[:, None], 1e-300) * squares
    rows, left = np.arange(n_groups), masses[home] - mass
    some = left > 1e-12 * masses[home]  # others stay; else it leaves nothing behind, at no cost
    leaving = np.where(some, mass * masses[home] / np.where(some, left, 1.0), 0.0)
    leaving *= squares[rows, home]
    price: NDArray[np.float64] = np.maximum(0.0, joining - leaving[:, None])
    price[rows, home] = 0.0
    return price


def _examples(
    problem: Problem, labels: Labels, centers: NDArray[np.float64], doubts: _Doubts
) -> Labels:
    """A point for each cluster: of those that are hardest to move, the one nearest to the centre.

    -1 for a cluster without points.
    """
    examples = np.full(problem.n_clusters, -1)
    decided = doubts.open.sum(axis=1) <= 1
    away = doubts.price.copy()
    away[np.arange(len(away)), doubts.home] = np.inf
    firmness = np.where(decided, np.inf, np.where(doubts.open, away, np.inf).min(axis=1))
    for k in range(problem.n_clusters):
        members = np.flatnonzero((labels == k) & (problem.weights > 0.0))
        if len(members) == 0:
            continue
        firm = firmness[doubts.group_of[members]]
        best = members[firm >= np.quantile(firm, 0.5, method="lower")]
        distance = np.sum((problem.points[best] - centers[k]) ** 2, axis=1)
        examples[k] = best[int(np.argmin(distance))]
    return examples


def _known_apart(problem: Problem, doubts: _Doubts) -> Neighbours:
    """For every group, the groups that it has a cannot-link with."""
    apart: dict[int, set[int]] = {}
    for a, b in doubts.group_of[problem.cannot_link].tolist():
        apart.setdefault(a, set()).add(b)
        apart.setdefault(b, set()).add(a)
    return apart
