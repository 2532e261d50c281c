"""The Peng-Wei relaxation of a reduced problem, in the two scalings that are used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.sdp.step import all_squared_distances
from certikmeans.problem import ReducedProblem

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SdpModel:
    """What the relaxation of one problem consists of.

    A labelling is the matrix ``Z = sum_k 1_k 1_k^T / W_k`` over its non-empty clusters, ``1_k``
    the members and ``W_k`` the weight of cluster k. With ``C_st = w_s w_t |x_s - x_t|^2 / 2``,

        cost = <C, Z>,   Z w = 1,   sum_s w_s Z_ss <= K,   Z >= 0,   Z_st = 0 for cannot-links,

    and ``M = D^(1/2) Z D^(1/2)``, ``D = diag(w)``, is an orthogonal projection of rank at most K
    with ``M v = v``, ``v = sqrt(w)``. Dropping "projection" for "positive semidefinite" is the
    relaxation. Solvers work with M, proofs with Z, in which every coefficient is rational.
    """

    problem: ReducedProblem
    roots: Vector  # (n,) v, rounded
    costs: Matrix  # (n, n) C, rounded
    fixed: NDArray[np.bool_]  # (n, n) cannot-links
    mass: float  # sum of the weights
    total: float  # sum of squares about the mean: cost of one cluster; > 0 unless all coincide

    @property
    def n_groups(self) -> int:
        """Order of the matrices."""
        return len(self.roots)

    @property
    def n_clusters(self) -> int:
        """Number of clusters allowed."""
        return self.problem.n_clusters

    @classmethod
    def of(cls, problem: ReducedProblem) -> SdpModel:
        """Build the matrices.

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
        fixed = np.zeros(costs.shape, dtype=np.bool_)
        tails, heads = problem.graph.edges().T
        fixed[tails, heads] = fixed[heads, tails] = True
        mass = float(weights.sum())
        total = float(costs.sum()) / mass
        return cls(problem, np.sqrt(weights), costs, fixed, mass, total)
