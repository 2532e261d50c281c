"""``certikmeans diagnose``: conflicts with their locations, and the cleaned file."""

from __future__ import annotations

import json

import pytest

from certikmeans.problem.io import read_links
from tests.cli.process import run


@pytest.fixture
def noisy(tmp_path):
    (tmp_path / "points.csv").write_text("".join(f"{i},{i % 3}\n" for i in range(9)))
    # 0-1-2 together, 3-4 together; "CL 0 2" is wrong.
    (tmp_path / "pairs.txt").write_text("ML 0 1\nML 1 2\nCL 0 2\nML 3 4\nCL 2 3\nCL 1 4\nML 2 0\n")
    return tmp_path


def test_text_output_names_lines(noisy):
    done = run("diagnose", "points.csv", "-k", 2, "--constraints", "pairs.txt", cwd=noisy)
    assert done.returncode == 3
    assert done.stdout == (
        "1 cannot-link broken by must-links:\n"
        "  cannot-link (0, 2)  pairs.txt, line 3\n"
        "    must-link (0, 2)  pairs.txt, line 7\n"
        "remove 1 pair and no conflict is left (no smaller set will do):\n"
        "  cannot-link (0, 2)  pairs.txt, line 3\n"
        "or keep all pairs, and let each be violated at a price: --soft F\n"
    )


def test_soft_version_of_a_contradicting_file(noisy):
    done = run(
        *("diagnose", "-n", 9, "-k", 2, "--constraints", "pairs.txt"),
        *("--soft", "soft.txt", "--penalty", 2.5),
        cwd=noisy,
    )
    assert done.returncode == 3
    lines = sorted((noisy / "soft.txt").read_text().splitlines())
    assert lines == [
        *("SCL 0 2 2.5", "SCL 1 4 2.5", "SCL 2 3 2.5"),
        *("SML 0 1 2.5", "SML 0 2 2.5", "SML 1 2 2.5", "SML 3 4 2.5"),
    ]
    done = run("solve", "points.csv", "-k", 2, "--constraints", "soft.txt", "--quiet", cwd=noisy)
    assert done.returncode == 0


def test_soft_json_with_the_mean_squared_distance(noisy):
    arguments = ("diagnose", "points.csv", "-k", 2, "--constraints", "pairs.txt")
    assert run(*arguments, "--soft", "soft.json", cwd=noisy).returncode == 3
    content = json.loads((noisy / "soft.json").read_text())
    assert content["ml"] == content["cl"] == []
    assert {penalty for _, _, penalty in content["sml"] + content["scl"]} == {66.0 / 9.0}
    done = run("solve", "points.csv", "-k", 2, "--constraints", "soft.json", "--quiet", cwd=noisy)
    assert done.returncode == 0


def test_soft_file_needs_a_penalty(noisy):
    files = ("-k", 2, "--constraints", "pairs.txt")
    done = run("diagnose", *files, "--soft", "soft.txt", cwd=noisy)
    assert done.returncode == 2
    assert "--penalty" in done.stderr
    done = run("diagnose", *files, "--penalty", 2, cwd=noisy)
    assert done.returncode == 2
    assert "--soft" in done.stderr


def test_infeasible_pairs_name_the_soft_way_out(noisy):
    done = run("solve", "points.csv", "-k", 2, "--constraints", "pairs.txt", cwd=noisy)
    assert done.returncode == 3
    assert "--soft F" in done.stderr


def test_json_output_and_cleaned_file(noisy):
    done = run(
        *("diagnose", "-n", 9, "-k", 2, "--constraints", "pairs.txt", "--json"),
        *("--output", "clean.txt"),
        cwd=noisy,
    )
    assert done.returncode == 3
    document = json.loads(done.stdout)
    assert document["feasible"] is False
    assert document["broken_cannot_links"][0]["cannot_link_at"] == ["pairs.txt, line 3"]
    assert document["broken_cannot_links"][0]["must_links_at"] == [["pairs.txt, line 7"]]
    assert document["remove"]["cannot_link"] == [[0, 2]]
    assert document["remove"]["smallest"] is True
    left = read_links(noisy / "clean.txt")
    assert sorted(left.must.pairs.tolist()) == [[0, 1], [0, 2], [1, 2], [3, 4]]
    assert sorted(left.cannot.pairs.tolist()) == [[1, 4], [2, 3]]
    done = run("diagnose", "-k", 2, "--constraints", "clean.txt", cwd=noisy)
    assert done.returncode == 0
    assert done.stdout == "no conflict: the pairs can all hold with K = 2\n"


def test_cliques_odd_cycles_one_based(noisy):
    (noisy / "cannot.txt").write_text("1 2\n2 3\n1 3\n")
    done = run("diagnose", "-k", 2, "--cannot-link", "cannot.txt", "--one-based", cwd=noisy)
    assert done.returncode == 3
    assert "  odd cycle\n    cannot-link (1, 2)  cannot.txt, line 1\n" in done.stdout
    assert "remove 1 pair and no conflict is left" in done.stdout
    triple = ("--cannot-link", "cannot.txt", "--one-based")
    assert run("diagnose", "-k", 3, *triple, cwd=noisy).returncode == 0
    (noisy / "more.json").write_text(json.dumps({"cl": [[0, 3], [1, 3], [2, 3]]}))
    (noisy / "cannot.txt").write_text("0 1\n1 2\n0 2\n")
    done = run(
        *("diagnose", "-k", 3, "--cannot-link", "cannot.txt", "--constraints", "more.json"),
        *("--output", "clean.json"),
        cwd=noisy,
    )
    assert done.returncode == 3
    assert "  clique\n" in done.stdout
    assert "more.json: cl[0]" in done.stdout
    assert len(json.loads((noisy / "clean.json").read_text())["cl"]) == 5


def test_partial_labels_are_located(noisy):
    (noisy / "labels.txt").write_text("a\n\nb\n")
    done = run(
        *("diagnose", "-k", 2, "--partial-labels", "labels.txt", "--must-link", "ml.txt"),
        cwd=noisy,
    )
    assert done.returncode == 2
    (noisy / "ml.txt").write_text("0 2\n")
    done = run(
        *("diagnose", "-k", 2, "--partial-labels", "labels.txt", "--must-link", "ml.txt"),
        cwd=noisy,
    )
    assert done.returncode == 3
    assert "labels.txt, labels of points 0 and 2" in done.stdout


def test_invalid_arguments(noisy):
    for arguments in (
        ("-k", 2),
        ("-k", 0, "--constraints", "pairs.txt"),
        ("-k", 2, "-n", 3, "--constraints", "pairs.txt"),
        ("-k", 2, "--constraints", "pairs.txt", "--output", "pairs.txt"),
        ("--constraints", "pairs.txt"),
    ):
        done = run("diagnose", *arguments, cwd=noisy)
        assert done.returncode == 2, arguments
        assert done.stdout == ""
