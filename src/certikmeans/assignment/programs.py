"""A core as a linear or an integer program, for scipy's solver."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

# The solver's tolerances are absolute: costs are scaled so that the dearest label costs this.
_SCALE = 1e4


@final
class LabelProgram:
    """One variable per vertex and allowed label; labels of least cost.

    Every vertex has one label, and the members of a clique use a label at most once. Costs count
    from the cheapest label of each vertex, which changes all labellings by the same amount.
    """

    def __init__(
        self,
        costs: NDArray[np.float64],  # (n_core, n_labels)
        allowed: NDArray[np.bool_],  # (n_core, n_labels)
        member_start: NDArray[np.int64],  # (n_cliques + 1,)
        member: NDArray[np.int64],
    ) -> None:
        self._shape = (len(member_start) - 1, costs.shape[1])
        self._n_core = len(costs)
        self._vertex, self._label = np.nonzero(allowed)
        column = np.full(allowed.shape, -1)
        column[self._vertex, self._label] = np.arange(len(self._vertex))
        rows, columns = [], []
        self._clique_row: list[tuple[int, int]] = []
        for clique, (begin, end) in enumerate(pairwise(member_start.tolist())):
            for label, own in enumerate(column[member[begin:end]].T):
                payers = own[own >= 0]
                if len(payers) > 1:
                    rows.append(np.full(len(payers), len(self._clique_row)))
                    columns.append(payers)
                    self._clique_row.append((clique, label))
        self._entries = (
            np.concatenate([*rows, np.empty(0, dtype=np.int64)]),
            np.concatenate([*columns, np.empty(0, dtype=np.int64)]),
        )
        least = np.where(allowed, costs, np.inf).min(axis=1)
        objective = costs[self._vertex, self._label] - least[self._vertex]
        dearest = float(objective.max(initial=0.0))
        self._scale = _SCALE / dearest if dearest > 0 else 1.0
        self._objective = objective * self._scale

    def _matrices(self) -> tuple[Any, Any]:
        """Return the rows of the vertices and those of the cliques."""
        from scipy.sparse import coo_array

        n = len(self._vertex)
        one_each = coo_array((np.ones(n), (self._vertex, np.arange(n))), shape=(self._n_core, n))
        ones = np.ones(len(self._entries[0]))
        at_most = coo_array((ones, self._entries), shape=(len(self._clique_row), n))
        return one_each.tocsr(), at_most.tocsr()

    def clique_prices(self, seconds: float) -> NDArray[np.float64] | None:
        """Dual values of the cliques in the linear relaxation, or None if there was no time."""
        from scipy.optimize import linprog

        one_each, at_most = self._matrices()
        if not self._clique_row:
            return None
        answer = linprog(
            self._objective,
            A_ub=at_most,
            b_ub=np.ones(at_most.shape[0]),
            A_eq=one_each,
            b_eq=np.ones(self._n_core),
            method="highs",
            options={"time_limit": seconds},
        )
        if answer.status != 0:
            return None
        prices = np.zeros(self._shape)
        clique, label = np.array(self._clique_row).T
        prices[clique, label] = np.maximum(0.0, -answer.ineqlin.marginals) / self._scale
        return prices

    def labels(self, seconds: float) -> NDArray[np.int64] | None:
        """Labels by branch and cut, or None if it found none in time. To be checked."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        one_each, at_most = self._matrices()
        answer = milp(
            self._objective,
            integrality=np.ones(len(self._vertex)),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(one_each, 1.0, 1.0),
                LinearConstraint(at_most, -np.inf, 1.0),
            ],
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if answer.x is None:
            return None
        places = np.full(self._n_core, -1)
        picked = answer.x > 0.5
        places[self._vertex[picked]] = self._label[picked]
        return places
