"""Proofs of infeasibility that can be checked by hand or by a few lines of code.

Each proof refers to original points and pairs only, and ``check`` uses nothing else. It shares no
code with the searches that find proofs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem.data import Problem

Pair = tuple[int, int]


class InfeasibilityProof(ABC):
    """A reason why no labelling satisfies the pairs. Concrete proofs are final."""

    __slots__ = ()
    kind: ClassVar[str]

    @abstractmethod
    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words; points are numbered from ``base``."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON; points are numbered from 0."""

    @abstractmethod
    def check(self, problem: Problem) -> bool:
        """Verify the proof against the pairs of ``problem`` and nothing else."""


def contains_pairs(wanted: Collection[Pair], pairs: NDArray[np.int64], n_points: int) -> bool:
    """Whether every wanted pair, in either order, is a row of the canonical ``pairs``."""
    if not wanted:
        return True
    rows = np.sort(np.array(list(wanted), dtype=np.int64), axis=1)
    if rows.min() < 0 or rows.max() >= n_points:
        return False
    given = pairs[:, 0] * np.int64(n_points) + pairs[:, 1]
    return bool(np.isin(rows[:, 0] * np.int64(n_points) + rows[:, 1], given).all())


def _are_separated(wanted: Collection[Pair], problem: Problem) -> bool:
    """Whether every wanted pair is a cannot-link, or in one cannot-link set."""
    left = [
        (i, j)
        for i, j in wanted
        if not any(column[i] >= 0 and column[i] == column[j]
                   for column in problem.cannot_link_groups
                   if min(i, j) >= 0 and max(i, j) < problem.n_points)
    ]  # fmt: skip
    return contains_pairs(left, problem.cannot_link, problem.n_points)


def _format_path(path: Sequence[int], base: int) -> str:
    return " - ".join(str(point + base) for point in path)


def _format_pair(pair: Pair, base: int) -> str:
    return f"({pair[0] + base}, {pair[1] + base})"


@final
@dataclass(frozen=True, slots=True)
class MustLinkPath(InfeasibilityProof):
    """Must-links that join the two ends of a cannot-link.

    Examples
    --------
    >>> print(MustLinkPath((0, 4, 2)).describe())
    points 0 and 2 cannot be linked, but must-links join them: 0 - 4 - 2
    """

    kind: ClassVar[str] = "must-link-path"
    path: tuple[int, ...]  # consecutive points are must-linked; the ends are cannot-linked

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        first, last = self.path[0] + base, self.path[-1] + base
        return (
            f"points {first} and {last} cannot be linked, "
            f"but must-links join them: {_format_path(self.path, base)}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "cannot_link": [self.path[0], self.path[-1]],
            "must_link_path": list(self.path),
        }

    def check(self, problem: Problem) -> bool:
        """Verify the pairs."""
        return (
            len(self.path) >= 2
            and _are_separated([(self.path[0], self.path[-1])], problem)
            and contains_pairs(list(pairwise(self.path)), problem.must_link, problem.n_points)
        )


@final
@dataclass(frozen=True, slots=True)
class GroupLink:
    """A cannot-link between two groups, with must-link paths to points of the groups."""

    pair: Pair
    first_path: tuple[int, ...]  # must-links from a point of the first group to pair[0]
    second_path: tuple[int, ...]  # must-links from a point of the second group to pair[1]


