"""Soft pairs through presolve: penalties of labels and lower bounds, in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import soft_problem
from certikmeans.testing.oracle import (
    brute_force,
    exact_cost,
    exact_penalty,
    feasible_labellings,
    numbered_by_first_appearance,
)


def reduced_penalty(presolved: PresolvedProblem, labels: np.ndarray) -> Fraction:
    """Exact penalty of labels of groups, from the bonuses that bounds use."""
    soft = presolved.reduced.label_constraints.soft
    if soft is None:
        return Fraction(0)
    first, second = labels[soft.pairs].T
    paid = np.where((first == second) == (soft.bonus < 0.0), np.abs(soft.bonus), 0.0)
    return sum(map(Fraction, paid.tolist()), start=Fraction(0))


def rounded_down(value: Fraction) -> float:
    number = float(value)
    return number if Fraction(number) <= value else math.nextafter(number, -math.inf)


def reduced_optimum(presolved: PresolvedProblem) -> Fraction:
    reduced = presolved.reduced
    return min(
        exact_cost(reduced.points, reduced.weights, labels)
        + reduced_penalty(presolved, np.array(labels))
        for labels in numbered_by_first_appearance(reduced.n_groups, reduced.n_clusters)
        if reduced.label_constraints.satisfied_by(np.array(labels))
    )


def presolved_problem(problem: Problem) -> PresolvedProblem:
    done = presolve(problem, StopSignal())
    assert isinstance(done, PresolvedProblem)
    return done


@pytest.mark.parametrize("seed", range(60))
def test_postsolved_bound_below_optimum(seed: int) -> None:
    problem = soft_problem(seed, largest=6, others=seed % 2 == 1)
    presolved = presolved_problem(problem)
    optimum = brute_force(problem)
    assert optimum is not None

    bound = presolved.postsolve_bound(rounded_down(reduced_optimum(presolved)))

    assert Fraction(bound) <= optimum[0]
    # Coordinates far from the origin are rounded when they are centred.
    scale = float(np.abs(problem.points).max()) ** 2 * problem.n_points
    assert bound >= float(optimum[0]) * (1.0 - 1e-9) - 1e-9 * math.sqrt(scale) - 1e-12 * scale


@pytest.mark.parametrize("seed", range(40))
def test_penalties_of_labels_are_rounded_up_and_close(seed: int) -> None:
    problem = soft_problem(100 + seed, largest=6, others=seed % 2 == 1)
    presolved = presolved_problem(problem)
    model = presolved.reduced.label_constraints
    total = Fraction(0)
    for found in feasible_labellings(problem):
        labels = np.array(found)
        exact = exact_penalty(problem, labels)
        total += exact
        assert exact <= Fraction(problem.penalty(labels)) <= exact * Fraction(1 + 1e-15)
        groups = presolved.presolve_labels(labels)
        least = reduced_penalty(presolved, groups)
        assert least <= Fraction(model.penalty(groups))
        # What every labelling pays is in the offset of the bounds.
        assert (
            Fraction(presolved.postsolve_bound(0.0))
            <= exact_cost(problem.points, problem.weights, labels) + exact
        )
        violated = problem.violated_soft_pairs(labels)
        assert math.fsum(one.penalty for one in violated) == pytest.approx(float(exact))
    assert total > 0


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_nodes_with_more_pairs_carry_back(seed: int) -> None:
    problem = soft_problem(200 + seed, largest=6)
    presolved = presolved_problem(problem)
    rng = np.random.default_rng(seed)
    labels = np.array(brute_force(problem)[1])  # type: ignore[index]
    first, second = rng.permutation(problem.n_points)[:2].tolist()
    must = labels[first] == labels[second]
    pair, none = np.array([[first, second]]), np.empty((0, 2), dtype=np.int64)

    node = presolved.with_pairs(pair if must else none, none if must else pair)

    assert node is not None
    optimum = brute_force(problem)
    assert optimum is not None
    bound = node.postsolve_bound(rounded_down(reduced_optimum(node)))
    assert Fraction(bound) <= optimum[0]
    scale = float(np.abs(problem.points).max()) ** 2 * problem.n_points
    assert bound >= float(optimum[0]) * (1.0 - 1e-9) - 1e-9 * math.sqrt(scale) - 1e-12 * scale


def test_unavoidable_penalties_are_constant() -> None:
    problem = Problem.from_data(
        [[0.0], [1.0], [5.0], [6.0]],
        2,
        must_link=[(0, 1)],
        cannot_link=[(1, 2)],
        soft_must_link=[(0, 2, 3.0), (0, 0, 7.0), (2, 3, 1.0), (3, 2, 0.5)],
        soft_cannot_link=[(0, 1, 2.0), (3, 3, 4.0), (1, 2, 9.0), (3, 2, 0.25), (0, 3, 0.0)],
    )
    presolved = presolved_problem(problem)
    soft = presolved.reduced.label_constraints.soft

    # (0, 2) is violated, (0, 1) and (3, 3) are; of the opposite pairs one side is.
    assert soft is not None
    assert soft.bonus.tolist() == [1.25]
    assert presolved.postsolve_bound(0.0) == pytest.approx(0.5 + 3.0 + 2.0 + 4.0 + 0.25)
    assert problem.penalty(np.array([0, 0, 1, 1])) == pytest.approx(9.25)
    assert problem.penalty(np.array([0, 0, 1, 0])) == pytest.approx(10.5)


def test_one_cluster_pays_every_soft_cannot_link() -> None:
    problem = Problem.from_data(
        [[0.0], [2.0]], 1, soft_must_link=[(0, 1, 5.0)], soft_cannot_link=[(0, 1, 3.0)]
    )
    presolved = presolved_problem(problem)

    assert presolved.reduced.label_constraints.soft is None
    assert presolved.postsolve_bound(0.0) == pytest.approx(3.0)
