"""`check_certificate` for users: paths, bytes, open files, and verdicts in conditions."""

from __future__ import annotations

import io

import pytest

import certikmeans
from certikmeans import InputError, Problem, check_certificate, solve
from certikmeans.certificate.check import Verdict
from certikmeans.certificate.format import Reason
from certikmeans.certificate.write import certificate_bytes

POINTS = [[0.0], [1.0], [9.0]]


@pytest.fixture(scope="module")
def content():
    problem = Problem.from_data(POINTS, 2)
    return certificate_bytes(problem, solve(problem, keep_proof=True))


@pytest.mark.parametrize("form", [str, lambda path: path, lambda path: path.read_bytes()])
def test_path_and_bytes(content, tmp_path, form):
    path = tmp_path / "proof"
    path.write_bytes(content)
    verdict = check_certificate(POINTS, form(path), n_clusters=2)
    assert verdict
    assert verdict.accepted is True


def test_buffers_and_open_files(content, tmp_path):
    for given in (bytearray(content), memoryview(content), io.BytesIO(content)):
        assert check_certificate(POINTS, given)
    path = tmp_path / "proof"
    path.write_bytes(content)
    with path.open("rb") as file:
        assert check_certificate(POINTS, file)


def test_rejected_verdict_is_false(content):
    assert not check_certificate(POINTS, b"junk")
    assert not check_certificate([[0.0], [1.0], [8.0]], content)
    assert not Verdict(False, Reason.DATA, "other data")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("/no/such/file", "/no/such/file cannot be read (No such file"),
        ("a\0b", "cannot be read"),
        (None, "expected a path, bytes or a file, got NoneType"),
        (7, "got int"),
        (io.StringIO("text"), "opened as text"),
    ],
)
def test_anything_else_is_an_input_error(given, message):
    with pytest.raises(InputError) as caught:
        check_certificate(POINTS, given)
    assert message in caught.value.message
    assert caught.value.hint


def test_one_function_everywhere():
    assert certikmeans.check_certificate is certikmeans.certificate.check_certificate
