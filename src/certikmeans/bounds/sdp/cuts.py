"""Pair and triangle cuts: which ones a matrix violates, and how they look to a solver.

In a labelling, ``Z_st`` is ``1 / W`` for two groups of the same cluster, of weight W, and 0 for
two of different clusters, so every labelling satisfies

    pair       Z_st <= Z_ss                    (0 or 1/W on the left, 1/W on the right)
    triangle   Z_st + Z_su <= Z_ss + Z_tu      (if both t and u are with s, they are together).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.sdp.model import Matrix, Vector
from certikmeans.kernels.sdp.cuts import violated_cuts

Triples = NDArray[np.int64]  # (m, 3): s, t, u with t < u; u = -1 for a pair cut

# Of one group, in one round: more would crowd out the other groups.
MOST_PER_GROUP = 40
NO_CUTS: Triples = np.empty((0, 3), dtype=np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CutTable:
    """Cuts as sums over entries of the upper triangle; pairs are filled up with zeros.

    ``factors`` are those of ``Z``; multiply by ``scales`` for ``M = D^(1/2) Z D^(1/2)``.
    """

    places: NDArray[np.int64]  # (m, 4) flat numbers of entries (i, j) with i <= j
    factors: Vector  # (m, 4) of the entries: the cut is sum factor * entry <= 0
    shares: Vector  # (m, 4) of the symmetric matrix: half a factor off the diagonal


def cut_table(triples: Triples, n_groups: int) -> CutTable:
    """Lay out cuts for a matrix of order ``n_groups``.

    >>> cut_table(np.array([[0, 1, -1]]), 2).factors
    array([[ 1.,  0., -1.,  0.]])
    """
    s, t, u = triples.T
    pair = u < 0
    u = np.where(pair, t, u)
    places = np.stack(
        [_upper(s, t, n_groups), _upper(s, u, n_groups), s * n_groups + s, _upper(t, u, n_groups)],
        axis=1,
    )
    factors = np.tile([1.0, 1.0, -1.0, -1.0], (len(triples), 1))
    factors[pair, 1] = factors[pair, 3] = 0.0
    # Also where two of the groups are the same: such cuts are valid, and no reason to be wrong.
    on_diagonal = places // n_groups == places % n_groups
    shares = factors * np.where(on_diagonal, 1.0, 0.5)
    return CutTable(places, factors, shares)


def most_violated(z: Matrix, least: float, count: int) -> Triples:
    """Cuts that ``z`` violates by ``least`` or more of a diagonal entry, the worst ``count``."""
    capacity = MOST_PER_GROUP * len(z)
    cuts = np.empty((capacity, 3), dtype=np.int64)
    amounts = np.empty(capacity)
    found = violated_cuts(z, least, MOST_PER_GROUP, cuts, amounts)
    worst = np.argsort(-amounts[:found], kind="stable")[:count]
    return cuts[np.sort(worst)]


def merged(
    triples: Triples, multipliers: Vector, extra: Triples, n_groups: int
) -> tuple[Triples, Vector]:
    """Cuts with ``extra`` ones appended that are not there yet, at multiplier 0."""
    fresh = extra[~np.isin(_keys(extra, n_groups), _keys(triples, n_groups))]
    return (
        np.concatenate([triples, fresh]),
        np.concatenate([multipliers, np.zeros(len(fresh))]),
    )


def joined(
    triples: Triples, multipliers: Vector, group_of: NDArray[np.int64], n_groups: int
) -> tuple[Triples, Vector]:
    """Cuts on a problem in which group s has become part of group ``group_of[s]``.

    A cut whose s meets t or u says nothing any more. If t meets u, the triangle is twice the mean
    of two pair cuts, which take its multiplier each.
    """
    s, t, u = group_of[triples[:, 0]], group_of[triples[:, 1]], group_of[triples[:, 2]]
    pair = triples[:, 2] < 0
    u = np.where(pair, -1, u)
    met = ~pair & (t == u)
    kept = (s != t) & (s != u)
    whole = kept & ~met
    halves = np.flatnonzero(kept & met)
    none = np.full(len(halves), -1)
    low = np.where(pair, t, np.minimum(t, u))
    high = np.where(pair, -1, np.maximum(t, u))
    rows = np.concatenate(
        [
            np.stack([s[whole], low[whole], high[whole]], axis=1),
            np.stack([s[halves], t[halves], none], axis=1),
            np.stack([t[halves], s[halves], none], axis=1),
        ]
    )
    amounts = np.concatenate([multipliers[whole], multipliers[halves], multipliers[halves]])
    _, first, inverse = np.unique(_keys(rows, n_groups), return_index=True, return_inverse=True)
    return rows[first], np.bincount(inverse.ravel(), amounts, len(first)).astype(np.float64)


def _upper(i: NDArray[np.int64], j: NDArray[np.int64], n_groups: int) -> NDArray[np.int64]:
    return np.minimum(i, j) * n_groups + np.maximum(i, j)


def _keys(triples: Triples, n_groups: int) -> NDArray[np.int64]:
    base = n_groups + 1
    keys: NDArray[np.int64] = (triples[:, 0] * base + triples[:, 1]) * base + triples[:, 2] + 1
    return keys
