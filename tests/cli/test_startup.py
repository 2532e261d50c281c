"""Starting up: nothing heavy is loaded before a command needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points

import certikmeans
from tests.cli.process import run

HEAVY = ("numpy", "numba", "scipy", "sklearn", "matplotlib", "rich", "pandas")


def test_nothing_heavy_is_imported_before_a_command_runs(tmp_path):
    code = "import certikmeans.cli, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not set(HEAVY) & set(json.loads(done.stdout))


def test_help_names_every_command(tmp_path):
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert {"solve", "check", "generate", "demo"} <= set(done.stdout.split())


def test_help_of_solve_lists_the_options_and_exit_codes(tmp_path):
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
        "--json",
        "--quiet",
    ):
        assert option in text.split() or f"{option}," in text.split()
    assert "Exit codes" in text
    assert "70 a bug" in " ".join(text.split())
    assert "130 interrupted before" in " ".join(text.split())
    assert '"groups": [[3, 4, 5]]' in " ".join(text.split())
    assert "\x1b" not in text


def test_help_of_check_lists_the_exit_codes(tmp_path):
    text = " ".join(run("check", "--help", cwd=tmp_path).stdout.split())
    assert "0 accepted; 2 bad usage or input; 4 refused;" in text


def test_version(tmp_path):
    assert run("--version", cwd=tmp_path).stdout == f"certikmeans {certikmeans.__version__}\n"


def test_the_installed_command_is_this_one():
    (command,) = entry_points(group="console_scripts", name="certikmeans")
    assert command.value == "certikmeans.cli:main"
