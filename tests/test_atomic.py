"""Atomic writing: partial files do not stay behind."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from certikmeans._atomic import write_atomically


def test_abandoned_files_removed(tmp_path):
    old, new = tmp_path / ".a.0123456789ab.partial", tmp_path / ".a.0123456789ac.partial"
    others = [tmp_path / name for name in (".b.0123456789ab.partial", ".a.mine.partial", "a.txt")]
    for path in (old, new, *others):
        path.write_text("x")
    hour_ago = time.time() - 3600
    for path in (old, *others):
        os.utime(path, (hour_ago, hour_ago))
    write_atomically(tmp_path / "a", b"content")
    assert not old.exists()
    assert all(path.exists() for path in (new, *others))
    assert (tmp_path / "a").read_bytes() == b"content"


def test_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError("full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        write_atomically(tmp_path / "a", b"content")
    assert list(tmp_path.iterdir()) == []


def test_writers_of_one_file(tmp_path):
    """Two runs with one checkpoint: a reader always finds the whole file of one of them."""
    path, contents = tmp_path / "a", [bytes([k]) * 50_000 for k in (1, 2)]
    write_atomically(path, contents[0])

    def write(content):
        for _ in range(20):
            write_atomically(path, content)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, content) for content in contents]
        while not all(writer.done() for writer in writers):
            assert path.read_bytes() in contents
        for writer in writers:
            writer.result()
    assert list(tmp_path.iterdir()) == [path]
