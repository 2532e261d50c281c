"""Feasibility with limits on sizes: labels or a proof, against enumeration of all labellings."""

import json
from itertools import pairwise, product

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.presolve.infeasibility_proofs import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.presolve.size_proofs import (
    GroupTooLarge,
    Packing,
    SizesUnattainable,
    TotalOutsideLimits,
    attainable,
)
from certikmeans.problem.data import validate_start_labels
from certikmeans.stop import StopSignal


def _random_problem(seed):
    """Tight limits: about half of the problems are infeasible."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    points = rng.normal(size=(n, 2))
    kind = seed % 3
    demand = None if kind == 0 else rng.integers(0, 5, size=n).astype(float)
    if kind == 2:
        demand = demand / 3.0 + 0.1
    total = n if demand is None else demand.sum()
    low, high = rng.uniform(0.6, 1.05) * total / k, rng.uniform(0.95, 1.3) * total / k
    if demand is None:
        low, high = np.floor(low), np.floor(high + 0.5)
    if rng.random() < 0.3:
        low, high = np.full(k, low), np.full(k, high)
        low[0], high[0] = 0.0, np.ceil(high[0] + 1.0)
    columns = np.full(n, -1)
    if rng.random() < 0.4:
        columns[rng.choice(n, k, replace=False)] = 0
    pairs = rng.integers(0, n, size=(4, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return Problem.from_data(
        points, k, must_link=pairs[:2], cannot_link=pairs[2:] if rng.random() < 0.5 else None,
        cannot_link_groups=columns, size_min=np.minimum(low, high), size_max=high, demand=demand,
    )  # fmt: skip


def _is_feasible(problem):
    for labels in product(range(problem.n_clusters), repeat=problem.n_points):
        try:
            validate_start_labels(problem, np.array(labels))
        except ValueError:
            continue
        return True
    return False


@pytest.mark.parametrize("seed", range(50))
def test_labels_or_proof(seed):
    problem = _random_problem(seed)
    done = presolve(problem, StopSignal(20.0))
    infeasible = isinstance(done, InfeasibilityProof)
    assert infeasible != _is_feasible(problem)
    if infeasible:
        assert done.check(problem)
        assert json.loads(json.dumps(done.to_json()))["kind"] == done.kind
        assert done.describe()
    else:
        labels = done.postsolve_labels(done.feasible_labels)
        assert validate_start_labels(problem, labels) is not None
        assert not SizesUnattainable(1, problem.n_clusters, False).check(problem)


def test_too_little_room():
    problem = Problem.from_data(np.zeros((10, 1)), 3, size_max=3)
    proof = presolve(problem, StopSignal())
    assert isinstance(proof, TotalOutsideLimits)
    assert proof.check(problem)
    assert "raise size_max to 4" in proof.describe()
    assert not proof.check(Problem.from_data(np.zeros((10, 1)), 3, size_max=4))


def test_unattainable_sizes():
    problem = Problem.from_data(np.zeros((10, 1)), 3, size_min=[4, 4, 4])
    proof = presolve(problem, StopSignal())
    assert isinstance(proof, TotalOutsideLimits)
    assert "lower size_min to 3" in proof.describe()
    assert not proof.check(Problem.from_data(np.zeros((10, 1)), 3, size_min=[4, 4, 2]))
    assert not proof.check(Problem.from_data(np.zeros((10, 1)), 3))


def test_group_too_large():
    must = [(5, 0), (0, 1), (2, 1), (5, 2), (7, 8)]
    problem = Problem.from_data(np.zeros((10, 1)), 4, must_link=must, size_max=3)
    proof = presolve(problem, StopSignal())
    assert isinstance(proof, GroupTooLarge)
    assert proof.members == (0, 1, 2, 5)
    assert len(proof.links) == 3
    assert proof.check(problem)
    assert not proof.check(Problem.from_data(np.zeros((10, 1)), 4, must_link=must[1:3], size_max=3))
    assert not GroupTooLarge((0, 1, 2, 7), proof.links, 4.0, 3.0).check(problem)


def test_point_too_large():
    demand = [1.0, 9.0, 1.0]
    problem = Problem.from_data(np.zeros((3, 1)), 3, demand=demand, size_max=8.5)
    proof = presolve(problem, StopSignal())
    assert proof.members == (1,)
    assert "divide the point" in proof.describe()


def test_unbalanced_groups():
    must = [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7)]
    problem = Problem.from_data(np.zeros((8, 1)), 2, must_link=must, size_min=4)
    proof = presolve(problem, StopSignal())
    assert isinstance(proof, SizesUnattainable)
    assert proof.check(problem)
    assert "3 must-link components" in proof.describe()


def test_sides_of_cannot_links_cannot_be_balanced():
    # A star: its center alone on one side.
    star = [(0, i) for i in range(1, 8)]
    problem = Problem.from_data(np.arange(8.0)[:, None], 2, cannot_link=star, size_min=2)
    proof = presolve(problem, StopSignal(20.0))
    assert isinstance(proof, SizesUnattainable)
    assert proof.check(problem)
    assert "cannot-links" in proof.describe()


def test_hard_packing_of_many_groups():
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 100, size=60)
    cuts = np.cumsum(sizes)[:-1]
    members = np.split(np.arange(sizes.sum()), cuts)
    must = [(a, b) for one in members for a, b in pairwise(one)]
    n, k = int(sizes.sum()), 6
    problem = Problem.from_data(
        np.zeros((n, 1)), k, must_link=must, size_min=n // k, size_max=-(-n // k)
    )
    done = presolve(problem, StopSignal(30.0))
    assert problem.has_sizes
    assert done.feasible_labels is not None


@pytest.mark.parametrize("seed", range(20))
def test_attainable_totals(seed):
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 6, size=6).tolist()
    conflicts = [set() for _ in range(6)]
    for a, b in rng.integers(0, 6, size=(3, 2)):
        if a != b:
            conflicts[a].add(int(b))
            conflicts[b].add(int(a))
    lower, upper = rng.integers(0, 8, size=3), rng.integers(4, 9, size=3)
    expected = any(
        all(
            low <= sum(d for d, k in zip(demand, labels, strict=True) if k == c) <= high
            for c, (low, high) in enumerate(zip(lower, upper, strict=True))
        )
        for labels in product(range(3), repeat=6)
        if all(labels[a] != labels[b] for a in range(6) for b in conflicts[a])
    )
    assert attainable(Packing(demand, conflicts, lower.tolist(), upper.tolist())) == expected
    assert attainable(Packing(demand, conflicts, lower.tolist(), upper.tolist()), 1) in (
        None,
        expected,
    )
