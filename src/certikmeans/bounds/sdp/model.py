"""Peng-Wei relaxation of a reduced problem: matrices, cuts, multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.bounds.sdp.limits import AssumedSizes, WeightLimits, weight_limits
from certikmeans.bounds.sdp.penalties import PenaltyTerms, penalty_terms
from certikmeans.bounds.sdp.size_cuts import SizeRule
from certikmeans.constraint_model.model import forbidden_pairs
from certikmeans.kernels.sdp import all_squared_distances, violated_cuts
from certikmeans.problem import ReducedProblem
from certikmeans.proof import AbstractEvidence


@final
@dataclass(frozen=True, slots=True, eq=False)
class SdpModel:
    """Matrices of the relaxation of one problem.

    A labelling is the matrix ``Z = sum_k 1_k 1_k^T / W_k`` over its non-empty clusters, ``1_k``
    the members and ``W_k`` the weight of cluster k. With ``C_st = w_s w_t |x_s - x_t|^2 / 2``,

        cost = <C, Z>,   Z w = 1,   sum_s w_s Z_ss <= K,   Z >= 0,   Z_st = 0 for cannot-links,

    and ``M = D^(1/2) Z D^(1/2)``, ``D = diag(w)``, is an orthogonal projection of rank at most K
    with ``M v = v``, ``v = sqrt(w)``. Dropping "projection" for "positive semidefinite" is the
    relaxation. Solvers work with M, proofs with Z, in which every coefficient is rational.

    Sizes and sets limit the diagonal and with it all entries (`limits`), and sums over sets of
    groups (`size_cuts`); penalties of soft pairs are a part of the costs (`penalties`).
    """

    problem: ReducedProblem
    sqrt_weights: Floats  # (n,) v, rounded
    costs: Floats  # (n, n) C, rounded, with penalties
    zero_mask: Mask  # (n, n) cannot-links
    mass: float  # sum of the weights
    total: float  # sum of squares about the mean: cost of one cluster; > 0 unless all coincide
    limits: WeightLimits | None = None
    penalties: PenaltyTerms | None = None
    size_rule: SizeRule | None = None  # None: no size cuts

    @property
    def n_groups(self) -> int:
        """Order of the matrices."""
        return len(self.sqrt_weights)

    @property
    def n_clusters(self) -> int:
        """Number of clusters allowed."""
        return self.problem.n_clusters

    @property
    def constant(self) -> float:
        """Part of the cost that is not a function of ``Z``, rounded down."""
        return 0.0 if self.penalties is None else self.penalties.constant

    @classmethod
    def of(
        cls, problem: ReducedProblem, *, plain: bool = False, assumed: AssumedSizes | None = None
    ) -> SdpModel:
        """Build the matrices.

        Parameters
        ----------
        problem : ReducedProblem
        plain : bool
            Whether to ignore sizes and soft pairs, which is a relaxation.
        assumed : AssumedSizes, optional
            Sizes that the caller assumes: the bound is one for labellings with these.

        Examples
        --------
        >>> from certikmeans.presolve.pipeline import presolve
        >>> from certikmeans.problem import Problem
        >>> from certikmeans.stop import StopSignal
        >>> done = presolve(Problem.from_data([[0.0], [2.0], [9.0]], 2), StopSignal())
        >>> round(SdpModel.of(done.reduced).total, 9)  # 0, 2 and 9 about 11/3
        44.666666667
        """
        points, weights = problem.points, problem.weights
        squares = np.empty((len(points), len(points)))
        all_squared_distances(points, squares)
        costs = 0.5 * weights[:, None] * weights[None, :] * squares
        zero_mask = np.zeros(costs.shape, dtype=np.bool_)
        tails, heads = forbidden_pairs(problem.label_constraints).T
        zero_mask[tails, heads] = zero_mask[heads, tails] = True
        mass = float(weights.sum())
        total = float(costs.sum()) / mass
        if plain:
            return cls(problem, np.sqrt(weights), costs, zero_mask, mass, total)
        limits = weight_limits(problem, assumed)
        soft, penalties = problem.label_constraints.soft, None
        if soft is not None:
            least = weights if limits is None else limits.least(weights)
            penalties = penalty_terms(soft, weights, least, zero_mask)
            costs += penalties.matrix
        rule = SizeRule.of(problem.n_clusters, mass, limits)
        sqrt_weights = np.sqrt(weights)
        return cls(problem, sqrt_weights, costs, zero_mask, mass, total, limits, penalties, rule)


# Pair and triangle cuts. In a labelling, ``Z_st`` is ``1 / W`` for two groups of one cluster of
# weight W, and 0 for two groups of different clusters, so every labelling satisfies
#
#     pair       Z_st <= Z_ss                    (0 or 1/W on the left, 1/W on the right)
#     triangle   Z_st + Z_su <= Z_ss + Z_tu      (if both t and u are with s, they are together).

Triples = Ints  # (m, 3): s, t, u with t < u; u = -1 for a pair cut

# Cuts of one group in one round: more would displace those of the other groups.
MAX_CUTS_PER_GROUP = 40
NO_CUTS: Triples = np.empty((0, 3), dtype=np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CutTable:
    """Cuts as sums over entries of the upper triangle of ``Z``; pair cuts are padded with zeros."""

    entry_indices: Ints  # (m, 4) flat numbers of entries (i, j) with i <= j
    factors: Floats  # (m, 4) of the entries: the cut is sum factor * entry <= 0
    symmetric_factors: Floats  # (m, 4) of the symmetric matrix: half a factor off the diagonal


def cut_table(triples: Triples, n_groups: int) -> CutTable:
    """Table of cuts on a matrix of order ``n_groups``.

    >>> cut_table(np.array([[0, 1, -1]]), 2).factors
    array([[ 1.,  0., -1.,  0.]])
    """
    s, t, u = triples.T
    pair = u < 0
    u = np.where(pair, t, u)
    entry_indices = np.stack(
        [_upper(s, t, n_groups), _upper(s, u, n_groups), s * n_groups + s, _upper(t, u, n_groups)],
        axis=1,
    )
    factors = np.tile([1.0, 1.0, -1.0, -1.0], (len(triples), 1))
    factors[pair, 1] = factors[pair, 3] = 0.0
    # Also for cuts that name a group twice: they are valid.
    on_diagonal = entry_indices // n_groups == entry_indices % n_groups
    symmetric_factors = factors * np.where(on_diagonal, 1.0, 0.5)
    return CutTable(entry_indices, factors, symmetric_factors)


def find_violated_cuts(z: Floats, min_violation: float, count: int) -> Triples:
    """The ``count`` cuts that ``z`` violates most, relative to a diagonal entry."""
    capacity = MAX_CUTS_PER_GROUP * len(z)
    cuts = np.empty((capacity, 3), dtype=np.int64)
    violations = np.empty(capacity)
    found = violated_cuts(z, min_violation, MAX_CUTS_PER_GROUP, cuts, violations)
    worst = np.argsort(-violations[:found], kind="stable")[:count]
    return cuts[np.sort(worst)]


def append_cuts(
    triples: Triples, multipliers: Floats, new_cuts: Triples, n_groups: int
) -> tuple[Triples, Floats]:
    """Append the cuts of ``new_cuts`` that are not in ``triples``, with multiplier 0."""
    fresh = new_cuts[~np.isin(_keys(new_cuts, n_groups), _keys(triples, n_groups))]
    return (
        np.concatenate([triples, fresh]),
        np.concatenate([multipliers, np.zeros(len(fresh))]),
    )


def aggregate_cuts(
    triples: Triples, multipliers: Floats, group_of: Ints, n_groups: int
) -> tuple[Triples, Floats]:
    """Cuts of the problem in which group s is merged into group ``group_of[s]``.

    A cut with s merged with t or u becomes trivial. If t is merged with u, the triangle is the
    sum of two pair cuts, which get its multiplier each.
    """
    s, t, u = group_of[triples[:, 0]], group_of[triples[:, 1]], group_of[triples[:, 2]]
    pair = triples[:, 2] < 0
    u = np.where(pair, -1, u)
    collapsed = ~pair & (t == u)
    kept = (s != t) & (s != u)
    whole = kept & ~collapsed
    collapsed_rows = np.flatnonzero(kept & collapsed)
    none = np.full(len(collapsed_rows), -1)
    low = np.where(pair, t, np.minimum(t, u))
    high = np.where(pair, -1, np.maximum(t, u))
    rows = np.concatenate(
        [
            np.stack([s[whole], low[whole], high[whole]], axis=1),
            np.stack([s[collapsed_rows], t[collapsed_rows], none], axis=1),
            np.stack([t[collapsed_rows], s[collapsed_rows], none], axis=1),
        ]
    )
    cut_multipliers = np.concatenate(
        [multipliers[whole], multipliers[collapsed_rows], multipliers[collapsed_rows]]
    )
    _, first, inverse = np.unique(_keys(rows, n_groups), return_index=True, return_inverse=True)
    return rows[first], np.bincount(inverse.ravel(), cut_multipliers, len(first)).astype(np.float64)


def _upper(i: Ints, j: Ints, n_groups: int) -> Ints:
    return np.minimum(i, j) * n_groups + np.maximum(i, j)


def _keys(triples: Triples, n_groups: int) -> Ints:
    base = n_groups + 1
    keys: Ints = (triples[:, 0] * base + triples[:, 1]) * base + triples[:, 2] + 1
    return keys


@final
@dataclass(frozen=True, slots=True, eq=False)
class MatrixMultipliers(AbstractEvidence):
    """Multipliers of entries of ``Z`` and of cuts: the evidence of the SDP bound."""

    certainty_max_groups: ClassVar[float] = 1_000  # limited by dense matrices of this order

    entries: Floats  # (n, n) symmetric; >= 0, of any sign on cannot-links
    cuts: Ints  # (m, 3): s, t, u; u = -1 for a pair cut
    cut_multipliers: Floats  # (m,) >= 0
    size_sets: Mask | None = None  # (c, n) sets of groups of size cuts
    size_multipliers: Floats | None = None  # (c,) >= 0

    @classmethod
    def zeros(cls, n_groups: int) -> MatrixMultipliers:
        """All zero."""
        no_cuts = np.empty((0, 3), dtype=np.int64)
        return cls(np.zeros((n_groups, n_groups)), no_cuts, np.empty(0))

    @property
    def size_cuts(self) -> tuple[Mask, Floats]:
        """Sets of the size cuts and their multipliers."""
        if self.size_sets is None or self.size_multipliers is None:
            return np.empty((0, len(self.entries)), dtype=np.bool_), np.empty(0)
        return self.size_sets, self.size_multipliers

    def renumbered(self, order: Ints) -> MatrixMultipliers:
        """Multipliers with group ``order[i]`` as group i."""
        return self.aggregate(np.argsort(order), len(order))

    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> MatrixMultipliers:
        """Sum the multipliers of merged groups; ``inside`` is not needed."""
        return self.aggregate(group_of, n_groups)

    def aggregate(self, group_of: Ints, n_groups: int) -> MatrixMultipliers:
        """Multipliers of the problem in which group s is merged into ``group_of[s]``.

        ``Z`` of the smaller problem, with rows and columns repeated, is feasible for the larger,
        so multipliers add up. A permutation only renumbers the groups.
        """
        halfway = np.zeros((n_groups, len(self.entries)))
        np.add.at(halfway, group_of, self.entries)
        entries = np.zeros((n_groups, n_groups))
        np.add.at(entries, group_of, halfway.T)
        cuts, cut_multipliers = aggregate_cuts(self.cuts, self.cut_multipliers, group_of, n_groups)
        sets, size_multipliers = self.size_cuts
        # A merged group is in a set if most of its members are; any set is valid.
        members = np.bincount(group_of, minlength=n_groups)
        merged = np.zeros((len(sets), n_groups))
        np.add.at(merged.T, group_of, sets.T.astype(np.float64))
        return MatrixMultipliers(
            0.5 * (entries + entries.T),
            cuts,
            cut_multipliers,
            2.0 * merged > members,
            size_multipliers,
        )

    def row(self) -> Floats:
        """Upper triangle, then every cut with a positive multiplier, then size cuts.

        A size cut of m groups has the numbers -2, m, -1 and its multiplier, then the groups, filled
        up with -1 to a multiple of four.
        """
        used = self.cut_multipliers > 0.0
        cuts = np.column_stack([self.cuts[used].astype(np.float64), self.cut_multipliers[used]])
        parts = [self.entries[np.triu_indices(len(self.entries))], cuts.ravel()]
        for inside, multiplier in zip(*self.size_cuts, strict=True):
            members = np.flatnonzero(inside).astype(np.float64)
            if multiplier > 0.0 and len(members):
                parts.append(np.array([-2.0, len(members), -1.0, multiplier]))
                parts.append(np.pad(members, (0, -len(members) % 4), constant_values=-1.0))
        return np.concatenate(parts)
