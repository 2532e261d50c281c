"""The paper's rules, taken at their word, against instances on which they give a wrong answer.

Every rule is written here as the paper states it and used nowhere else. Each test first shows by
exact enumeration what the right answer is, then that the rule misses it, then that ours does not.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.assignment_fixing import AssignmentFixing
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import brute_force, exact_cost
from tests.bounds.box_bound import box_bound_value
from tests.bounds.cluster_oracle import make_reduced

# Points 0 and 1 may not share a cluster. The best labelling is {0}, {1, 10}, although 0 and 1
# are both closest to the centre of the first cluster.
LINKED = Problem.from_data([[0.0], [1.0], [10.0]], 2, cannot_link=[(0, 1)])
LINKED_OPTIMUM = Fraction(81, 2)
LINKED_BOXES = [(Fraction(0), Fraction(0)), (Fraction(11, 2), Fraction(11, 2))]


def d_min(x, box):
    return max(box[0] - x, x - box[1], Fraction(0)) ** 2


def d_max(x, box):
    return max(abs(x - box[0]), abs(x - box[1])) ** 2


def mean(values):
    return Fraction(sum(values), len(values))


def lemma_1(points, boxes, threshold):
    """Early elimination: viable clusters of every point."""
    return [{k for k, box in enumerate(boxes) if d_min(x, box) <= threshold} for x in points]


def lemma_2(points, boxes):
    """Forced assignment: the cluster of every point that the lemma fixes, else None."""
    use_dominance = []
    for x in points:
        sure = [
            k
            for k, box in enumerate(boxes)
            if all(d_max(x, box) < d_min(x, o) for j, o in enumerate(boxes) if j != k)
        ]
        use_dominance.append(sure[0] if sure else None)
    return use_dominance


def nearest_or_infinity(problem, centers):
    """The paper's K-colouring upper bound for one candidate."""
    points = [Fraction(float(x)) for x in problem.points[:, 0]]
    costs = [[(x - c) ** 2 for c in centers] for x in points]
    labels = [row.index(min(row)) for row in costs]
    if any(labels[i] == labels[j] for i, j in problem.cannot_link.tolist()):
        return None
    return sum(row[k] for row, k in zip(costs, labels, strict=True))


def as_part(boxes):
    """Boxes of fractions as a part, rounded outward."""
    lower = [[np.nextafter(float(a), -np.inf)] for a, _ in boxes]
    upper = [[np.nextafter(float(b), np.inf)] for _, b in boxes]
    return Domain(np.array(lower), np.array(upper))


def ours(points, boxes, cutoff, *, pairs=(), feasible_labels=None, use_dominance=False):
    reduced = make_reduced(np.array(points, dtype=float)[:, None], np.ones(len(points)), pairs, 2)
    feasible_labels = (
        np.zeros(len(points), dtype=np.int64) if feasible_labels is None else feasible_labels
    )
    rule = AssignmentFixing(
        reduced, CannotLinkAssigner(reduced, feasible_labels), use_dominance=use_dominance
    )
    return rule.apply(as_part(boxes), float(cutoff), StopSignal())


@pytest.mark.parametrize(
    ("points", "incumbent", "optimum", "boxes"),
    [
        # Nothing shorter exists among three points with whole coordinates up to 12.
        ([0, 1, 3, 6], [0, 0, 1, 1], [0, 0, 0, 1], [(Fraction(5, 4), Fraction(11, 8)), (6, 6)]),
        (
            [0, 4, 6, 6, 7, 8],
            [0, 0, 1, 1, 1, 1],
            [0, 1, 1, 1, 1, 1],
            [(0, Fraction(1, 2)), (Fraction(61, 10), Fraction(63, 10))],
        ),
    ],
)
def test_lemma_1_with_largest_distance(points, incumbent, optimum, boxes):
    problem = Problem.from_data(np.array(points, dtype=float)[:, None], 2)
    best, labels = brute_force(problem)
    assert list(labels) == optimum
    means = [mean([x for x, k in zip(points, incumbent, strict=True) if k == c]) for c in (0, 1)]
    apart = [[abs(x - m) for m in means] for x in points]
    # The incumbent is where Lloyd's iteration stops.
    assert all(row[k] < row[1 - k] for row, k in zip(apart, incumbent, strict=True))
    rho = max(row[k] ** 2 for row, k in zip(apart, incumbent, strict=True))
    cost = exact_cost(problem.points, problem.weights, incumbent)
    assert best < cost
    for k, (low, high) in enumerate(boxes):
        assert low <= mean([x for x, c in zip(points, optimum, strict=True) if c == k]) <= high

    allowed = lemma_1(points, boxes, rho)
    assert not all(k in left for k, left in zip(optimum, allowed, strict=True))
    assert set() in allowed  # and the node that contains the optimum looks infeasible

    for use_dominance in (False, True):
        found = ours(points, boxes, cost, use_dominance=use_dominance)
        assert found.allowed[range(len(points)), optimum].all()
        assert found.lower_bound <= best


def test_lemma_1_with_incumbent_cost():
    # Algorithm 1 compares with alpha, the whole cost, where the text has rho: sound, and ours
    # removes at least as much, because the rest of the points is not free.
    points, boxes = [0, 1, 3, 6], [(Fraction(5, 4), Fraction(11, 8)), (Fraction(6), Fraction(6))]
    weak = lemma_1(points, boxes, Fraction(5))
    found = ours(points, boxes, 5)
    removed = [(s, k) for s in range(4) for k in (0, 1) if k not in weak[s]]
    assert removed
    assert not any(found.allowed[s, k] for s, k in removed)


