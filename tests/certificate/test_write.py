"""Writing certificates of solves, and reading them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certificate import check_certificate
from certikmeans.certificate import format as form
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.write import certificate_bytes, make_certificate, write_certificate
from certikmeans.errors import CertificateWarning, InputError
from certikmeans.proof import LeafProof, Proof
from tests.published import published, stated


@pytest.mark.parametrize("row", published()[::12], ids=lambda row: row["dataset"] + row["instance"])
def test_published_instances(row, tmp_path):
    problem = stated(row)
    result = solve(problem, keep_proof=True)
    write_certificate(tmp_path / "proof", problem, result)
    content = (tmp_path / "proof").read_bytes()
    answer = check_certificate(
        problem.points, content, must_link=problem.must_link, cannot_link=problem.cannot_link
    )
    assert answer.accepted, answer.message
    assert answer.gap <= result.gap + 2e-8
    assert answer.lower_bound <= float(row["best_known_sse"]) * (1 + 1e-9)
    assert len(content) <= 8 * problem.n_points + 8 * problem.n_points + 2000


@pytest.mark.parametrize("bound", ["cluster", "sample"])
@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_trees(bound, branching):
    rng = np.random.default_rng(3)
    points = np.round(rng.normal(size=(9, 2)), 1)
    problem = Problem.from_data(points, 3, cannot_link=[(0, 1), (1, 2)], must_link=[(3, 4)])
    result = solve(
        problem, bound=bound, branching=branching, keep_proof=True, node_limit=300, time_limit=20
    )
    made = make_certificate(problem, result)
    answer = check_certificate(points, form.encode(made))
    assert answer.accepted, answer.message


@pytest.mark.parametrize(
    ("cannot_link", "must_link"),
    [([(0, 1), (1, 2), (0, 2)], []), ([(0, 2)], [(0, 1), (1, 2)])],
)
def test_infeasible(tmp_path, cannot_link, must_link):
    problem = Problem.from_data(
        np.arange(4.0)[:, None], 2, cannot_link=cannot_link, must_link=must_link
    )
    result = solve(problem, keep_proof=True)
    assert result.infeasibility is not None
    write_certificate(tmp_path / "proof", problem, result)
    answer = check_certificate(problem.points, (tmp_path / "proof").read_bytes())
    assert answer.accepted, answer.message
    assert answer.gap is None
    assert answer.cost == np.inf


def test_write_errors(tmp_path):
    problem = Problem.from_data(np.arange(4.0)[:, None], 2)
    nothing = SimpleNamespace(proof=None, infeasibility=None, labels=np.zeros(4, int), cost=5.0)
    with pytest.raises(InputError, match="no proof"):
        write_certificate(tmp_path / "proof", problem, nothing)
    grouped = Proof(1.0, np.zeros(1), np.eye(1), (LeafProof("grouped"),))
    nothing.proof = grouped
    with pytest.raises(InputError, match="grouped") as caught:
        write_certificate(tmp_path / "proof", problem, nothing)
    assert "--bound cluster" in caught.value.hint
    nothing.proof = Proof(0.0, np.zeros(1), np.eye(1), (LeafProof("trivial"),))
    with pytest.raises(InputError, match="could not be written"):
        write_certificate(tmp_path / "absent" / "proof", problem, nothing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scale", [1e-55, 1e-20, 1.0, 1e20, 1e55])
def test_scales(scale):
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(8, 2)), rng.normal(size=(8, 2)) + 9.0]) * scale
    problem = Problem.from_data(points, 2, cannot_link=[(0, 9)], weights=rng.uniform(0.1, 2.0, 16))
    result = solve(problem, keep_proof=True)
    answer = check_certificate(points, form.encode(make_certificate(problem, result)))
    assert answer.accepted, answer.message
    assert answer.gap <= 1e-3 + 1e-8


def test_size_limits(tmp_path, monkeypatch):
    problem = Problem.from_data([[0.0], [1.0], [5.0], [6.0]], 2)
    result = solve(problem, keep_proof=True)
    target = tmp_path / "c.certificate"
    with monkeypatch.context() as patch:
        patch.setattr(form, "MAX_PAYLOAD_BYTES", 10)
        with pytest.raises(InputError, match="too large"):
            write_certificate(target, problem, result)
    with monkeypatch.context() as patch:
        patch.setattr(form, "MAX_POINT_CLUSTER_PAIRS", 7)
        with pytest.raises(InputError, match="too many for the verifier"):
            write_certificate(target, problem, result)
    assert not target.exists()
    write_certificate(target, problem, result)
    assert target.exists()


@pytest.mark.parametrize("seed", range(25))
def test_points_at_rounding_distance(seed):
    rng = np.random.default_rng(seed)
    unit = 2.0**-26  # near 1e8, floats are this far apart
    points = 1e8 + unit * rng.integers(0, 4, size=(7, 2))
    points[:2] += 3.0
    problem = Problem.from_data(points, 3, cannot_link=[(0, 1)])
    result = solve(problem, keep_proof=True, node_limit=5)
    verdict = check_certificate(points, certificate_bytes(problem, result))
    assert verdict.accepted, verdict.message
    assert verdict.lower_bound <= result.lower_bound


def test_overstated_bound_is_lowered():
    points = np.random.default_rng(1).normal(size=(12, 2))
    problem = Problem.from_data(points, 3)
    result = solve(problem, keep_proof=True)
    claimed = form.decode(certificate_bytes(problem, result), points.shape).lower_bound
    overstated = replace(
        result.proof, lower_bound=result.cost * (1.0 - 1e-12)
    )  # more than was proven
    changed = SimpleNamespace(
        proof=overstated, infeasibility=None, labels=result.labels, cost=result.cost
    )
    content = certificate_bytes(problem, changed)
    verdict = check_certificate(points, content)
    assert verdict.accepted, verdict.message
    assert 0.0 < verdict.lower_bound < result.cost
    assert claimed > 0.0


def test_limits_by_size():
    limits = Limits()
    assert limits.for_size(300).boxes == 900_000
    assert limits.for_size(10**9).boxes == limits.boxes == 20_000_000


def test_claim_lowered_at_work_limit(monkeypatch):
    problem = Problem.from_data(np.random.default_rng(1).normal(size=(40, 2)), 3)
    result = solve(problem, bound="cluster", gap=1e-6, keep_proof=True, time_limit=20)
    honest = check_certificate(problem.points, certificate_bytes(problem, result))
    assert honest.accepted
    few = partial(Limits, base_boxes=honest.details["boxes"] - 1, boxes_per_number=0)
    monkeypatch.setattr("certikmeans.certificate.write.Limits", few)
    with pytest.warns(CertificateWarning, match="instead of"):
        content = certificate_bytes(problem, result)
    lowered = check_certificate(problem.points, content, limits=few())
    assert lowered.accepted
    assert lowered.lower_bound < honest.lower_bound
    none = partial(Limits, base_boxes=0, boxes_per_number=0)
    monkeypatch.setattr("certikmeans.certificate.write.Limits", none)
    with pytest.warns(CertificateWarning, match="the verifier rejects"):
        content = certificate_bytes(problem, result)
    assert check_certificate(problem.points, content).lower_bound == honest.lower_bound
