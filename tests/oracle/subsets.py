"""Exact optima by a table over sets of groups. It shares no code with the package.

Feasible sets of groups are costed in whole numbers; the table adds one cluster at a time, each with
its own limits on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Statement:
    """What is to be minimised: the fields of a problem, or of a certificate, as lists."""

    points: list[list[float]]
    weights: list[float]
    n_clusters: int
    must_link: list[list[int]]
    cannot_link: list[list[int]]
    set_columns: list[list[int]]
    size_min: list[float] | None
    size_max: list[float] | None
    demand: list[float] | None
    soft_must_link: list[tuple[int, int, float]]
    soft_cannot_link: list[tuple[int, int, float]]

    @classmethod
    def of(
        cls, points: Any, n_clusters: int, must: Any, cannot: Any, weights: Any, other: Any
    ) -> Statement:
        """Build from arrays; ``other`` has those of other constraints by name."""

        def priced(name: str) -> list[tuple[int, int, float]]:
            pairs = other.get(name, [])
            return [
                (int(i), int(j), float(p))
                for (i, j), p in zip(pairs, other.get(f"{name}_penalties", []), strict=True)
            ]

        def listed(name: str) -> list[float] | None:
            return None if other.get(name) is None else [float(v) for v in other[name]]

        return cls(
            [[float(v) for v in row] for row in points],
            [float(w) for w in weights],
            n_clusters,
            [[int(i), int(j)] for i, j in must],
            [[int(i), int(j)] for i, j in cannot],
            [[int(v) for v in column] for column in other.get("cannot_link_groups", [])],
            listed("size_min"),
            listed("size_max"),
            listed("demand"),
            priced("soft_must_link"),
            priced("soft_cannot_link"),
        )

    def cost(self, labels: Any) -> Fraction | None:
        """Cost of labels with penalties; None if they violate a constraint."""
        labels = [int(label) for label in labels]
        if any(labels[i] != labels[j] for i, j in self.must_link):
            return None
        n = len(labels)
        clusters = [[i for i in range(n) if labels[i] == k] for k in range(self.n_clusters)]
        values = [self._value(members) for members in clusters]
        sizes = sorted(self._demand(members) for members in clusters)
        if sum(map(len, clusters)) < n or None in values or not self._fit(sizes):
            return None
        return self._apart() + sum(value for value in values if value is not None)

    def optimum(self) -> Fraction | None:
        """Least cost of all labellings; None if there is none."""
        groups = self._groups()
        full = (1 << len(groups)) - 1
        members = [[i for g, one in enumerate(groups) if s >> g & 1 for i in one]
                   for s in range(full + 1)]  # fmt: skip
        value = [self._value(one) for one in members]
        demand = [self._demand(one) for one in members]
        best: dict[int, Fraction] = {0: Fraction(0)}
        for low, high in self._limits():
            fits = [
                s for s in range(full + 1)
                if value[s] is not None and low <= demand[s] and (high is None or demand[s] <= high)
            ]  # fmt: skip
            found: dict[int, Fraction] = {}
            for covered, cost in best.items():
                for s in fits:
                    if s & covered == 0:
                        total = cost + value[s]  # type: ignore[operator]
                        if s | covered not in found or total < found[s | covered]:
                            found[s | covered] = total
            best = found
        return None if full not in best else self._apart() + best[full]

    def _limits(self) -> list[tuple[Fraction, Fraction | None]]:
        k = self.n_clusters
        low = [Fraction(v) for v in self.size_min or [0.0] * k]
        high = [None if v == float("inf") else Fraction(v)
                for v in self.size_max or [float("inf")] * k]  # fmt: skip
        return list(zip(low, high, strict=True))

    def _fit(self, sizes: list[Fraction]) -> bool:
        """Whether the clusters can be numbered so that each is within its limits."""

        def match(left: list[tuple[Fraction, Fraction | None]], at: int) -> bool:
            return at == len(sizes) or any(
                low <= sizes[at]
                and (high is None or sizes[at] <= high)
                and match(left[:i] + left[i + 1 :], at + 1)
                for i, (low, high) in enumerate(left)
            )

        return match(self._limits(), 0)

    def _apart(self) -> Fraction:
        return sum((Fraction(p) for _, _, p in self.soft_must_link), Fraction(0))

    def _groups(self) -> list[list[int]]:
        groups = [[i] for i in range(len(self.points))]
        for i, j in self.must_link:
            one = next(g for g in groups if i in g)
            other = next(g for g in groups if j in g)
            if one is not other:
                groups.remove(other)
                one += other
        return groups

    def _demand(self, members: list[int]) -> Fraction:
        if self.demand is None:
            return Fraction(len(members))
        return sum((Fraction(self.demand[i]) for i in members), Fraction(0))

    def _value(self, members: list[int]) -> Fraction | None:
        """Squares about the mean, and penalties inside less those saved; None if not allowed."""
        inside = set(members)
        if any(i in inside and j in inside for i, j in self.cannot_link):
            return None
        for column in self.set_columns:
            used = [column[i] for i in members if column[i] >= 0]
            if len(set(used)) < len(used):
                return None
        value = Fraction(0)
        mass = sum((Fraction(self.weights[i]) for i in members), Fraction(0))
        for j in range(len(self.points[0]) if mass else 0):
            x = [Fraction(self.points[i][j]) for i in members]
            w = [Fraction(self.weights[i]) for i in members]
            first = sum(a * b for a, b in zip(w, x, strict=True))
            value += sum(a * b * b for a, b in zip(w, x, strict=True)) - first * first / mass
        value -= sum(Fraction(p) for i, j, p in self.soft_must_link if i in inside and j in inside)
        value += sum(
            Fraction(p) for i, j, p in self.soft_cannot_link if i in inside and j in inside
        )
        return value
