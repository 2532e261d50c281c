"""Standard streams that are full, closed, or a terminal."""

from __future__ import annotations

import json
import os
import pty
import shlex
import stat
import threading

import pytest

from tests.cli.process import run, start, with_fake_solver

QUICK = with_fake_solver("quick")
NEEDS_FULL = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="needs a device that is always full"
)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data.csv").write_text("1\n2\n9\n")
    return tmp_path


@NEEDS_FULL
def test_unwritable_json_is_printed(data):
    done = run("solve", "data.csv", "-k", 1, "--output", "/dev/full", cwd=data, command=QUICK)
    assert done.returncode == 2
    assert json.loads(done.stdout)["labels"] == [0, 0, 0]
    assert "error: /dev/full: could not be written" in done.stderr
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@NEEDS_FULL
def test_full_checkpoint_keeps_result(data):
    files = ("--checkpoint", "/dev/full", "--output", "o.json")
    done = run("solve", "data.csv", "-k", 1, *files, cwd=data)
    assert done.returncode == 0
    assert "warning: /dev/full: the checkpoint could not be written" in done.stderr
    assert json.loads((data / "o.json").read_text())["labels"] == [0, 0, 0]


def test_control_characters_escaped(data):
    (data / "escape.csv").write_text("x\x1b[2J,y\n0,1\n1,2\n2,3\n")
    done = run("solve", "escape.csv", "-k", 1, cwd=data)
    assert done.returncode == 0
    wrong = run("solve", "escape.csv", "-k", 1, "--drop", "z", cwd=data)
    assert wrong.returncode == 2
    assert "\x1b" not in done.stderr + done.stdout + wrong.stderr + wrong.stdout
    assert "\\x1b[2J" in done.stderr + wrong.stderr


@NEEDS_FULL
def test_full_standard_output(data):
    with open("/dev/full", "w") as full:
        done = run("solve", "data.csv", "-k", 1, "--json", cwd=data, command=QUICK, stdout=full)
    assert done.returncode == 2
    assert "error: standard output could not be written" in done.stderr
    assert "Traceback" not in done.stderr


OUTPUTS = ("--output", "out.json", "--labels", "out.txt", "--plot", "out.png")


def outputs_are_there(folder) -> bool:
    assert json.loads((folder / "out.json").read_text())["labels"] == [0, 0, 0]
    assert (folder / "out.txt").read_text() == "0\n0\n0\n"
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")
    return True


@NEEDS_FULL
@pytest.mark.parametrize("how", [(), ("--json",)])
def test_files_written_with_full_stdout(data, how):
    arguments = ("solve", "data.csv", "-k", 1, *OUTPUTS, *how)
    with open("/dev/full", "w") as full:
        done = run(*arguments, cwd=data, command=QUICK, stdout=full)
    assert done.returncode == 2
    assert "error: standard output could not be written (No space left on device)" in done.stderr
    assert outputs_are_there(data)


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_files_written_with_closed_streams(data, closed):
    command = " ".join(map(shlex.quote, [*QUICK, "solve", "data.csv", "-k", "1", *OUTPUTS]))
    done = run("-c", f"{command} {closed}", cwd=data, command=("sh",))
    assert done.returncode == 2
    assert done.stdout == ""
    if "2>&-" not in closed:
        assert "error: standard output could not be written (it is closed)" in done.stderr
        assert "Traceback" not in done.stderr
    assert outputs_are_there(data)


def test_quiet_with_closed_streams(data):
    command = " ".join(map(shlex.quote, [*QUICK, "solve", "data.csv", "-k", "1", *OUTPUTS]))
    done = run("-c", f"{command} --quiet >&- 2>&-", cwd=data, command=("sh",))
    assert done.returncode == 1
    assert outputs_are_there(data)


@NEEDS_FULL
def test_certificate_written_with_full_stdout(data):
    with open("/dev/full", "w") as full:
        done = run("solve", "data.csv", "-k", 2, "--certificate", "c", cwd=data, stdout=full)
    assert done.returncode == 2
    assert run("check", "c", "--data", "data.csv", cwd=data).returncode == 0


def test_unexpected_error_of_one_output_keeps_others(data):
    (data / "matplotlib").mkdir()
    (data / "matplotlib" / "__init__.py").touch()  # can be imported, cannot draw
    done = run("solve", "data.csv", "-k", 1, *OUTPUTS, cwd=data, command=QUICK)
    assert done.returncode == 70
    assert "out.png: could not be written" in done.stderr
    assert (data / "out.json").exists()
    assert (data / "out.txt").exists()
    assert done.stdout.startswith("Status")


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_closed_pipe_is_no_error(data, closed):
    process = start(
        *("solve", "data.csv", "-k", 1, "--json", "--output", "out.json"),
        cwd=data,
        command=QUICK,
    )
    getattr(process, closed).close()
    left = (process.stderr if closed == "stdout" else process.stdout).read()
    assert process.wait() == 1
    assert "rror" not in left
    assert "Exception" not in left
    assert json.loads((data / "out.json").read_text())["status"] == "feasible"


def test_live_progress_on_terminal(data):
    mine, theirs = pty.openpty()
    drawn = bytearray()

    def watch() -> None:
        try:
            while chunk := os.read(mine, 1 << 16):
                drawn.extend(chunk)
        except OSError:  # how a terminal ends
            pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    done = run("solve", "data.csv", "-k", 1, cwd=data, command=QUICK, stderr=theirs)
    os.close(theirs)
    watcher.join(timeout=10)
    os.close(mine)
    assert done.stdout.startswith("Status")
    assert "\x1b" not in done.stdout
    assert b"\x1b[?25l" in drawn  # the cursor is hidden while drawing
    assert drawn.rfind(b"\x1b[?25h") > drawn.rfind(b"\x1b[?25l")  # and shown again
    assert b"finished, feasible" in drawn


def test_quiet(data):
    done = run("solve", "data.csv", "-k", 1, "--quiet", cwd=data, command=QUICK)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_quiet_json(data):
    done = run("solve", "data.csv", "-k", 1, "--quiet", "--json", cwd=data, command=QUICK)
    assert done.returncode == 1
    assert json.loads(done.stdout)["n_points"] == 3
    assert done.stderr == ""


def test_exit_code_of_uncaught_exception(data):
    # Python's own exit code for an uncaught exception is 1, which means "stopped at a limit".
    done = run("solve", "data.csv", "-k", 1, cwd=data, command=with_fake_solver("broken"))
    assert done.returncode == 70
    assert done.stdout == ""
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "this is a bug in certikmeans" in done.stderr
