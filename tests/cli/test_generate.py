"""``certikmeans generate``: files that ``solve`` reads."""

from __future__ import annotations

from certikmeans.cli.inputs import Inputs, PairFiles, load
from tests.cli.process import run


def test_files_are_named_read_back_and_repeatable(tmp_path):
    arguments = ("--n-points", 50, "--n-features", 3, "--n-clusters", 4)
    arguments += ("--must-link", 7, "--cannot-link", 9, "--seed", 3)
    done = run("generate", "one", *arguments, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.split() == ["one.csv", "one.labels.txt", "one.pairs.txt"]
    assert "certikmeans solve one.csv -k 4 --constraints one.pairs.txt" in done.stderr
    loaded = load(
        Inputs(
            data=tmp_path / "one.csv",
            n_clusters=4,
            pairs=PairFiles(constraints=[tmp_path / "one.pairs.txt"]),
            start_labels=tmp_path / "one.labels.txt",
        )
    )
    assert loaded.problem.points.shape == (50, 3)
    assert (len(loaded.problem.must_link), len(loaded.problem.cannot_link)) == (7, 9)

    again = run("generate", "two", *arguments, cwd=tmp_path)
    assert again.returncode == 0
    for ending in (".csv", ".labels.txt", ".pairs.txt"):
        assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes()


def test_more_clusters_than_points(tmp_path):
    done = run("generate", "one", "--n-points", 5, "--n-clusters", 6, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: n_points: 5 is less than the number of clusters, 6\n"
        "hint: ask for 6 points or more, or for fewer clusters\n"
    )


def test_more_pairs_than_there_are(tmp_path):
    done = run("generate", "one", "--n-points", 4, "--must-link", 100, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot draw 100 must-links")
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    done = run("generate", "file/one", "--n-points", 9, cwd=tmp_path)
    assert done.returncode == 2
    assert "could not be written" in done.stderr
    assert "Traceback" not in done.stderr
