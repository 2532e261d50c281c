"""Minimum set of pairs to remove: a hitting set of conflicts, with a lower bound.

A set of pairs can be removed exactly if some labelling violates no other pair. Every conflict has
to lose a pair, so the minimum hitting set of the conflicts known so far is a lower bound; if no
conflict is left without it, it is the minimum, and otherwise a conflict that it misses is added.
If the time is over before, a labelling that violates few pairs gives the set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import final

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array

from certikmeans._types import Floats, Ints, Mask
from certikmeans.problem.conflicts.conflict_sets import (
    MIN_STEP_COST,
    ColoringUndecided,
    ConflictSet,
    ConflictWalks,
    PairGraph,
    coloring_conflicts,
)
from certikmeans.stop import StopSignal


def heuristic_labels(
    graph: PairGraph,
    n_clusters: int,
    trusted: Mask,
    *,
    target: int,
    patience: int,
    tenure: int,
) -> Ints:
    """Return labels that violate few pairs.

    Trusted pairs are contracted to groups, groups are labelled greedily, and a tabu search moves
    groups, then single vertices.

    Parameters
    ----------
    graph : PairGraph
        The pairs.
    n_clusters : int
        Number of labels.
    trusted : ndarray of bool, shape (n_edges,)
        Pairs that are probably right.
    target : int
        Number of violated pairs at which the search ends.
    patience, tenure : int
        Moves without an improvement before the search ends; least number of moves for which a
        vertex may not return to its label.
    """
    groups = contract(graph, trusted)
    size = int(groups.max()) + 1
    whole = coo_array((np.ones(graph.n, int), (np.arange(graph.n), groups)), (graph.n, size))
    signed = _signed_matrix(graph)
    between = (whole.T @ signed @ whole).tocsr()
    between.setdiag(0)
    labels = _greedy_labels(between, n_clusters)
    for matrix, group_of_vertex in ((between, groups), (signed, np.arange(graph.n))):
        excess = len(graph.violated(labels[group_of_vertex])) - target
        labels = _tabu_search(matrix, labels, n_clusters, excess, patience, tenure)[group_of_vertex]
    return labels


def contract(graph: PairGraph, trusted: Mask) -> Ints:
    """Number groups by greedy additive edge contraction.

    The two groups between which must-links outnumber cannot-links most are joined repeatedly.

    >>> contract(PairGraph(3, np.array([[0, 1], [1, 2], [0, 2]]), 1), np.ones(3, bool)).tolist()
    [0, 0, 1]
    """
    near: list[dict[int, int]] = [{} for _ in range(graph.n)]
    for e in np.flatnonzero(trusted).tolist():
        u, v = graph.edges[e].tolist()
        sign = 1 if e < graph.n_must else -1
        near[u][v] = near[v][u] = near[u].get(v, 0) + sign
    queue = [
        (-weight, u, v) for u, others in enumerate(near) for v, weight in others.items() if u < v
    ]
    heapify(queue)
    into = list(range(graph.n))
    while queue and queue[0][0] < 0:
        surplus, u, v = heappop(queue)
        if near[u].get(v) != -surplus:  # a group was joined, or the weight has changed
            continue
        if len(near[u]) < len(near[v]):
            u, v = v, u
        into[v] = u
        for other, weight in near[v].items():
            del near[other][v]
            if other != u:
                near[u][other] = near[other][u] = near[u].get(other, 0) + weight
                heappush(queue, (-near[u][other], min(u, other), max(u, other)))
        near[v] = {}
    for v in range(graph.n):
        while into[v] != into[into[v]]:
            into[v] = into[into[v]]
    return np.unique(into, return_inverse=True)[1].astype(np.int64)


def _signed_matrix(graph: PairGraph) -> csr_array:
    """Symmetric matrix with -1 for must-links and 1 for cannot-links."""
    signs = np.where(np.arange(len(graph.edges)) < graph.n_must, -1, 1)
    tails, heads = graph.edges.T
    both = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    return coo_array((np.tile(signs, 2), both), shape=(graph.n, graph.n)).tocsr()


def _greedy_labels(signed: csr_array, n_clusters: int) -> Ints:
    """Label in the order of decreasing degree."""
    n = signed.shape[0]
    costs = np.zeros((n, n_clusters), dtype=np.int64)
    labels = np.zeros(n, dtype=np.int64)
    for v in np.argsort(-np.diff(signed.indptr), kind="stable").tolist():
        near = slice(signed.indptr[v], signed.indptr[v + 1])
        labels[v] = costs[v].argmin()
        costs[signed.indices[near], labels[v]] += signed.data[near]
    return labels


def _tabu_search(
    signed: csr_array, labels: Ints, n_clusters: int, excess: int, patience: int, tenure: int
) -> Ints:
    """Move vertices of violated pairs to their best label; return the best labels seen.

    The search ends when ``excess`` pairs fewer are violated than at the start.
    """
    n = len(labels)
    labels = labels.copy()
    # Cannot-links minus must-links to each label: violated pairs up to a constant per vertex.
    costs = signed @ np.eye(n_clusters, dtype=np.int64)[labels]
    n_must = -signed.minimum(0).sum(axis=1)
    tabu_until = np.zeros((n, n_clusters), dtype=np.int64)
    change, best, best_labels, best_step, step = 0, 0, labels.copy(), 0, 0
    while best + excess > 0 and step < best_step + patience:
        step += 1
        own = costs[np.arange(n), labels]
        violating = np.flatnonzero(own + n_must > 0)
        gains = (costs[violating] - own[violating, None]).astype(np.float64)
        gains[np.arange(len(violating)), labels[violating]] = np.inf
        gains[(tabu_until[violating] > step) & (change + gains >= best)] = np.inf
        if not np.isfinite(gains).any():
            break
        at, label = divmod(int(gains.argmin()), n_clusters)
        v = int(violating[at])
        near = slice(signed.indptr[v], signed.indptr[v + 1])
        costs[signed.indices[near], labels[v]] -= signed.data[near]
        costs[signed.indices[near], label] += signed.data[near]
        change += int(gains[at, label])
        # A fixed tenure leads to cycles; it grows with the number of vertices in violated pairs.
        tabu_until[v, labels[v]] = step + tenure + 7 * step % 10 + 3 * len(violating) // 10
        labels[v] = label
        if change < best:
            best, best_labels, best_step = change, labels.copy(), step
    return best_labels


@final
@dataclass(frozen=True, slots=True)
class RemovalParams:
    """Settings of the search for a minimum removal.

    Attributes
    ----------
    rows_per_round, coloring_rows : int
        Conflicts added at a time: walks, and sets of groups that cannot be coloured.
    max_uses : int
        Walks added at a time that may share an edge: those through one wrong pair are many and
        give the same inequality nearly.
    local_step_cost : float
        Cost of a step while short walks are generated, in units of a removed edge. With 0.2, walks
        have at most four steps, and 100,000 pairs take seconds instead of minutes.
    n_variants : int
        Choices among parallel cannot-links for each set of groups.
    lp_rounds : int
        Rounds of the linear relaxation before the integer program.
    coloring_seconds : float
        Limit for one colouring, after which feasibility stays open.
    listing_seconds : float
        Limit for the conflicts that are listed.
    tabu_patience, tabu_work : int
        Moves of the heuristic without an improvement, at least 100 and otherwise bounded by the
        work of all of them in vertices times clusters.
    tabu_tenure : int
        Least number of moves for which a vertex may not return to its label.
    """

    rows_per_round: int = 2000
    coloring_rows: int = 60
    max_uses: int = 10
    local_step_cost: float = 0.2
    n_variants: int = 4
    lp_rounds: int = 40
    coloring_seconds: float = 10.0
    listing_seconds: float = 10.0
    tabu_patience: int = 2000
    tabu_work: int = 20_000_000
    tabu_tenure: int = 10

    def __post_init__(self) -> None:
        counts = (self.rows_per_round, self.coloring_rows, self.max_uses, self.n_variants)
        if min(counts) < 1:
            raise ValueError("numbers of rows, uses and variants have to be positive")
        if self.local_step_cost < MIN_STEP_COST:
            raise ValueError(f"local_step_cost has to be at least {MIN_STEP_COST}")


DEFAULT_PARAMS = RemovalParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Edges to remove, and the number of edges that have to be removed at least."""

    edges: Ints
    least: int


