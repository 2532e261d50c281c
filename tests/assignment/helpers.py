"""Small instances and exhaustive enumeration for assignments."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from certikmeans.problem import CannotLinkGraph, CannotLinks, ReducedProblem


def read_only(values):
    """Read-only array as in the solver, so that kernels are compiled once."""
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def build_graph(n_vertices, edges):
    """Number the vertices as in `CannotLinkGraph`. Returns ``(graph, order)``.

    ``order[i]`` is the vertex that became number ``i``.
    """
    near = [set() for _ in range(n_vertices)]
    for u, v in edges:
        near[u].add(v)
        near[v].add(u)
    order, parents, starts, extra = [], [], [0], []
    seen = set()
    for root in range(n_vertices):
        if root in seen or not near[root]:
            continue
        seen.add(root)
        first = len(order)
        order.append(root)
        parents.append(-1)
        for head in itertools.count(first):
            if head == len(order):
                break
            for u in sorted(near[order[head]] - seen):
                seen.add(u)
                order.append(u)
                parents.append(head)
        members = order[first:]
        starts.append(len(order))
        extra.append(sum(len(near[v]) for v in members) // 2 - len(members) + 1)
    order += [v for v in range(n_vertices) if not near[v]]
    number = {v: i for i, v in enumerate(order)}
    rows = [sorted(number[u] for u in near[v]) for v in order]
    graph = CannotLinkGraph(
        n_vertices,
        read_only(np.cumsum([0] + [len(row) for row in rows])),
        read_only([u for row in rows for u in row]),
        read_only(starts),
        read_only(parents),
        read_only(extra),
    )
    return graph, np.array(order, dtype=np.int64)


def build_problem(points, weights, edges, n_clusters):
    graph, order = build_graph(len(points), edges)
    points = np.ascontiguousarray(np.asarray(points, dtype=float)[order])
    weights = np.ascontiguousarray(np.asarray(weights, dtype=float)[order])
    return ReducedProblem(points, weights, CannotLinks(graph), n_clusters, 0.0)


def any_feasible_labels(graph, n_clusters, seed=0):
    """Return some feasible labels by backtracking, or None if there are none."""
    rng = np.random.default_rng(seed)
    rows = [graph.neighbors[a:b].tolist() for a, b in itertools.pairwise(graph.indptr)]
    labels = [-1] * graph.n_vertices
    options = [list(rng.permutation(n_clusters)) for _ in rows]

    def fill():
        best, choices = -1, None
        for v, label in enumerate(labels):
            if label < 0:
                open_labels = [k for k in options[v] if all(labels[u] != k for u in rows[v])]
                if choices is None or len(open_labels) < len(choices):
                    best, choices = v, open_labels
        if choices is None:
            return True
        for k in choices:
            labels[best] = int(k)
            if fill():
                return True
        labels[best] = -1
        return False

    return np.array(labels) if fill() else None


def is_feasible(graph, labels):
    edges = graph.edges()
    return not (labels[edges[:, 0]] == labels[edges[:, 1]]).any()


def exact_costs(problem, centers):
    """Weighted squared distances as fractions."""
    points = [[Fraction(float(x)) for x in row] for row in problem.points]
    places = [[Fraction(float(x)) for x in row] for row in centers]
    return [
        [
            Fraction(float(w)) * sum((x - c) ** 2 for x, c in zip(row, place, strict=True))
            for place in places
        ]
        for row, w in zip(points, problem.weights, strict=True)
    ]


def oracle(graph, costs):
    """Least cost over every feasible labelling, as a Fraction; None if all are infinite.

    Enumerates every labelling, component by component.
    """
    total = Fraction(0)
    ranges = list(itertools.pairwise(graph.starts.tolist()))
    ranges += [(v, v + 1) for v in range(graph.n_linked, graph.n_vertices)]
    for first, last in ranges:
        allowed = [
            [(k, Fraction(c)) for k, c in enumerate(row) if c != np.inf]
            for row in costs[first:last]
        ]
        best = _best_completion(graph, first, allowed)
        if best is None:
            return None
        total += best
    return total


def _best_completion(graph, first, allowed):
    best = None
    labels = []

    def extend(so_far):
        nonlocal best
        v = len(labels)
        if v == len(allowed):
            best = so_far if best is None else min(best, so_far)
        else:
            taken = {
                labels[u - first]
                for u in graph.neighbors[graph.indptr[first + v] : graph.indptr[first + v + 1]]
                if u - first < v
            }
            for k, cost in allowed[v]:
                if k not in taken:
                    labels.append(k)
                    extend(so_far + cost)
                    labels.pop()

    extend(Fraction(0))
    return best


SHAPES = ("tree", "cycle", "clique", "wheel", "clique with tails", "dense", "several")


def random_edges(shape, n, n_clusters, rng):
    """Edges of a random graph of the named shape on vertices ``0 .. n - 1``."""
    if shape == "cycle":
        return [(v, (v + 1) % n) for v in range(n)]
    tree = [(int(rng.integers(v)), v) for v in range(1, n)]
    if shape == "tree":
        return tree
    clique = list(itertools.combinations(range(min(n, n_clusters)), 2))
    if shape == "clique":
        return clique
    if shape == "clique with tails":
        size = min(n, n_clusters)
        return clique + [(int(rng.integers(v)), v) for v in range(size, n)]
    if shape == "wheel":
        rim = [(v, v + 1) for v in range(1, n - 1)] + [(n - 1, 1)]
        return rim + [(0, v) for v in range(1, n)]
    if shape == "dense":
        return [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.4]
    half = n // 2
    return [(v, (v + 1) % half) for v in range(half)] + [
        (half + a, half + b) for a, b in tree if half + b < n - 1
    ]
