"""Partial labels: one per line, blank lines count."""

import numpy as np
import pytest

from certikmeans.errors import InputError
from certikmeans.problem.constraints import Constraints
from certikmeans.problem.io import read_partial_labels


@pytest.fixture
def write(tmp_path):
    def write(content, name="labels.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("content", "labels"),
    [
        ("1\n2\n-1\n", [1, 2, -1]),
        ("1\n2\n-1", [1, 2, -1]),
        ("\ufeff# classes\r\n1\r\n 2 \r\n-1\r\n", [1, 2, -1]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\n\n", ["a", ""]),
        ("\n1\n", ["", "1"]),
        ('"Iris setosa"\nb\n', ["Iris setosa", "b"]),
    ],
)
def test_read_partial_labels(write, content, labels):
    assert read_partial_labels(write(content), n_points=len(labels)).tolist() == labels


def test_labels_from_array(tmp_path):
    np.save(tmp_path / "y.npy", np.array([1.0, np.nan, 2.0]))
    known = Constraints.from_partial_labels(read_partial_labels(tmp_path / "y.npy"))
    assert (known.cannot_link.tolist(), known.n_points) == ([[0, 2]], 3)


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        ("", ["holds no labels"]),
        ("# nothing\n", ["holds no labels"]),
        ("1\n2\n", ["holds 2 labels, but there are 3 points", "empty line"]),
        ("1\n2,3\n4\n", ["line 2", "'2,3'", "label_column="]),
    ],
)
def test_malformed_labels(write, content, fragments):
    with pytest.raises(InputError) as caught:
        read_partial_labels(write(content), n_points=3)
    for fragment in ("labels.txt", *fragments):
        assert fragment in str(caught.value)


def test_two_dimensional_labels_rejected(tmp_path):
    np.save(tmp_path / "y.npy", np.ones((2, 2)))
    with pytest.raises(InputError, match=r"y\.npy.*\(2, 2\)"):
        read_partial_labels(tmp_path / "y.npy")
