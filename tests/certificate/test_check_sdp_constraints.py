"""The semidefinite leaf with sizes, sets and soft pairs: below every labelling, for any row."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.sdp.limits import weight_limits as solver_weight_limits
from certikmeans.certificate import check_certificate
from certikmeans.certificate.check_domains import BranchingPath, OriginalProblem, aggregate_domain
from certikmeans.certificate.check_sdp import sdp_lower_bound
from certikmeans.certificate.check_weight_limits import WeightLimits, weight_limits
from certikmeans.certificate.format import Rejection, StatedConstraints
from certikmeans.certificate.write import certificate_bytes
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import soft_problem
from certikmeans.testing.oracle import exact_cost, feasible_labellings
from tests.bounds.test_sdp_sizes import sized_problem


def domain_of(problem):
    d = problem.n_features
    original = OriginalProblem(
        problem.points, problem.weights, problem.n_clusters, problem.must_link,
        problem.cannot_link, np.zeros(d), np.eye(d),
        StatedConstraints.of(problem.other_arrays(), problem.n_points),
    )  # fmt: skip
    return aggregate_domain(original, BranchingPath.root(), 1.0)


def least_cost(problem, domain):
    """Least cost of the groups of the domain, with the penalties of the domain, exactly."""
    best = None
    from certikmeans.presolve.reductions import must_link_groups

    groups = must_link_groups(problem.n_points, problem.must_link)
    for labels in feasible_labellings(problem):
        of_group = np.zeros(domain.n_groups, dtype=np.int64)
        of_group[groups] = labels
        cost = exact_cost(domain.points, domain.weights, of_group)
        given = domain.constraints
        for (a, b), bonus in zip(given.pairs.tolist(), given.bonus.tolist(), strict=True):
            if (of_group[a] != of_group[b]) == (bonus > 0.0):
                cost += Fraction(abs(bonus))
        best = cost if best is None else min(best, cost)
    return best


def drawn(seed):
    if seed % 2:
        return soft_problem(seed, largest=6, others=True)
    for number in range(100):
        problem = sized_problem(seed + 1000 * number, largest=6)
        if problem.weights.all():
            return problem
    raise AssertionError


@pytest.mark.parametrize("seed", range(100))
def test_any_row_is_valid(seed):
    problem = drawn(seed)
    domain = domain_of(problem)
    exact = least_cost(problem, domain)
    rng = np.random.default_rng(seed)
    n = domain.n_groups
    scale = float(exact) / n + 1e-3
    for _ in range(6):
        size = scale * 10.0 ** rng.uniform(-3.0, 1.0)
        entries = size * rng.normal(size=n * (n + 1) // 2)
        cuts = np.zeros((int(rng.integers(0, 5)), 4))
        cuts[:, :2] = rng.integers(n, size=(len(cuts), 2))
        cuts[:, 2] = rng.integers(-1, n, size=len(cuts))
        cuts[:, 3] = size * rng.uniform(-0.2, 1.0, len(cuts))
        parts = [entries, cuts.ravel()]
        for _ in range(int(rng.integers(0, 3))):
            members = np.sort(rng.permutation(n)[: int(rng.integers(1, n + 1))])
            parts.append(np.array([-2.0, len(members), -1.0, 0.3 * size * rng.random()]))
            parts.append(np.pad(members.astype(float), (0, -len(members) % 4), constant_values=-1))
        value = sdp_lower_bound(
            domain.points, domain.weights, domain.edges, problem.n_clusters,
            np.concatenate(parts), domain.constraints,
        )  # fmt: skip
        assert Fraction(value) <= exact


@pytest.mark.parametrize("seed", range(60))
def test_weight_limits(seed):
    problem = drawn(2 * seed)
    domain = domain_of(problem)
    limits = weight_limits(domain.weights, domain.constraints, problem.n_clusters)
    assert limits is not None
    from certikmeans.presolve.reductions import must_link_groups

    groups = must_link_groups(problem.n_points, problem.must_link)
    for labels in feasible_labellings(problem):
        of_group = np.zeros(domain.n_groups, dtype=np.int64)
        of_group[groups] = labels
        sizes = [domain.weights[of_group == k].sum() for k in set(labels)]
        assert len(sizes) >= limits.min_clusters
        assert limits.low * (1.0 - 1e-12) <= min(sizes)
        assert max(sizes) <= limits.high * (1.0 + 1e-12)


@pytest.mark.parametrize(("low", "high", "total"), [(2, 2, 6), (1, 3, 6), (2, 3, 7), (1, 5, 8)])
def test_size_cuts_by_enumeration(low, high, total):
    """Every distribution of a set over clusters of allowed sizes."""
    k = 3
    limits = WeightLimits(low, high, k, k, total, True)
    assert limits.allow_size_cuts
    for weight in range(1, total):
        largest = max(
            sum(Fraction(m * m, size) for m, size in zip(parts, sizes, strict=True))
            for sizes in product(range(low, high + 1), repeat=k)
            if sum(sizes) == total
            for parts in product(*(range(size + 1) for size in sizes))
            if sum(parts) == weight
        )
        right = limits.right_side(float(weight))
        assert Fraction(right) >= largest
        assert right <= float(largest) + 1e-9


@pytest.mark.parametrize(
    "numbers",
    [
        [-2.0, 5.0, -1.0, 1.0], [-2.0, 0.0, -1.0, 1.0], [-2.0, 1.5, -1.0, 1.0],
        [-2.0, 2.0, -1.0, 1.0, 0.0, 9.0, -1.0, -1.0],
        [-2.0, 2.0, -1.0, 1.0, 0.0, -1.0, -1.0, -1.0],
        [-2.0, np.nan, -1.0, 1.0],
        [-2.0, 1.0, -1.0, 1.0, 0.0, -1.0, -1.0, -1.0, 0.0, 1.0, -1.0, 1.0],
    ],
)  # fmt: skip
def test_damaged_size_cuts(numbers):
    problem = Problem.from_data([[0.0], [1.0], [5.0], [6.0]], 2, size_max=2)
    domain = domain_of(problem)
    row = np.concatenate([np.zeros(10), numbers])
    with pytest.raises(Rejection):
        sdp_lower_bound(domain.points, domain.weights, domain.edges, 2, row, domain.constraints)


@pytest.mark.parametrize("kind", ["sizes", "cuts", "soft", "sets"])
def test_written_certificates(kind):
    rng = np.random.default_rng(4)
    points = np.concatenate([rng.normal(size=(10, 3)), rng.normal(size=(20, 3)) + 6.0])
    kinds = {
        "sizes": {"size_min": 10, "size_max": 10},
        "cuts": {"size_min": 15, "size_max": 15},
        "soft": {"soft_cannot_link": [(0, 1, 0.5), (5, 20, 3.0)], "soft_must_link": [(0, 15, 2.0)]},
        "sets": {"cannot_link_groups": np.arange(30) // 3},
    }
    problem = Problem.from_data(points, 2 if kind == "cuts" else 3, **kinds[kind])
    result = solve(problem, bound="sdp", keep_proof=True, jobs=1, node_limit=1, seed=0)
    assert result.lower_bound > 0.0
    content = certificate_bytes(problem, result)
    verdict = check_certificate(problem.points, content, constraints=problem.other_arrays())
    assert verdict.accepted, verdict.message
    assert verdict.lower_bound >= result.lower_bound * (1.0 - 1e-6)


def test_clusters_that_may_be_empty_add_no_eigenvalue():
    """Together the two points cost 0.5, apart 10: the second cluster may be empty."""
    problem = Problem.from_data(
        [[0.0], [1.0]], 2, size_max=2, soft_must_link=[(0, 1, 10.0)], weights=[1.0, 1.0]
    )
    domain = domain_of(problem)
    value = sdp_lower_bound(
        domain.points, domain.weights, domain.edges, 2, np.zeros(3), domain.constraints
    )
    assert 0.49 < value <= 0.5


def test_set_smaller_than_k_fills_no_cluster():
    """Clusters {0}, {1} and {2, 3} are allowed, and {2} alone: the least weight is 1."""
    problem = Problem.from_data(
        [[0.0], [1.0], [2.0], [3.0]], 3, cannot_link_groups=[0, 0, -1, -1],
        weights=[5.0, 5.0, 1.0, 1.0],
    )  # fmt: skip
    domain = domain_of(problem)
    limits = weight_limits(domain.weights, domain.constraints, 3)
    assert limits.low <= 1.0
    assert limits.high >= 7.0
    reduced = presolve(problem, StopSignal()).reduced
    solver_limits = solver_weight_limits(reduced)
    assert solver_limits is None or (solver_limits.low <= 1.0 and solver_limits.high >= 7.0)
