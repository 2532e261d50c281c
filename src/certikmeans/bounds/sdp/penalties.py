"""Soft pairs in the costs of the semidefinite relaxation.

``Z_ij = together_ij / W`` for the weight W of the common cluster, and ``Z_ii = 1 / W``. If the
clusters of groups i and j weigh at least ``m_i`` and ``m_j``, and a common one ``m_ij``, then

    together_ij >= m_ij Z_ij                              (both 0, or 1 >= m_ij / W),
    apart_ij    >= (m_i Z_ii + m_j Z_jj) / 2 - (m_i + m_j) / 2 Z_ij
                                                          (both 0, or 1 >= (m_i/W + m_j/W') / 2).

So a penalty is at least a linear function of ``Z``: it changes the costs and needs no variables.
A cluster weighs at least as much as its members, and as the limits on sizes say: the closer that
is to its weight, the more of the penalty is seen. With bonuses r (`constraint_model.soft_pairs`),

    penalty = (constant - sum of r > 0) + sum over r > 0 of r apart + sum over r < 0 of -r together.

**Rounding.** Coefficients are rounded down, but off the diagonal of a must-link away from 0, at
least to the mean of the two on the diagonal. Only sums on the diagonal are rounded, which
``n_terms`` counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Mask
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.rounding import EPS


@final
@dataclass(frozen=True, slots=True, eq=False)
class PenaltyTerms:
    """``penalty(labels) >= <matrix, Z> + constant`` for the matrix of every feasible labelling."""

    matrix: Floats  # (n, n) symmetric
    magnitude: Floats  # (n, n): sums of absolute values
    n_terms: int  # largest number of terms in an entry
    constant: float  # rounded down


def penalty_terms(soft: SoftPairs, weights: Floats, least: Floats, zero_mask: Mask) -> PenaltyTerms:
    """Linear function of ``Z`` below the penalty; the cluster of s weighs at least ``least[s]``.

    Pairs in ``zero_mask`` are apart in every labelling: their penalty is constant.
    """
    n = len(weights)
    apart = zero_mask[soft.pairs[:, 0], soft.pairs[:, 1]]
    first, second = soft.pairs[~apart].T
    bonus = soft.bonus[~apart]
    together = bonus < 0.0
    pair_weight = (weights[first] + weights[second]) * (1.0 - 2.0 * EPS)
    both = np.maximum(np.maximum(least[first], least[second]), pair_weight)
    size = 0.5 * np.abs(bonus) * (1.0 - 8.0 * EPS)
    ends = np.stack([size * least[first], size * least[second]])
    off_diagonal = np.where(together, size * both, -0.5 * (ends[0] + ends[1]) * (1.0 + 8.0 * EPS))
    matrix, magnitude = np.zeros((n, n)), np.zeros((n, n))
    matrix[first, second] = matrix[second, first] = off_diagonal
    magnitude[first, second] = magnitude[second, first] = np.abs(off_diagonal)
    linked = np.concatenate([first[~together], second[~together]])
    diagonal = np.bincount(linked, ends[:, ~together].ravel(), n)
    matrix[np.arange(n), np.arange(n)] = magnitude[np.arange(n), np.arange(n)] = diagonal
    gains = bonus[~together]
    constant = math.fsum([soft.constant, *(-gains).tolist()]) - soft.error
    constant -= 4.0 * EPS * (abs(soft.constant) + float(np.abs(gains).sum()))
    n_terms = int(np.bincount(linked, minlength=1).max()) + 1
    return PenaltyTerms(matrix, magnitude, n_terms, constant)
