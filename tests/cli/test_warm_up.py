"""``certikmeans warm-up``, and what the command line says of its kernels and its memory."""

from __future__ import annotations

import resource

import pytest

from certikmeans.cli import memory
from certikmeans.errors import InputError
from tests.cli.process import run


def test_a_bound_that_is_not_there_is_refused(tmp_path):
    done = run("warm-up", "--bound", "best", cwd=tmp_path)
    assert done.returncode == 2
    assert "best" in done.stderr


def test_one_bound_is_enough(tmp_path):
    done = run("warm-up", "--bound", "sample", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kernels compiled in" in done.stderr
    assert done.stdout == ""


def test_under_a_limit_linear_algebra_has_one_thread(monkeypatch):
    for name in memory._THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(memory, "is_limited", lambda: True)
    memory.one_thread_if_limited()
    assert {memory.os.environ[name] for name in memory._THREADS} == {"1"}


def test_without_room_for_buffers_nothing_begins(monkeypatch):
    def refuse(*arguments):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory, "is_limited", lambda: True)
    monkeypatch.setattr(memory.mmap, "mmap", refuse)
    with pytest.raises(InputError, match="not enough memory") as told:
        memory.take_buffers_if_limited()
    assert "ulimit -v" in told.value.hint


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [450, 480, 510, 600, 800, 1200])
def test_a_limit_of_memory_ends_in_an_answer_or_a_message(tmp_path, megabytes):
    rows = "".join(f"{i % 17},{i % 23},{i % 7}\n" for i in range(2000))
    (tmp_path / "p.csv").write_text(rows)
    size = megabytes << 20
    done = run(
        "solve", "p.csv", "-k", "40", "--time-limit", "5", cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )  # fmt: skip
    assert done.returncode in (0, 1, 2), done.stderr
