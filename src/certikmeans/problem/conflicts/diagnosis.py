"""Diagnosis of contradicting pairs: every conflict found, and which pairs to remove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from certikmeans._numbers import count
from certikmeans._types import Ints
from certikmeans.problem.conflicts.conflict_sets import (
    ColoringUndecided,
    ConflictSet,
    ConflictWalks,
    MustLinkPaths,
    PairGraph,
    coloring_conflicts,
)
from certikmeans.problem.conflicts.min_removal import DEFAULT_PARAMS, RemovalParams, min_removal
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.problem.constraints import Constraints

Pair = tuple[int, int]

_MAX_LISTED = 50  # conflicts beyond broken cannot-links
_MAX_PATH_WORK = 300_000_000  # steps for shortest paths; beyond it, some path is shown


@final
@dataclass(frozen=True, slots=True)
class BrokenCannotLink:
    """A cannot-link whose ends are connected by must-links.

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
        The pairs; the must-links connect points to groups.
    """

    kind: str
    cannot_link: tuple[Pair, ...]
    must_link: tuple[Pair, ...]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diagnosis:
    """Every conflict that was found, and a small set of pairs to remove.

    Attributes
    ----------
    n_clusters : int
        Maximum number of clusters.
    broken : tuple of BrokenCannotLink
        Every cannot-link that contradicts must-links.
    clashes : tuple of Conflict
        Further contradictions among the pairs without the broken cannot-links.
    remove_must, remove_cannot : tuple of pairs
        All other pairs can hold together.
    least : int
        Lower bound on the number of pairs that have to be removed.
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
        """Number of pairs to remove."""
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


def diagnose(
    pairs: Constraints, n_clusters: int, stop: StopSignal, params: RemovalParams = DEFAULT_PARAMS
) -> Diagnosis:
    """Find all conflicts among pairs, and a minimum set of pairs to remove.

    Parameters
    ----------
    pairs : Constraints
        Must-links and cannot-links.
    n_clusters : int
        Maximum number of clusters.
    stop : StopSignal
        After an early stop the set to remove may not be a minimum; ``least`` bounds the difference.
    params : RemovalParams
        Settings of the search for the set.
    """
    points, ends = np.unique(
        np.concatenate([pairs.must_link, pairs.cannot_link]), return_inverse=True
    )
    graph = PairGraph(len(points), ends.reshape(-1, 2), len(pairs.must_link))

    def must_and_cannot(edges: list[int]) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        must = points[graph.edges[[e for e in edges if e < graph.n_must]]].tolist()
        cannot = points[graph.edges[[e for e in edges if e >= graph.n_must]]].tolist()
        return tuple((u, v) for u, v in must), tuple((u, v) for u, v in cannot)

    broken = _find_broken(graph, points)
    rows, decided = _find_conflicts(graph, n_clusters, stop.with_time_limit(params.listing_seconds))
    clashes = []
    for kind, row in rows:
        must, cannot = must_and_cannot(sorted(row))
        clashes.append(Conflict(kind, cannot, must))
    if decided and not broken and not clashes:
        return Diagnosis(n_clusters, (), (), (), (), 0, True)
    removal = min_removal(graph, n_clusters, stop, params)
    remove_must, remove_cannot = must_and_cannot(removal.edges.tolist())
    decided = decided or bool(broken or clashes)
    return Diagnosis(
        n_clusters, broken, tuple(clashes), remove_must, remove_cannot, removal.least, decided
    )


def _find_broken(graph: PairGraph, points: Ints) -> tuple[BrokenCannotLink, ...]:
    """Return every cannot-link inside a must-link component, with a path between its ends."""
    nothing = np.zeros(len(graph.edges), dtype=np.bool_)
    groups = graph.groups(nothing)
    inside = graph.cannot[graph.inside(groups)[graph.n_must :]]
    exact = len(np.unique(inside[:, 0])) * (graph.n_must + graph.n) <= _MAX_PATH_WORK
    _, first = np.unique(groups, return_index=True)
    roots = inside[:, 0] if exact else first[groups[inside[:, 0]]]
    paths = MustLinkPaths(graph, nothing)
    found = []
    for at in np.argsort(roots, kind="stable").tolist():
        u, v = inside[at].tolist()
        path = paths.path(u, v, int(roots[at]))
        named = tuple(points[path].tolist())
        found.append(BrokenCannotLink((named[0], named[-1]), named))
    return tuple(sorted(found, key=lambda b: (len(b.path), b.pair)))


def _find_conflicts(
    graph: PairGraph, n_clusters: int, stop: StopSignal
) -> tuple[list[tuple[str, ConflictSet]], bool]:
    """Return conflicts without the broken cannot-links, and whether feasibility is decided."""
    excluded = graph.inside(graph.groups(np.zeros(len(graph.edges), dtype=np.bool_)))
    excluded[: graph.n_must] = False
    if n_clusters == 2:
        rows: list[ConflictSet] = []
        walks = ConflictWalks(graph, stop, doubled=True)
        while len(rows) < _MAX_LISTED:
            row = next(walks.lighter_than(excluded.astype(np.float64), ~excluded, 0.5), None)
            if row is None:
                break
            rows.append(row)
            excluded[[e for e in row if e >= graph.n_must]] = True  # the next shares none of them
        return [("odd cycle", row) for row in rows], stop.reason() is None or bool(rows)
    try:
        rows = coloring_conflicts(graph, excluded, n_clusters, stop, max_conflicts=_MAX_LISTED)
    except ColoringUndecided:
        return [], False
    clique_size = (n_clusters + 1) * n_clusters // 2
    sizes = [sum(e >= graph.n_must for e in row) for row in rows]
    return [
        ("clique" if size == clique_size else "uncolourable set", row)
        for size, row in zip(sizes, rows, strict=True)
    ], True


def _drop_pairs(pairs: Ints, removed: tuple[Pair, ...]) -> Ints:
    gone = set(removed)
    kept = [pair for pair in map(tuple, pairs.tolist()) if pair not in gone]
    return np.array(kept, dtype=np.int64).reshape(-1, 2)
