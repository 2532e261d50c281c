"""Files with ids, soft pairs, sets and sizes, and compressed files."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from certikmeans.errors import InputError
from certikmeans.problem.io import read_cannot_link_groups, read_links, read_points
from certikmeans.problem.io.points import labels_by_id, numbers_by_id
from certikmeans.problem.io.text import PointIds

IDS = PointIds.of(["a1", "b 2", "c3", "7"], "name", "data.csv")


def rows(soft, unit=None):
    return soft.rows(unit).tolist()


@pytest.mark.parametrize(
    "content",
    [
        "ML 0 1\nSML 1 2 2.5\nCL 2 3\nSCL 0 3 1e3\n",
        "soft-must-link,1,2,2.5\nML,0,1\nCL,2,3\nscl,0,3,1000\n",
        "i,j,type,penalty\n0,1,ML,\n1,2,SML,2.5\n2,3,CL,\n0,3,SCL,1000\n",
        "0;1;must-link\n1;2;sml;2.5\n2;3;cannot-link\n0;3;scl;1000\n",
    ],
)
def test_soft_pairs_in_text(write, content):
    found = read_links(write(content))
    assert found.must.pairs.tolist() == [[0, 1]]
    assert found.cannot.pairs.tolist() == [[2, 3]]
    assert rows(found.soft_must) == [[1, 2, 2.5]]
    assert rows(found.soft_cannot) == [[0, 3, 1000]]
    assert found.soft_must.links.lines is not None
    line = content.split("\n")[found.soft_must.links.lines[0] - 1]
    assert "2.5" in line


def test_soft_pairs_count_from_one(write):
    found = read_links(write("SML 1 2 2.5\nCL 2 3\n"), one_based=True)
    assert rows(found.soft_must) == [[0, 1, 2.5]]
    assert found.cannot.pairs.tolist() == [[1, 2]]


def test_soft_pairs_without_a_penalty(write):
    found = read_links(write("SML 0 1\nSML 1 2 3\nSCL 1 1\n"))
    assert rows(found.soft_must, 2.0) == [[0, 1, 2.0], [1, 2, 3.0]]
    assert rows(found.soft_cannot, 2.0) == [[1, 1, 2.0]]
    with pytest.raises(InputError, match="line 1: the soft pair \\(0, 1\\) does not state"):
        found.soft_must.rows()


def test_confidences_of_pccc(write):
    content = {
        "ml": [[0, 1]],
        "sml": [[1, 2], [3, 3]],
        "sml_proba": [0.5, 1],
        "scl": [[0, 2]],
        "scl_proba": {},
    }
    found = read_links(write(json.dumps(content), "pairs.json"))
    assert rows(found.soft_must, 4.0) == [[1, 2, 2.0], [3, 3, 4.0]]
    assert rows(found.soft_cannot, 4.0) == [[0, 2, 4.0]]


def test_json_with_all_kinds(write):
    content = {
        "sml": [[0, 1, 2.5]],
        "cannot_link_groups": [[0, 0, -1], [None, "x", "x"]],
        "size_min": 1,
        "size_max": [2, 2],
        "demand": [1, 2, 3],
    }
    found = read_links(write(json.dumps(content), "pairs.json"))
    assert rows(found.soft_must) == [[0, 1, 2.5]]
    assert [column.tolist() for column in found.cannot_link_groups] == [
        [0, 0, -1],
        [None, "x", "x"],
    ]
    assert found.sizes == {"size_min": 1, "size_max": [2, 2], "demand": [1, 2, 3]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"sml": [[0, 1]], "sml_proba": [1, 2]}, "sml_proba: 2 confidences for 1 pairs"),
        ({"sml": [[0, 1, 2]], "sml_proba": [1]}, "sml[0]: has a penalty, and sml_proba"),
        ({"sml": [[0, 1, -2]]}, "sml[0]: -2 is not a penalty"),
        ({"scl": [[0, 1]], "scl_proba": ["x"]}, 'scl_proba[0]: "x" is not a confidence'),
        ({"scl": [[0, 1, True]]}, "scl[0]: true is not a penalty"),
        ({"sml": [[0]]}, "sml[0]: expected a pair"),
        ({"cannot_link_groups": 3}, "cannot_link_groups: expected a list"),
        ({"cannot_link_groups": [0.5, 1]}, "cannot_link_groups[0]: 0.5 is not a number"),
        ({"soft": [[0, 1]]}, "unknown key 'soft'"),
    ],
)
def test_malformed_json(write, content, message):
    with pytest.raises(InputError) as caught:
        read_links(write(json.dumps(content), "pairs.json"))
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        ("ML,a1,b 2\nCL,c3,7\n", "p.csv", None),
        ("a,b,type\na1,b 2,ML\n7,c3,CL\n", "p.csv", None),
        ("a1,b 2,1\nc3,7,-1\n", "p.csv", None),
        ('{"ml": [["a1", "b 2"]], "cl": [["c3", 7]]}', "p.json", None),
    ],
)
def test_pairs_by_id(write, content, name, kind):
    found = read_links(write(content, name), kind=kind, ids=IDS)
    assert found.must.pairs.tolist() == [[0, 1]]
    assert sorted(found.cannot.pairs[0].tolist()) == [2, 3]


def test_one_kind_by_id(write):
    path = write("first,second\na1,b 2\nc3,7\n", "p.csv")
    assert read_links(path, kind="cannot", ids=IDS).cannot.pairs.tolist() == [[0, 1], [2, 3]]
    groups = write("a1,b 2,7\n", "g.csv")
    assert read_links(groups, kind="must", ids=IDS).must.pairs.tolist() == [[0, 1], [1, 3]]
    assert rows(read_links(write("SCL,a1,7,2\n", "s.csv"), ids=IDS).soft_cannot) == [[0, 3, 2]]


@pytest.mark.parametrize(
    ("content", "message", "options"),
    [
        ("ML,a1,c4\n", "line 1: there is no point 'c4' in the column 'name'", {}),
        ("ML,a1,a1\n", "line 1: a pair links a point to itself", {}),
        ("a1,c3\n", "line 1: pair 'a1,c3' does not state its kind", {}),
        ("ML,a1\n", "line 1: ", {}),
        ("ML,a1,c3\n", "one_based", {"one_based": True}),
    ],
)
def test_errors_by_id(write, content, message, options):
    with pytest.raises(InputError) as caught:
        read_links(write(content, "p.csv"), ids=IDS, **options)
    assert message in caught.value.message
    assert caught.value.hint


def test_ids_of_points(write):
    path = write("x,name,y\n1,a,2\n3,b,4\n", "d.csv")
    table = read_points(path, id_column="name")
    assert table.points.tolist() == [[1, 2], [3, 4]]
    assert (table.ids.name, table.ids.ids) == ("name", ("a", "b"))
    assert read_points(path, id_column=1).ids.rows == {"a": 0, "b": 1}
    bare = read_points(write("a,1\nb,2\n", "e.csv"), id_column=0)
    assert bare.points.tolist() == [[1], [2]]
    assert bare.ids.ids == ("a", "b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,x\na,1\na,2\n", "the id 'a' occurs in rows 0 and 1"),
        ("name,x\na,1\n,2\n", "row 1 (counted from 0) has no id"),
        ("nom,x\na,1\nb,2\n", "there is no column 'name'"),
    ],
)
def test_wrong_ids(write, content, message):
    with pytest.raises(InputError) as caught:
        read_points(write(content, "d.csv"), id_column="name")
    assert message in caught.value.message


def test_ids_in_archives(tmp_path):
    points = np.array([[1.0, 5.0], [2.0, 6.0]])
    np.savez(tmp_path / "d.npz", X=points, who=np.array(["a", "b"]))
    assert read_points(tmp_path / "d.npz", id_column="who").ids.ids == ("a", "b")
    np.save(tmp_path / "d.npy", points)
    table = read_points(tmp_path / "d.npy", id_column=0)
    assert (table.ids.ids, table.points.tolist()) == (("1", "2"), [[5.0], [6.0]])
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.table({"who": ["a", "b"], "x": [1.0, 2.0]}), tmp_path / "d.parquet"
    )
    assert read_points(tmp_path / "d.parquet", id_column="who").ids.ids == ("a", "b")


def test_values_by_id(write):
    path = write("name,label\n7,2\na1,1\n", "l.csv")
    assert labels_by_id(path, IDS, complete=False).tolist() == [1, -1, -1, 2]
    assert numbers_by_id(write("7,4\nc3,3\nb 2,2\na1,1\n", "w.csv"), IDS).tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match="no value for the point 'b 2'"):
        labels_by_id(path, IDS, complete=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a1,1\na1,2\n", "line 2: the point 'a1' was named in line 1"),
        ("a1,1\nzz,2\n", "line 2: there is no point 'zz'"),
        ("a1,1\n7,2,3\n", "line 2: has 3 columns"),
        ("a1\n7\n", "line 1: expected name and value"),
        ("name,label\n", "holds no values"),
    ],
)
def test_malformed_values_by_id(write, content, message):
    with pytest.raises(InputError) as caught:
        labels_by_id(write(content, "l.csv"), IDS, complete=False)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("1\n1\n-1\n\n", [[1, 1, -1, -1]]),
        ("group\n1\n1\n2\n2\n", [[1, 1, 2, 2]]),
        ("# made by hand\n1,5\n1,-1\n2,\n2,5\n", [[1, 1, 2, 2], [5, -1, -1, 5]]),
        ("p1\np1\n\np2\n", [["p1", "p1", "-1", "p2"]]),
    ],
)
def test_cannot_link_groups(write, content, columns):
    found = read_cannot_link_groups(write(content, "g.txt"), n_points=4)
    assert [column.tolist() for column in found] == columns


def test_cannot_link_groups_by_id_and_of_arrays(write, tmp_path):
    path = write("name,photo,window\na1,x,1\n7,x,2\n", "g.csv")
    found = read_cannot_link_groups(path, n_points=4, ids=IDS)
    assert [column.tolist() for column in found] == [["x", "-1", "-1", "x"], [1, -1, -1, 2]]
    np.save(tmp_path / "g.npy", [[1, 2], [1, 3]])
    found = read_cannot_link_groups(tmp_path / "g.npy", n_points=2)
    assert [column.tolist() for column in found] == [[1, 1], [2, 3]]


@pytest.mark.parametrize(
    ("content", "message"),
    [("1\n2\n", "groups of 2 points, but there are 4"), ("1,2\n1\n1,1\n2,2\n", "line 2: has 1")],
)
def test_malformed_groups(write, content, message):
    with pytest.raises(InputError) as caught:
        read_cannot_link_groups(write(content, "g.txt"), n_points=4)
    assert message in caught.value.message


def test_compressed_files(write):
    points = write(gzip.compress(b"x,y\n1,2\n3,4\n"), "d.csv.gz")
    assert read_points(points).points.tolist() == [[1, 2], [3, 4]]
    pairs = write(gzip.compress(b'{"ml": [[0, 1]]}'), "p.json.gz")
    assert read_links(pairs).must.pairs.tolist() == [[0, 1]]
    cut = write(gzip.compress(b"x,y\n1,2\n3,4\n")[:-9], "cut.csv.gz")
    with pytest.raises(InputError, match="damaged gzip file"):
        read_points(cut)


def test_values_out_of_range(write):
    with pytest.raises(
        InputError, match="line 3: column 'y' is 1e61, which is too large"
    ) as caught:
        read_points(write("x,y\n1,2\n3,1e61\n", "d.csv"))
    assert "1e+60" in caught.value.hint
    assert read_points(write("x,y\n1,2\n3,1e59\n", "e.csv")).points[1, 1] == 1e59
    with pytest.raises(InputError, match="is JSON, not a table"):
        read_points(write('{"x": [1, 2]}', "d.json"))
