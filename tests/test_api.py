"""The public names, and `certikmeans.solve` with its progress."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys

import numpy as np
import pytest

import certikmeans
from certikmeans._jit.compile_events import KernelCompilation
from certikmeans.api import _WarningOnce, solve
from certikmeans.errors import CompilingWarning, InputError
from certikmeans.solver import run


def problem():
    points = np.random.default_rng(0).normal(size=(30, 2))
    return certikmeans.Problem.from_data(points, 3, must_link=[(0, 1)])


@pytest.mark.parametrize("verbose", [0, False])
def test_silent_by_default(verbose, capsys):
    solve(problem())
    solve(problem(), verbose=verbose)
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_compilation_warns_once():
    warn = _WarningOnce()
    with pytest.warns(CompilingWarning, match="first run") as caught:
        _ = [warn(KernelCompilation("lloyd", number)) for number in (1, 2)]
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize("verbose", [1, True, 2])
def test_plain_lines_where_there_is_no_terminal(verbose, capsys):
    solve(problem(), verbose=verbose)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("[") for line in lines)
    assert "finished, optimal" in lines[-1]


def test_progress_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    solve(problem(), verbose=1)
    assert "finished, optimal" in terminal.getvalue()
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is back


@pytest.mark.parametrize("verbose", [-1, "loud", None, 0.5])
def test_bad_verbose(verbose):
    with pytest.raises(InputError, match=r"^verbose: "):
        solve(problem(), verbose=verbose)


def test_callbacks_beside_progress(capsys):
    heard = []
    solve(problem(), callbacks=[heard.append], verbose=1)
    assert type(heard[-1]).__name__ == "Finished"
    assert capsys.readouterr().err


def test_api_passes_arguments_to_solver():
    ours, theirs = inspect.signature(solve).parameters, inspect.signature(run.solve).parameters
    inside = {"start_multipliers"}  # used by ActiveSession
    assert [name for name in ours if name != "verbose"] == [n for n in theirs if n not in inside]
    for name in ours.keys() - {"verbose"}:
        assert (ours[name].kind, ours[name].default) == (theirs[name].kind, theirs[name].default)
    start = np.zeros(30, dtype=int)
    with pytest.raises(InputError, match="start_labels"):
        solve(problem(), start_labels=start[:3])
    with pytest.raises(TypeError, match="'speed' is not an option"):
        solve(problem(), speed=3)
    one, other = solve(problem(), seed=3), run.solve(problem(), seed=3)
    assert one.cost == other.cost
    assert one.lower_bound == other.lower_bound


def test_every_setting_is_named():
    from dataclasses import fields

    for field in fields(certikmeans.Options):
        assert f"    {field.name} : " in solve.__doc__


def test_public_names_are_lazy():
    code = (
        "import sys, certikmeans\n"
        "heavy = {'numba', 'scipy', 'sklearn', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "for name in certikmeans.__all__:\n"
        "    assert getattr(certikmeans, name) is not None, name\n"
        "import certikmeans.elbow_curve, certikmeans.api, certikmeans.certificate\n"
        "for name in ('elbow', 'solve', 'read_points', 'read_links', 'write_certificate'):\n"
        "    assert callable(getattr(certikmeans, name)), name\n"
        "assert callable(certikmeans.check_certificate)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(certikmeans.__all__) - {"__version__"} == set(certikmeans._HOMES)
    assert {"read_points", "read_links", "check_certificate", "Options"} <= set(dir(certikmeans))
