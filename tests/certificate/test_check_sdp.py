"""Verifier of the semidefinite bound: true bounds for any row, and the value of the solver."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.certificate import check_sdp, leaves
from certikmeans.certificate import format as form
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.check_sdp import sdp_lower_bound
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.format import Reason, Rejection
from certikmeans.certificate.leaves import CODES
from certikmeans.certificate.write import make_certificate
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem
from tests.bounds.sdp_cases import exact_costs, inaccurate_eigensolver, reduced_of, separated
from tests.certificate.helpers import change, verdict


def row_of(entries, cuts=(), cut_multipliers=()):
    """Row in the layout of docs/certificate-format.md."""
    table = [[*cut, amount] for cut, amount in zip(cuts, cut_multipliers, strict=True)]
    upper = np.asarray(entries)[np.triu_indices(len(entries))]
    return np.concatenate([upper, np.array(table, dtype=float).ravel()])


def value_of(reduced, row):
    return sdp_lower_bound(
        reduced.points, reduced.weights, reduced.graph.edges(), reduced.n_clusters, row
    )


def random_row(rng, n, unit):
    """Arbitrary multipliers: any sign and size, and useless cuts."""
    entries = rng.normal(size=(n, n)) * unit / n
    if rng.random() < 0.5:
        entries = np.maximum(entries, 0.0)
    if rng.random() < 0.3:
        entries[rng.random((n, n)) < 0.2] *= 1e6
    cuts = rng.integers(0, n, size=(rng.integers(0, 30), 3))
    cuts[rng.random(len(cuts)) < 0.3, 2] = -1
    return row_of(entries, cuts, rng.normal(size=len(cuts)) * unit)


@pytest.mark.parametrize("seed", range(100))
def test_any_row_is_valid(seed):
    problem = feasible_problem(seed, largest=6)
    done = reduced_of(problem)
    least = min(exact_costs(problem, done))
    total = SdpModel.of(done.reduced).total
    rng = np.random.default_rng(seed)
    for _ in range(15):
        row = random_row(rng, done.reduced.n_groups, total * 10.0 ** rng.integers(-8, 3))
        assert Fraction(value_of(done.reduced, row)) <= least


@pytest.mark.parametrize("seed", range(40))
def test_same_value_as_solver(seed):
    problem = separated(np.random.default_rng(seed), 1e6 * (seed % 2))
    done = reduced_of(problem)
    least = min(exact_costs(problem, done))
    model = SdpModel.of(done.reduced)
    admm = Admm(model)
    for _ in range(6):
        admm.iterate(60, StopSignal())
        admm.add_cuts(1e-6, 1000)
        found = admm.multipliers
        value = value_of(done.reduced, row_of(found.entries, found.cuts, found.cut_multipliers))
        assert Fraction(value) <= least
        proven = safe_bound(model, found)
        assert value >= proven - 1e-11 * model.total


@pytest.mark.parametrize("seed", range(40))
def test_inaccurate_eigensolver(seed, monkeypatch):
    problem = feasible_problem(seed, largest=6)
    done = reduced_of(problem)
    least = min(exact_costs(problem, done))
    n, total = done.reduced.n_groups, SdpModel.of(done.reduced).total
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(np.linalg, "eigh", inaccurate_eigensolver(rng))
    for row in (np.zeros(n * (n + 1) // 2), random_row(rng, n, total)):
        assert Fraction(value_of(done.reduced, row)) <= least


def noise(n, d, k, seed=0):
    return Problem.from_data(np.random.default_rng(seed).normal(size=(n, d)), k)


def solved(problem, **options):
    return make_certificate(problem, solve(problem, keep_proof=True, time_limit=30, **options))


@pytest.mark.parametrize("branching", ["pairs", "centers"])
@pytest.mark.parametrize("node_limit", [1, 8])
def test_solver_certificates(branching, node_limit):
    problem = Problem.from_data(
        np.random.default_rng(3).normal(size=(24, 6)) + 50.0, 3,
        must_link=[(5, 0), (20, 11), (7, 5)], cannot_link=[(0, 9), (9, 20), (1, 2)],
        weights=np.random.default_rng(4).uniform(0.5, 3.0, 24),
    )  # fmt: skip
    result = solve(
        problem, bound="sdp", branching=branching, node_limit=node_limit, gap=1e-7,
        keep_proof=True, time_limit=20,
    )  # fmt: skip
    assert result.bound == "sdp"
    made = make_certificate(problem, result)
    answer = verdict(problem, made)
    assert answer.accepted, answer.message
    assert answer.lower_bound == pytest.approx(result.lower_bound, rel=1e-8)


def test_auto_uses_sdp_with_proof():
    problem = noise(40, 10, 3)
    result = solve(problem, keep_proof=True, time_limit=30, node_limit=1)
    assert result.bound == "sdp"
    answer = check_certificate(problem.points, form.encode(make_certificate(problem, result)))
    assert answer.accepted, answer.message
    assert answer.gap < 0.05


def test_tampered_rows():
    problem = noise(20, 4, 3)
    made = solved(problem, bound="sdp", gap=1e-3)
    assert verdict(problem, made).accepted
    row, n_entries = made.multipliers, 210
    assert len(row) > n_entries, "cuts are wanted here"

    def rejection(**fields):
        answer = verdict(problem, change(made, **fields))
        assert not answer.accepted
        return answer.reason

    assert rejection(lower_bound=made.cost) is Reason.BOUND
    for factor in (0.0, 0.5, 2.0, -1.0, 1e120):
        assert rejection(multipliers=row * factor) is Reason.BOUND
    for position, value in ((0, np.nan), (n_entries + 3, np.inf)):
        bad = row.copy()
        bad[position] = value
        assert rejection(multipliers=bad) is Reason.FIELD
    for position, value in ((0, -2.0), (0, 20.0), (0, 0.5), (1, -1.0), (2, -2.0), (2, 1e18)):
        bad = row.copy()
        bad[n_entries + position] = value
        assert rejection(multipliers=bad) is Reason.BOUND
    for short in (row[:-1], row[: n_entries - 1], row[:1]):
        lengths = np.array([len(short)])
        assert rejection(multipliers=short, lengths=lengths) is Reason.BOUND
    none = change(made, first=np.array([-1]))
    assert verdict(problem, none).reason is Reason.BOUND
    as_cluster = change(made, kinds=np.array([CODES["cluster"]], dtype=np.uint8))
    assert verdict(problem, as_cluster).reason is Reason.BOUND


def test_matrix_size_limit():
    n = check_sdp.MAX_MATRIX_GROUPS + 1
    with pytest.raises(Rejection) as caught:
        sdp_lower_bound(
            np.zeros((n, 1)), np.ones(n), np.empty((0, 2), dtype=np.int64), 2, np.zeros(1)
        )
    assert caught.value.reason is Reason.LIMIT


@pytest.mark.parametrize("size", [8e141, -8e141, 2e142, -2e142, 1e145])
def test_overflow(size):
    points, weights = np.array([[0.0], [1.0], [3.0]]), np.full(3, 1e-12)
    row = np.array([0.0, size, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(Rejection) as caught:
        sdp_lower_bound(points, weights, np.array([[0, 1]]), 2, row)
    assert caught.value.reason is Reason.BOUND


@pytest.mark.parametrize("scale", [1e-55, 1e-45, 1e40, 1e55])
def test_scales(scale):
    problem = Problem.from_data(np.random.default_rng(1).normal(size=(14, 2)) * scale, 3)
    made = solved(problem, bound="sdp", node_limit=20)
    answer = verdict(problem, made)
    assert answer.accepted, answer.message


def test_bound_cached_for_many_leaves(monkeypatch):
    problem = noise(20, 4, 3)
    made = solved(problem, bound="sdp", gap=1e-3)
    kind = made.kinds[0]
    n_leaves = 200
    kinds = np.array([form.CENTER_SPLIT, kind] * (n_leaves - 1) + [kind], dtype=np.uint8)
    nodes = len(kinds)
    many = change(
        made, kinds=kinds, first=np.zeros(nodes, np.int64), values=np.zeros(nodes),
        second=np.where(kinds == kind, -1, 0),
    )  # fmt: skip
    calls = []
    counted = leaves.sdp.sdp_lower_bound
    monkeypatch.setattr(leaves.sdp, "sdp_lower_bound", lambda *a: calls.append(0) or counted(*a))
    assert verdict(problem, many).accepted
    assert len(calls) == 1


def test_work_limit():
    problem = noise(20, 4, 3)
    made = solved(problem, bound="sdp", gap=1e-3)
    answer = verdict(problem, made, limits=Limits(matrix_work=20.0**3 - 1.0))
    assert answer.reason is Reason.LIMIT


def test_limit_of_one_row():
    problem = noise(20, 4, 3)
    made = solved(problem, bound="sdp", gap=1e-3)
    spare = 60_000
    nodes = spare + len(made.kinds)
    zeros = np.zeros(nodes, np.int64)
    long_row = change(
        made, kinds=np.full(nodes, made.kinds[0]), first=zeros, second=zeros,
        values=np.zeros(nodes), lengths=np.array([*[1] * 60_000, 2_000_000]),
        multipliers=np.zeros(2_060_000),
    )  # fmt: skip
    assert verdict(problem, long_row).reason is Reason.BOUND


def test_memory_limit_of_small_files(monkeypatch):
    problem = noise(20, 4, 3)
    made = solved(problem, bound="sdp", gap=1e-3)
    nodes = 6_000_000
    zeros = np.zeros(nodes, np.int64)
    kinds = np.full(nodes, made.kinds[0])
    large = change(made, kinds=kinds, first=zeros, second=zeros, values=np.zeros(nodes))
    # The writer does not compress beyond what a reader accepts.
    assert len(form.encode(large)) > 100_000_000
    with monkeypatch.context() as patch:
        patch.setattr(form, "PAYLOAD_BYTES_PER_FILE_BYTE", 2_000)
        content = form.encode(large)
    assert len(content) < 1_000_000
    assert check_certificate(problem.points, content).reason is Reason.TOO_LARGE
