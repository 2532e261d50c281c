"""Readers of points: every format round-trips, errors name file, line and hint."""

from __future__ import annotations

import builtins
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certikmeans.errors import InputError, MissingExtraError
from certikmeans.problem.io import read_points

POINTS = np.array([[1.5, -2.0], [3.0, 4.25], [1e-7, 1e9]])
DATA = Path(os.environ.get("CERTIKMEANS_DATA_DIR", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture
def write(tmp_path):
    def write(content, name="points.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def assert_error(path, *fragments, **options):
    """The error has all fragments, the file's name and a hint; return it for more checks."""
    with pytest.raises(InputError) as caught:
        read_points(path, **options)
    for fragment in (path.name, *fragments):
        assert fragment in str(caught.value)
    assert caught.value.hint
    return caught.value


# --- text that can be read ------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "1.5,-2\n3,4.25\n1e-7,1e9\n",
        "1.5,-2\n3,4.25\n1e-7,1e9",
        "1.5 , -2\r\n3, 4.25\r\n1e-7,1e9\r\n",
        "1.5,-2\r3,4.25\r1e-7,1e9\r",
        "\ufeff1.5;-2\n3;4.25\n1e-7;1e9\n",
        "1.5\t-2\n3\t4.25\n1e-7\t1e9\n",
        "  1.5   -2\n3 \t 4.25\n1e-7 1e9  \n",
        "# made by hand\n\n1.5,-2 # first\n \t \n3,4.25\n#\n1e-7,1e9\n\n\n",
        '"1.5","-2"\n"3","4.25"\n1e-7,"1e9"\n',
        '"1.5" "-2"\n3 "4.25"\n1e-7 1e9\n',
        "3 2 7\n1.5 -2\n3 4.25\n1e-7 1e9\n",
        "3 2\n1.5 -2\n3 4.25\n1e-7 1e9\n",
        "3\t2\t7\n1.5\t-2\n3\t4.25\n1e-7\t1e9\n",
        "3\t2\t7\n1.5 -2\n3 4.25\n1e-7 1e9\n",
    ],
)
def test_text_without_header(write, content):
    table = read_points(write(content, "points.anything"))
    assert np.array_equal(table.points, POINTS)
    assert table.points.flags.c_contiguous
    assert table.points.dtype == np.float64
    assert table.feature_names is None
    assert table.labels is None
    assert table.n_clusters_hint == (7 if content.startswith(("3 2 7", "3\t2\t7")) else None)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("x,y\n1,2\n", ("x", "y")),
        ("\ufeff# comment\nx;y\n1;2\n", ("x", "y")),
        ("x y\n1 2\n", ("x", "y")),
        ('"x, in m","y#1"\n1,2\n', ("x, in m", "y#1")),
        ("area, in m\ty\n1\t2\n", ("area, in m", "y")),
        ("0,x\n1,2\n", ("0", "x")),
        ("sepal length\n1\n", ("sepal length",)),
        ("1st,second\n1,2\n", ("1st", "second")),
    ],
)
def test_header(write, content, names):
    table = read_points(write(content))
    assert table.feature_names == names
    assert table.points.tolist() == [[1.0, 2.0][: len(names)]]


@pytest.mark.parametrize(
    ("content", "n_rows"),
    [
        ("4 3 2\n1 2 3\n4 5 6\n", 3),  # announces 4 rows, but reads as a table of three columns
        ("5 2\n1 2\n3 4\n", 3),
        ("2 4 3\n1 2 3\n4 5 6\n", 3),
        ("150 4 3\n", 1),
        ("1 2\n3 4\n", 2),
        ("2,3,1\n1,2,3\n4,5,6\n", 3),  # only white space separates in that format
        ("2 3.0 2\n1 2 3\n4 5 6\n", 3),
        ("2 -3 2\n1 2 3\n4 5 6\n", 3),
    ],
)
def test_integer_table_is_not_pc_sos_sdp(write, content, n_rows):
    table = read_points(write(content, "points.txt"))
    assert len(table.points) == n_rows
    assert table.n_clusters_hint is None


SIZES_OR_POINT = "3 2\n1 1\n5 5\n6 6\n"


def test_ambiguous_first_row_is_noted(write):
    (note,) = read_points(write(SIZES_OR_POINT)).notes
    assert "line 1: '3 2' is read as the sizes: 3 points of 2 features" in note
    assert "header='none'" in note
    (note,) = read_points(write("9 2\n1 1\n5 5\n6 6\n")).notes
    assert "'9 2' is read as a point, not as the sizes" in note
    for plain in ("3 2 1\n1 1\n5 5\n6 6\n", "1 2\n3 4\n5 6\n", "3,2\n1,1\n5,5\n6,6\n"):
        assert read_points(write(plain)).notes == ()


