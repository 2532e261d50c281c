"""Reading of input files into a problem."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.cli.inputs import Inputs, load
from certikmeans.errors import InputError


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y,kind\n0,0,a\n0,1,a\n9,0,b\n9,1,\n5,5,b\n")
    return path


def test_pairs_of_all_kinds_of_files(tmp_path, data):
    (tmp_path / "ml.txt").write_text("0 1\n1 0\n")
    (tmp_path / "cl.txt").write_text("0 2\n")
    (tmp_path / "both.txt").write_text("ML 2 3\nCL 1 3\n")
    (tmp_path / "labels.txt").write_text("7\n\n-1\n8\n7\n")
    loaded = load(
        Inputs(
            data=data,
            n_clusters=2,
            must_link=(tmp_path / "ml.txt",),
            cannot_link=(tmp_path / "cl.txt",),
            constraints=(tmp_path / "both.txt",),
            partial_labels=tmp_path / "labels.txt",
            labels_column="kind",
        )
    )
    problem = loaded.problem
    assert problem.points.shape == (5, 2)
    assert problem.must_link.tolist() == [[0, 1], [0, 4], [2, 3]]
    assert problem.cannot_link.tolist() == [[0, 2], [0, 3], [1, 3]]
    assert loaded.classes is not None
    assert loaded.classes.tolist() == ["a", "a", "b", "", "b"]
    assert loaded.describe() == (
        "read 5 points with 2 features (x, y), 3 must-links and 3 cannot-links; "
        "looking for 2 clusters"
    )


def test_several_files_per_kind(tmp_path, data):
    for name, text in (("a", "0 1\n"), ("b", "2 3\n"), ("c", "0 2\n"), ("d", "1 3\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "e").write_text("ML 3 4\n")
    (tmp_path / "f").write_text("CL 1 4\n")
    loaded = load(
        Inputs(
            data=data,
            n_clusters=2,
            must_link=(tmp_path / "a", tmp_path / "b"),
            cannot_link=(tmp_path / "c", tmp_path / "d"),
            constraints=(tmp_path / "e", tmp_path / "f"),
            labels_column="kind",
        )
    )
    assert loaded.problem.must_link.tolist() == [[0, 1], [2, 3], [3, 4]]
    assert loaded.problem.cannot_link.tolist() == [[0, 2], [1, 3], [1, 4]]
    assert "3 must-links and 3 cannot-links" in loaded.describe()


def test_weights(tmp_path, data):
    (tmp_path / "weights.txt").write_text("# made by hand\n1\n2.5\n1\n1\n3\n")
    weights = tmp_path / "weights.txt"
    inputs = Inputs(data=data, n_clusters=2, labels_column="kind", weights=weights)
    loaded = load(inputs)
    assert loaded.problem.weights.tolist() == [1.0, 2.5, 1.0, 1.0, 3.0]
    assert loaded.describe().startswith("read 5 weighted points with 2 features")
    assert weights in inputs.paths()
    np.save(tmp_path / "weights.npy", np.ones(5))
    loaded = load(
        Inputs(data=data, n_clusters=2, labels_column="kind", weights=tmp_path / "weights.npy")
    )
    assert loaded.describe().startswith("read 5 points")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n2\n", "holds 2 weights, but there are 5 points"),
        ("w\n1\n1\n1\n1\n1\n", r"weights\.txt, line 1: expected one finite number, got 'w'"),
        ("1 1\n1\n1\n1\n1\n", r"line 1: expected one finite number, got '1 1'"),
        ("1\n1\nnan\n1\n1\n", "line 3: expected one finite number"),
        ("1\n1\n-1\n1\n1\n", "weights: row 2 is -1.0"),
        ("0\n0\n0\n0\n0\n", "weights: all of them are 0"),
    ],
)
def test_bad_weights(tmp_path, data, content, message):
    (tmp_path / "weights.txt").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        load(
            Inputs(data=data, n_clusters=2, labels_column="kind", weights=tmp_path / "weights.txt")
        )
    assert caught.value.hint


def test_note_about_first_line(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("3 2\n1 1\n5 5\n6 6\n")
    note, read = load(Inputs(data=path, n_clusters=2)).describe().splitlines()
    assert note.startswith(f"note: {path}, line 1: '3 2' is read as the sizes")
    assert note.endswith("pass --header none")
    assert read.startswith("read 3 points")
    assert (
        load(Inputs(data=path, n_clusters=2, header="none")).describe().startswith("read 4 points")
    )


def test_one_based(tmp_path, data):
    (tmp_path / "ml.txt").write_text("1 5\n")
    inputs = Inputs(
        data=data,
        n_clusters=2,
        must_link=(tmp_path / "ml.txt",),
        one_based=True,
        labels_column="kind",
    )
    assert load(inputs).problem.must_link.tolist() == [[0, 4]]


def test_index_error_names_file_and_line(tmp_path, data):
    (tmp_path / "a.txt").write_text("ML 0 1\nCL 0 2\n")
    (tmp_path / "b.txt").write_text("# comment\n0 1\n0 5\n")
    with pytest.raises(InputError, match=r"b\.txt, line 3: pair \(0, 5\)"):
        load(
            Inputs(
                data=data,
                n_clusters=2,
                constraints=(tmp_path / "a.txt",),
                cannot_link=(tmp_path / "b.txt",),
                labels_column="kind",
            )
        )


def test_n_clusters_from_data(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("3 2 2\n0 0\n0 1\n9 9\n")
    assert load(Inputs(data=path)).problem.n_clusters == 2
    assert load(Inputs(data=path, n_clusters=3)).problem.n_clusters == 3


def test_n_clusters_missing(data):
    with pytest.raises(InputError, match="number of clusters is missing") as caught:
        load(Inputs(data=data, labels_column="kind"))
    assert caught.value.hint == "add -k K"


def test_start_labels(tmp_path, data):
    start = tmp_path / "start.txt"
    start.write_text("0\n0\n1\n1\n1\n")
    inputs = Inputs(data=data, n_clusters=2, start_labels=start, labels_column="kind")
    labels = load(inputs).start_labels
    assert labels is not None
    np.testing.assert_array_equal(labels, [0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\n0\n\n1\n1\n", r"point 2 \(counted from 0\) is ''"),
        ("0\n0\n1\nb\n1\n", r"point 3 \(counted from 0\) is 'b'"),
        ("0\n1\n", "holds 2 labels, but there are 5 points"),
    ],
)
def test_incomplete_start_labels(tmp_path, data, content, message):
    start = tmp_path / "start.txt"
    start.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        load(Inputs(data=data, n_clusters=2, start_labels=start, labels_column="kind"))
    assert "unknown" not in caught.value.hint