_HIT_WEIGHT = 1.0 - 1e-4  # a conflict of this weight counts as hit


def min_removal(
    graph: PairGraph, n_clusters: int, stop: StopSignal, params: RemovalParams = DEFAULT_PARAMS
) -> Removal:
    """Find a minimum set of edges to remove, or a small one if time runs out.

    >>> triangle = PairGraph(3, np.array([[0, 1], [1, 2], [0, 2]]), 2)
    >>> found = min_removal(triangle, 2, StopSignal())
    >>> len(found.edges), found.least
    (1, 1)
    """
    if n_clusters == 1:  # one label violates every cannot-link and no must-link
        return Removal(np.arange(graph.n_must, len(graph.edges)), len(graph.cannot))
    removed = [np.empty(0, dtype=np.int64)]
    least = 0
    for component, ids in graph.cyclic_components():
        found = _HittingSet(component, n_clusters, stop, params).minimize()
        removed.append(ids[found.edges])
        least += found.least
    return Removal(np.sort(np.concatenate(removed)), least)


@final
class _HittingSet:
    """Minimum hitting set in one component, with conflicts generated when they are missed."""

    def __init__(
        self, graph: PairGraph, n_clusters: int, stop: StopSignal, params: RemovalParams
    ) -> None:
        self._graph, self._k, self._stop, self._params = graph, n_clusters, stop, params
        self._walks = ConflictWalks(graph, stop, doubled=n_clusters == 2)
        self._rows: dict[ConflictSet, None] = {}
        self._weights = np.zeros(len(graph.edges))  # of the last relaxation
        self._lower_bound = 0

    def minimize(self) -> Removal:
        removed = np.zeros(len(self._weights), dtype=np.bool_)
        self._solve_relaxation()
        if not self._rows and self._leaves_no_conflict(removed):
            return Removal(np.empty(0, dtype=np.int64), 0)
        moves = self._params.tabu_work // (self._graph.n * self._k)
        labels = heuristic_labels(
            self._graph,
            self._k,
            self._weights < 0.5,
            target=self._lower_bound,
            patience=max(100, min(self._params.tabu_patience, moves)),
            tenure=self._params.tabu_tenure,
        )
        best = self._graph.violated(labels)
        while self._rows and self._lower_bound < len(best) and not self._stopped():
            n_rows = len(self._rows)
            self._solve_integer_program(removed)
            if self._leaves_no_conflict(removed):
                best = min(best, np.flatnonzero(removed), key=len)
                break
            if len(self._rows) == n_rows:  # no conflict is known, and feasibility is open
                break
        return Removal(best, min(self._lower_bound, len(best)))

    def _solve_relaxation(self) -> None:
        """Solve the linear relaxation over walks: short ones while there are any, then all."""
        every = np.ones(len(self._weights), dtype=np.bool_)
        step_cost = self._params.local_step_cost
        for _ in range(self._params.lp_rounds):
            walks = self._walks.lighter_than(self._weights, every, _HIT_WEIGHT, step_cost)
            if self._add(self._diverse(walks)):
                self._solve_linear_program()
            elif step_cost > MIN_STEP_COST:
                step_cost = MIN_STEP_COST
            else:
                return
            if self._stopped():
                return

    def _solve_linear_program(self) -> None:
        columns, matrix = self._matrix()
        answer = linprog(
            np.ones(len(columns)),
            A_ub=-matrix,
            b_ub=-np.ones(matrix.shape[0]),
            bounds=(0.0, None),  # with upper bounds, the multipliers would not form a packing
            method="highs",
            options={"time_limit": self._seconds()},
        )
        if answer.x is not None:
            self._raise_lower_bound(_packing_bound(-answer.ineqlin.marginals, matrix))
            self._weights = np.zeros(len(self._weights))
            self._weights[columns] = answer.x

    def _solve_integer_program(self, removed: Mask) -> None:
        """Set ``removed`` to a hitting set of all rows, the smallest one if time allows."""
        columns, matrix = self._matrix()
        answer = milp(
            np.ones(len(columns)),
            constraints=LinearConstraint(matrix, lb=1.0),
            integrality=np.ones(len(columns)),
            bounds=Bounds(0.0, 1.0),
            options={"time_limit": self._seconds()},
        )
        if answer.mip_dual_bound is not None:
            self._raise_lower_bound(answer.mip_dual_bound)
        if answer.x is not None:
            removed[:] = False
            removed[columns[answer.x > 0.5]] = True

    def _leaves_no_conflict(self, removed: Mask) -> bool:
        """Look for conflicts without a removed edge and add them.

        False also if the time ran out before the absence of conflicts was proven.
        """
        walks = self._walks.lighter_than(removed.astype(np.float64), ~removed, 0.5)
        missed = list(islice(walks, self._params.rows_per_round))
        if not missed and self._k > 2 and not self._stopped():
            try:
                missed = coloring_conflicts(
                    self._graph,
                    removed,
                    self._k,
                    self._stop.with_time_limit(self._params.coloring_seconds),
                    max_conflicts=self._params.coloring_rows,
                    n_variants=self._params.n_variants,
                )
            except ColoringUndecided:
                return False
        self._add(missed)
        return not missed and not self._stopped()

    def _diverse(self, walks: Iterable[ConflictSet]) -> list[ConflictSet]:
        """Choose short conflicts so that no edge occurs in many: others would say the same."""
        uses = np.zeros(len(self._weights), dtype=np.int64)
        chosen = []
        for walk in sorted(walks, key=len):
            edges = list(walk)
            if (uses[edges] < self._params.max_uses).all():
                uses[edges] += 1
                chosen.append(walk)
                if len(chosen) == self._params.rows_per_round:
                    break
        return chosen

    def _add(self, rows: Iterable[ConflictSet]) -> bool:
        before = len(self._rows)
        self._rows.update(dict.fromkeys(rows))
        return len(self._rows) > before

    def _stopped(self) -> bool:
        return self._stop.reason() is not None

    def _seconds(self) -> float:
        left = self._stop.remaining
        return 3600.0 if math.isinf(left) else max(left, 0.1)

    def _raise_lower_bound(self, bound: float) -> None:
        self._lower_bound = max(self._lower_bound, math.ceil(bound - 1e-6))

    def _matrix(self) -> tuple[Ints, csr_array]:
        """One row for each conflict, one column for each edge that is in any."""
        sizes = [len(row) for row in self._rows]
        members = np.fromiter((e for row in self._rows for e in row), dtype=np.int64)
        columns, at = np.unique(members, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return columns, csr_array((np.ones(len(members)), at, starts), (len(sizes), len(columns)))


def _packing_bound(multipliers: Floats, matrix: csr_array) -> float:
    """Scale multipliers of conflicts so that no edge carries more than 1: a valid lower bound."""
    multipliers = np.maximum(multipliers, 0.0)
    load = float((matrix.T @ multipliers).max(initial=0.0))
    return float(multipliers.sum()) / max(1.0, load)