@pytest.mark.parametrize(
    ("content", "header", "n_points", "names"),
    [
        (SIZES_OR_POINT, "sizes", 3, None),
        (SIZES_OR_POINT, "none", 4, None),
        (SIZES_OR_POINT, "names", 3, ("3", "2")),
        ("13 2\n" + 12 * "1 1\n", "none", 13, None),
        ("2019,2020\n1,2\n", "names", 1, ("2019", "2020")),
        ("2,1\n5\n6\n", "sizes", 2, None),
    ],
)
def test_header_argument(write, content, header, n_points, names):
    table = read_points(write(content), header=header)
    assert (len(table.points), table.feature_names, table.notes) == (n_points, names, ())


@pytest.mark.parametrize("n_rows", [11, 12, 14])
@pytest.mark.parametrize("sizes", ["13 2", "13 3 2"])
def test_nearly_matching_sizes_are_rejected(write, sizes, n_rows):
    width = len(sizes.split())
    path = write(f"{sizes}\n" + n_rows * ("1 " * width + "\n"))
    fragments = [f"'{sizes}' could be the first of {n_rows + 1} points", "13 points of", "header="]
    if n_rows == 11:
        assert len(read_points(path).points) == 12
    else:
        assert_error(path, *fragments, f"{n_rows} rows follow")


def test_header_argument_mismatch(write, tmp_path):
    assert_error(write("1.5 2\n3 4\n"), "'1.5 2' is not 'n d'", header="sizes")
    assert_error(write("4 2\n3 4\n"), "announces 4 points", "1 rows of 2", header="sizes")
    np.save(tmp_path / "x.npy", POINTS)
    assert_error(tmp_path / "x.npy", "header='none' is for text", header="none")
    with pytest.raises(InputError, match="header: 'maybe' is not known"):
        read_points(write("1 2\n"), header="maybe")


LABELLED = "x,kind,y\n1,a,2\n3,b,4\n5,,6\n"


@pytest.mark.parametrize("column", ["kind", 1, -2, "1", "-2", np.int64(1)])
def test_label_column(write, column):
    table = read_points(write(LABELLED), label_column=column)
    assert table.points.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.feature_names == ("x", "y")
    assert table.labels.tolist() == ["a", "b", ""]


def test_integer_labels(write):
    table = read_points(write("1,2,7\n3,4,-1\n5,6, 7\n"), label_column=2)
    assert table.labels.tolist() == [7, -1, 7]
    assert table.labels.dtype == np.int64


def test_first_row_with_repeated_label_is_point(write):
    table = read_points(write("5.1,3.5,setosa\n4.9,3,setosa\n7,3.2,virginica\n"), label_column=-1)
    assert table.labels.tolist() == ["setosa", "setosa", "virginica"]
    assert table.points.shape == (3, 2)


def test_first_row_with_word_is_header_for_numeric_labels(write):
    table = read_points(write("0,1,class\n5,6,1\n7,8,2\n"), label_column=2)
    assert table.feature_names == ("0", "1")
    assert table.labels.tolist() == [1, 2]


def test_column_name_precedes_number(write):
    table = read_points(write("a,b,0\n1,2,3\n"), label_column="0")
    assert table.labels.tolist() == [3]


finite = st.floats(-1e60, 1e60, allow_nan=False)


@settings(deadline=None)  # a busy machine is no failure
@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(finite, min_size=width, max_size=width), min_size=1, max_size=5
        )
    ),
    separator=st.sampled_from([",", ";", "\t", " ", "  "]),
    end=st.sampled_from(["\n", "\r\n", "\n\n", " # end\n"]),
)
def test_floats_round_trip(tmp_path_factory, rows, separator, end):
    path = tmp_path_factory.mktemp("hypothesis") / "points.txt"
    text = end.join(separator.join(map(repr, row)) for row in rows) + end
    path.write_text("x" + (separator + "x") * (len(rows[0]) - 1) + "\n" + text, newline="")
    assert read_points(path).points.tobytes() == np.array(rows).tobytes()


# --- malformed text ---------------------------------------------------------------

