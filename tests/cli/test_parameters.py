"""Options as people write them."""

from __future__ import annotations

import json

import pytest

from tests.cli.process import run, with_fake_solver

QUICK = with_fake_solver("quick")


@pytest.fixture
def people(tmp_path):
    text = "id,name,x,y,class\n1,bob,0,0,a\n2,eve,0,1,a\n3,joe,9,0,b\n4,ann,9,1,b\n"
    (tmp_path / "people.csv").write_text(text)
    return tmp_path


def asked(folder, *arguments) -> dict:
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
def test_a_gap_may_be_in_per_cent(people, text, gap):
    assert asked(people, "--gap", text)["gap"] == gap


@pytest.mark.parametrize("text", ["100%", "-1%", "1 percent", "%", "nan", "1e999999999%"])
def test_a_gap_that_is_none_is_refused(people, text):
    done = run("solve", "people.csv", "-k", 2, f"--gap={text}", cwd=people, command=QUICK)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --gap: ")
    assert "\nhint: " in done.stderr


def test_minus_one_job_is_one_per_core(people):
    assert asked(people, "--jobs", "-1")["jobs"] is None
    assert asked(people, "--jobs", 3)["jobs"] == 3
    done = run("solve", "people.csv", "-k", 2, "--jobs", "-2", cwd=people, command=QUICK)
    assert done.returncode == 2


def test_what_was_read_is_named(people):
    done = run(
        *("solve", "people.csv", "-k", 2, "--drop", "name", "--labels-column", "class"),
        cwd=people,
        command=QUICK,
    )
    assert "note: people.csv: column 'id' looks like row numbers" in done.stderr
    assert "if so, pass --drop id\n" in done.stderr
    assert "read 4 points with 3 features (id, x, y), " in done.stderr
    done = run(
        *("solve", "people.csv", "-k", 2, "--drop", "name,id", "--labels-column", "class"),
        cwd=people,
        command=QUICK,
    )
    assert "looks like row numbers" not in done.stderr
    assert "read 4 points with 2 features (x, y), " in done.stderr


def test_a_text_column_is_told_to_be_dropped(people):
    done = run("solve", "people.csv", "-k", 2, cwd=people, command=QUICK)
    assert done.returncode == 2
    assert "column 'name' holds text in every row" in done.stderr
    assert "--drop name" in done.stderr


def test_a_certificate_is_checked_with_the_same_columns(people):
    columns = ("--columns", "x,y")
    done = run("solve", "people.csv", "-k", 2, *columns, "--certificate", "c", cwd=people)
    assert done.returncode == 0, done.stderr
    same = run("check", "c", "--data", "people.csv", *columns, cwd=people)
    assert same.returncode == 0, same.stderr
    other = run("check", "c", "--data", "people.csv", "--columns", "id,x", cwd=people)
    assert other.returncode == 4
