"""Import time, help pages and completion."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import certikmeans
from tests.cli.process import run

HEAVY = ("numpy", "numba", "scipy", "sklearn", "matplotlib", "rich", "pandas")


def test_import_is_light(tmp_path):
    code = "import certikmeans.cli, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not set(HEAVY) & set(json.loads(done.stdout))


def test_help_lists_commands(tmp_path):
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert {"solve", "check", "diagnose", "generate", "demo", "warm-up"} <= set(done.stdout.split())


def test_help_of_solve(tmp_path):
    text = run("solve", "--help", cwd=tmp_path).stdout
    for option in (
        "-k",
        "--must-link",
        "--cannot-link",
        "--constraints",
        "--partial-labels",
        "--one-based",
        "--labels-column",
        "--start-labels",
        "--weights",
        "--header",
        "--columns",
        "--drop",
        "--labels",
        "--gap",
        "--time-limit",
        "--bound",
        "--branching",
        "--selection",
        "--node-limit",
        "--jobs",
        "--seed",
        "--output",
        "--certificate",
        "--plot",
        "--report",
        "--json",
        "--quiet",
    ):
        assert option in text.split() or f"{option}," in text.split()
    assert "Exit codes" in text
    assert "70 a bug" in " ".join(text.split())
    assert "130 interrupted before" in " ".join(text.split())
    assert '"groups": [[3, 4, 5]]' in " ".join(text.split())
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("command", "option"),
    [("generate", "--n-points N"), ("demo", "--output-dir DIR"), ("warm-up", "--bound NAME")],
)
def test_help_of_auxiliary_commands(tmp_path, command, option):
    assert option in " ".join(run(command, "--help", cwd=tmp_path).stdout.split())


def test_help_of_check(tmp_path):
    text = " ".join(run("check", "--help", cwd=tmp_path).stdout.split())
    assert "0 accepted; 2 bad usage or input; 4 refused;" in text


@pytest.mark.parametrize(
    "command", [(), ("solve",), ("check",), ("diagnose",), ("generate",), ("demo",), ("warm-up",)]
)
def test_short_help(tmp_path, command):
    short, long = (run(*command, option, cwd=tmp_path) for option in ("-h", "--help"))
    assert short.returncode == 0
    assert short.stdout == long.stdout != ""


def test_options_by_panel(tmp_path):
    lines = run("solve", "--help", cwd=tmp_path).stdout.splitlines()
    titles = ["Arguments:", "Input:", "Pairs:", "Proof:", "Limits:", "Output:", "Options:"]
    assert [line for line in lines if line in titles] == titles
    topic = lines[lines.index("Limits:") : lines.index("Output:")]
    assert {"--gap", "--time-limit", "--jobs"} <= {word for line in topic for word in line.split()}
    last = lines[lines.index("Options:") + 1 :]
    assert [line.split()[0] for line in last if line.startswith("  -")] == ["-h,"]


def test_help_is_light(tmp_path):
    code = (
        "import atexit, json, sys; from certikmeans.cli import app\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules))))\n"
        "app(['solve', '--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not set(HEAVY) & set(json.loads(done.stdout.splitlines()[-1]))


def test_shell_completion(tmp_path):
    def completed(words: str, position: int) -> set[str]:
        settings = {
            "_CERTIKMEANS_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(position),
        }
        return set(run(cwd=tmp_path, settings=settings).stdout.split())

    assert {"solve", "check"} <= completed("certikmeans ", 1)
    assert "--certificate" in completed("certikmeans solve --cert", 2)


def test_version(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == f"certikmeans {certikmeans.__version__}\n"


def test_console_script():
    (command,) = entry_points(group="console_scripts", name="certikmeans")
    assert command.value == "certikmeans.cli:main"
