"""Pages written from results files alone: which rows they show."""

from __future__ import annotations

import dataclasses

import pytest
from benchmarks.datasets.base import Sizes
from benchmarks.results import ResultRow
from benchmarks.runner import run_in_process
from benchmarks.studies import certificates, highdim, many, targets, tree

from benchmarks import __main__ as command
from benchmarks import study

HERE = {"cores": 2, "commit": "abc", "seed": 0}
SIZES = Sizes(10, 2, 3, 0, 0, 10)


def _tree_row(name, asked, gap, **other):
    """A row with this gap, as a share."""
    solver = tree.solver(asked, 1e-3)
    proven = {"bound": other.pop("bound", "cluster"), "root": {"lower_bound": 0.8}}
    row = ResultRow(
        name, solver.name, 25.0, 0, "time_limit", options=solver.options, sizes=SIZES, cost=2.0,
        pairs_broken=0, lower_bound=2.0 * (1 - gap), nodes=7, seconds=3.0, details=proven,
        about=HERE,
    )  # fmt: skip
    return dataclasses.replace(row, **other)


def test_tree_page(tmp_path):
    wine, skin = "standardised wine n=178 d=13 K=3", "Skin_8 n=80,000 d=3 K=3, n/4 CL"
    rows = [
        _tree_row(wine, ("cluster", "pairs"), 0.222),
        _tree_row(wine, ("cluster", "pairs"), 0.333),
        _tree_row(wine, ("cluster", "centers"), 0.444, limit=40.0),
        _tree_row("uniform n=150 d=3 K=6", ("auto", "auto"), 0.5),
        _tree_row(skin, ("auto", "auto"), 0.00555),
        _tree_row(wine, ("auto", "auto"), 0.0666, bound="sdp"),
    ]
    text = tree.write_report(rows, tmp_path).read_text()
    assert "`python -m benchmarks tree --limit 25`" in text
    lines = [line for line in text.splitlines() if line.startswith(("| standard", "| Skin"))]
    cells = [[cell.strip() for cell in line.split("|")[3:-1]] for line in lines]
    assert [(line[:3], line[3], line[4]) for line in cells] == [
        (["cluster", "pairs", "cluster"], "60 %", "33.3 %"),
        (["auto", "auto", "sdp"], "60 %", "6.66 %"),
        (["auto", "auto", "cluster"], "60 %", "0.555 %"),
    ]
    assert text.index(wine) < text.index("## Closed at the root") < text.index(skin)
    assert "n=150" not in text


def test_branchings_compared_with_same_bound():
    bounds = {branching: bound for bound, branching in tree.SETTINGS}
    assert bounds["pairs"] == bounds["centers"] == "cluster"


def _certificate_row(name, kind, bound, size):
    paper = {
        "accepted": True, "reason": "", "gap": 1e-4, "size": size, "check_seconds": 1.0,
        "groups": 10, "leaves": 1, "boxes": 5,
    }  # fmt: skip
    details = {"bound": bound, "stages": {"bounds": 1.0}, "certificate": paper}
    solver = certificates.SOLVER
    return ResultRow(
        f"{name} {kind}", solver.name, 300.0, 0, "gap_reached", options=solver.options,
        facts={"name": name, "kind": kind}, sizes=SIZES, seconds=1.0, details=details, about=HERE,
    )  # fmt: skip


def test_certificates_page_has_newest_rows(tmp_path):
    rows = [
        _certificate_row("hemi", "CL", "", 111),
        _certificate_row("hemi", "ML", "", 333),
        _certificate_row("hemi", "CL", "cluster", 222),
        _certificate_row("normal-60", "none", "sdp", 111),
    ]
    text = certificates.write_report(rows, tmp_path).read_text()
    lines = [line for line in text.splitlines() if line.startswith(("| hemi", "| normal"))]
    assert [[word for word in ("222", "333", "sdp") if word in line] for line in lines] == [
        ["222"],
        ["333"],
        ["sdp"],
    ]


def _small(name):
    """The requests of a study at small size, without real data."""
    options = command.parser().parse_args([name, "--small"])
    return command.STUDIES[name].requests(study.Scope(None, True, options))


@pytest.mark.slow
def test_semidefinite_evidence_is_accepted():
    request = next(one for one in _small("certificates") if one.instance.facts["kind"] == "none")
    row = run_in_process(request, None)
    assert (row.details["bound"], row.details["certificate"]["accepted"]) == ("sdp", True)


@pytest.mark.parametrize("name", sorted(command.STUDIES))
def test_report_only_runs_nothing(name, monkeypatch, tmp_path):
    monkeypatch.setattr(study, "run_all", lambda *_, **__: pytest.fail("a row was run"))
    results = str(tmp_path / "rows.jsonl")
    command.main([name, "--report-only", "--results", results])


@pytest.mark.parametrize("name", sorted(command.STUDIES))
def test_pages_without_rows(name, tmp_path):
    assert command.STUDIES[name].write([], tmp_path).is_file()


def test_only_some_certificates(monkeypatch, tmp_path):
    run = []
    monkeypatch.setattr(
        study, "run_all", lambda wanted, *_, **__: run.extend(one.instance.name for one in wanted)
    )
    results = str(tmp_path / "rows.jsonl")
    command.main(["certificates", "--only", "WINE none", "--results", results])
    assert run == ["standardised wine none"]


