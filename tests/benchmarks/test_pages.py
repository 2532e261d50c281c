"""Pages written from results files alone: which rows they show."""

from __future__ import annotations

import json

import pytest

from benchmarks import __main__ as command
from benchmarks import certificates, tree

HERE = {"cores": 2, "commit": "abc", "seed": 0}


def _write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _tree_row(name, asked, **other):
    row = {
        "name": name, "asked": asked, "requested_gap": 1e-3, "cost": 2.0, "lower_bound": 1.0,
        "root_gap": 0.6, "gap": 0.5, "nodes": 7, "seconds": 3.0, "stop_reason": "time_limit",
        "bound": "cluster", "limit": 25.0, "about": HERE,
    }  # fmt: skip
    return row | other


def test_the_trees_page_has_the_last_row_of_each_setting_and_one_limit(tmp_path):
    wine, skin = "standardised wine n=178 d=13 K=3", "Skin_8 n=80,000 d=3 K=3, n/4 CL"
    old = _tree_row(wine, None, branching="pairs", gap=0.111)
    del old["asked"]
    _write(
        tmp_path / "tree.jsonl",
        [
            old,
            _tree_row(wine, ["cluster", "pairs"], gap=0.222),
            _tree_row(wine, ["cluster", "pairs"], gap=0.333),
            _tree_row(wine, ["cluster", "centers"], gap=0.444, limit=40.0),
            _tree_row("uniform n=150 d=3 K=6", ["auto", "auto"]),
            _tree_row(skin, ["auto", "auto"], gap=0.00555),
            _tree_row(wine, ["auto", "auto"], gap=0.0666, bound="sdp"),
        ],
    )
    text = tree.write_report(tmp_path / "tree.jsonl").read_text()
    assert "`python -m benchmarks tree --limit 25`" in text
    lines = [line for line in text.splitlines() if line.startswith(("| standard", "| Skin"))]
    cells = [[cell.strip() for cell in line.split("|")[3:-1]] for line in lines]
    assert [(line[:3], line[4]) for line in cells] == [
        (["cluster", "pairs", "cluster"], "33.3 %"),
        (["auto", "auto", "sdp"], "6.66 %"),
        (["auto", "auto", "cluster"], "0.555 %"),
    ]
    assert text.index(wine) < text.index("## Closed at the root") < text.index(skin)
    assert "n=150" not in text


def test_the_two_branchings_are_compared_with_the_same_bound():
    bounds = {branching: bound for bound, branching in tree.SETTINGS}
    assert bounds["pairs"] == bounds["centers"] == "cluster"


def test_the_certificates_page_has_the_newest_row_of_every_instance(tmp_path):
    row = {
        "name": "hemi", "kind": "CL", "n": 10, "d": 2, "K": 3, "groups": 10, "leaves": 1,
        "gap": 1e-4, "accepted": True, "reason": "", "size": 111, "solve_seconds": 1.0,
        "bounds_seconds": 1.0, "check_seconds": 1.0, "boxes": 5, "about": HERE,
    }  # fmt: skip
    newer = row | {"size": 222, "bound": "cluster"}
    matrix = row | {"name": "normal-60", "kind": "none", "bound": "sdp"}
    _write(tmp_path / "certificates.jsonl", [row, row | {"kind": "ML", "size": 333}, newer, matrix])
    text = certificates.write_report(tmp_path / "certificates.jsonl").read_text()
    lines = [line for line in text.splitlines() if line.startswith(("| hemi", "| normal"))]
    assert [[word for word in ("222", "333", "sdp") if word in line] for line in lines] == [
        ["222"],
        ["333"],
        ["sdp"],
    ]


def test_the_semidefinite_evidence_is_accepted():
    request = next(one for one in certificates.requests(None, True) if one.kind == "none")
    row = certificates.measured(request, 0)
    assert row is not None
    assert (row.bound, row.accepted) == ("sdp", True)


@pytest.mark.parametrize("name", ["tree", "certificates"])
def test_report_only_runs_nothing(name, monkeypatch):
    module = getattr(command, name)
    monkeypatch.setattr(module, "_run", lambda *_: pytest.fail("a row was run"))
    monkeypatch.setattr(module, "write_report", lambda results: results)
    monkeypatch.setattr("sys.argv", ["benchmarks", name, "--report-only"])
    command.main()


def test_only_some_certificates(monkeypatch):
    run = []
    monkeypatch.setattr(certificates, "_run", lambda request, *_: run.append(request.title))
    monkeypatch.setattr(certificates, "write_report", lambda results: results)
    monkeypatch.setattr("sys.argv", ["benchmarks", "certificates", "--only", "WINE none"])
    command.main()
    assert run == ["standardised wine none"]
