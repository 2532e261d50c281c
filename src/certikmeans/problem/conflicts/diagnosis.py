"""What is wrong with pairs, all at once, and which of them to remove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from certikmeans._numbers import count
from certikmeans.problem.conflicts.conflict_sets import (
    ConflictSet,
    ConflictWalks,
    StepLimitReached,
    coloring_conflicts,
)
from certikmeans.problem.conflicts.graph import IntArray, PairGraph, adjacency
from certikmeans.problem.conflicts.min_removal import min_removal
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.problem.constraints import Constraints

Pair = tuple[int, int]
PairLocator = Callable[
    [str, Pair], str
]  # kind ("must" or "cannot") and pair to where it is written

_MAX_CONFLICTS = 50
_MAX_PATH_WORK = 300_000_000  # steps for shortest paths; beyond it, paths are just paths


@final
@dataclass(frozen=True, slots=True)
class BrokenCannotLink:
    """A cannot-link whose ends are joined by must-links.

    Attributes
    ----------
    pair : tuple of int
        The cannot-link.
    path : tuple of int
        Consecutive points are must-linked; the ends are those of ``pair``.
    """

    pair: Pair
    path: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Conflict:
    """Pairs that cannot all hold with K clusters, although no cannot-link is broken.

    Attributes
    ----------
    kind : str
        ``"clique"``, ``"odd cycle"`` or ``"uncolourable set"``.
    cannot_link, must_link : tuple of pairs
        The pairs, must-links being those that tie points into groups.
    """

    kind: str
    cannot_link: tuple[Pair, ...]
    must_link: tuple[Pair, ...]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diagnosis:
    """Every conflict that was found, and a small set of pairs without which none is left.

    Attributes
    ----------
    n_clusters : int
        How many clusters there may be.
    broken : tuple of Broken
        Every cannot-link that must-links break.
    clashes : tuple of Clash
        What else is contradictory, after the broken cannot-links were set aside.
    remove_must, remove_cannot : tuple of pairs
        Without these everything can hold.
    least : int
        So many pairs have to be removed at least.
    decided : bool
        False if it is not known whether the pairs can hold.
    """

    n_clusters: int
    broken: tuple[BrokenCannotLink, ...]
    clashes: tuple[Conflict, ...]
    remove_must: tuple[Pair, ...]
    remove_cannot: tuple[Pair, ...]
    least: int
    decided: bool

    def __repr__(self) -> str:
        if self.feasible:
            return f"Diagnosis(no conflict with K={self.n_clusters})"
        found = (
            f"{count(len(self.broken), 'broken cannot-link')}, "
            f"{len(self.clashes)} {'clash' if len(self.clashes) == 1 else 'clashes'}"
        )
        proven = "no smaller set will do" if self.smallest else f"at least {self.least} have to go"
        return (
            f"Diagnosis({found} with K={self.n_clusters}; remove {count(self.size, 'pair')}, "
            f"{proven})"
        )

    @property
    def size(self) -> int:
        """How many pairs to remove."""
        return len(self.remove_must) + len(self.remove_cannot)

    @property
    def feasible(self) -> bool:
        """Whether the pairs can hold as they are."""
        return self.decided and not self.broken and not self.clashes

    @property
    def smallest(self) -> bool:
        """Whether it is proven that no smaller set of pairs can be removed."""
        return self.least == self.size

    def cleaned(self, pairs: Constraints) -> Constraints:
        """Return the pairs without those to remove."""
        from certikmeans.problem.constraints import Constraints

        return Constraints.from_pairs(
            _drop_pairs(pairs.must_link, self.remove_must),
            _drop_pairs(pairs.cannot_link, self.remove_cannot),
            pairs.n_points,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data; points are numbered from 0."""
        return {
            "feasible": self.feasible,
            "decided": self.decided,
            "n_clusters": self.n_clusters,
            "broken_cannot_links": [
                {"cannot_link": list(b.pair), "must_link_path": list(b.path)} for b in self.broken
            ],
            "clashes": [
                {
                    "kind": clash.kind,
                    "cannot_link": [list(pair) for pair in clash.cannot_link],
                    "must_link": [list(pair) for pair in clash.must_link],
                }
                for clash in self.clashes
            ],
            "remove": {
                "must_link": [list(pair) for pair in self.remove_must],
                "cannot_link": [list(pair) for pair in self.remove_cannot],
                "size": self.size,
                "at_least": self.least,
                "smallest": self.smallest,
            },
        }


