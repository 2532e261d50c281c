"""Labels that violate few pairs: greedy additive edge contraction and tabu search."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from scipy.sparse import coo_array, csr_array

from certikmeans.problem.conflicts.pair_graph import BoolArray, IntArray, PairGraph


def heuristic_labels(
    graph: PairGraph,
    n_clusters: int,
    trusted: BoolArray,
    *,
    target: int,
    patience: int,
    tenure: int,
) -> IntArray:
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


def contract(graph: PairGraph, trusted: BoolArray) -> IntArray:
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


def _greedy_labels(signed: csr_array, n_clusters: int) -> IntArray:
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
    signed: csr_array, labels: IntArray, n_clusters: int, excess: int, patience: int, tenure: int
) -> IntArray:
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
