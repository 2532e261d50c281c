"""Large files are read piece by piece: the same pairs, lines and messages as in one piece."""

import numpy as np
import pytest

from certikmeans import InputError
from certikmeans.problem.files import arrays, text
from certikmeans.problem.files.pairs import read_links
from certikmeans.problem.files.points import read_points

FILES = {
    "tagged": ("".join(f"{'ML' if i % 3 else 'CL'} {i} {i + 1}\n" for i in range(50)), None),
    "signed, header": (
        "i,j,kind\n" + "".join(f"{i},{i + 2},{1 - 2 * (i % 2)}\n" for i in range(40)),
        None,
    ),
    "pairs": ("# remark\n\n" + "".join(f"{i} {i + 1}\n" for i in range(60)), "cannot"),
    "must pairs": ("".join(f"{i} {i + 1}\n" for i in range(60)), "must"),
    "groups": (
        "".join(f"{5 * i} {5 * i + 1} {5 * i + 2} {5 * i + 3}\n" for i in range(30)),
        "must",
    ),
    "no newline at the end": ("ML 0 1\nCL 4 5\nML 1 2", None),
    "empty": ("", None),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_pieces_make_up_the_whole(name, chunk, tmp_path, monkeypatch):
    content, kind = FILES[name]
    path = tmp_path / "pairs.txt"
    path.write_text(content)
    whole = read_links(path, kind=kind)
    monkeypatch.setattr(text, "CHUNK", chunk)
    pieces = read_links(path, kind=kind)
    for one, other in ((whole.must, pieces.must), (whole.cannot, pieces.cannot)):
        np.testing.assert_array_equal(one.pairs, other.pairs)
        np.testing.assert_array_equal(one.lines, other.lines)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("ML 3 x", "line 41: expected 'ML i j'"),
        ("3 4", "line 41: expected 'ML i j'"),
        ("ML -1 4", "line 41: point -1 does not exist"),
    ],
)
def test_a_fault_far_down_is_named_with_its_line(last, message, tmp_path, monkeypatch):
    path = tmp_path / "pairs.txt"
    path.write_text("ML 0 1\n" * 40 + last + "\n")
    monkeypatch.setattr(text, "CHUNK", 50)
    with pytest.raises(InputError, match=message):
        read_links(path)


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path, monkeypatch):
    path = tmp_path / "pairs.txt"
    path.write_bytes(b"ML 0 1\n" * 40 + b"ML \xff 1\n")
    monkeypatch.setattr(text, "CHUNK", 50)
    with pytest.raises(InputError, match="line 41: byte 0xff"):
        read_links(path)


def test_a_large_array_is_mapped(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(12.0).reshape(6, 2))
    assert not isinstance(read_points(path).points, np.memmap)
    monkeypatch.setattr(arrays, "MAPPED_FROM", 1)
    table = read_points(path)
    assert isinstance(table.points, np.memmap)
    assert table.points.tolist() == np.arange(12.0).reshape(6, 2).tolist()


def test_a_large_array_of_pairs_counts_from_where_it_says(tmp_path, monkeypatch):
    path = tmp_path / "pairs.npy"
    np.save(path, np.array([[1, 2], [3, 4]]))
    monkeypatch.setattr(arrays, "MAPPED_FROM", 1)
    assert read_links(path, kind="must", one_based=True).must.pairs.tolist() == [[0, 1], [2, 3]]
    np.save(path, np.array([[1, 2], [0, 4]]))
    with pytest.raises(InputError, match=r"\[1\]: \(0, 4\) is not a pair of points"):
        read_links(path, kind="must", one_based=True)


def test_parquet_is_read_in_batches(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    from certikmeans.problem.files import parquet

    rng = np.random.default_rng(0)
    values, classes = rng.normal(size=(50, 2)), rng.integers(3, size=50)
    table = pyarrow.table({"x": values[:, 0], "class": classes, "y": values[:, 1]})
    pq.write_table(table, tmp_path / "points.parquet", row_group_size=11)
    monkeypatch.setattr(parquet, "BATCH", 7)
    read = read_points(tmp_path / "points.parquet", label_column="class")
    np.testing.assert_array_equal(read.points, values)
    np.testing.assert_array_equal(read.labels, classes)
