"""Parsing of options, and options generated from dataclasses."""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import Annotated

import pytest

from certikmeans.cli.outputs import WRITERS
from certikmeans.cli.parameters import FieldOptions, expand_groups, parameter_descriptions
from certikmeans.options import Options
from tests.cli.process import run, with_fake_solver

QUICK = with_fake_solver("quick")


@pytest.fixture
def table(tmp_path):
    text = "id,name,x,y,class\n1,bob,0,0,a\n2,eve,0,1,a\n3,joe,9,0,b\n4,ann,9,1,b\n"
    (tmp_path / "people.csv").write_text(text)
    return tmp_path


def solver_options(folder, *arguments) -> dict:
    done = run(
        *("solve", "people.csv", "-k", 2, "--columns", "x,y", "--quiet", "--json", *arguments),
        cwd=folder,
        command=QUICK,
    )
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)["options"]


@pytest.mark.parametrize(
    ("text", "gap"), [("1%", 0.01), ("0.1%", 0.001), ("0.1 %", 0.001), ("0.05", 0.05), ("0", 0.0)]
)
def test_gap_in_percent(table, text, gap):
    assert solver_options(table, "--gap", text)["gap"] == gap


@pytest.mark.parametrize("text", ["100%", "-1%", "1 percent", "%", "nan", "1e999999999%"])
def test_invalid_gap(table, text):
    done = run("solve", "people.csv", "-k", 2, f"--gap={text}", cwd=table, command=QUICK)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --gap: ")
    assert "\nhint: " in done.stderr


def test_jobs_minus_one(table):
    assert solver_options(table, "--jobs", "-1")["jobs"] is None
    assert solver_options(table, "--jobs", 3)["jobs"] == 3
    done = run("solve", "people.csv", "-k", 2, "--jobs", "-2", cwd=table, command=QUICK)
    assert done.returncode == 2


def test_settings_by_environment(table):
    settings = {
        "CERTIKMEANS_JOBS": "1", "CERTIKMEANS_GAP": "2%", "CERTIKMEANS_SEED": "5",
        "CERTIKMEANS_TIME_LIMIT": "7",
    }  # fmt: skip
    arguments = ("solve", "people.csv", "-k", 2, "--columns", "x,y", "--quiet", "--json")
    done = run(*arguments, "--seed", 6, cwd=table, command=QUICK, settings=settings)
    options = json.loads(done.stdout)["options"]
    assert (options["jobs"], options["gap"], options["time_limit"]) == (1, 0.02, 7.0)
    assert options["seed"] == 6  # the command line comes first
    done = run(*arguments, cwd=table, command=QUICK, settings={"CERTIKMEANS_GAP": "low"})
    assert done.returncode == 2
    assert done.stderr.startswith("error: --gap (from CERTIKMEANS_GAP): 'low' is not a number\n")


def test_feature_names_and_notes(table):
    done = run(
        *("solve", "people.csv", "-k", 2, "--drop", "name", "--labels-column", "class"),
        cwd=table,
        command=QUICK,
    )
    assert "note: people.csv: column 'id' looks like row numbers" in done.stderr
    assert "if so, pass --drop id\n" in done.stderr
    assert "read 4 points with 3 features (id, x, y), " in done.stderr
    done = run(
        *("solve", "people.csv", "-k", 2, "--drop", "name,id", "--labels-column", "class"),
        cwd=table,
        command=QUICK,
    )
    assert "looks like row numbers" not in done.stderr
    assert "read 4 points with 2 features (x, y), " in done.stderr


def test_text_column_hint(table):
    done = run("solve", "people.csv", "-k", 2, cwd=table, command=QUICK)
    assert done.returncode == 2
    assert "column 'name' holds text in every row" in done.stderr
    assert "--drop name" in done.stderr


def test_check_with_columns(table):
    columns = ("--columns", "x,y")
    done = run("solve", "people.csv", "-k", 2, *columns, "--certificate", "c", cwd=table)
    assert done.returncode == 0, done.stderr
    same = run("check", "c", "--data", "people.csv", *columns, cwd=table)
    assert same.returncode == 0, same.stderr
    other = run("check", "c", "--data", "people.csv", "--columns", "id,x", cwd=table)
    assert other.returncode == 4


def test_every_option_has_a_flag_and_its_description(tmp_path):
    text = " ".join(run("solve", "--help", cwd=tmp_path).stdout.split())
    descriptions = parameter_descriptions(Options)
    for field in dataclasses.fields(Options):
        if field.name != "keep_proof":  # set by --certificate
            assert f"--{field.name.replace('_', '-')} {field.metadata['metavar']}" in text
            assert descriptions[field.name] in text


def test_every_writer_has_an_option(tmp_path):
    text = " ".join(run("solve", "--help", cwd=tmp_path).stdout.split())
    for name, writer in WRITERS.items():
        assert f"--{name} {writer.metavar} {writer.help}" in text


def test_groups_are_expanded_and_built():
    @dataclasses.dataclass(frozen=True)
    class Group:
        """A group.

        Parameters
        ----------
        first : int
            A number.
        several : tuple of str
            Words.
        """

        first: int = dataclasses.field(default=1, metadata={"metavar": "N"})
        several: tuple[str, ...] = dataclasses.field(default=(), metadata={"metavar": "W"})
        hidden: bool = False

    def command(group, other=2):
        return group, other

    command.__annotations__ = {"group": Annotated[Group, FieldOptions(Group)], "other": int}
    flat = expand_groups(command)
    assert list(inspect.signature(flat).parameters) == ["first", "several", "other"]
    assert flat() == (Group(), 2)
    assert flat(first=3, several=["a", "b"], other=4) == (Group(3, ("a", "b")), 4)
    with pytest.raises(TypeError, match="hidden"):
        flat(hidden=True)
