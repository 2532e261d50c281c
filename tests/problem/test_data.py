"""Problem: validation and error messages."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.errors import InputError
from certikmeans.problem import Links, Problem

GOOD = {"points": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], "n_clusters": 2}

BAD = {
    "text": ({"points": [["a", "b"]]}, "not a table of numbers", "without text columns"),
    "ragged": ({"points": [[1.0], [1.0, 2.0]]}, "not a table of numbers", "shape"),
    "one-dimensional": ({"points": [1.0, 2.0]}, "shape (2,)", "reshape(-1, 1)"),
    "three-dimensional": ({"points": np.zeros((2, 2, 2))}, "shape (2, 2, 2)", "n_features"),
    "no rows": ({"points": np.empty((0, 2))}, "empty", "at least one point"),
    "no columns": ({"points": np.empty((2, 0))}, "empty", "one feature"),
    "nan": ({"points": [[0.0, 1.0], [np.nan, 2.0]]}, "row 1, column 0 is nan", "fill in"),
    "infinite": ({"points": [[0.0, np.inf], [1.0, 2.0]]}, "row 0, column 1 is inf", "infinite"),
    "huge": ({"points": [[1e61], [0.0]], "n_clusters": 1}, "too large", "rescale"),
    "tiny": ({"points": [[1e-61], [0.0]], "n_clusters": 1}, "underflow", "rescale"),
    "complex": ({"points": [[1j], [0.0]], "n_clusters": 1}, "not a table of numbers", "shape"),
    "K zero": ({"n_clusters": 0}, "0 is not between 1 and the number of points, 3", "range"),
    "K large": ({"n_clusters": 4}, "4 is not between", "range"),
    "K float": ({"n_clusters": 2.0}, "expected a whole number, got 2.0", "from 1 to"),
    "K text": ({"n_clusters": "2"}, "expected a whole number", "from 1 to"),
    "index high": ({"must_link": [(0, 3)]}, "must_link[0]: pair (0, 3)", "numbered 0 to 2"),
    "index low": ({"cannot_link": [(0, 1), (-1, 1)]}, "cannot_link[1]: pair (-1, 1)", "0 to 2"),
    "self pair": ({"must_link": [(1, 1)]}, "links a point to itself", "remove the pair"),
    "triples": ({"must_link": [(0, 1, 2)]}, "shape (1, 3)", "one pair"),
    "flat pairs": ({"must_link": [0, 1]}, "shape (2,)", "one pair"),
    "uneven pairs": ({"must_link": [(0, 1), (2,)]}, "different lengths", "two indices"),
    "text pairs": ({"must_link": [("a", "b")]}, "whole numbers", "from_pairs(..., index="),
    "half indices": ({"must_link": [(0, 0.5)]}, "must_link[0]: (0.0, 0.5)", "row number"),
    "nan index": ({"must_link": [(0, np.nan)]}, "not a pair of whole numbers", "row number"),
    "weights shape": ({"weights": [1.0, 2.0]}, "expected shape (3,), got (2,)", "one positive"),
    "weights zero": ({"weights": [0.0, 0.0, 0.0]}, "all of them are 0", "positive weight"),
    "weights tiny": ({"weights": [1.0, 1e-13, 1.0]}, "row 1 is 1e-13", "or 0"),
    "weights negative": ({"weights": [1.0, 1.0, -2.0]}, "row 2 is -2.0", "positive"),
    "weights huge": ({"weights": [1.0, 1e13, 1.0]}, "row 1 is 1", "to 1e+12"),
    "weights nan": ({"weights": [np.nan, 1.0, 1.0]}, "row 0 is nan", "positive"),
    "weights text": ({"weights": ["x", 1, 1]}, "not numbers", "one positive"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_input(name):
    changes, what, remedy = BAD[name]
    with pytest.raises(InputError) as caught:
        Problem.from_data(**{**GOOD, **changes})
    assert what in caught.value.message
    assert remedy in caught.value.hint


def test_error_has_file_and_line():
    links = Links(np.array([[0, 1], [0, 7]]), "pairs.txt", np.array([3, 9]), base=1)
    with pytest.raises(InputError) as caught:
        Problem.from_data(**GOOD, must_link=links)
    assert "pairs.txt, line 9: pair (1, 8)" in caught.value.message
    assert "numbered 1 to 3" in caught.value.hint
    assert "one_based" not in caught.value.hint


def test_constructor_validates():
    with pytest.raises(InputError):
        Problem(np.array([[np.nan]]), 1)


def test_arrays_are_read_only_copies():
    points = np.zeros((3, 2), order="F")
    problem = Problem.from_data(points, 2, must_link=[(1, 0)], weights=[1, 2, 3])
    points[0, 0] = 5.0
    assert problem.points[0, 0] == 0.0
    assert problem.points.flags.c_contiguous
    for array in (problem.points, problem.weights, problem.must_link, problem.cannot_link):
        assert not array.flags.writeable


def test_canonical_pairs():
    expected = [[0, 1], [0, 2]]
    for pairs in (
        [(2, 0), (0, 1), (0, 2)],
        np.array([[2.0, 0.0], [0.0, 1.0]]),
        {(2, 0), (0, 1)},
        iter([(2, 0), (1, 0)]),
    ):
        problem = Problem.from_data(**GOOD, cannot_link=pairs)
        assert problem.cannot_link.tolist() == expected
    assert Problem.from_data(**GOOD, must_link=[]).must_link.shape == (0, 2)


def test_content_hash():
    one = Problem.from_data(**GOOD, must_link=[(0, 1)])
    same = Problem.from_data(**GOOD, must_link=[(1, 0), (0, 1)])
    assert one.content_hash() == same.content_hash()
    others = [
        Problem.from_data(**GOOD),
        Problem.from_data(**GOOD, cannot_link=[(0, 1)]),
        Problem.from_data(**GOOD, must_link=[(0, 1)], weights=[1, 1, 2]),
        Problem.from_data(GOOD["points"], 3, must_link=[(0, 1)]),
        Problem.from_data([[0.0, 1.0], [2.0, 3.0], [4.0, 5.5]], 2, must_link=[(0, 1)]),
    ]
    assert len({p.content_hash() for p in [one, *others]}) == 6
