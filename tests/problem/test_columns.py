"""Which columns are features: chosen by name or number, in every format."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.errors import InputError
from certikmeans.problem.files import read_points

ROWS = [(1, "bob", 0.5, 2.0, "a"), (2, "eve", 1.5, 3.0, "b"), (3, "joe", 9.0, 1.0, "a")]
NAMES = ("id", "name", "x", "y", "class")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    lines = [",".join(NAMES)] + [",".join(map(str, row)) for row in ROWS]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["x", "y"]},
        {"columns": "y,x"},
        {"columns": [2, 3]},
        {"columns": "2,-2"},
        {"drop": ["id", "name", "class"]},
        {"drop": ["id,name", "class"]},
        {"drop": "id, name, 4"},
        {"drop": ["id", "name"], "label_column": "class"},
        {"drop": ["id", "name", "class"], "label_column": "class"},
        {"columns": ["x", "y"], "label_column": "class"},
    ],
)
def test_a_table_with_an_id_a_name_and_a_class(table, options):
    found = read_points(table, **options)
    assert found.points.tolist() == [list(row[2:4]) for row in ROWS]
    assert found.points.flags.c_contiguous
    assert found.feature_names == ("x", "y")
    if "label_column" in options:
        assert found.labels.tolist() == ["a", "b", "a"]


@pytest.mark.parametrize("options", [{"columns": "2,3"}, {"drop": "0,1,4"}, {"drop": [0, 1, -1]}])
def test_without_a_header_columns_have_numbers(table, options):
    lines = table.read_text().split("\n", 1)
    table.write_text(lines[1])
    found = read_points(table, **options)
    assert found.points.tolist() == [list(row[2:4]) for row in ROWS]
    assert found.feature_names is None


def test_rows_of_another_length_are_refused_whatever_is_dropped(table):
    table.write_text(table.read_text() + "4,ann,1,2,b,extra\n")
    with pytest.raises(InputError, match="line 5: has 6 columns"):
        read_points(table, columns="x,y")


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"columns": "x,z"}, "there is no column 'z'"),
        ({"drop": "9"}, "there is no column '9'"),
        ({"columns": "x,class", "label_column": "class"}, "as a feature and as labels"),
        ({"columns": "x,y", "drop": "y"}, "as a feature and to be dropped"),
        ({"drop": "0,1,2,3,4"}, "no column is left"),
        ({"drop": "0,1,2,3", "label_column": "class"}, "no column is left"),
        ({"columns": [1.5]}, "expected names or numbers"),
        ({"columns": "x,name"}, "column 'name' holds text in every row"),
    ],
)
def test_choices_that_cannot_be_met(table, options, fragment):
    with pytest.raises(InputError, match=fragment):
        read_points(table, **options)


def test_a_name_with_a_comma_is_found_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"x, in m";y\n1;2\n3;4\n')
    assert read_points(path, columns="x, in m").points.tolist() == [[1.0], [3.0]]


def test_arrays_and_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet  # noqa: F811

    numbers = np.array([[1.0, 5.0, 7.0, 0.0], [2.0, 6.0, 8.0, 1.0]])
    np.save(tmp_path / "a.npy", numbers)
    np.savez(tmp_path / "a.npz", X=numbers, y=[4, 5])
    columns = {"id": ["p", "q"], "x": [5.0, 6.0], "y": [7.0, 8.0], "class": [0, 1]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    wanted = [[5.0, 7.0], [6.0, 8.0]]
    assert read_points(tmp_path / "a.npy", columns=[1, 2]).points.tolist() == wanted
    assert read_points(tmp_path / "a.npy", drop=0, label_column=-1).points.tolist() == wanted
    assert read_points(tmp_path / "a.npz", drop="0,3").labels.tolist() == [4, 5]
    assert read_points(tmp_path / "a.npz", drop="0,3").points.tolist() == wanted
    found = read_points(tmp_path / "a.parquet", drop="id", label_column="class")
    assert found.points.tolist() == wanted
    assert found.feature_names == ("x", "y")
    assert found.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "title", "remedy"),
    [
        ("id,x\n7,1\n3,2\n9,2\n5,2\n", "column 'id'", "drop='id'"),
        ("n,x\n1,1\n2,2\n3,2\n4,2\n", "column 'n'", "drop='n'"),
        ("0,9\n1,8\n2,8\n3,1\n", "column 0", "drop=0"),
    ],
)
def test_row_numbers_are_noted(tmp_path, text, title, remedy):
    path = tmp_path / "a.csv"
    path.write_text(text)
    (note,) = read_points(path).notes
    assert f"{title}" in note
    assert remedy in note
    assert read_points(path, drop=0).notes == ()


@pytest.mark.parametrize(
    "text",
    ["id,x\n7,1\n7,2\n9,2\n5,2\n", "x,y\n1,1\n2,2\n3,2\n5,2\n", "x\n1\n2\n3\n4\n", "1,5\n2,7\n"],
)
def test_ordinary_columns_are_not_noted(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert read_points(path).notes == ()
