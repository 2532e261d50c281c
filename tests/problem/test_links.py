"""Pairs by id: hashable ids, row order, error messages."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from certikmeans.errors import InputError
from certikmeans.problem.constraints import Constraints
from certikmeans.problem.links import Links


class Table:
    """Minimal data frame."""

    def __init__(self, **columns):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._columns[name]


DAYS = [datetime.date(2024, 1, day) for day in (3, 1, 2)]


@pytest.mark.parametrize(
    ("index", "first", "second"),
    [
        (["c", "a", "b"], "a", "c"),
        (np.array([30, 10, 20]), 10, 30),
        (np.array(["c", "a", "b"]), "a", "c"),
        ([("x", 1), ("y", 1), ("x", 2)], ("y", 1), ("x", 1)),
        (DAYS, DAYS[1], DAYS[0]),
        ([None, 2.5, "mixed"], 2.5, None),
    ],
)
def test_kinds_of_ids(index, first, second):
    named = Constraints.from_pairs([(first, second)], [(second, index[2])], index=index)

    assert named.must_link.tolist() == [[0, 1]]
    assert named.cannot_link.tolist() == [[0, 2]]
    assert named.n_points == 3


def test_tables_arrays_and_generators():
    index = [7, 5, 6]
    table = Table(left=[5, 7], right=[6, 6])
    expected = [[0, 2], [1, 2]]
    for given in (table, np.array([[5, 6], [7, 6]]), (pair for pair in ((5, 6), (7, 6)))):
        assert Constraints.from_pairs(given, index=index).must_link.tolist() == expected


def test_shuffled_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": range(6)}, index=list("fedcba")).sample(frac=1, random_state=0)
    pairs = pandas.DataFrame({"one": ["a", "b"], "other": ["f", "e"]})
    made = Constraints.from_pairs(pairs, index=frame.index)
    names = [{frame.index[i], frame.index[j]} for i, j in made.must_link]
    assert sorted(map(sorted, names)) == [["a", "f"], ["b", "e"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"must_link": [("a", "z"), ("y", "b")]}, "must_link: the index has no 'z', 'y'\n"),
        ({"cannot_link": [(0, "a")]}, "cannot_link: the index has no 0\nhint: .*7 is not '7'"),
        ({"must_link": [(i, "a") for i in range(9)]}, "no 0, 1, 2, 3, 4 and 4 more"),
        ({"must_link": [("x" * 90, "a")]}, r"no 'x{39}\.\.\.\n"),
        ({"must_link": [("a", "b", "c")]}, r"must_link\[0\]: expected a pair"),
        ({"must_link": [("a", "b"), "ab"]}, r"must_link\[1\]: expected a pair"),
        ({"must_link": [(["a"], "b")]}, "must_link: .*unhashable"),
        ({"must_link": 3}, "must_link: expected pairs"),
        ({"must_link": [("a", "a")]}, "must_link: a pair links 'a' to itself"),
        ({"must_link": Table(one=["a"])}, r"must_link\[0\]: expected a pair"),
        ({"must_link": Links(np.array([[0, 1]]), "f.txt")}, "count rows already"),
        ({"n_points": 4}, "n_points: 4, but the index has 3 rows"),
        ({"index": ["a", "b", "a"]}, "index: not every id is the id of one row: 'a'"),
        ({"index": [["a"], "b"]}, "index: unhashable"),
        ({"index": Table(a=[1])}, "index: it is a whole table"),
    ],
)
def test_errors(given, message):
    with pytest.raises(InputError, match=message):
        Constraints.from_pairs(**{"index": ["a", "b", "c"], **given})


def test_group_labels():
    labels = [4, -1, 2, 4, 2, 4, -1]
    by_label = Constraints.from_group_labels(labels)
    by_rows = Constraints.from_groups([[0, 3, 5], [2, 4]], n_points=7)

    assert by_label.must_link.tolist() == by_rows.must_link.tolist()
    assert len(by_label.cannot_link) == 0
    assert by_label.n_points == 7
    assert Constraints.from_group_labels(["", None, np.nan, "x"]).must_link.tolist() == []
