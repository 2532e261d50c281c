"""Options for ids, soft pairs, sets and sizes, and standard streams."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from certikmeans.cli.inputs import Inputs, load
from certikmeans.cli.parameters import completion_of
from certikmeans.errors import InputError
from tests.cli.process import run, with_fake_solver

ROWS = "name,x\na,0\nb,1\nc,2\nd,10\ne,11\nf,12\n"


@pytest.fixture
def folder(tmp_path):
    files = {
        "d.csv": ROWS,
        "x.csv": "0\n1\n2\n10\n11\n12\n",
        "pairs.csv": "i,j,type\na,b,ML\nc,d,CL\n",
        "soft.json": '{"sml": [["a", "f"]], "sml_proba": [0.5]}',
        "soft.txt": "SML 0 5 2.5\n",
        "groups.csv": "name,photo\na,1\nb,1\n",
        "groups.txt": "1\n1\n-1\n-1\n\n\n",
        "demand.csv": "name,demand\n" + "".join(f"{name},{k}\n" for k, name in enumerate("abcdef")),
        "labels.csv": "name,label\nf,1\na,0\nb,0\nc,0\nd,1\ne,1\n",
        "all.json": '{"cannot_link_groups": [0, 0, -1, -1, -1, -1], "size_min": 2}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def problem(folder, data="d.csv", **options):
    for name, value in options.items():
        if name in ("constraints", "cannot_link_groups"):
            options[name] = tuple(folder / one for one in value)
        elif name in ("demand", "start_labels", "partial_labels", "weights"):
            options[name] = folder / value
    ids = {} if data != "d.csv" else {"id_column": "name"}
    return load(Inputs(data=folder / data, n_clusters=2, **ids, **options))


def test_all_inputs_by_id(folder):
    loaded = problem(
        folder,
        constraints=["pairs.csv", "soft.json"],
        cannot_link_groups=["groups.csv"],
        demand="demand.csv",
        size_max="10",
        penalty="4",
        start_labels="labels.csv",
    )
    found = loaded.problem
    assert found.must_link.tolist() == [[0, 1]]
    assert found.cannot_link.tolist() == [[2, 3]]
    assert found.soft_must_link.pairs.tolist() == [[0, 5]]
    assert found.soft_must_link.penalties.tolist() == [2.0]
    assert found.cannot_link_groups.tolist() == [[0, 0, -1, -1, -1, -1]]
    assert found.demand.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.size_max.tolist() == [10, 10]
    assert loaded.start_labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert loaded.penalty_unit == 4.0
    assert "1 cannot-link set, 1 soft must-link and 0 soft cannot-links" in loaded.describe()
    assert "sums of demands at most 10" in loaded.describe()


def test_mean_penalty_is_the_scatter_per_point(folder):
    loaded = problem(folder, constraints=["soft.json"], penalty="mean")
    points = loaded.problem.points
    unit = ((points - points.mean(axis=0)) ** 2).sum() / 6
    assert loaded.penalty_unit == pytest.approx(unit)
    assert loaded.problem.soft_must_link.penalties == pytest.approx([0.5 * unit])


@pytest.mark.parametrize(
    ("options", "size_min", "size_max"),
    [
        ({"size_min": "2"}, [2, 2], None),
        ({"size_min": "2", "size_max": "2,4"}, [2, 2], [2, 4]),
        ({"balanced": True}, [3, 3], [3, 3]),
        ({"constraints": ["all.json"]}, [2, 2], None),
    ],
)
def test_sizes(folder, options, size_min, size_max):
    found = problem(folder, "x.csv", **options).problem
    assert found.size_min.tolist() == size_min
    assert (None if found.size_max is None else found.size_max.tolist()) == size_max


def test_groups_of_rows(folder):
    given = ["groups.txt", "groups.txt"]
    found = problem(folder, "x.csv", cannot_link_groups=given, constraints=["all.json"]).problem
    assert found.cannot_link_groups.tolist() == [[0, 0, -1, -1, -1, -1]] * 3


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"size_min": "few"}, "size_min: 'few' is not a number", "separated by commas"),
        ({"size_min": "0.5"}, "size_min: 0.5 is not a number of points", "for example 3"),
        ({"size_max": "1,2,3"}, "size_max: 3 numbers for 2 clusters", "one per cluster"),
        ({"balanced": True, "size_min": "2"}, "balanced and size_min exclude", "both limits"),
        ({"penalty": "high"}, "penalty: 'high' is not a penalty", "mean"),
        ({"penalty": "-1"}, "penalty: '-1' is not a penalty", "0 or more"),
        ({"constraints": ["all.json"], "size_min": "2"}, "size_min is also stated by", "once"),
        ({"demand": "x.csv"}, "demand: there is no limit", "size_min or size_max"),
    ],
)
def test_errors(folder, options, message, hint):
    with pytest.raises(InputError) as caught:
        problem(folder, "x.csv", **options)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_soft_pairs_without_a_penalty(folder):
    with pytest.raises(InputError, match="does not state what its violation costs") as caught:
        problem(folder, constraints=["soft.json"])
    assert "penalty=P" in caught.value.hint


def solve(folder, *arguments, **options):
    return run("solve", *arguments, "-k", 2, cwd=folder, **options)


def test_solve_with_ids(folder):
    done = solve(
        folder, "d.csv", "--id-column", "name", "--constraints", "pairs.csv", "--balanced",
        "--labels", "out.csv", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["ids"] == list("abcdef")
    assert document["constraints"]["size_min"] == [3, 3]
    rows = list(csv.reader((folder / "out.csv").open()))
    assert rows == [["name", "label"], *([name, str(int(name > "c"))] for name in "abcdef")]
    again = solve(
        folder, "d.csv", "--id-column", "name", "--start-labels", "out.csv", "--labels", "-"
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout == (folder / "out.csv").read_text()
    assert "Cost" in again.stderr


def test_summary_states_sets_sizes_and_penalty(folder):
    done = solve(
        folder, "d.csv", "--id-column", "name", "--constraints", "soft.json", "--penalty", 1000,
        "--cannot-link-groups", "groups.csv", "--size-min", 2, "--size-max", "4,4",
    )  # fmt: skip
    assert "Sets          1 cannot-link set, all respected" in done.stdout
    assert "Sizes         at least 2 and at most 4, respected; sizes " in done.stdout
    assert "Penalty       1000 for a soft pair of confidence 1" in done.stdout


def test_standard_input(folder):
    command = with_fake_solver("quick")
    for name in ("x.csv", "d.csv"):
        extra = ["--id-column", "name"] if name == "d.csv" else []
        with (folder / name).open() as stream:
            done = solve(folder, "-", *extra, "--json", command=command, stdin=stream)
        assert done.returncode in (0, 1), done.stderr
        assert json.loads(done.stdout)["n_points"] == 6
    with (folder / "pairs.csv").open() as stream:
        done = solve(folder, "x.csv", "--constraints", "-", command=command, stdin=stream)
    assert done.returncode == 2
    assert "error: standard input, line 2: " in done.stderr


def test_completion_of_values():
    assert completion_of(("auto", "sdp", "spectral"))("sp") == ["spectral"]
    found = subprocess.run(
        [sys.executable, "-m", "certikmeans"],
        env={
            **os.environ,
            "_CERTIKMEANS_COMPLETE": "complete_bash",
            "COMP_WORDS": "certikmeans solve --bound sp",
            "COMP_CWORD": "3",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "spectral" in found.stdout


def test_points_by_id_in_arrays(folder):
    np.savez(folder / "d.npz", X=np.arange(6.0).reshape(6, 1), who=np.array(list("abcdef")))
    loaded = load(
        Inputs(
            data=folder / "d.npz", n_clusters=2, id_column="who",
            constraints=(folder / "pairs.csv",),
        )
    )  # fmt: skip
    assert loaded.problem.must_link.tolist() == [[0, 1]]


def test_questions_by_id_with_values(tmp_path):
    (tmp_path / "p.csv").write_text(
        "name,x\n"
        + "".join(
            f"{name},{x}\n" for name, x in zip("abcdefg", (0, 1, 2, 5.6, 9, 10, 11), strict=True)
        )
    )
    given = ("ask", "p.csv", "-k", 2, "--id-column", "name", "--slack", "5%")
    done = run(*given, cwd=tmp_path)
    assert done.stdout == "d,e\n"
    assert "does point d belong with e" in done.stderr
    assert "  d: x 5.6\n    e: x 9\n" in done.stderr
    assert json.loads(run(*given, "--json", cwd=tmp_path).stdout)["ids"] == [["d", "e"]]


def test_check_compares_all_kinds(folder):
    given = ["x.csv", "--size-min", "2", "--size-max", "4", "--cannot-link-groups", "groups.txt"]
    done = solve(folder, *given, "--certificate", "proof")
    assert done.returncode == 0, done.stderr
    check = ["check", "proof", "--data", *given, "-k", 2]
    assert run(*check, cwd=folder).returncode == 0
    assert run("check", "proof", "--data", "x.csv", cwd=folder).returncode == 0
    other = [word if word != "4" else "5" for word in check]
    refused = run(*other, cwd=folder)
    assert refused.returncode == 4, refused.stderr
    with (folder / "x.csv").open() as stream:
        piped = run("check", "proof", "--data", "-", cwd=folder, stdin=stream)
    assert piped.returncode == 0, piped.stderr