@final
@dataclass(frozen=True, slots=True)
class CliqueTooLarge(InfeasibilityProof):
    """More points than clusters, no two of which can share a cluster.

    Examples
    --------
    >>> links = (GroupLink((0, 1), (0,), (1,)),)
    >>> print(CliqueTooLarge((0, 1), links).describe())
    no two of these 2 points can share a cluster, but K = 1: 0, 1
      0 | 1: cannot-link (0, 1)
    """

    kind: ClassVar[str] = "clique-too-large"
    members: tuple[int, ...]  # one point of each group
    links: tuple[GroupLink, ...]  # for members (0, 1), (0, 2), ..., (1, 2), ...

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        names = ", ".join(str(point + base) for point in self.members)
        lines = [
            f"no two of these {len(self.members)} points can share a cluster, "
            f"but K = {len(self.members) - 1}: {names}"
        ]
        for (first, second), link in zip(combinations(self.members, 2), self.links, strict=True):
            line = (
                f"  {first + base} | {second + base}: cannot-link {_format_pair(link.pair, base)}"
            )
            for path in (link.first_path, link.second_path):
                if len(path) > 1:
                    line += f", must-links {_format_path(path, base)}"
            lines.append(line)
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "members": list(self.members),
            "links": [
                {
                    "members": list(members),
                    "cannot_link": list(link.pair),
                    "must_link_paths": [list(link.first_path), list(link.second_path)],
                }
                for members, link in zip(combinations(self.members, 2), self.links, strict=True)
            ],
        }

    def check(self, problem: Problem) -> bool:
        """Verify that there are K + 1 members and a cannot-link between every two."""
        between = list(combinations(self.members, 2))
        if len(set(self.members)) != problem.n_clusters + 1 or len(between) != len(self.links):
            return False
        must: list[Pair] = []
        for (first, second), link in zip(between, self.links, strict=True):
            if not _connects(link.first_path, first, link.pair[0]):
                return False
            if not _connects(link.second_path, second, link.pair[1]):
                return False
            must += [*pairwise(link.first_path), *pairwise(link.second_path)]
        cannot = [link.pair for link in self.links]
        return _are_separated(cannot, problem) and contains_pairs(
            must, problem.must_link, problem.n_points
        )


@final
@dataclass(frozen=True, slots=True)
class SetTooLarge(InfeasibilityProof):
    """More points of one cannot-link set than clusters.

    Examples
    --------
    >>> print(SetTooLarge((0, 4, 7)).describe())
    at most one of these 3 points may be in a cluster, but K = 2: 0, 4, 7
    """

    kind: ClassVar[str] = "set-too-large"
    members: tuple[int, ...]

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        names = ", ".join(str(point + base) for point in self.members)
        n = len(self.members)
        return f"at most one of these {n} points may be in a cluster, but K = {n - 1}: {names}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": self.kind, "members": list(self.members)}

    def check(self, problem: Problem) -> bool:
        """Verify that the points are distinct, too many, and in one set."""
        if len(set(self.members)) <= problem.n_clusters:
            return False
        rows = np.array(self.members)
        if not ((rows >= 0) & (rows < problem.n_points)).all():
            return False
        return any(
            column[rows[0]] >= 0 and bool((column[rows] == column[rows[0]]).all())
            for column in problem.cannot_link_groups
        )


def _connects(path: tuple[int, ...], first: int, last: int) -> bool:
    return len(path) >= 1 and path[0] == first and path[-1] == last


@final
@dataclass(frozen=True, slots=True)
class OddCycle(InfeasibilityProof):
    """A closed walk over an odd number of cannot-links: two clusters cannot alternate along it.

    Examples
    --------
    >>> cycle = OddCycle(((0, 1), (5, 2), (2, 0)), ((1, 5), (2,), (0,)))
    >>> print(cycle.describe())
    3 cannot-links form an odd cycle, but K = 2:
      cannot-link (0, 1), must-links 1 - 5
      cannot-link (5, 2)
      cannot-link (2, 0)
    """

    kind: ClassVar[str] = "odd-cycle"
    pairs: tuple[Pair, ...]  # cannot-links in the direction of the walk
    paths: tuple[tuple[int, ...], ...]  # must-links from pairs[i][1] to pairs[i + 1][0]

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        lines = [f"{len(self.pairs)} cannot-links form an odd cycle, but K = 2:"]
        for pair, path in zip(self.pairs, self.paths, strict=True):
            tail = f", must-links {_format_path(path, base)}" if len(path) > 1 else ""
            lines.append(f"  cannot-link {_format_pair(pair, base)}{tail}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "cannot_link": [list(pair) for pair in self.pairs],
            "must_link_paths": [list(path) for path in self.paths],
        }

    def check(self, problem: Problem) -> bool:
        """Verify that the walk is closed, odd and made of given pairs."""
        length = len(self.pairs)
        if problem.n_clusters > 2 or length % 2 == 0 or length != len(self.paths):
            return False
        for i, path in enumerate(self.paths):
            if not _connects(path, self.pairs[i][1], self.pairs[(i + 1) % length][0]):
                return False
        must = [step for path in self.paths for step in pairwise(path)]
        return _are_separated(self.pairs, problem) and contains_pairs(
            must, problem.must_link, problem.n_points
        )


