"""The list of data files, its checksums, and downloads from a local server."""

from __future__ import annotations

import gzip
import io
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.datasets.files import (
    COLLECTIONS,
    DOWNLOADS,
    DataFile,
    checksum,
    compare,
    download,
    known_files,
)

SEEDS = "1.0 2.0 1\n3.0 4.5 2\n"
CITIES = "NAME: toy\nNODE_COORD_SECTION\n1 0 5\n2 2.5 1e3\nEOF\n"


def zipped(member, text):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(member, text)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def server():
    """Serves three files; anything else is not found."""
    contents = {
        "/seeds.zip": zipped("seeds_dataset.txt", SEEDS),
        "/toy.tsp.gz": gzip.compress(CITIES.encode()),
        "/broken.zip": b"no archive",
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            content = contents.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()


def entry(path, **fields):
    return replace(DataFile(path, "", "", "uci"), **fields)


def test_list_is_complete():
    files = known_files()
    assert len(files) > 100
    assert {one.collection for one in files} <= set(COLLECTIONS)
    assert set(DOWNLOADS) <= {one.path for one in files}
    assert all(len(one.checksum) == 64 for one in files)


def test_archive_is_converted(server, tmp_path):
    file = entry("seeds.npz")
    assert download(file, tmp_path, f"{server}/seeds.zip") == "differs"  # from the real data
    with np.load(tmp_path / "seeds.npz") as arrays:
        assert arrays["X"].tolist() == [[1.0, 2.0], [3.0, 4.5]]
        assert arrays["y"].tolist() == [1, 2]
    same = replace(file, checksum=checksum(tmp_path / "seeds.npz"))
    assert download(same, tmp_path, f"{server}/seeds.zip") == "ok"
    assert [one.state for one in compare(tmp_path, [same, entry("other.npz")])] == [
        "ok", "missing",
    ]  # fmt: skip


def test_coordinates_are_converted(server, tmp_path):
    file = entry("plane/pr299.txt")
    assert download(file, tmp_path, f"{server}/toy.tsp.gz") == "differs"
    assert (tmp_path / "plane" / "pr299.txt").read_text() == "2 2\n0 5\n2.5 1000\n"


@pytest.mark.parametrize("name", ["broken.zip", "absent.zip"])
def test_failed_download_says_why(server, tmp_path, name):
    assert download(entry("seeds.npz"), tmp_path, f"{server}/{name}").startswith("failed: ")
    assert not (tmp_path / "seeds.npz").exists()


def test_files_without_download_name_their_source(tmp_path):
    assert "uci.edu" in download(entry("htru9.npz"), tmp_path)


def test_checksum_ignores_the_way_of_storing(tmp_path):
    points = np.array([[1, 2], [3, 4]], dtype=np.int16)
    np.savez(tmp_path / "a.npz", X=points)
    np.savez_compressed(tmp_path / "b.npz", X=points.astype(np.float64), y=[0, 1])
    assert checksum(tmp_path / "a.npz") == checksum(tmp_path / "b.npz")
    (tmp_path / "a.txt").write_text("1 2\n3 4")
    (tmp_path / "b.txt").write_bytes(b"1 2 \r\n3 4\r\n\n")
    assert checksum(tmp_path / "a.txt") == checksum(tmp_path / "b.txt")


def test_command_reports_what_is_missing(tmp_path, capsys):
    main(["data", "--check", str(tmp_path)])
    assert "0 ok" in capsys.readouterr().out