MALFORMED = [
    ("", ["holds no data"]),
    ("\ufeff\n  \n# nothing\n", ["holds no data"]),
    ("x,y\n", ["header and no points"]),
    ("1,2\n3\n", ["line 2", "1 columns where line 1 has 2", "'3'", "commas"]),
    ("1,2\n# note\n\n3,4,5\n", ["line 4", "3 columns where line 1 has 2", "'3,4,5'"]),
    ("x,y\n1,2,3\n", ["line 2", "3 columns where the header (line 1) has 2"]),
    ("x,y,z\n1,2\n", ["line 2", "2 columns where the header (line 1) has 3"]),
    ("7 2\n3 4 5\n", ["line 2", "3 columns where line 1 has 2", "white space"]),
    ("x,y\n1,2\n3,abc\n", ["line 3", "column 'y'", "'abc' is not a number"]),
    ("1,2\n3,abc\n", ["line 2", "column 1 (counted from 0)", "'abc' is not a number"]),
    ("1,2\n3,\n", ["line 2", "column 1", "is empty"]),
    ("1,2\n3,nan\n", ["line 2", "column 1", "is nan", "finite"]),
    ("1,2\n-inf,3\n", ["line 2", "column 0", "is -inf"]),
    ("1,1e999\n2,3\n", ["line 1", "column 1", "is 1e999"]),
    ("1,2\n3,1_000\n", ["line 2", "'1_000' is not a number"]),
    ("1,2\n3,0x10\n", ["line 2", "'0x10' is not a number"]),
    ("1,2\n3,1+2j\n", ["line 2", "'1+2j' is not a number"]),
    ("1,2\n3,\u0663\n", ["line 2", "'\u0663' is not a number"]),
    ("5.1O,3\n1,2\n", ["line 1", "column 0", "'5.1O' is not a number"]),
    ("?,3\n1,2\n", ["line 1", "column 0", "'?' is not a number"]),
    ("1,NA\n1,2\n", ["line 1", "column 1", "'NA' is not a number"]),
    ("1,,3\n1,2,3\n", ["line 1", "column 1", "is empty"]),
    ("1,5;2\n3,5;4\n", ["line 1", "'1,5' is not a number", "decimal comma"]),
    ("1,000;2\n3;4\n", ["'1,000' is not a number", "decimal comma", "thousands separators"]),
    ("1,000,000;2\n3;4\n", ["'1,000,000' is not a number", "thousands separators"]),
    ("1,2,\n3,4,\n", ["line 1", "column 2", "is empty"]),
    ("x,kind\n1,a\n2,b\n", ["line 2", "column 'kind' holds text", "'a'", "label_column='kind'"]),
    ("5,3,a\n4,3,a\n", ["column 2 (counted from 0) holds text", "label_column='2'"]),
    (",x\n0,1\n1,2\n", ["line 1", "column 0", "no name", "index=False"]),
    ('1,"2\n3,4\n', ["line 1", "double quote is not closed"]),
    (
        "4 2 3\n1 2\n3 4\n",
        ["line 1", "'4 2 3' announces 4 points of 2 features", "2 rows of 2 follow"],
    ),
    ("1 2 3\n1 2\n3 4\n", ["line 1", "announces 1 points", "2 rows of 2 follow"]),
    ("2 4 3\n1 2\n3 4\n", ["line 1", "announces 2 points of 4 features", "2 rows of 2 follow"]),
    ("9 8 3\n1 2\n3 4\n", ["line 2", "2 columns where line 1 has 3"]),
    (b"\x93NUMPY\x01\x00", ["NumPy array", ".npy"]),
    (b"PK\x03\x04xx", ["zip archive", ".npz"]),
    (b"PAR1xx", ["parquet"]),
    (b"\x1f\x8b\x08", ["damaged gzip", "again"]),
    ("1,2\n".encode("utf-16"), ["UTF-16", "UTF-8"]),
    (b"1,2\n\x00\x01\x02", ["binary"]),
    (b"1,2\nl\xe4nge,4\n", ["line 2", "0xe4", "UTF-8"]),
]


@pytest.mark.parametrize(("content", "fragments"), MALFORMED)
def test_malformed_text(write, content, fragments):
    assert_error(write(content), *fragments)


@pytest.mark.parametrize(
    ("content", "column", "fragments"),
    [
        (LABELLED, "knid", ["no label column 'knid'", "did you mean 'kind'?", "x, kind, y"]),
        (LABELLED, 3, ["no label column 3", "0 to 2"]),
        (LABELLED, -4, ["no label column -4"]),
        ("1,2\n", "kind", ["no label column 'kind'", "names no columns", "0 to 1"]),
        ("a,a,b\n1,2,3\n", "a", ["several columns are called 'a'"]),
        ("kind\na\n", "kind", ["no features"]),
        ("x,y,kind\n1,2\n", "kind", ["line 2", "2 columns"]),
        ("x,kind\n1,a\nb,a\n", "kind", ["line 3", "'b' is not a number"]),
        ("1,2,setosa\n3,4,virginica\n", 2, ["line 1", "header or a point labelled 'setosa'"]),
    ],
)
def test_invalid_label_column(write, content, column, fragments):
    assert_error(write(content), *fragments, label_column=column)