def test_limits_are_scaled_replaced_and_capped():
    whole = command.parser()
    one = command.STUDIES["highdim"]

    def limits(*given):
        options = whole.parse_args(["highdim", "--only", "segment |", *given])
        return {row.limit for row in one.requests(study.Scope(None, options.small, options))}

    assert limits() == {120.0}
    assert limits("--limit-factor", "0.5") == {60.0}
    assert limits("--limit", "7") == {7.0}
    assert [row.limit for row in _small("highdim")] == [6.0]


def test_each_bound_adds_rows_without_certificates():
    options = command.parser().parse_args(["highdim", "--only", "segment |", "--each-bound"])
    rows = highdim.STUDY.requests(study.Scope(None, False, options))
    assert [row.solver.certify for row in rows] == [True] + [False] * (len(rows) - 1)
    assert {row.solver.bound for row in rows} >= {"auto", "cluster", "sdp"}
    assert len({row.key for row in rows}) == len(rows)


def _target_row(name, gap, *, target, solver="certikmeans", seed=0, cost=2.0, **facts):
    trace = ((0.5, cost, 0.1 * cost), (1.5, cost, cost * (1 - gap)))
    known = {"group": "free", "limit": 10.0, "gap": target, **facts}
    paper = {"accepted": True, "reason": "", "size": 1234, "check_seconds": 0.5}
    details = {"bound": "sdp", "stages": {"bounds": 1.0, "heuristics": 0.2}, "certificate": paper}
    return ResultRow(
        name, solver, 10.0, seed, "gap_reached", options={"bound": "sdp"}, facts=known, sizes=SIZES,
        cost=cost, pairs_broken=0, lower_bound=cost * (1 - gap), nodes=1, seconds=2.0, trace=trace,
        peak_gigabytes=0.5, details=details, about=HERE,
    )  # fmt: skip


def test_highdim_page(tmp_path):
    rows = [
        _target_row("digits", 0.004, target=0.005, aim=0.0025),
        _target_row("avoc_abalone", 0.02, target=0.001, avoc=True),
        _target_row("digits", 0.3, target=0.005, solver="bound sample"),
    ]
    text = highdim.write_report(rows, tmp_path).read_text()
    lines = [line for line in text.splitlines() if line.startswith(("| digits", "| avoc"))]
    digits, abalone, alone = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    found = dict(zip(highdim.HEADER, digits, strict=True))
    assert (found["target %"], found["gap %"], found["verdict"]) == ("0.5", "0.4", "reached")
    assert (found["certificate"], found["bytes"], found["check / proof"]) == (
        "accepted",
        "1,234",
        "0.50",
    )
    other = dict(zip(highdim.HEADER, abalone, strict=True))
    assert (other["verdict"], other["AVOC"]) == ("missed", highdim.AVOC)
    assert alone[2] == "30"
    assert "1 of 2 rows reach their target" in text
    assert (tmp_path / "highdim.png").is_file()


def test_many_clusters_page(tmp_path):
    printed = {
        "group": "plane", "printed_seconds": 3600.0, "printed_root_gap": 0.001,
        "sdp_seconds": 7200.0, "sdp_left": "4.0 % left",
    }  # fmt: skip
    rows = [
        _target_row("u2152 K=20", 0.00005, target=0.0001, seed=1, cost=2.02, **printed),
        _target_row("u2152 K=20", 0.00005, target=0.0001, **printed),
    ]
    text = many.write_report(rows, tmp_path).read_text()
    lines = [line for line in text.splitlines() if line.startswith("| u2152")]
    first, seeds = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    found = dict(zip(many.PLANE_HEADER, first, strict=True))
    assert (found["target after (s)"], found["CG+DCA (s)"]) == ("1.5", "3,600")
    assert (found["SOS-SDP (s)"], found["times faster"]) == ("7,200, 4.0 % left", "2,400")
    assert seeds == ["u2152 K=20", "0, 1", "2", "1"]


def test_times_for_other_gaps_are_not_compared(tmp_path):
    printed = {
        "group": "plane", "printed_seconds": 3600.0, "printed_root_gap": None,
        "sdp_seconds": 7200.0, "sdp_left": "",
    }  # fmt: skip
    row = _target_row("fl3795 K=40", 0.0005, target=0.001, **printed)
    text = many.write_report([row], tmp_path).read_text()
    line = next(line for line in text.splitlines() if line.startswith("| fl3795"))
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert dict(zip(many.PLANE_HEADER, cells, strict=True))["times faster"] == ""


def test_target_after_limit_is_missed():
    row = _target_row("digits", 0.01, target=0.1, limit=0.5)
    assert targets.verdict(row) == "too late"
    assert targets.verdict(_target_row("digits", 0.01, target=0.1)) == "reached"
    assert targets.verdict(_target_row("digits", 0.01, target=0.005)) == "missed"


def test_target_needs_feasible_labels():
    row = _target_row("digits", 0.0, target=0.1)
    assert targets.reached(row)
    assert not targets.reached(dataclasses.replace(row, pairs_broken=1))
