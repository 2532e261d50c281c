"""Readers of pairs: equal pairs in every format, errors with file, line and hint."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from certikmeans.errors import InputError
from certikmeans.problem import Problem
from certikmeans.problem.io import read_links

MUST, CANNOT = [[0, 1], [4, 3]], [[1, 2]]
DATA = Path(os.environ.get("CERTIKMEANS_DATA_DIR", Path(__file__).parents[3] / "shared" / "data"))


def assert_error(path, *fragments, **options):
    with pytest.raises(InputError) as caught:
        read_links(path, **options)
    for fragment in (path.name, *fragments):
        assert fragment in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        "ML 0 1\nCL 1 2\nML 4 3\n",
        "ml,0,1\ncl,1,2\nml,4,3",
        "\ufeffMust-Link\t0\t1\r\nCANNOT-LINK\t1\t2\r\nmust_link\t4\t3\r\n",
        "kind;i;j\nML;0;1\nCL;1;2\nML;4;3\n",
        "0 1 1\n1 2 -1\n4 3 1\n",
        "i,j,sign\n0,1,+1\n1,2,-1\n4,3,1.0\n",
        "  0   1  1 # together\n\n# apart:\n1 2 -1\n4 3 1",
    ],
)
def test_tagged_and_signed_lines(write, content):
    links = read_links(write(content))
    assert links.must.pairs.tolist() == MUST
    assert links.cannot.pairs.tolist() == CANNOT
    lines = content.replace("\r\n", "\n").split("\n")
    for side, values in ((links.must, ["0", "4"]), (links.cannot, ["1"])):
        # The recorded line is the one on which the pair is written.
        assert all(v in lines[at - 1] for at, v in zip(side.lines, values, strict=True))


@pytest.mark.parametrize(
    "content",
    [
        {"ml": MUST, "cl": CANNOT},
        {"must_link": MUST, "cannot_link": CANNOT},
        {"ml": [[0, 1]], "groups": [[4, 3]], "cl": CANNOT},
    ],
)
@pytest.mark.parametrize("name", ["pairs.json", "pairs.txt"])
def test_json(write, content, name):
    links = read_links(write("\n" + json.dumps(content), name))
    assert links.must.pairs.tolist() == MUST
    assert links.cannot.pairs.tolist() == CANNOT


@pytest.mark.parametrize(
    "content", ["0 1\n4 3\n", "i,j\n0,1\n4,3\n", "0;1\n\n4;3 # x\n", "0\t1\n4\t3"]
)
@pytest.mark.parametrize("kind", ["must", "cannot"])
def test_two_columns(write, content, kind):
    links = read_links(write(content), kind=kind)
    found, other = (links.must, links.cannot) if kind == "must" else (links.cannot, links.must)
    assert found.pairs.tolist() == MUST
    assert other.pairs.shape == (0, 2)


@pytest.mark.parametrize(
    ("content", "pairs", "lines"),
    [
        ("0 1 2\n\n5 4\n", [[0, 1], [1, 2], [5, 4]], [1, 1, 3]),
        ("5 4\n0 1 2\n", [[5, 4], [0, 1], [1, 2]], [1, 2, 2]),
        ("0,1,2\n3,4,5\n", [[0, 1], [1, 2], [3, 4], [4, 5]], [1, 1, 2, 2]),
        ("0,1,1\n3,4,5\n", [[0, 1], [1, 1], [3, 4], [4, 5]], [1, 1, 2, 2]),
        ("0 1 2 3\n", [[0, 1], [1, 2], [2, 3]], [1, 1, 1]),
    ],
)
def test_groups(write, content, pairs, lines):
    links = read_links(write(content), kind="must")
    assert links.must.pairs.tolist() == pairs
    assert links.must.lines.tolist() == lines
    assert not len(links.cannot.pairs)


@pytest.mark.parametrize("content", ["", "# none\n\n", "i,j\n", "{}", '{"ml": [], "cl": []}'])
@pytest.mark.parametrize("kind", ["must", "cannot", None])
def test_empty_files(write, content, kind):
    links = read_links(write(content), kind=kind)
    assert links.must.pairs.shape == links.cannot.pairs.shape == (0, 2)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("ML 1 2\nML 5 4\n", None),
        ("ML 1 2\nML 5 4\n", "must"),
        ("1 2\n5 4\n", "must"),
        ("1 2 1\n5 4 1\n", None),
        ('{"ml": [[1, 2], [5, 4]]}', "must"),
        ('{"groups": [[1, 2], [5, 4]]}', None),
    ],
)
def test_one_based(write, content, kind):
    links = read_links(write(content), kind=kind, one_based=True)
    assert links.must.pairs.tolist() == MUST
    assert links.must.base == 1
    assert links.must.shown(1) == "(5, 4)"


def test_index_out_of_range_names_line(write):
    links = read_links(write("# pairs\nML 1 2\n\nML 3 9\n"), one_based=True)
    with pytest.raises(InputError, match=r"pairs\.txt, line 4: pair \(3, 9\)"):
        Problem.from_data(np.eye(4), 2, must_link=links.must)
    links = read_links(write('{"cl": [[0, 1], [0, 9]]}'))
    with pytest.raises(InputError, match=r"pairs\.txt: cl\[1\]: pair \(0, 9\)"):
        Problem.from_data(np.eye(4), 2, cannot_link=links.cannot)


MALFORMED = [
    # content, kind, fragments
    ("0 1\n2 3\n", None, ["line 1", "'0 1' does not state its kind", "kind='must'"]),
    ("ML 0 1\n2 3\n", None, ["line 2", "expected 'ML i j' or 'CL i j' as in line 1", "'2 3'"]),
    ("ML 0 1\n2 3 1\n", None, ["line 2", "'2 3 1'"]),
    ("ML 0 1\nXL 2 3\n", None, ["line 2", "'XL 2 3'"]),
    ("XL 0 1\nML 2 3\n", None, ["line 1", "'XL 0 1'", "expected 'i j 1'", "'ML i j' or 'CL i j'"]),
    ("0 1 XL\n", None, ["line 1", "'0 1 XL'", "'ML i j' or 'CL i j'"]),
    ("0 1 ML\n1 2\n", None, ["line 2", "'1 2'", "'i j ML', 'i j CL'"]),
    ("0 1 ML\n1 1 CL\n", None, ["line 2", "to itself"]),
    ("0 1 SML -2\n", None, ["line 1", "penalty", "reward"]),
    ("SML 0 1 x\n", None, ["line 1", "penalty"]),
    ("SML 0 1 1\nCL 1\n", None, ["line 2", "'CL 1'"]),
    ("CL 1 2\nSCL 0 1 nan\n", None, ["line 2", "penalty"]),
    ("SML 0 1 1\n", "must", ["line 1", "soft pair"]),
    ("ML 0\n", None, ["line 1", "expected 'ML i j'", "'ML 0'"]),
    ("ML 0 1 2\n", None, ["line 1", "'ML 0 1 2'"]),
    ("ML 0 a\n", None, ["line 1", "'ML 0 a'"]),
    ("ML 0 1.5\n", None, ["line 1", "'1.5' is not a row number"]),
    ("ML 0 1\nCL 0 nan\n", None, ["line 2", "'nan' is not a row number"]),
    ("ML 0 1e300\n", None, ["line 1", "'1e300' is not a row number"]),
    ("ML 0 -3\n", None, ["line 1", "point -3 does not exist", "from 0"]),
    ("ML,0,1\nML 2 3\n", None, ["line 2", "'ML 2 3'", "commas"]),
    ("0 1 1\n2 3\n", None, ["line 2", "expected 'i j 1' or 'i j -1' as in line 1", "'2 3'"]),
    ("0 1 1\nCL 2 3\n", None, ["line 2", "'CL 2 3'"]),
    ("0 1 1\n2 3 0\n", None, ["line 2", "'2 3 0'"]),
    ("0 1 7\n", None, ["line 1", "expected 'i j 1'", "'0 1 7'"]),
    ("0 1 2 3\n", None, ["line 1", "'0 1 2 3'", "groups", "must-links only: kind='must'"]),
    ("0 1 2\n3 4 5\n", None, ["line 1", "'0 1 2'", "groups", "kind='must'"]),
    ("3\n4\n", None, ["line 1", "'3'"]),
    ("(0, 1)\n", None, ["line 1", "'(0, 1)'"]),
    ("ML:0 1\n", "must", ["line 1", "'ML:0 1'"]),
    ("0 1\n2\n", "cannot", ["line 2", "expected a pair 'i j' as in line 1", "'2'"]),
    ("0 1\n2 3 4\n", "cannot", ["line 2", "'2 3 4'"]),
    ("0 1 2 3\n", "cannot", ["line 1", "expected a pair 'i j'", "'0 1 2 3'"]),
    ("0 1\n2 x\n", "cannot", ["line 2", "'2 x'"]),
    ("0 1\n2 0.5\n", "cannot", ["line 2", "'0.5' is not a row number"]),
    ("0,1\n2,\n", "cannot", ["line 2", "'2,'"]),
    ("0 1 1\n", "cannot", ["line 1", "(0, 1) is a must-link", "given as cannot-links"]),
    ("CL 0 1\nML 2 3\n", "cannot", ["line 2", "(2, 3) is a must-link"]),
    ("ML 0 1\nCL 2 3\n", "must", ["line 2", "(2, 3) is a cannot-link", "given as must-links"]),
    ("0 1 1\n2 3 -1\n", "must", ["line 2", "(2, 3) is a cannot-link"]),
    ("0 5 1\n2 7 1\n", "must", ["line 1", "could be a group of three", "'0 5 1'", "groups"]),
    ("0 1\n2\n", "must", ["line 2", "group", "'2'"]),
    ("0 1\n2 x\n", "must", ["line 2", "'2 x'"]),
    ("0 1\n2 0.5\n", "must", ["line 2", "'0.5' is not a row number"]),
    ("0 1 2\n2 3 0.5\n", "must", ["line 2", "'0.5' is not a row number"]),
    ("0 1 2\n2 3 -5\n", "must", ["line 2", "point -5 does not exist"]),
    ("0 1\n1 2\nML 2 3\n", "must", ["line 3", "'ML 2 3'"]),
    (b"\x93NUMPY", "must", ["NumPy"]),
    ("{", None, ["line 1, column 2", "not valid JSON"]),
    ('{"ml": [[0, 1],]}', None, ["line 1", "not valid JSON"]),
    ("[[0, 1]]", None, ["expected an object", "list"]),
    ('{"ml": [[0, 1]], "mls": [], "x": 1}', None, ["unknown key 'mls', 'x'", "did you mean 'ml'?"]),
    ('{"ml": [[0, 1]], "ml": []}', None, ["'ml' occurs twice"]),
    ('{"ml": [], "must_link": []}', None, ["'ml' and 'must_link' mean the same"]),
    ('{"ml": 3}', None, ["ml: expected a list, got 3"]),
    ('{"ml": [[0, 1], [2]]}', None, ["ml[1]: expected a pair [i, j], got [2]"]),
    ('{"cl": [[0, 1], [2, 1.5]]}', None, ["cl[1]: expected a pair", "got [2, 1.5]"]),
    ('{"cl": [[0, true]]}', None, ["cl[0]", "[0, true]"]),
    ('{"cl": [["0", "1"]]}', None, ["cl[0]", '["0", "1"]']),
    ('{"cl": [[0, -1]]}', None, ["cl[0]", "[0, -1]", "from 0"]),
    ('{"cl": [5]}', None, ["cl[0]", "got 5"]),
    ('{"groups": [[0, 1, 2], [3]]}', None, ["groups[1]: expected a group", "got [3]"]),
    ('{"cl": [[0, 1]]}', "must", ["cl[0]", "(0, 1) is a cannot-link"]),
]


@pytest.mark.parametrize(("content", "kind", "fragments"), MALFORMED)
def test_malformed_pairs(write, content, kind, fragments):
    assert_error(write(content), *fragments, kind=kind)


@pytest.mark.parametrize(
    ("content", "kind", "fragments"),
    [
        ("ML 1 2\n\nCL 0 3\n", None, ["line 3", "point 0", "'CL 0 3'", "one_based=True"]),
        ("1 2\n2 0\n", "must", ["line 2", "point 0"]),
        ("1 2 3\n2 0\n", "must", ["line 2", "point 0"]),
        ('{"ml": [[1, 2], [0, 1]]}', None, ["ml[1]", "from 1"]),
    ],
)
def test_index_zero_in_one_based_file(write, content, kind, fragments):
    assert_error(write(content), *fragments, kind=kind, one_based=True)


PAIRS = np.array(MUST)


def saved(tmp_path, name, *args, **arrays):
    path = tmp_path / name
    (np.savez if path.suffix == ".npz" else np.save)(path, *args, **arrays)
    return path


@pytest.mark.parametrize("kind", ["must", "cannot"])
@pytest.mark.parametrize("dtype", ["i8", "u2", "f4"])
@pytest.mark.parametrize("name", ["pairs.npy", "pairs.npz"])
def test_arrays(tmp_path, name, dtype, kind):
    path = saved(tmp_path, name, PAIRS.astype(dtype) + 1)
    links = read_links(path, kind=kind, one_based=True)
    found, other = (links.must, links.cannot) if kind == "must" else (links.cannot, links.must)
    assert found.pairs.tolist() == MUST
    assert found.pairs.dtype == np.int64
    assert other.pairs.shape == (0, 2)


@pytest.mark.parametrize("names", [("ml", "cl"), ("must_link", "cannot_link")])
def test_named_arrays(tmp_path, names):
    arrays = dict(zip(names, (MUST, CANNOT), strict=True))
    links = read_links(saved(tmp_path, "pairs.npz", **arrays))
    assert links.must.pairs.tolist() == MUST
    assert links.cannot.pairs.tolist() == CANNOT
    with pytest.raises(InputError, match=r"pairs\.npz: \w+\[1\]: pair \(4, 3\)") as caught:
        Problem.from_data(np.eye(4), 2, must_link=links.must)
    assert "one_based=True" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "arrays", "kind", "fragments"),
    [
        ("x.npy", [PAIRS], None, ["do not state their kind", "kind='must'"]),
        ("x.npy", [np.ones(4, int)], "must", ["expected pairs", "(4,)", "(m, 2)"]),
        ("x.npy", [np.ones((4, 3), int)], "must", ["expected pairs", "(4, 3)"]),
        ("x.npy", [np.array([["0", "1"]])], "must", ["expected pairs", "<U1"]),
        ("x.npy", [np.array([[0, 1], [1, 2.5]])], "must", ["x.npy[1]", "(1.0, 2.5)"]),
        ("x.npy", [np.array([[0, -1]])], "must", ["x.npy[0]", "from 0"]),
        ("x.npz", {"a": PAIRS, "b": PAIRS}, "must", ["which arrays", "a, b", "np.savez"]),
        ("x.npz", {}, "must", ["which arrays", "there is none"]),
        ("x.npz", {"ml": PAIRS, "must_link": PAIRS}, None, ["another array of must-links"]),
        ("x.npz", {"cl": PAIRS}, "must", ["cl[0]", "(0, 1) is a cannot-link"]),
    ],
)
def test_malformed_arrays(tmp_path, name, arrays, kind, fragments):
    args, kwargs = (arrays, {}) if isinstance(arrays, list) else ([], arrays)
    assert_error(saved(tmp_path, name, *args, **kwargs), *fragments, kind=kind)


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        (b"\x93NUMPY\x01\x00", ["a NumPy array", "suffix .npy"]),
        (b"PAR1xx", ["a parquet file", "known formats here: text, JSON, .npy, .npz"]),
        (b"\x00\x01", ["binary", "known formats here: text, JSON, .npy, .npz"]),
    ],
)
def test_binary_files_list_known_formats(write, content, fragments):
    with pytest.raises(InputError) as caught:
        read_links(write(content), kind="must")
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert "suffix .parquet" not in caught.value.hint


def test_unknown_kind_and_missing_file(write, tmp_path):
    with pytest.raises(InputError, match="'ml' is not known"):
        read_links(write("0 1\n"), kind="ml")
    assert_error(tmp_path / "none.txt", "no such file")


@pytest.mark.skipif(not DATA.is_dir(), reason="the measured data sets are not here")
def test_published_pairs():
    files = sorted((DATA / "instances").glob("*/ml_*.txt"))
    assert files
    for path in files:
        links = read_links(path)
        _, n_must, _, n_cannot, _ = path.stem.split("_")
        assert (len(links.must.pairs), len(links.cannot.pairs)) == (int(n_must), int(n_cannot))


@pytest.mark.parametrize("kind", ["must", "cannot", None])
def test_long_word_is_not_header(write, kind):
    with pytest.raises(InputError, match="line 1: expected") as caught:
        read_links(write("a" * 1_000_000), kind=kind)
    assert len(str(caught.value)) < 500