def test_missing_file_and_directory(tmp_path, write):
    write("1,2\n", "iris.csv")
    assert_error(tmp_path / "irs.csv", "no such file", "did you mean 'iris.csv'?")
    assert_error(tmp_path / "nowhere" / "iris.csv", "no such file")
    assert_error(tmp_path, "is a directory")


# --- NumPy files ----------------------------------------------------------------------------


def saved(tmp_path, name, *args, **arrays):
    path = tmp_path / name
    (np.savez if path.suffix == ".npz" else np.save)(path, *args, **arrays)
    return path


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", "i2", "u1", "?"])
def test_npy(tmp_path, dtype):
    array = np.asfortranarray(np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype))
    table = read_points(saved(tmp_path, "x.npy", array))
    assert table.points.tolist() == array.astype(float).tolist()
    assert table.points.dtype == np.float64
    assert table.points.flags.c_contiguous


def test_npy_with_label_column(tmp_path):
    path = saved(tmp_path, "x.npy", np.array([[1, 9, 2.5], [3, 8, 4]]))
    table = read_points(path, label_column=1)
    assert table.points.tolist() == [[1, 2.5], [3, 4]]
    assert table.labels.tolist() == [9, 8]
    assert_error(path, "no label column 'kind'", label_column="kind")


def test_npz(tmp_path):
    path = saved(tmp_path, "x.npz", X=POINTS, y=[1, 1, 2], other=np.array(["a", "b", "c"]))
    assert np.array_equal(read_points(path).points, POINTS)
    assert read_points(path).labels.tolist() == [1, 1, 2]
    assert read_points(path, label_column="other").labels.tolist() == ["a", "b", "c"]
    by_column = read_points(path, label_column=0)
    assert by_column.points.shape == (3, 1)
    assert by_column.labels.tolist() == POINTS[:, 0].tolist()
    assert_error(path, "no array 'othr'", "did you mean 'other'?", label_column="othr")


def test_npz_with_a_single_table(tmp_path):
    path = saved(tmp_path, "x.npz", data=POINTS, classes=[0, 1, 0])
    assert read_points(path).labels is None
    assert read_points(path, label_column="classes").labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "arrays", "fragments"),
    [
        ("x.npy", [np.ones(3)], ["expected a table", "(3,)", "reshape(-1, 1)"]),
        ("x.npy", [np.ones((2, 2, 2))], ["expected a table", "(2, 2, 2)"]),
        ("x.npy", [np.ones((0, 2))], ["empty", "(0, 2)"]),
        ("x.npy", [np.ones((2, 2), dtype=complex)], ["must be real", "complex128"]),
        ("x.npy", [np.array([["a", "b"]])], ["must be real"]),
        ("x.npy", [np.array([[1, None]], dtype=object)], ["pickled objects"]),
        ("x.npy", [np.array([[1.0, 2.0], [3.0, np.nan]])], ["row 1", "column 1", "nan"]),
        ("x.npy", [np.array([[1.0, -np.inf]])], ["row 0", "column 1", "-inf"]),
        ("x.npz", {"a": POINTS, "b": POINTS}, ["which array", "a (3, 2)", "b (3, 2)", "X=points"]),
        ("x.npz", {"a": np.ones(3)}, ["which array", "a (3,)"]),
        ("x.npz", {}, ["which array", "there is none"]),
        ("x.npz", {"X": POINTS, "y": [1, 2]}, ["labels 'y'", "(2,)", "3 points"]),
        ("x.npz", {"X": POINTS, "y": np.ones(3, complex)}, ["y: labels must be whole"]),
        ("x.npz", {"X": np.array([[None]], dtype=object)}, ["X: holds pickled objects"]),
    ],
)
def test_malformed_numpy_files(tmp_path, name, arrays, fragments):
    args, kwargs = (arrays, {}) if isinstance(arrays, list) else ([], arrays)
    assert_error(saved(tmp_path, name, *args, **kwargs), *fragments)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
@pytest.mark.parametrize("content", [b"", b"1,2\n3,4\n", b"\x93NUMPY\x01", b"PK\x03\x04abc"])
def test_damaged_numpy_files(write, name, content):
    assert_error(write(content, name), "NumPy")


