"""Output files: checked before the run, written atomically."""

from __future__ import annotations

import html
import os
import re
import shlex
from pathlib import Path

import pytest

from certikmeans._atomic import write_atomically
from certikmeans.cli.outputs import check_outputs
from certikmeans.errors import InputError
from tests.cli.process import run


def test_valid_outputs_leave_no_files(tmp_path):
    (tmp_path / "old.json").write_text("old")
    check_outputs([tmp_path / "new.json", tmp_path / "old.json"], [tmp_path / "data.csv"])
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "is a directory"),
        ("missing/out.json", "does not exist"),
        ("data.csv/out.json", "does not exist"),
        ("data.csv", "is an input"),
        ("./sub/../data.csv", "is an input"),
    ],
)
def test_invalid_outputs(tmp_path, name, message):
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match=message):
        check_outputs([tmp_path / name], [tmp_path / "data.csv"])


def test_duplicate_output(tmp_path):
    with pytest.raises(InputError, match="named twice"):
        check_outputs([tmp_path / "a.json", tmp_path / "a.json"])


def test_unwritable_directory():
    # Even root cannot create a file here.
    with pytest.raises(InputError, match="cannot be written"):
        check_outputs([Path("/proc/certikmeans.json")])


def test_replaced_file_keeps_mode(tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    target.chmod(0o640)
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_new_file_has_default_mode(tmp_path):
    usual = tmp_path / "usual"
    usual.touch()
    write_atomically(tmp_path / "out.json", b"new")
    assert (tmp_path / "out.json").stat().st_mode == usual.stat().st_mode


def test_symbolic_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "out.json"
    link.symlink_to(tmp_path / "real" / "out.json")
    check_outputs([link])
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "real" / "out.json").read_bytes() == b"new"


def test_pipe_is_written_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_outputs([pipe])
        write_atomically(pipe, b"through")
        assert os.read(reader, 100) == b"through"
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_failed_write_keeps_old_file(tmp_path, monkeypatch):
    target = tmp_path / "out.json"
    target.write_text("old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(target, b"new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_report_without_suffix_is_rejected_before_the_run(tmp_path):
    (tmp_path / "data.csv").write_text("1,2\n3,4\n")
    done = run("solve", "data.csv", "-k", 1, "--report", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: x: the report is a page of HTML\nhint: name it x.html\n"


def test_report_contains_commands(tmp_path):
    (tmp_path / "a b.csv").write_text("id,x,y\n1,0,0\n2,0,1\n3,9,0\n4,9,1\n")
    (tmp_path / "pairs.txt").write_text("ML 1 2\nCL 1 3\n")
    arguments = (
        *("solve", "a b.csv", "-k", 2, "--drop", "id", "--constraints", "pairs.txt"),
        *("--one-based", "--report", "run.html", "--certificate", "c"),
    )
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = html.unescape((tmp_path / "run.html").read_text())
    assert f"certikmeans {shlex.join(map(str, arguments))}" in page
    assert "<h1>certikmeans: a b.csv</h1>" in page
    (command,) = re.findall(r"certikmeans (check .*?)</pre>", page)
    assert command == (
        "check c --data 'a b.csv' -k 2 --constraints pairs.txt --drop id --one-based"
    )
    assert "A certificate was written" in page
    checked = run(*shlex.split(command), cwd=tmp_path)
    assert checked.stdout.startswith("ACCEPTED")
