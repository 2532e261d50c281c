"""Certificates about problems with sets, sizes and soft pairs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from certikmeans import Problem
from certikmeans.certificate.write import make_certificate
from certikmeans.checkpoint.from_certificate import from_certificate
from certikmeans.errors import InputError
from certikmeans.options import Options
from certikmeans.proof import LeafProof, Proof
from tests.certificate.helpers import certificate, form

POINTS = [[0.0], [1.0], [5.0], [6.0]]
KINDS = {
    "sets": {"cannot_link_groups": [0, 0, -1, -1]},
    "sizes": {"size_max": 2},
    "soft": {"soft_must_link": [(0, 3, 2.0)]},
}


@pytest.mark.parametrize("kind", KINDS)
def test_writer_refuses(kind):
    problem = Problem.from_data(POINTS, 2, **KINDS[kind])
    result = SimpleNamespace(proof=None, infeasibility=None)
    with pytest.raises(InputError, match="certificates support must-links and cannot-links"):
        make_certificate(problem, result)


@pytest.mark.parametrize("kind", KINDS)
def test_no_resume_from_certificate_about_pairs(kind):
    plain = Problem.from_data(POINTS, 2)
    proof = Proof(0.0, plain.points[0], [[1.0]], (LeafProof("trivial"),))
    content = form.encode(certificate(plain, [0, 0, 1, 1], 1.0, proof))
    other = Problem.from_data(POINTS, 2, **KINDS[kind])
    assert from_certificate(content, "file", plain, Options()).essence.labels is not None
    with pytest.raises(InputError, match="another problem"):
        from_certificate(content, "file", other, Options())