def diagnose(pairs: Constraints, n_clusters: int, stop: StopSignal) -> Diagnosis:
    """Find all conflicts among pairs, and a smallest set of pairs to remove.

    Parameters
    ----------
    pairs : Constraints
        Must-links and cannot-links.
    n_clusters : int
        How many clusters there may be.
    stop : StopSignal
        When it comes, the set to remove may be larger than need be; ``least`` says by how much.
    """
    points, ends = np.unique(
        np.concatenate([pairs.must_link, pairs.cannot_link]), return_inverse=True
    )
    graph = PairGraph(len(points), ends.reshape(-1, 2), len(pairs.must_link))

    def named(e: int) -> Pair:
        u, v = points[graph.edges[e]].tolist()
        return u, v

    broken = _find_broken(graph, points)
    clashes, decided = _find_conflicts(graph, n_clusters, stop)
    conflicts_found = tuple(
        Conflict(
            kind,
            tuple(named(e) for e in sorted(row) if e >= graph.n_must),
            tuple(named(e) for e in sorted(row) if e < graph.n_must),
        )
        for kind, row in clashes
    )
    if decided and not broken and not conflicts_found:
        return Diagnosis(n_clusters, (), (), (), (), 0, True)
    removal = min_removal(graph, n_clusters, stop)
    edges = removal.edges.tolist()
    return Diagnosis(
        n_clusters,
        broken,
        conflicts_found,
        tuple(named(e) for e in edges if e < graph.n_must),
        tuple(named(e) for e in edges if e >= graph.n_must),
        removal.least,
        decided or bool(broken or conflicts_found),
    )


def _find_broken(graph: PairGraph, points: IntArray) -> tuple[BrokenCannotLink, ...]:
    """Every cannot-link inside a must-link component, with a path between its ends."""
    groups = graph.groups(np.zeros(len(graph.edges), dtype=np.bool_))
    inside = graph.cannot[groups[graph.cannot[:, 0]] == groups[graph.cannot[:, 1]]]
    if not len(inside):
        return ()
    matrix = adjacency(graph.n, graph.must, np.ones(graph.n_must))
    roots = np.unique(inside[:, 0])
    exact = len(roots) * (graph.n_must + graph.n) <= _MAX_PATH_WORK
    _, first = np.unique(groups, return_index=True)
    predecessors: dict[int, NDArray[np.int32]] = {}
    found = []
    for u, v in inside.tolist():
        root = u if exact else int(first[groups[u]])
        if root not in predecessors:
            predecessors[root] = breadth_first_order(matrix, root, directed=False)[1]
        path = _path(predecessors[root], u, v)
        named = tuple(int(points[x]) for x in path)
        found.append(BrokenCannotLink((named[0], named[-1]), named))
    return tuple(sorted(found, key=lambda b: (len(b.path), b.pair)))


def _path(predecessors: NDArray[np.int32], u: int, v: int) -> list[int]:
    """The way from ``u`` to ``v`` in a tree, by its predecessors."""
    up, down = [u], [v]
    while predecessors[up[-1]] >= 0:
        up.append(int(predecessors[up[-1]]))
    while predecessors[down[-1]] >= 0:
        down.append(int(predecessors[down[-1]]))
    while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
        up.pop()
        down.pop()
    return up + down[-2::-1]


def _find_conflicts(
    graph: PairGraph, n_clusters: int, stop: StopSignal
) -> tuple[list[tuple[str, ConflictSet]], bool]:
    """Conflicts among what is left without the broken cannot-links, and whether that is all."""
    excluded = np.zeros(len(graph.edges), dtype=np.bool_)
    groups = graph.groups(excluded)
    excluded[graph.n_must :] = groups[graph.cannot[:, 0]] == groups[graph.cannot[:, 1]]
    if n_clusters == 2:
        rows: list[ConflictSet] = []
        walks = ConflictWalks(graph, stop, doubled=True)
        while len(rows) < _MAX_CONFLICTS:
            row = next(walks.lighter_than(excluded.astype(np.float64), ~excluded, 0.5), None)
            if row is None:
                break
            rows.append(row)
            excluded[[e for e in row if e >= graph.n_must]] = True  # the next shares none of them
        return [("odd cycle", row) for row in rows], stop.reason() is None or bool(rows)
    try:
        rows = coloring_conflicts(
            graph, excluded, n_clusters, max_conflicts=_MAX_CONFLICTS, n_variants=1
        )
    except StepLimitReached:
        return [], False
    clique = (n_clusters + 1) * n_clusters // 2
    return [
        (
            "clique" if sum(e >= graph.n_must for e in row) == clique else "uncolourable set",
            row,
        )
        for row in rows
    ], True


def _drop_pairs(pairs: IntArray, removed: tuple[Pair, ...]) -> IntArray:
    gone = set(removed)
    kept = [pair for pair in map(tuple, pairs.tolist()) if pair not in gone]
    return np.array(kept, dtype=np.int64).reshape(-1, 2)
