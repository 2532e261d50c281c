"""Certificates about problems with sets, sizes and soft pairs, compared with enumeration."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certificate import format as form
from certikmeans.certificate.check_boxes import CenterRegion
from certikmeans.certificate.check_constraints import GroupConstraints, _can_be_matched
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.format import Certificate, Reason, StatedConstraints
from certikmeans.certificate.leaves.cluster import _RegionClass, _with_limits
from certikmeans.certificate.write import certificate_bytes
from certikmeans.checkpoint.from_certificate import from_certificate
from certikmeans.cli.check import describe
from certikmeans.errors import InputError
from certikmeans.options import Options
from certikmeans.presolve.pipeline import presolve
from certikmeans.proof import GroupMultipliers, LeafProof, PairSplit, Proof
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import soft_problem
from certikmeans.testing.oracle import brute_force, feasible_labellings
from tests.certificate.helpers import certificate, in_order_of_points, verdict

POINTS = [[0.0], [1.0], [5.0], [6.0]]
KINDS = {
    "sets": {"cannot_link_groups": [0, 0, -1, -1]},
    "sizes": {"size_max": 2},
    "limits": {"size_min": [1, 2], "size_max": [3, 2]},
    "demands": {"size_max": 0.3, "demand": [0.1, 0.2, 0.1, 0.1]},
    "soft": {"soft_must_link": [(0, 3, 2.0)], "soft_cannot_link": [(0, 1, 0.25)]},
}
LIMITS = Limits(boxes=20_000, threads=1)


def multipliers(problem, labels, rng):
    """Multipliers between the costs in the own and in the next cluster, less half of bonuses."""
    presolved = presolve(problem, StopSignal())
    reduced = presolved.reduced
    groups = presolved.presolve_labels(np.asarray(labels))
    n, k = reduced.n_groups, problem.n_clusters
    sums, masses = reduced.cluster_sums(groups)
    centers = sums / np.where(masses > 0.0, masses, 1.0)[:, None]
    squares = np.sum((reduced.points[:, None] - centers[None]) ** 2, axis=2)
    costs = np.sort(reduced.weights[:, None] * squares, axis=1)
    own = (reduced.weights * squares[np.arange(n), groups]).copy()
    found = own + rng.uniform(0.0, 0.6) * np.maximum(costs[:, min(1, k - 1)] - own, 0.0)
    soft = reduced.label_constraints.soft
    if soft is not None and rng.random() < 0.7:
        for (a, b), bonus in zip(soft.pairs.tolist(), soft.bonus.tolist(), strict=True):
            if groups[a] == groups[b]:
                found[[a, b]] -= 0.5 * bonus
    return presolved, in_order_of_points(presolved, found)


def case(seed):
    """Problem with its optimum, and a certificate for any lower bound by the same multipliers."""
    problem = soft_problem(seed, largest=6, others=True)
    best, labels = brute_force(problem)
    rng = np.random.default_rng(seed)
    presolved, values = multipliers(problem, labels, rng)
    leaf = LeafProof("one cluster")
    if problem.n_clusters > 1:
        leaf = LeafProof("cluster", GroupMultipliers(values))
    proof = Proof(0.0, presolved.center, presolved.axes, (leaf,))
    made = certificate(problem, labels, float(best) * (1.0 + 1e-12), proof)
    return problem, best, made


def accepted(problem, made, lower):
    claim = replace(made, lower_bound=lower, cost=max(made.cost, lower))
    return verdict(problem, claim, limits=LIMITS).accepted


@pytest.mark.parametrize("seed", range(120))
def test_no_claim_above_the_optimum(seed):
    problem, best, made = case(seed)
    assert verdict(problem, made, limits=LIMITS).accepted
    above = float(best)
    while Fraction(above) <= best:
        above = math.nextafter(above, math.inf)
    for factor in (1.0, 1.0 + 1e-9, 1.01, 1.5):
        assert not accepted(problem, made, above * factor)
    low, high = 0.0, 1.0
    for _ in range(8):
        middle = 0.5 * (low + high)
        if accepted(problem, made, middle * float(best)):
            low = middle
        else:
            high = middle


def test_claims_are_close_to_the_optimum():
    """Multipliers that are good by chance prove nearly everything."""
    shares = []
    for seed in range(40):
        problem, best, made = case(seed)
        share = max(s for s in (0.0, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999) if accepted(
            problem, made, s * float(best)
        ))  # fmt: skip
        shares.append(share)
    assert np.mean(np.array(shares) >= 0.5) >= 0.4
    assert np.mean(np.array(shares) >= 0.99) >= 0.05


@pytest.mark.parametrize("seed", range(40))
def test_pair_splits(seed):
    """The two parts of a split are proven with the constraints of their own groups."""
    problem, best, made = case(seed)
    rng = np.random.default_rng(seed)
    first, second = rng.choice(problem.n_points, 2, replace=False).tolist()
    leaf = LeafProof("trivial")
    proof = Proof(0.0, made.center, made.axes, (PairSplit(first, second), leaf, leaf))
    split = certificate(problem, made.labels, made.cost, proof)
    assert not accepted(problem, split, max(float(best), 1e-3) * 1.01)
    sides = {bool(labels[first] == labels[second]) for labels in feasible_labellings(problem)}
    contradiction = replace(split, kinds=split.kinds.copy())
    contradiction.kinds[1:] = 5  # infeasible
    assert not accepted(problem, contradiction, float(best) * 1.01 + 1.0) or not sides


def made_for(kind):
    problem = Problem.from_data(POINTS, 2, **KINDS[kind])
    best, labels = brute_force(problem) if kind != "demands" else (6.25 * 4, (0, 1, 0, 1))
    labels = np.array(labels)
    presolved, values = multipliers(problem, labels, np.random.default_rng(3))
    leaf = LeafProof("cluster", GroupMultipliers(values))
    proof = Proof(0.0, presolved.center, presolved.axes, (leaf,))
    return problem, certificate(problem, labels, float(best) * (1.0 + 1e-12), proof)


@pytest.mark.parametrize("kind", KINDS)
def test_constraints_travel_with_the_file(kind):
    problem, made = made_for(kind)
    content = form.encode(made)
    assert content[8] == 3
    found = form.decode(content, problem.points.shape)
    assert found.constraints.sha256() == made.constraints.sha256() == made.constraints_sha256
    expected = problem.other_arrays()
    for name, array in found.constraints.arrays().items():
        assert np.array_equal(array, expected[name])
    good = verdict(problem, made, constraints=expected)
    assert good.accepted, good.message
    assert "with" in describe(good)
    json.dumps(good.details)
    assert verdict(problem, made, constraints={}).reason is Reason.PROBLEM
    for other in KINDS:
        arrays = Problem.from_data(POINTS, 2, **KINDS[other]).other_arrays()
        assert verdict(problem, made, constraints=arrays).accepted == (other == kind)


def test_files_about_pairs_stay_as_they_were():
    plain = Problem.from_data(POINTS, 2)
    proof = Proof(0.0, plain.points[0], [[1.0]], (LeafProof("trivial"),))
    made = certificate(plain, [0, 0, 1, 1], 1.0, proof)
    assert made.constraints is None
    assert form.encode(made)[8] == 1
    assert verdict(plain, made, constraints={}).accepted


@pytest.mark.parametrize("kind", KINDS)
def test_changed_constraints(kind):
    """Other constraints are refused by the hash; behind a right hash the labels are checked."""
    problem, made = made_for(kind)
    stated = made.constraints
    if kind == "sets":
        changed = replace(stated, set_columns=np.array([[0, 1, 0, 1]]))
        labels = np.array([0, 1, 0, 1])
    elif kind in ("sizes", "limits"):
        changed, labels = stated, np.array([0, 0, 0, 0])
    elif kind == "demands":
        changed = replace(stated, demand=np.array([0.1, 0.2, 0.1, 0.1]) * (1.0 + 1e-9))
        labels = made.labels
    else:
        changed = replace(stated, must_penalties=stated.must_penalties * 3.0)
        labels = np.array([0, 0, 1, 1])
    tampered = replace(made, constraints=changed, labels=labels)
    if changed is not stated:
        assert verdict(problem, tampered).reason is Reason.PAIRS
    again = replace(tampered, constraints_sha256=changed.sha256())
    expected = Reason.COST if kind == "soft" else Reason.LABELS
    assert verdict(problem, again).reason is expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("set_columns", np.array([[4, 0, 0, -1]])),
        ("set_columns", np.array([[-2, 0, 0, -1]])),
        ("size_min", np.array([np.nan, 1.0])),
        ("size_max", np.array([-1.0, 1.0])),
        ("demand", np.array([1.0, np.inf, 1.0, 1.0])),
        ("soft_must_link", np.array([[0, 4]])),
        ("soft_cannot_link", np.array([[-1, 2]])),
        ("must_penalties", np.array([-1.0])),
        ("cannot_penalties", np.array([np.nan])),
    ],
)
def test_impossible_numbers(name, value):
    problem, made = made_for("soft")
    stated = replace(
        made.constraints,
        size_min=np.zeros(2), size_max=np.full(2, 4.0), demand=np.full(4, 0.5),
        set_columns=np.full((1, 4), -1),
    )  # fmt: skip
    stated = replace(stated, **{name: value})
    tampered = replace(made, constraints=stated, constraints_sha256=stated.sha256())
    assert verdict(problem, tampered).reason in (Reason.FIELD, Reason.PAIRS)


def header_of(content):
    length = int.from_bytes(content[12:16], "little")
    return json.loads(content[16 : 16 + length]), content[16 + length :]


def with_header(content, header):
    text = json.dumps(header).encode()
    _, rest = header_of(content)
    return content[:12] + len(text).to_bytes(4, "little") + text + rest


@pytest.mark.parametrize(
    "change",
    [
        {"n_set_columns": -1}, {"n_set_columns": 1.0}, {"n_soft_must_link": 2**31},
        {"size_min": 1}, {"sha256": None}, {"more": 1}, {"n_soft_cannot_link": 5},
        {"n_set_columns": 2**31 - 1},
    ],
)  # fmt: skip
def test_damaged_headers(change):
    problem, made = made_for("soft")
    content = form.encode(made)
    header, _ = header_of(content)
    header["constraints"] |= change
    found = form.Reason
    result = check(problem, with_header(content, header))
    assert result.reason in (found.FIELD, found.DAMAGED, found.TOO_LARGE)
    header["constraints"] = None
    assert check(problem, with_header(content, header)).reason is found.FIELD


def check(problem, content):
    from certikmeans.certificate import check_certificate

    return check_certificate(problem.points, content)


@pytest.mark.parametrize("kind", KINDS)
def test_resume(kind):
    plain = Problem.from_data(POINTS, 2)
    proof = Proof(0.0, plain.points[0], [[1.0]], (LeafProof("trivial"),))
    content = form.encode(certificate(plain, [0, 0, 1, 1], 1.0, proof))
    other, made = made_for(kind)
    assert from_certificate(content, "file", plain, Options()).essence.labels is not None
    with pytest.raises(InputError, match="another problem"):
        from_certificate(content, "file", other, Options())
    with pytest.raises(InputError, match="another problem"):
        from_certificate(form.encode(made), "file", plain, Options())
    found = from_certificate(form.encode(made), "file", other, Options())
    assert np.array_equal(found.essence.labels, made.labels)


def test_sizes_are_exact_sums():
    """Ten times 0.1 is above 1 as a sum of floats: widened limits allow it, 1e-9 more does not."""
    points = np.arange(12.0)[:, None]
    demand = np.r_[np.full(10, 0.1), 0.5, 0.5]
    labels = np.r_[np.zeros(10, dtype=np.int64), 1, 1]
    proof = Proof(0.0, np.zeros(1), [[1.0]], (LeafProof("trivial"),))
    for size_max, expected in ((1.0, Reason.ACCEPTED), (1.0 - 1e-9, Reason.LABELS)):
        problem = Problem.from_data(points, 2, size_max=size_max, demand=demand)
        made = certificate(problem, labels, 100.0, proof)
        assert verdict(problem, made).reason is expected


@pytest.mark.parametrize("seed", range(30))
def test_matching_of_limits(seed):
    from itertools import permutations

    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    lower = rng.integers(0, 5, k) * 1.0
    upper = lower + rng.integers(0, 4, k)
    sizes = [Fraction(int(v)) for v in rng.integers(0, 8, k)]
    possible = any(
        all(lower[i] <= size <= upper[i] for i, size in zip(order, sizes, strict=True))
        for order in permutations(range(k))
    )
    assert _can_be_matched(sizes, lower, upper) == possible


@pytest.mark.parametrize(
    ("kinds", "feasible"),
    [
        ({"cannot_link_groups": [0, 0, 0, -1]}, False),
        ({"cannot_link_groups": [0, 0, -1, -1]}, True),
        ({"cannot_link_groups": [[0, 0, -1, -1], [-1, 1, 1, -1], [2, -1, 2, -1]]}, False),
        ({"size_max": 1}, False),
        ({"size_max": 2}, True),
        ({"size_min": 2}, True),
        ({"size_min": 3}, False),
        ({"size_max": 1.5, "demand": [2.0, 0.1, 0.1, 0.1]}, False),
        ({"size_min": [0, 4], "size_max": [0, 4]}, True),
        ({"size_min": 2, "must_link": [(0, 1), (1, 2)]}, True),  # infeasible, but not shown
    ],
)
def test_infeasible(kinds, feasible):
    problem = Problem.from_data(POINTS, 2, **kinds)
    content = Certificate(
        4, 1, 2, math.inf, math.inf, form.hash_points(problem.points),
        form.hash_pairs(problem.must_link, problem.cannot_link), problem.must_link,
        problem.cannot_link, None, None, np.zeros(1), np.ones((1, 1)), np.array([5], np.uint8),
        np.array([-1]), np.array([-1]), np.zeros(1), np.empty(0, np.int64), np.empty(0),
    )  # fmt: skip
    stated = StatedConstraints.of(problem.other_arrays(), 4)
    made = replace(content, constraints=stated, constraints_sha256=stated.sha256())
    assert verdict(problem, made).accepted != feasible


@pytest.mark.parametrize("kind", ["sets", "sizes", "soft", "all"])
def test_solved_problems(kind):
    """What the cluster bound proves is claimed, and accepted."""
    rng = np.random.default_rng(5)
    points = np.concatenate([rng.normal(size=(12, 2)), rng.normal(size=(18, 2)) + 3.0])
    kinds = {
        "sets": {"cannot_link_groups": np.arange(30) // 2},
        "sizes": {"size_min": 10, "size_max": 10},
        "soft": {"soft_must_link": [(0, 20, 2.0)], "soft_cannot_link": [(0, 1, 0.5), (2, 3, 9.0)]},
    }
    kinds["all"] = kinds["sets"] | kinds["sizes"] | kinds["soft"]
    chosen = kinds[kind]
    problem = Problem.from_data(points, 3, **chosen)
    result = solve(problem, bound="cluster", keep_proof=True, jobs=1, node_limit=1)
    assert result.lower_bound > 0.2 * result.cost
    content = certificate_bytes(problem, result)
    found = check(problem, content)
    assert found.accepted, found.message
    assert found.lower_bound >= result.lower_bound - 1e-6 * result.cost


def test_stated_constraints_of_nothing():
    stated = StatedConstraints.of({}, 3)
    assert stated.arrays() == {}
    assert stated.sha256() == ""
    assert not stated.has_sizes


@pytest.mark.parametrize("by_class", [False, True])
def test_limits_of_clusters_in_a_tree(by_class):
    """Clusters numbered by their centers have any of the limits: the loosest ones hold for all."""
    none = np.zeros(1, dtype=bool)
    region = CenterRegion(np.zeros(1), np.ones(1), none, none)
    constraints = GroupConstraints(
        [], np.ones(4), np.array([1.0, 2.0]), np.array([2.0, 4.0]),
        np.empty((0, 2), dtype=np.int64), np.empty(0), 0.0, False,
    )  # fmt: skip

    def limits(classes):
        found = _with_limits(classes, constraints, by_class=by_class)
        return sorted((one.n_clusters, one.lower, one.upper) for one in found)

    divided = [_RegionClass(region, none, 1), _RegionClass(region, ~none, 1)]
    assert limits(divided) == [(1, 1.0, 4.0), (1, 1.0, 4.0)]
    whole = [_RegionClass(region, None, 2)]
    expected = [(1, 1.0, 2.0), (1, 2.0, 4.0)] if by_class else [(2, 1.0, 4.0)]
    assert limits(whole) == expected
