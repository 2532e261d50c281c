"""Small problems for the partition bound, and exact references."""

from __future__ import annotations

from fractions import Fraction

from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import exact_cost
from tests.bounds.sdp_cases import exact_costs, reduced_of


def random_instance(seed, least_groups=3, largest=7):
    """Random feasible problem with enough groups, presolved, and its optimal cost."""
    for attempt in range(1000):
        problem = feasible_problem(
            seed + 10_000 * attempt, largest=largest, min_clusters=1 + seed % 2
        )
        done = reduced_of(problem)
        if done.reduced.n_groups < least_groups or done.feasible_labels is None:
            continue
        costs = exact_costs(problem, done)
        if costs:
            return problem, done, min(costs)
    raise AssertionError("no problem was drawn")


def weights_add_up(reduced, parts):
    """Whether the weights in all parts sum to at most those of the problem, exactly."""
    totals = [Fraction(0)] * reduced.n_groups
    for part in parts:
        for row, weight in zip(part.rows.tolist(), part.problem.weights.tolist(), strict=True):
            assert weight > 0.0
            totals[row] += Fraction(weight)
    return all(a <= Fraction(b) for a, b in zip(totals, reduced.weights.tolist(), strict=True))


def feasible_group_labels(reduced):
    """Every feasible labelling of the groups, up to renaming of clusters."""
    edges = reduced.graph.edges().tolist()
    stack = [()]
    while stack:
        labels = stack.pop()
        s = len(labels)
        if s == reduced.n_groups:
            yield labels
            continue
        for k in range(min(max(labels, default=-1) + 2, reduced.n_clusters)):
            if all(labels[u] != k for u, v in edges if v == s):
                stack.append((*labels, k))


def least_cost(reduced):
    """Optimal cost in exact arithmetic."""
    return min(
        exact_cost(reduced.points, reduced.weights, labels)
        for labels in feasible_group_labels(reduced)
    )


def some_labels(done, rng):
    """Feasible or random labels: parts are valid for any labels."""
    if rng.random() < 0.5:
        return done.feasible_labels
    return rng.integers(done.reduced.n_clusters, size=done.reduced.n_groups)