def test_truncated_and_misnamed_numpy_files(tmp_path):
    path = saved(tmp_path, "x.npy", np.ones((100, 3)))
    path.rename(tmp_path / "y.npz")
    assert_error(tmp_path / "y.npz", "single array", ".npy")
    (tmp_path / "z.npy").write_bytes((tmp_path / "y.npz").read_bytes()[:-100])
    assert_error(tmp_path / "z.npy", "not a complete NumPy file")
    saved(tmp_path, "a.npz", X=POINTS).rename(tmp_path / "a.npy")
    assert_error(tmp_path / "a.npy", "archive", ".npz")


# --- parquet --------------------------------------------------------------------------------


def parquet(tmp_path, **columns):
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "points.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet(tmp_path):
    path = parquet(tmp_path, x=[1.5, 2.5], flag=[True, False], n=[2**60, 1], kind=["a", None])
    table = read_points(path, label_column="kind")
    assert table.points.tolist() == [[1.5, 1, 2.0**60], [2.5, 0, 1]]
    assert table.feature_names == ("x", "flag", "n")
    assert table.labels.tolist() == ["a", ""]
    whole = read_points(parquet(tmp_path, x=[1.0, 2.0], k=[3, 4]), label_column=-1).labels
    assert whole.tolist() == [3, 4]
    partly = read_points(parquet(tmp_path, x=[1.0, 2.0], k=[3, None]), label_column="k").labels
    assert partly[0] == 3
    assert np.isnan(partly[1])


@pytest.mark.parametrize(
    ("columns", "fragments"),
    [
        ({"x": [1.0], "kind": ["a"]}, ["column 'kind' holds string", "label_column='kind'"]),
        ({"x": [1.0, None]}, ["row 1", "column 'x'", "nan"]),
        ({"x": [1, None]}, ["row 1", "column 'x'", "nan"]),
        ({"x": [1.0], "__index_level_0__": [0]}, ["saved index", "index=False"]),
        ({}, ["empty"]),
    ],
)
def test_malformed_parquet(tmp_path, columns, fragments):
    assert_error(parquet(tmp_path, **columns), *fragments)


def test_damaged_parquet(write):
    pytest.importorskip("pyarrow")
    assert_error(write("x,y\n1,2\n", "points.parquet"), "not a parquet file", ".csv")


def test_missing_pyarrow(write, monkeypatch):
    path = write("", "points.parquet")
    original = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'certikmeans\[io\]'"):
        read_points(path)


# --- real files -----------------------------------------------------------------------------


@pytest.mark.skipif(not DATA.is_dir(), reason="the measured data sets are not here")
@pytest.mark.parametrize(
    ("name", "shape", "k"),
    [
        ("iris", (150, 4), 3),
        ("seeds", (210, 7), 3),
        ("vertebral", (310, 6), 2),
        ("wine", (178, 13), 3),
    ],
)
def test_published_data(name, shape, k):
    table = read_points(DATA / "instances" / name / "data.txt")
    assert (table.points.shape, table.n_clusters_hint) == (shape, k)


# Which columns are features: chosen by name or number, in every format.

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
def test_column_choice_by_name(table, options):
    found = read_points(table, **options)
    assert found.points.tolist() == [list(row[2:4]) for row in ROWS]
    assert found.points.flags.c_contiguous
    assert found.feature_names == ("x", "y")
    if "label_column" in options:
        assert found.labels.tolist() == ["a", "b", "a"]


@pytest.mark.parametrize("options", [{"columns": "2,3"}, {"drop": "0,1,4"}, {"drop": [0, 1, -1]}])
def test_column_choice_by_number(table, options):
    lines = table.read_text().split("\n", 1)
    table.write_text(lines[1])
    found = read_points(table, **options)
    assert found.points.tolist() == [list(row[2:4]) for row in ROWS]
    assert found.feature_names is None


def test_ragged_rows_rejected_with_drop(table):
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
def test_invalid_column_choice(table, options, fragment):
    with pytest.raises(InputError, match=fragment):
        read_points(table, **options)


def test_column_name_with_comma(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"x, in m";y\n1;2\n3;4\n')
    assert read_points(path, columns="x, in m").points.tolist() == [[1.0], [3.0]]


def test_column_choice_in_arrays_and_parquet(tmp_path):
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
def test_row_number_column_is_noted(tmp_path, text, title, remedy):
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
def test_ordinary_column_is_not_noted(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert read_points(path).notes == ()
