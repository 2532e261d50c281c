"""Multipliers that are functions of the distances of groups from bisectors of two clusters.

For a group s of cluster a of some labelling and another cluster b let

    m_s(b) = |x_s - c_b|^2 - |x_s - c_a|^2,      c the means of the clusters.

On nodes ``t_1 < .. < t_q`` there are hat functions: ``hat_k`` is 1 at ``t_k``, 0 at the other
nodes, linear between them and constant beyond the first and the last. The multiplier of s in a
and t in b is

    ell_st = sum_kl coefficients[k, l] hat_k(m_s(b)) hat_l(m_t(a)),      coefficients >= 0,

and 0 for two groups of one cluster. Cannot-links may have an additional multiplier of either sign:
``link_pairs``, ``link_multipliers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectralMultipliers:
    """Evidence of the spectral bound; `safe_value` is valid for any values.

    As a flat array (`row`): the numbers of pairs of clusters, of nodes and of link multipliers; a
    label per group; for each pair ``a``, ``b``, the nodes of ``m_s(b)``, the nodes of ``m_t(a)``,
    the coefficients row by row; for each link multiplier its two groups and its value.
    """

    labels: Ints  # (n_groups,)
    pairs: Ints  # (p, 2): clusters a and b
    nodes: Floats  # (p, 2, q), ascending: of groups in a, of groups in b
    coefficients: Floats  # (p, q, q) >= 0
    link_pairs: Ints  # (e, 2): groups with a cannot-link
    link_multipliers: Floats  # (e,)

    @classmethod
    def zeros(cls, n_groups: int) -> SpectralMultipliers:
        """No multipliers: proves `eigenvalue_bound`."""
        labels = np.zeros(n_groups, dtype=np.int64)
        no_pairs = np.empty((0, 2), dtype=np.int64)
        return cls(
            labels, no_pairs, np.empty((0, 2, 2)), np.empty((0, 2, 2)), no_pairs, np.empty(0)
        )

    def renumbered(self, new_of_old: Ints) -> SpectralMultipliers:
        """Multipliers of the problem in which group s has the index ``new_of_old[s]``."""
        labels = np.empty_like(self.labels)
        labels[new_of_old] = self.labels
        link_pairs = new_of_old[self.link_pairs]
        return SpectralMultipliers(
            labels, self.pairs, self.nodes, self.coefficients, link_pairs, self.link_multipliers
        )

    def row(self) -> Floats:
        """Flat array of all values; empty if there are no multipliers."""
        p, _, q = self.nodes.shape
        if not p and not len(self.link_pairs):
            return np.empty(0)
        by_pair = np.concatenate(
            [self.pairs, self.nodes.reshape(p, 2 * q), self.coefficients.reshape(p, q * q)], axis=1
        )
        by_link = np.concatenate([self.link_pairs, self.link_multipliers[:, None]], axis=1)
        head = np.array([p, q, len(self.link_pairs)], dtype=np.float64)
        return np.concatenate(
            [head, self.labels.astype(np.float64), by_pair.ravel(), by_link.ravel()]
        )
