"""Selection of pair queries for active learning: those whose answer decides most.

An uncertain point is paired with a representative of a cluster that it can be in. "Yes" assigns it
there; "no" excludes this cluster. Fixed assignments need no query, and known pairs answer some:
points of one must-link group share one query, a cannot-link to the group of a representative is a
"no". Of two groups with a cannot-link between them that can be in the same two clusters, the answer
for one is the answer for the other: one query.

Points are uncertain where certainty allows several clusters: the cheapest reassignment first, a
group for all its points. Where certainty excludes nothing, the cost of moving the group alone takes
its place: a labelling that exists, so the uncertainty is real, though there may be more.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._html import html_table
from certikmeans._numbers import count
from certikmeans._types import Floats, Ints, Mask
from certikmeans.certainty.report import Certainty
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.problem import Problem

Labels = Ints
Neighbors = Mapping[int, Set[int]]


@final
@dataclass(frozen=True, slots=True)
class PairQuery:
    """A question: are these two points in the same cluster?

    ``point`` is uncertain; ``example`` represents ``cluster``. An answer affects ``points`` points:
    those that must link with ``point``. ``settles``: any answer fixes their cluster.
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

    def _repr_html_(self) -> str:
        rows = [
            ("question", f"are points {self.point} and {self.example} in the same cluster?"),
            ("cluster", f"{self.cluster}, which point {self.example} represents"),
            ("decides", count(self.points, "point")),
            ("any answer fixes their cluster", "yes" if self.settles else "no"),
        ]
        return html_table(rows)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _OpenAssignments:
    """Cost of having each group in each cluster, and which assignments are undecided."""

    group_of: Labels  # (n_points,)
    first: Labels  # (n_groups,): smallest row
    sizes: Labels  # (n_groups,)
    own_cluster: Labels  # (n_groups,): cluster
    move_cost: Floats  # (n_groups, n_clusters)
    undecided: Mask  # (n_groups, n_clusters)


def select_queries(
    problem: Problem, labels: Labels, centers: Floats, certainty: Certainty, most: int
) -> tuple[PairQuery, ...]:
    """Return at most ``most`` queries, those that decide most first."""
    assignments = _open_assignments(problem, labels, centers, certainty)
    representatives = _representatives(problem, labels, centers, assignments)
    neighbors = _cannot_link_neighbors(problem, assignments)
    away = assignments.move_cost.copy()
    away[np.arange(len(away)), assignments.own_cluster] = np.inf
    cheapest = np.where(assignments.undecided, away, np.inf).min(axis=1)
    # Cheap reassignments of large groups first.
    order = np.argsort(cheapest / assignments.sizes, kind="stable")
    rounds: list[list[PairQuery]] = [[] for _ in range(problem.n_clusters)]
    placed: set[int] = set()  # groups that the queries so far fix, whatever the answers
    queried: set[frozenset[int]] = set()  # two representatives may be paired with each other
    for s in order[np.isfinite(cheapest[order])].tolist():
        if len(rounds[0]) >= most:
            break
        if _is_implied(assignments, neighbors, placed, s):
            placed.add(s)
            continue
        clusters = _clusters_to_query(assignments, representatives, neighbors, s)
        if len(clusters) == 1:
            placed.add(s)
        for turn, k in enumerate(clusters):
            pair = frozenset((s, int(assignments.group_of[representatives[k]])))
            if pair not in queried:
                queried.add(pair)
                query = PairQuery(
                    point=int(assignments.first[s]),
                    example=int(representatives[k]),
                    cluster=k,
                    points=int(assignments.sizes[s]),
                    settles=len(clusters) == 1,
                )
                rounds[turn].append(query)
    return tuple([query for turn in rounds for query in turn][: max(0, most)])


def _clusters_to_query(
    assignments: _OpenAssignments, representatives: Labels, neighbors: Neighbors, s: int
) -> list[int]:
    """Clusters to pair group ``s`` with, in order; the last one follows from the others."""
    # A cannot-link to the representative is a "no" already.
    near = neighbors.get(s, frozenset())
    clusters = [
        k
        for k in np.argsort(assignments.move_cost[s], kind="stable").tolist()
        if assignments.undecided[s, k]
        and representatives[k] >= 0
        and int(assignments.group_of[representatives[k]]) not in near
    ]
    # Its own cluster first: the most likely answer fixes the group.
    own_cluster = int(assignments.own_cluster[s])
    clusters.sort(key=lambda k: k != own_cluster)
    itself = [k for k in clusters if int(assignments.group_of[representatives[k]]) == s]
    # A representative cannot be compared with its own cluster: compare it with all others.
    return [k for k in clusters if k not in itself] if itself else clusters[:-1]