@final
@dataclass(frozen=True, slots=True)
class UncolorableSet(InfeasibilityProof):
    """Pairs that no labelling with ``n_clusters`` labels satisfies.

    Irreducible: without any one pair, the others can be satisfied. If the time for reducing ran
    out, the set may be larger than necessary, and ``irreducible`` is False.

    Examples
    --------
    >>> print(UncolorableSet(((0, 1),), (), 1, True).describe())
    these pairs cannot all hold with K = 1 (without any one of them, the others can):
      1 cannot-links: (0, 1)
    """

    kind: ClassVar[str] = "uncolourable-set"
    cannot_link: tuple[Pair, ...]
    must_link: tuple[Pair, ...]
    n_clusters: int
    irreducible: bool

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        note = " (without any one of them, the others can)" if self.irreducible else ""
        lines = [f"these pairs cannot all hold with K = {self.n_clusters}{note}:"]
        for name, pairs in (("cannot", self.cannot_link), ("must", self.must_link)):
            if pairs:
                listed = ", ".join(_format_pair(pair, base) for pair in pairs)
                lines.append(f"  {len(pairs)} {name}-links: {listed}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "n_clusters": self.n_clusters,
            "cannot_link": [list(pair) for pair in self.cannot_link],
            "must_link": [list(pair) for pair in self.must_link],
            "irreducible": self.irreducible,
        }

    def check(self, problem: Problem) -> bool:
        """Verify by backtracking; also that each pair is necessary, if that is claimed.

        Takes time exponential in the size of the set, which is usually small.
        """
        if self.n_clusters != problem.n_clusters:
            return False
        if not _are_separated(self.cannot_link, problem):
            return False
        if not contains_pairs(self.must_link, problem.must_link, problem.n_points):
            return False
        if satisfiable(self.must_link, self.cannot_link, self.n_clusters):
            return False
        return not self.irreducible or all(
            satisfiable(must, cannot, self.n_clusters) for must, cannot in self._one_pair_removed()
        )

    def _one_pair_removed(self) -> Iterator[tuple[tuple[Pair, ...], tuple[Pair, ...]]]:
        for i in range(len(self.cannot_link)):
            yield self.must_link, self.cannot_link[:i] + self.cannot_link[i + 1 :]
        for i in range(len(self.must_link)):
            yield self.must_link[:i] + self.must_link[i + 1 :], self.cannot_link


def satisfiable(must: Sequence[Pair], cannot: Sequence[Pair], n_clusters: int) -> bool:
    """Whether some labelling with ``n_clusters`` labels satisfies all pairs.

    Plain backtracking: the group with most labels among its neighbours is next, and of the labels
    not used so far only one is tried, since they are interchangeable.

    >>> triangle = [(0, 1), (1, 2), (2, 0)]
    >>> satisfiable([], triangle, 3), satisfiable([], triangle, 2)
    (True, False)
    >>> satisfiable([(0, 1)], triangle, 3)
    False
    """
    group: dict[int, int] = {point: point for pair in [*must, *cannot] for point in pair}
    for i, j in must:
        old, new = group[i], group[j]
        group = {point: new if name == old else name for point, name in group.items()}
    neighbors: dict[int, set[int]] = {name: set() for name in group.values()}
    for i, j in cannot:
        if group[i] == group[j]:
            return False
        neighbors[group[i]].add(group[j])
        neighbors[group[j]].add(group[i])
    labels: dict[int, int] = {}
    choices: list[tuple[int, list[int]]] = []
    while len(labels) < len(neighbors):
        seen = {
            name: {labels[other] for other in neighbors[name] if other in labels}
            for name in neighbors
            if name not in labels
        }
        name = max(seen, key=lambda name: (len(seen[name]), len(neighbors[name])))
        n_offered = min(len(set(labels.values())) + 1, n_clusters)
        choices.append((name, [c for c in range(n_offered) if c not in seen[name]]))
        while choices and not choices[-1][1]:
            labels.pop(choices.pop()[0], None)
        if not choices:
            return False
        name, left = choices[-1]
        labels[name] = left.pop()
    return True
