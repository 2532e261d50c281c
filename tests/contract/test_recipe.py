"""The recipe "add a bound" of CONTRIBUTING.md, followed to the letter, makes a working bound."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import certikmeans.bounds
from certikmeans import InputError, Problem, Status, options, solve
from certikmeans.bounds import registry
from certikmeans.testing.contracts import check_bound
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import brute_force
from tests.cli.process import run
from tests.contract.with_mine import LINE, write_files


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The template under another name, registered by its one line."""
    write_files(tmp_path)
    folders = [*certikmeans.bounds.__path__, str(tmp_path / "bounds")]
    monkeypatch.setattr(certikmeans.bounds, "__path__", folders)
    for name, entry in LINE.items():
        monkeypatch.setitem(registry.BOUNDS, name, entry)
    monkeypatch.setattr(options, "BOUNDS", ("auto", *registry.BOUNDS))  # as at import
    yield registry.make_bound("mine")
    sys.modules.pop("certikmeans.bounds.mine")


@pytest.mark.parametrize("seed", range(20))
def test_recipe_keeps_contract(mine, seed):
    check_bound(mine, feasible_problem(seed, largest=6))


@pytest.mark.parametrize("branching", ["auto", "centers", "pairs"])
def test_recipe_in_solve(mine, branching):
    points = np.random.default_rng(0).normal(size=(8, 2))
    problem = Problem.from_data(points, 2, cannot_link=[(0, 1)])
    result = solve(problem, bound="mine", branching=branching, node_limit=50, jobs=1)
    optimum, _ = brute_force(problem)
    assert result.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert result.failure is None
    assert result.lower_bound <= optimum
    assert [attempt.bound for attempt in result.attempts] == ["mine"]


def test_unregistered_bound_is_unknown():
    problem = Problem.from_data(np.arange(4.0)[:, None], 2)
    with pytest.raises(InputError, match="'mine' is unknown"):
        solve(problem, bound="mine")


def test_command_line_and_certificates(tmp_path):
    write_files(tmp_path)
    command = (sys.executable, "-m", "tests.contract.with_mine", str(tmp_path))
    shown = run("solve", "--help", cwd=tmp_path, command=command)
    assert shown.returncode == 0, shown.stderr
    assert ", mine" in " ".join(shown.stdout.split())
    np.savetxt(tmp_path / "points.csv", np.random.default_rng(0).normal(size=(7, 2)), delimiter=",")
    arguments = ("-k", 2, "--bound", "mine", "--branching", "pairs", "--node-limit", 30)
    made = run(
        "solve", "points.csv", *arguments, "--certificate", "proof", "--json",
        cwd=tmp_path, command=command,
    )  # fmt: skip
    assert made.returncode == 1, made.stderr  # the node limit
    assert json.loads(made.stdout)["lower_bound"] > 0.0
    checked = run("check", "proof", "--data", "points.csv", cwd=tmp_path, command=command)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    refused = run("solve", "points.csv", "-k", 3, "--bound", "mine", cwd=tmp_path)
    assert refused.returncode == 2
