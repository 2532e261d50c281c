"""Files named on the command line become the problem that they state."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.cli.inputs import Inputs, PairFiles, load
from certikmeans.errors import InputError


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y,kind\n0,0,a\n0,1,a\n9,0,b\n9,1,\n5,5,b\n")
    return path


def test_pairs_of_all_files_are_joined(tmp_path, data):
    (tmp_path / "ml.txt").write_text("0 1\n1 0\n")
    (tmp_path / "cl.txt").write_text("0 2\n")
    (tmp_path / "both.txt").write_text("ML 2 3\nCL 1 3\n")
    (tmp_path / "labels.txt").write_text("7\n\n-1\n8\n7\n")
    loaded = load(
        Inputs(
            data=data,
            n_clusters=2,
            pairs=PairFiles(
                must_link=tmp_path / "ml.txt",
                cannot_link=tmp_path / "cl.txt",
                constraints=tmp_path / "both.txt",
                partial_labels=tmp_path / "labels.txt",
            ),
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
        "read 5 points with 2 features, 3 must-links and 3 cannot-links; looking for 2 clusters"
    )


def test_counting_from_one(tmp_path, data):
    (tmp_path / "ml.txt").write_text("1 5\n")
    inputs = Inputs(
        data=data,
        n_clusters=2,
        pairs=PairFiles(must_link=tmp_path / "ml.txt", one_based=True),
        labels_column="kind",
    )
    assert load(inputs).problem.must_link.tolist() == [[0, 4]]


def test_an_index_out_of_range_is_found_in_its_own_file(tmp_path, data):
    (tmp_path / "a.txt").write_text("ML 0 1\nCL 0 2\n")
    (tmp_path / "b.txt").write_text("# comment\n0 1\n0 5\n")
    with pytest.raises(InputError, match=r"b\.txt, line 3: pair \(0, 5\)"):
        load(
            Inputs(
                data=data,
                n_clusters=2,
                pairs=PairFiles(constraints=tmp_path / "a.txt", cannot_link=tmp_path / "b.txt"),
                labels_column="kind",
            )
        )


def test_the_number_of_clusters_may_be_in_the_data(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("3 2 2\n0 0\n0 1\n9 9\n")
    assert load(Inputs(data=path)).problem.n_clusters == 2
    assert load(Inputs(data=path, n_clusters=3)).problem.n_clusters == 3


def test_the_number_of_clusters_is_asked_for(data):
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
    with pytest.raises(InputError, match=message):
        load(Inputs(data=data, n_clusters=2, start_labels=start, labels_column="kind"))
