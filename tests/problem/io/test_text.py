"""Damaged and malicious files lead to short messages; large files are read in chunks."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest

from certikmeans import Constraints, InputError
from certikmeans.problem.io import (
    binary,
    read_links,
    read_partial_labels,
    read_points,
    read_weights,
    text,
)
from tests.cli.process import run


def npy(header: bytes, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def npz(**options) -> bytes:
    buffer = io.BytesIO()
    array = io.BytesIO()
    np.save(array, np.arange(2000.0).reshape(-1, 2))
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        archive.writestr("X.npy", array.getvalue())
    return buffer.getvalue()


def broken_lzma() -> bytes:
    content = bytearray(npz(compression=zipfile.ZIP_LZMA))
    content[60:120] = b"\xff" * 60
    return bytes(content)


def patched(content: bytes, local: int, central: int, value: int) -> bytes:
    """Overwrite a two-byte field in both headers of the only member."""
    changed = bytearray(content)
    at = content.rindex(b"PK\x01\x02")
    changed[local : local + 2] = struct.pack("<H", value)
    changed[at + central : at + central + 2] = struct.pack("<H", value)
    return bytes(changed)


def huge(shape: str) -> bytes:
    return npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shape.encode() + b"}\n")


LONG = "9" * 5000
BAD_ARRAYS = {
    "huge.npy": huge("(1000000000000000, 1000)"),
    "overflow.npy": huge("(99999999999999999999999, 9)"),
    "negative.npy": huge("(-3, 2)"),
    "no_shape.npy": npy(b"{'descr': '<f8'}\n"),
    "no_dict.npy": npy(b"[" * 5000 + b"\n"),
    "parens.npy": npy(b"(" * 150 + b")" * 150 + b"\n"),
    "open_quote.npy": npy(b"{'descr': \n"),
    "long_header.npy": npy(b"{" + b" " * 60_000 + b"}\n"),
    "words.npy": npy(b"{'descr': 'oops', 'fortran_order': 3, 'shape': 'x'}\n"),
    "cut_magic.npy": b"\x93NUMPY",
    "cut_length.npy": b"\x93NUMPY\x01\x00\x40",
    "cut_header.npy": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2)}\n")[:30],
    "cut_body.npy": huge("(3, 2)") + b"\0" * 40,
    "version.npy": b"\x93NUMPY\x09\x00" + b"\0" * 200,
    "empty.npy": b"",
    "lzma.npz": broken_lzma(),
    "method.npz": patched(npz(), 8, 10, 77),
    "encrypted.npz": patched(npz(), 6, 8, 1),
    "cut.npz": npz()[:300],
    "empty.npz": b"",
}


def error_message(read, *arguments, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    assert caught.value.hint
    message = str(caught.value)
    assert len(message) < 1000
    return message


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_damaged_arrays(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(BAD_ARRAYS[name])
    assert name in error_message(read_points, path)
    assert name in error_message(read_links, path, kind="must")
    if name.endswith(".npy"):
        assert name in error_message(read_partial_labels, path)
        assert name in error_message(read_weights, path, n_points=3)


BAD_PAIRS = {
    "deep.json": ("[" * 100_000, "nested too deeply"),
    "deep_inside.json": ('{"ml": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    "rather_deep.json": ('{"ml": [' + "[" * 900 + "]" * 900 + "]}", "expected a pair"),
    "digits.json": (f'{{"ml": [[0, {LONG}]]}}', "too many digits"),
    "keys.json": (
        "{" + ", ".join(f'"key{i}": []' for i in range(60_000)) + "}",
        "'key0', 'key1', 'key2', 'key3', 'key4' and 59,995 more",
    ),
    "twice.json": ('{"' + "a" * 90_000 + '": 1, "' + "a" * 90_000 + '": 2}', "occurs twice"),
    "long_value.json": (f'{{"ml": "{"x" * 1_000_000}"}}', "expected a list"),
    "long_item.json": ('{"ml": [[' + "1, " * 100_000 + "1]]}", "expected a pair"),
    "digits.txt": (f"ML 0 {LONG}\n", "expected 'ML i j'"),
    "long_line.txt": ("ML 0 " + "x" * 1_000_000, "expected 'ML i j'"),
    "long_quoted.txt": ('ML,0,"' + "x" * 200_000 + '"', "line 1"),
}


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_bad_pairs(tmp_path, name):
    content, fragment = BAD_PAIRS[name]
    path = tmp_path / name
    path.write_text(content)
    message = error_message(read_links, path)
    assert name in message
    assert fragment in message


LONG_CELL = "x" * 1_000_000
BAD_TABLES = {
    "cell.csv": f"1,2\n3,{LONG_CELL}\n",
    "text_column.csv": f"{LONG_CELL},1\n{LONG_CELL},2\n",
    "quoted.csv": f'1,"2"\n3,"{LONG_CELL}"\n',
    "open_quote.csv": f'1,"{LONG_CELL}\n',
    "header.csv": f"{LONG_CELL},y\n1,a\n",
    "columns.csv": "1,2\n" + "1," * 300_000,
    "digits.csv": "1,2\n3," + LONG,
    "decimal_comma.csv": "1;2\n3;" + "4" * 100_000 + "," + "5" * 100_000 + "\n",
    "null.csv": "1,2\n3,\0\n",
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables(tmp_path, name):
    path = tmp_path / name
    path.write_text(BAD_TABLES[name])
    assert name in error_message(read_points, path)
    error_message(read_points, path, label_column="no such column")


@pytest.mark.parametrize("read", [read_partial_labels, read_points])
def test_long_labels_rejected(tmp_path, read):
    path = tmp_path / "labels.csv"
    path.write_text(f"1,a\n2,{LONG_CELL}\n" if read is read_points else f"a\n{LONG_CELL}\n")
    options = {"label_column": 1, "header": "none"} if read is read_points else {}
    assert "a label has 1,000,000 characters" in error_message(read, path, **options)


def test_long_integer_labels_stay_distinct(tmp_path):
    labels = ["1" * 900, "2" * 900, "1" * 900]
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(labels))
    pairs = Constraints.from_partial_labels(read_partial_labels(path))
    assert pairs.must_link.tolist() == [[0, 2]]
    assert pairs.cannot_link.tolist() == [[0, 1]]
    longer = Constraints.from_partial_labels(["1" * 5000, "2" * 5000])
    assert longer.cannot_link.tolist() == [[0, 1]]


@pytest.mark.parametrize("read", [read_points, read_links, read_partial_labels])
def test_invalid_file_names(tmp_path, read):
    assert "cannot be read" in error_message(read, tmp_path / ("a" * 300))
    assert "cannot be read" in error_message(read, str(tmp_path / "a\0b"))


def test_empty_lists_of_soft_pairs(tmp_path):
    path = tmp_path / "pccc.json"
    rest = '"cl": [[1, 2]], "scl": [], "sml_proba": [], "scl_proba": []'
    path.write_text('{"ml": [[0, 1]], "sml": [], ' + rest + "}")
    links = read_links(path)
    assert links.must.pairs.tolist() == [[0, 1]]
    assert links.cannot.pairs.tolist() == [[1, 2]]
    assert len(links.soft_must) == len(links.soft_cannot) == 0


def test_cli_exit_code_and_short_message(tmp_path):
    (tmp_path / "ok.csv").write_text("1\n2\n9\n")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "bad.npz").write_bytes(broken_lzma())
    for arguments in (
        ("ok.csv", "-k", 2, "--constraints", "deep.json"),
        ("bad.npz", "-k", 2),
        ("ok.csv", "-k", 2, "--constraints", "b" * 300),
        ("ok.csv", "-k", 2, "--output", "b" * 300),
        ("ok.csv", "-k", 2, "--labels-column", "c" * 100_000),
    ):
        done = run("solve", *arguments, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: ")
        assert "\nhint: " in done.stderr
        assert len(done.stderr) < 1000


# Large files are read piece by piece: the same pairs, lines and messages as in one piece.

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
def test_chunked_reading_matches_whole(name, chunk, tmp_path, monkeypatch):
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
def test_error_in_later_chunk_names_line(last, message, tmp_path, monkeypatch):
    path = tmp_path / "pairs.txt"
    path.write_text("ML 0 1\n" * 40 + last + "\n")
    monkeypatch.setattr(text, "CHUNK", 50)
    with pytest.raises(InputError, match=message):
        read_links(path)


def test_invalid_utf8_names_line(tmp_path, monkeypatch):
    path = tmp_path / "pairs.txt"
    path.write_bytes(b"ML 0 1\n" * 40 + b"ML \xff 1\n")
    monkeypatch.setattr(text, "CHUNK", 50)
    with pytest.raises(InputError, match="line 41: byte 0xff"):
        read_links(path)


def test_large_array_is_memory_mapped(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(12.0).reshape(6, 2))
    assert not isinstance(read_points(path).points, np.memmap)
    monkeypatch.setattr(binary, "MMAP_MIN_BYTES", 1)
    table = read_points(path)
    assert isinstance(table.points, np.memmap)
    assert table.points.tolist() == np.arange(12.0).reshape(6, 2).tolist()


def test_memory_mapped_pairs_one_based(tmp_path, monkeypatch):
    path = tmp_path / "pairs.npy"
    np.save(path, np.array([[1, 2], [3, 4]]))
    monkeypatch.setattr(binary, "MMAP_MIN_BYTES", 1)
    assert read_links(path, kind="must", one_based=True).must.pairs.tolist() == [[0, 1], [2, 3]]
    np.save(path, np.array([[1, 2], [0, 4]]))
    with pytest.raises(InputError, match=r"\[1\]: \(0, 4\) is not a pair of points"):
        read_links(path, kind="must", one_based=True)


def test_parquet_batches(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    from certikmeans.problem.io import binary

    rng = np.random.default_rng(0)
    values, classes = rng.normal(size=(50, 2)), rng.integers(3, size=50)
    table = pyarrow.table({"x": values[:, 0], "class": classes, "y": values[:, 1]})
    pq.write_table(table, tmp_path / "points.parquet", row_group_size=11)
    monkeypatch.setattr(binary, "BATCH", 7)
    read = read_points(tmp_path / "points.parquet", label_column="class")
    np.testing.assert_array_equal(read.points, values)
    np.testing.assert_array_equal(read.labels, classes)