def test_algorithm_1_at_root():
    # It runs the rules once, in the bounding box of the data, the same for every centre. There
    # d_min is 0 for every point, so neither test can ever succeed.
    points = [Fraction(v) for v in (0, 1, 3, 6)]
    boxes = [(Fraction(0), Fraction(6))] * 2
    assert lemma_1(points, boxes, Fraction(0)) == [{0, 1}] * 4
    assert lemma_2(points, boxes) == [None] * 4


def test_lemma_2_with_cannot_link():
    best, optimum = brute_force(LINKED)
    assert (best, optimum) == (LINKED_OPTIMUM, (0, 1, 1))
    use_dominance = lemma_2([0, 1, 10], LINKED_BOXES)
    assert use_dominance[1] == 0  # "in every optimal solution"; the optimum has it in cluster 1
    for rule in (False, True):
        found = ours(
            [0, 1, 10],
            LINKED_BOXES,
            50,
            pairs=[(0, 1)],
            feasible_labels=[0, 1, 1],
            use_dominance=rule,
        )
        assert found.allowed[range(3), optimum].all()
    assert found.n_fixed == 3


def test_forbidden_forced_move_prunes_optimum():
    use_dominance = lemma_2([0, 1, 10], LINKED_BOXES)
    assert (
        use_dominance[0] == use_dominance[1] == 0
    )  # a cannot-link forbids it: "infeasible and is pruned"
    found = ours(
        [0, 1, 10], LINKED_BOXES, 41, pairs=[(0, 1)], feasible_labels=[0, 1, 1], use_dominance=True
    )
    assert found.lower_bound == pytest.approx(40.5)


def test_cannot_link_elimination():
    # Viable sets cannot say "not both": at the root everything is viable, and the problem that
    # the paper goes on with has the optimum 0.5 instead of 40.5.
    boxes = [(Fraction(0), Fraction(10))] * 2
    allowed = lemma_1([0, 1, 10], boxes, LINKED_OPTIMUM)
    assert allowed == [{0, 1}] * 3
    unconstrained = min(
        exact_cost(LINKED.points, LINKED.weights, labels)
        for labels in product((0, 1), repeat=3)
        if all(k in left for k, left in zip(labels, allowed, strict=True))
    )
    assert unconstrained == Fraction(1, 2)
    assert brute_force(LINKED)[0] == LINKED_OPTIMUM


def test_consistency_fails_for_point_boxes():
    # The limit of the paper's bound at centres (0.5, 10) is sum_s min_k |x_s - mu_k|^2 = 0.5,
    # below the optimum for ever, and its upper bound there is infinite: the node never closes.
    centers = [Fraction(1, 2), Fraction(10)]
    limit = sum(min((x - c) ** 2 for c in centers) for x in (0, 1, 10))
    assert limit == Fraction(1, 2)
    assert nearest_or_infinity(LINKED, centers) is None
    reduced = make_reduced(np.array([[0.0], [1.0], [10.0]]), np.ones(3), [(0, 1)], 2)
    point = np.array([[0.5], [10.0]])
    value = box_bound_value(reduced, CannotLinkAssigner(reduced, [0, 1, 1]), Domain(point, point))
    assert value == pytest.approx(0.25 + 81.0)  # the pair is in the bound


def test_nearest_center_or_infinity():
    # The labels are proper only if the midpoint separates 0 from 1. Then the right centre is
    # below 2, and the point 10 alone costs more than 64: no candidate in the box comes near 40.5.
    grid = [Fraction(i, 8) for i in range(81)]
    values = [nearest_or_infinity(LINKED, pair) for pair in product(grid, repeat=2)]
    assert min(v for v in values if v is not None) > 64
    assert nearest_or_infinity(LINKED, [Fraction(0), Fraction(11, 2)]) is None
    reduced = make_reduced(np.array([[0.0], [1.0], [10.0]]), np.ones(3), [(0, 1)], 2)
    assert CannotLinkAssigner(reduced, [0, 1, 1]).assign([[0.0], [5.5]]).cost == 40.5


def test_repeated_pseudo_samples():
    # x0 = x1 = 0 must be together; x0 may not be with 1, nor x1 with -1. As two pseudo-samples
    # that keep their own cannot-links they part: 1 instead of 2. One weighted group does not.
    points, cannot = [[0.0], [0.0], [1.0], [-1.0]], [(0, 2), (1, 3)]
    right = Problem.from_data(points, 2, must_link=[(0, 1)], cannot_link=cannot)
    copies = Problem.from_data(points, 2, cannot_link=cannot)
    assert brute_force(right)[0] == 2
    assert brute_force(copies)[0] == 1
    reduced = presolve(right, StopSignal()).reduced
    assert reduced.n_groups == 3
    assert sorted(reduced.weights) == [1.0, 1.0, 2.0]
    assert len(reduced.graph.edges()) == 2


def test_must_link_constant():
    # (t - 1) tr(Sigma) with the sample covariance is right; the q sigma^2 that ends the section on
    # upper bounds is right only for the population variance, of which nothing is said.
    inside = Problem.from_data([[0.0], [2.0], [9.0]], 2, must_link=[(0, 1)])
    sample_variance = mean([1, 1]) * 2
    assert presolve(inside, StopSignal()).reduced.offset == (2 - 1) * sample_variance == 2
    assert 2 * sample_variance == 4


def test_constant_is_per_component():
    # Two must-link components in one cluster contribute twice; the paper sums over clusters.
    problem = Problem.from_data(
        [[0.0], [2.0], [1.0], [3.0], [100.0]], 2, must_link=[(0, 1), (2, 3)]
    )
    best, labels = brute_force(problem)
    assert labels == (0, 0, 0, 0, 1)
    reduced = presolve(problem, StopSignal()).reduced
    assert reduced.offset == 4
    assert best == 5
