"""Constraints on sets of groups, arranged so that many prices can be updated at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import Floats, Ints, connected_components, distinct

_MAX_CLASSES = 500


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricedConstraints:
    """Constraints on sets of groups, arranged for updates of many prices at once.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
        Groups of the pairs.
    bonus : ndarray of shape (n_pairs,)
        What a pair adds if both groups are in the set: minus infinity if that is forbidden.
    pair_class : ndarray of shape (n_pairs,)
        Pairs of one class have no group in common, except those of the last class, which are never
        updated. Bonuses above 0 have classes of their own, which come last but one.
    n_hard_classes : int
        The classes of pairs with a bonus below 0.
    layers : tuple of ndarray of shape (n_groups,)
        In each layer the set of every group, or -1.
    n_sets : int
    demand : ndarray of shape (n_groups,) or None
    """

    n_groups: int
    first: Ints
    second: Ints
    bonus: Floats
    pair_class: Ints
    class_ends: tuple[int, int]  # classes of negative and of positive bonuses end here
    layers: tuple[Ints, ...]
    n_sets: int
    demand: Floats | None

    @classmethod
    def of(
        cls,
        n_groups: int,
        edges: Ints,
        soft: Ints,
        soft_bonus: Floats,
        sets: list[Ints],
        demand: Floats | None,
    ) -> PricedConstraints:
        """Arrange cannot-links, soft pairs, and sets of at least two distinct groups."""
        edges, cliques = _split_cliques(n_groups, edges)
        ends = np.concatenate([edges, soft])
        bonus = np.concatenate([np.full(len(edges), -np.inf), soft_bonus])
        numbers = np.full(len(ends), -1)
        class_ends = [0, 0]
        for kind, chosen in enumerate((bonus < 0.0, bonus > 0.0)):
            at = np.flatnonzero(chosen)
            colors = _edge_colors(n_groups, ends[at]) if len(at) else np.empty(0, dtype=np.int64)
            start = class_ends[0] if kind else 0
            numbers[at] = np.where(colors < _MAX_CLASSES, start + colors, -1)
            class_ends[kind] = start + min(_MAX_CLASSES, int(colors.max(initial=-1)) + 1)
        all_sets = [*sets, *cliques]
        return cls(
            n_groups, ends[:, 0], ends[:, 1], bonus, numbers, (class_ends[0], class_ends[1]),
            _set_layers(n_groups, all_sets), len(all_sets), demand,
        )  # fmt: skip

    @property
    def n_pairs(self) -> int:
        """Number of pairs, without those inside cliques."""
        return len(self.bonus)

    def start_prices(self) -> Floats:
        """Prices of the pairs to begin with: 0, and half of a positive bonus."""
        return np.where(self.bonus > 0.0, 0.5 * self.bonus, 0.0)


def _split_cliques(n_groups: int, edges: Ints) -> tuple[Ints, list[Ints]]:
    """Separate the components of three or more groups in which every two are linked."""
    label = connected_components(n_groups, edges)
    sizes = np.bincount(label, minlength=n_groups)
    n_edges = np.bincount(label[edges[:, 0]], minlength=n_groups)
    complete = (sizes >= 3) & (n_edges == sizes * (sizes - 1) // 2)
    if not complete.any():
        return edges, []
    members = np.flatnonzero(complete[label])
    members = members[np.argsort(label[members], kind="stable")]
    cliques = np.split(members, np.cumsum(sizes[complete])[:-1])
    return edges[~complete[label[edges[:, 0]]]], cliques


def _edge_colors(n_groups: int, ends: Ints) -> Ints:
    """Number for every edge such that edges with a common end differ, greedily."""
    used = [0] * n_groups
    colors = []
    for a, b in ends.tolist():
        taken = used[a] | used[b]
        bit = ~taken & (taken + 1)
        colors.append(bit.bit_length() - 1)
        used[a] |= bit
        used[b] |= bit
    return np.array(colors, dtype=np.int64)


def _set_layers(n_groups: int, sets: list[Ints]) -> tuple[Ints, ...]:
    """Distribute sets among layers in which no group is in two of them, greedily."""
    layers: list[Ints] = []
    used = np.zeros(n_groups, dtype=object)
    for number, members in enumerate(sets):
        taken = 0
        for mask in used[members]:
            taken |= int(mask)
        layer = (~taken & (taken + 1)).bit_length() - 1
        if layer == len(layers):
            layers.append(np.full(n_groups, -1))
        layers[layer][members] = number
        used[members] |= 1 << layer
    return tuple(layers)


def distinct_sets(sets: list[Ints]) -> list[Ints]:
    """Sets of two or more groups, each once."""
    found = {one.tobytes(): one for one in map(distinct, sets) if len(one) > 1}
    return list(found.values())
