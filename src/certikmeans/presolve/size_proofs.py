"""Proofs that no labelling satisfies the limits on cluster sizes, and the exact search in them.

Like `presolve.infeasibility_proofs` these refer to the original points only. Demands are compared
as whole numbers, or as exact fractions with room for the rounding error of their sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.constraint_model.cannot_link_sets import sets_of_columns
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.presolve.infeasibility_proofs import InfeasibilityProof, Pair, contains_pairs
from certikmeans.problem.data import Problem, size_limits

MAX_STATES = 200_000  # of the search for a proof; a check may use more
MAX_CHECK_STATES = 5_000_000
_SHOWN = 12  # points named in a message


def allowed_totals(sizes: SizeLimits) -> tuple[Floats, Floats]:
    """Least and largest exact totals that no check of labels rejects.

    The tolerance bounds the rounding of a sum of demands; whole demands have none.
    """
    slack = 2.0 * sizes.tolerance
    if slack == 0.0:
        return np.ceil(sizes.lower), np.floor(sizes.upper)
    return np.maximum(sizes.lower - slack, 0.0), sizes.upper + slack


@final
@dataclass(frozen=True, slots=True)
class TotalOutsideLimits(InfeasibilityProof):
    """The limits of all clusters together leave no room for the total demand.

    Examples
    --------
    >>> print(TotalOutsideLimits("size_max", 10.0, 8.0, 4, True).describe())
    there are 10 points, but 4 clusters hold at most 8 in all (size_max)
      what to do: raise size_max to 3 or more, or ask for more clusters
    """

    kind: ClassVar[str] = "sizes-total"
    side: Literal["size_min", "size_max"]
    total: float
    limit: float  # sum over the clusters
    n_clusters: int
    counted: bool  # sizes are numbers of points

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        what = f"there are {self.total:.10g} points" if self.counted else (
            f"the total demand is {self.total:.10g}"
        )  # fmt: skip
        mean = self.total / self.n_clusters
        if self.side == "size_max":
            enough = math.ceil(mean) if self.counted else mean
            return (
                f"{what}, but {self.n_clusters} clusters hold at most {self.limit:.10g} in all "
                f"(size_max)\n  what to do: raise size_max to {enough:.10g} or more, "
                "or ask for more clusters"
            )
        enough = math.floor(mean) if self.counted else mean
        return (
            f"{what}, but {self.n_clusters} clusters need at least {self.limit:.10g} in all "
            f"(size_min)\n  what to do: lower size_min to {enough:.10g} or less, "
            "or ask for fewer clusters"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "side": self.side,
            "total": self.total,
            "limit": self.limit,
            "n_clusters": self.n_clusters,
        }

    def check(self, problem: Problem) -> bool:
        """Add up the demands and the limits again."""
        return problem.has_sizes and find_total_outside(problem) is not None


def find_total_outside(problem: Problem) -> TotalOutsideLimits | None:
    """Return a proof by the total demand, if there is one."""
    sizes = size_limits(problem)
    lower, upper = allowed_totals(sizes)
    total = math.fsum(sizes.demand)
    rounding = 0.0 if sizes.tolerance == 0.0 else 4.0 * math.ulp(total)
    most, least = math.fsum(upper), math.fsum(lower)
    counted, k = problem.demand is None, problem.n_clusters
    if most < total - rounding:
        return TotalOutsideLimits("size_max", total, math.fsum(sizes.upper), k, counted)
    if least > total + rounding:
        return TotalOutsideLimits("size_min", total, math.fsum(sizes.lower), k, counted)
    return None


@final
@dataclass(frozen=True, slots=True)
class GroupTooLarge(InfeasibilityProof):
    """Points that must be together but exceed the limit of every cluster.

    Examples
    --------
    >>> print(GroupTooLarge((0, 4, 7), ((0, 4), (4, 7)), 3.0, 2.0).describe())
    must-links join these points of a total size of 3, but a cluster holds at most 2: 0, 4, 7
      what to do: raise size_max to 3 or more, or remove some of their must-links
    """

    kind: ClassVar[str] = "group-too-large"
    members: tuple[int, ...]
    links: tuple[Pair, ...]  # must-links that connect the members
    size: float
    limit: float  # largest limit of a cluster

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        first = [str(point + base) for point in self.members[:_SHOWN]]
        more = len(self.members) - len(first)
        names = ", ".join(first) + (f" and {more} more" if more else "")
        if len(self.members) == 1:
            return (
                f"point {names} has a demand of {self.size:.10g}, but a cluster holds at most "
                f"{self.limit:.10g}\n  what to do: raise size_max to {self.size:.10g} or more, "
                "or divide the point"
            )
        return (
            f"must-links join these points of a total size of {self.size:.10g}, but a cluster "
            f"holds at most {self.limit:.10g}: {names}\n  what to do: raise size_max to "
            f"{self.size:.10g} or more, or remove some of their must-links"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "members": list(self.members),
            "must_link": [list(pair) for pair in self.links],
            "size": self.size,
            "limit": self.limit,
        }

    def check(self, problem: Problem) -> bool:
        """Verify that the must-links connect the members, and add up their demands."""
        if not problem.has_sizes or len(set(self.members)) != len(self.members):
            return False
        if not all(0 <= point < problem.n_points for point in self.members):
            return False
        if not contains_pairs(self.links, problem.must_link, problem.n_points):
            return False
        connected = _connected(self.members, self.links)
        return connected and _too_large(size_limits(problem), self.members)


def _connected(members: Sequence[int], links: Sequence[Pair]) -> bool:
    """Whether links between members connect them all."""
    inside = set(members)
    if not members or any(i not in inside or j not in inside for i, j in links):
        return False
    reached, new = {members[0]}, [members[0]]
    near: dict[int, list[int]] = {point: [] for point in members}
    for i, j in links:
        near[i].append(j)
        near[j].append(i)
    while new:
        for other in near[new.pop()]:
            if other not in reached:
                reached.add(other)
                new.append(other)
    return len(reached) == len(members)


def _too_large(sizes: SizeLimits, members: Sequence[int]) -> bool:
    total = math.fsum(sizes.demand[list(members)])
    rounding = 0.0 if sizes.tolerance == 0.0 else 4.0 * math.ulp(total)
    return total - rounding > float(allowed_totals(sizes)[1].max())


def find_group_too_large(problem: Problem, group_of_point: Ints) -> GroupTooLarge | None:
    """Return a must-link component that no cluster holds, if there is one."""
    sizes = size_limits(problem)
    totals = np.bincount(group_of_point, sizes.demand)
    group = int(np.argmax(totals))
    members = np.flatnonzero(group_of_point == group).tolist()
    if not _too_large(sizes, members):
        return None
    inside = group_of_point[problem.must_link[:, 0]] == group
    parent = {point: point for point in members}

    def root(point: int) -> int:
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    links = []
    for i, j in problem.must_link[inside].tolist():
        if root(i) != root(j):
            parent[root(i)] = root(j)
            links.append((i, j))
    size = math.fsum(sizes.demand[members])
    return GroupTooLarge(tuple(members), tuple(links), size, float(sizes.upper.max()))


@final
@dataclass(frozen=True, slots=True)
class SizesUnattainable(InfeasibilityProof):
    """No way to divide the must-link components satisfies the limits, by exact search.

    Examples
    --------
    >>> print(SizesUnattainable(3, 2, False).describe())
    no division of the 3 must-link components into 2 clusters is within size_min and size_max
      what to do: widen the limits, or remove must-links
    """

    kind: ClassVar[str] = "sizes-unattainable"
    n_groups: int
    n_clusters: int
    with_cannot_links: bool

    def describe(self, *, base: int = 0) -> str:
        """Describe the proof in words."""
        others = " and satisfies all cannot-links" if self.with_cannot_links else ""
        pairs = "must-links or cannot-links" if self.with_cannot_links else "must-links"
        return (
            f"no division of the {self.n_groups} must-link components into {self.n_clusters} "
            f"clusters is within size_min and size_max{others}\n"
            f"  what to do: widen the limits, or remove {pairs}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "n_groups": self.n_groups,
            "n_clusters": self.n_clusters,
            "with_cannot_links": self.with_cannot_links,
        }

    def check(self, problem: Problem) -> bool:
        """Search through all totals that the clusters can have; may take long."""
        if not problem.has_sizes or problem.n_clusters != self.n_clusters:
            return False
        return attainable(packing_of(problem), MAX_CHECK_STATES) is False


class Packing(NamedTuple):
    """Groups of whole demands with conflicts, and the limits of the clusters."""

    demand: list[int]
    conflicts: list[set[int]]  # groups that cannot share a cluster with each
    lower: list[int]
    upper: list[int]


def packing_of(problem: Problem) -> Packing:
    """Return the groups of a problem, by its must-links, as exact numbers."""
    name = list(range(problem.n_points))
    for i, j in problem.must_link.tolist():
        a, b = _root(name, i), _root(name, j)
        name[max(a, b)] = min(a, b)
    roots = [_root(name, i) for i in range(problem.n_points)]
    index = {root: number for number, root in enumerate(sorted(set(roots)))}
    groups = np.array([index[root] for root in roots])
    pairs = [(int(groups[i]), int(groups[j])) for i, j in problem.cannot_link.tolist()]
    for rows in sets_of_columns(problem.cannot_link_groups):
        members = groups[rows].tolist()
        pairs += [(a, b) for at, a in enumerate(members) for b in members[:at]]
    return exact_packing(size_limits(problem), groups, pairs)


def _root(name: list[int], i: int) -> int:
    while name[i] != i:
        name[i] = name[name[i]]
        i = name[i]
    return i


def exact_packing(sizes: SizeLimits, groups: Ints, pairs: Sequence[Pair]) -> Packing:
    """Scale demands to whole numbers; ``groups`` are those of the rows of ``sizes``."""
    n_groups = int(groups.max()) + 1
    demand = [Fraction(0)] * n_groups
    for group, value in zip(groups.tolist(), sizes.demand.tolist(), strict=True):
        demand[group] += Fraction(value)
    scale = math.lcm(*(value.denominator for value in demand))
    lower, upper = allowed_totals(sizes)
    conflicts: list[set[int]] = [set() for _ in range(n_groups)]
    for a, b in pairs:
        conflicts[a].add(b)
        conflicts[b].add(a)
    return Packing(
        [int(value * scale) for value in demand],
        conflicts,
        [math.ceil(Fraction(value) * scale) for value in lower.tolist()],
        [math.floor(Fraction(value) * scale) for value in upper.tolist()],
    )


def attainable(packing: Packing, max_states: int = MAX_STATES) -> bool | None:
    """Whether the groups can be divided within the limits; None after too many states.

    The groups without conflicts, and the components of the others, are added one after the other
    to the set of all totals that the clusters can have. Totals that cannot end within the limits
    are dropped; with equal limits their order does not matter.

    >>> attainable(Packing([3, 3, 2], [set(), set(), set()], [4, 4], [4, 4]))
    False
    >>> attainable(Packing([3, 1, 2, 2], [set()] * 4, [4, 4], [4, 4]))
    True
    """
    demand, conflicts, lower, upper = packing
    n_clusters = len(lower)
    if any(group in near for group, near in enumerate(conflicts)):
        return False
    equal = len(set(lower)) == 1 and len(set(upper)) == 1
    components = _components(conflicts)
    # Large demands first: they leave few totals. Units at the end need no search.
    components.sort(key=lambda one: (len(one) == 1, -max(demand[group] for group in one)))
    rest = sum(demand)
    if not _can_end_within((0,) * n_clusters, rest, lower, upper):
        return False
    states, work = {(0,) * n_clusters}, 0
    for number, component in enumerate(components):
        alone = all(len(one) == 1 for one in components[number:])
        if alone and all(demand[one[0]] <= 1 for one in components[number:]):
            return True  # units fill what is missing: every state is one that can end well
        vectors = _totals_of_component(component, packing, max_states)
        if vectors is None:
            return None
        rest -= sum(demand[group] for group in component)
        new = set()
        for state in states:
            work += len(vectors)
            if work > max_states:
                return None
            for vector in vectors:
                totals = tuple(a + b for a, b in zip(state, vector, strict=True))
                if _can_end_within(totals, rest, lower, upper):
                    new.add(tuple(sorted(totals)) if equal else totals)
        states = new
        if not states:
            return False
    return True


def _can_end_within(totals: tuple[int, ...], rest: int, lower: list[int], upper: list[int]) -> bool:
    """Whether the rest is enough for what is missing, and has room."""
    missing = room = 0
    for total, least, most in zip(totals, lower, upper, strict=True):
        if total > most or least > most:
            return False
        missing += max(0, least - total)
        room += most - total
    return missing <= rest <= room


def _components(conflicts: list[set[int]]) -> list[list[int]]:
    seen: set[int] = set()
    found = []
    for group in range(len(conflicts)):
        if group in seen:
            continue
        component, new = [], [group]
        seen.add(group)
        while new:
            one = new.pop()
            component.append(one)
            for other in conflicts[one]:
                if other not in seen:
                    seen.add(other)
                    new.append(other)
        found.append(component)
    return found


def _totals_of_component(
    component: list[int], packing: Packing, max_steps: int
) -> set[tuple[int, ...]] | None:
    """All totals that labels of a component give, by backtracking; None after too many steps."""
    demand, conflicts, _, upper = packing
    n_clusters = len(upper)
    found: set[tuple[int, ...]] = set()
    labels: dict[int, int] = {}
    totals = [0] * n_clusters
    choices = [iter(range(n_clusters))]
    steps = 0
    while choices:
        steps += 1
        if steps > max_steps:
            return None
        depth = len(choices) - 1
        group = component[depth]
        if group in labels:
            totals[labels.pop(group)] -= demand[group]
        for k in choices[-1]:
            if totals[k] + demand[group] > upper[k]:
                continue
            if any(labels.get(other) == k for other in conflicts[group]):
                continue
            labels[group] = k
            totals[k] += demand[group]
            break
        else:
            choices.pop()
            continue
        if depth + 1 == len(component):
            found.add(tuple(totals))
        else:
            choices.append(iter(range(n_clusters)))
    return found