def _is_implied(
    assignments: _OpenAssignments, neighbors: Neighbors, placed: set[int], s: int
) -> bool:
    """Whether the assignment of a neighbor, which the queries fix, leaves only one cluster."""
    mine = assignments.undecided[s]
    return int(mine.sum()) == 2 and any(
        t in placed and np.array_equal(assignments.undecided[t], mine) for t in neighbors.get(s, ())
    )


def _open_assignments(
    problem: Problem, labels: Labels, centers: Floats, certainty: Certainty
) -> _OpenAssignments:
    group_of = must_link_groups(problem.n_points, problem.must_link)
    n_groups = int(group_of.max()) + 1
    first = np.full(n_groups, problem.n_points)
    np.minimum.at(first, group_of, np.arange(problem.n_points))
    sizes = np.bincount(group_of, minlength=n_groups)
    own_cluster, move_cost = labels[first], certainty.prices[first]
    undecided = certainty.possible[first].copy()
    # Where clusters cannot be separated, certainty does not say which points are uncertain; the
    # cost of moving one group does.
    merged = {k for family in certainty.families if len(family) > 1 for k in family}
    if merged:
        single_move = _single_move_costs(problem, labels, centers, group_of, n_groups)
        unresolved = np.isin(own_cluster, list(merged))
        move_cost = np.where(unresolved[:, None], single_move, move_cost)
        near = np.argsort(single_move, axis=1, kind="stable")[:, :2]
        two = np.zeros_like(undecided)
        np.put_along_axis(two, near, True, axis=1)
        two[np.arange(n_groups), own_cluster] = True
        undecided = np.where(unresolved[:, None], two, undecided)
    # Points of weight 0 cost nothing in any cluster: no answer changes the cost.
    weightless = np.bincount(group_of, problem.weights, n_groups) == 0.0
    undecided[weightless] = False
    return _OpenAssignments(group_of, first, sizes, own_cluster, move_cost, undecided)


def _single_move_costs(
    problem: Problem,
    labels: Labels,
    centers: Floats,
    group_of: Labels,
    n_groups: int,
) -> Floats:
    """Increase of the cost if one group moves to another cluster; ignores cannot-links."""
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
    own_cluster = labels[first]
    squares = np.stack([np.sum((means - center) ** 2, axis=1) for center in centers], axis=1)
    squares = np.where(np.isnan(squares), 0.0, squares)
    joining = mass[:, None] * masses / np.maximum(masses + mass[:, None], 1e-300) * squares
    rows, left = np.arange(n_groups), masses[own_cluster] - mass
    # Without other members, a group leaves an empty cluster at no cost.
    some = left > 1e-12 * masses[own_cluster]
    leaving = np.where(some, mass * masses[own_cluster] / np.where(some, left, 1.0), 0.0)
    leaving *= squares[rows, own_cluster]
    move_cost: Floats = np.maximum(0.0, joining - leaving[:, None])
    move_cost[rows, own_cluster] = 0.0
    return move_cost


def _representatives(
    problem: Problem, labels: Labels, centers: Floats, assignments: _OpenAssignments
) -> Labels:
    """A point for each cluster: of those that are hardest to move, the one nearest to the center.

    -1 for a cluster without points.
    """
    representatives = np.full(problem.n_clusters, -1)
    decided = assignments.undecided.sum(axis=1) <= 1
    away = assignments.move_cost.copy()
    away[np.arange(len(away)), assignments.own_cluster] = np.inf
    min_move_cost = np.where(
        decided, np.inf, np.where(assignments.undecided, away, np.inf).min(axis=1)
    )
    for k in range(problem.n_clusters):
        members = np.flatnonzero((labels == k) & (problem.weights > 0.0))
        if len(members) == 0:
            continue
        member_cost = min_move_cost[assignments.group_of[members]]
        best = members[member_cost >= np.quantile(member_cost, 0.5, method="lower")]
        distance = np.sum((problem.points[best] - centers[k]) ** 2, axis=1)
        representatives[k] = best[int(np.argmin(distance))]
    return representatives


def _cannot_link_neighbors(problem: Problem, assignments: _OpenAssignments) -> Neighbors:
    """For every group, the groups that it has a cannot-link with."""
    neighbors: dict[int, set[int]] = {}
    for a, b in assignments.group_of[problem.cannot_link].tolist():
        neighbors.setdefault(a, set()).add(b)
        neighbors.setdefault(b, set()).add(a)
    return neighbors
