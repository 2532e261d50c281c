"""Rows run in processes of their own; answers are recomputed; a run can be taken up again."""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from typing import ClassVar

import numpy as np
import pytest
from benchmarks.datasets.base import Sizes
from benchmarks.datasets.paper import Instance
from benchmarks.metrics import recomputed_cost
from benchmarks.results import (
    CRASHED,
    KILLED,
    SKIPPED,
    ResultRow,
    RunRequest,
    append,
    empty_row,
    latest,
    load,
)
from benchmarks.solvers import certikmeans_solver
from benchmarks.solvers.base import AbstractSolver, SkipError, SolverOutcome
from benchmarks.solvers.certikmeans_solver import CLUSTER, GROUPED, CertikmeansSolver, Recorder
from benchmarks.solvers.exact_baselines import run_with_curve, total_curve_seconds
from benchmarks.solvers.heuristics import KMeansStarts
from benchmarks.solvers.registry import SOLVERS
from benchmarks.studies.paper.experiments import (
    EXPERIMENTS,
    LIMITS,
    estimate_minutes,
    nominal_sizes,
    requests,
)
from benchmarks.studies.paper.report import write_report
from benchmarks.studies.paper.run import add_options
from benchmarks.studies.paper.verdict import wrong_bounds

from benchmarks import runner
from certikmeans import InputError, Problem
from certikmeans.events import BoundImproved, IncumbentFound, TreeProgress

SMALL = Instance("Iris", "CL")


class Liar(AbstractSolver):
    """Claims everything, does nothing; what it does instead depends on the seed."""

    name: ClassVar[str] = "liar"

    def skip(self, sizes, limit):
        return "too many points" if sizes.n_points > 1000 else None

    def run(self, problem, limit, seed):
        if seed == 1:
            time.sleep(60)
        if seed == 2:
            os._exit(9)
        if seed == 3:
            raise RuntimeError("no such luck")
        labels = np.zeros(problem.n_points, dtype=np.int64)
        return SolverOutcome(labels, 1e9, 1, 0.1, "optimal")


@pytest.fixture
def in_thread(monkeypatch):
    """Run the child's code here: the process is tested separately, and takes seconds to start."""
    monkeypatch.setattr(
        runner, "measure", lambda request, directory, _: runner.run_in_process(request, directory)
    )


def test_claims_of_solvers_are_recomputed(in_thread, tmp_path):
    results = tmp_path / "rows.jsonl"
    runner.run_all([RunRequest(SMALL, Liar(), 1.0)], results, None)
    (row,) = load(results)
    problem = SMALL.build(None).problem
    assert row.cost == pytest.approx(float(np.sum((problem.points - problem.points.mean(0)) ** 2)))
    assert row.pairs_broken == len(problem.cannot_link)
    assert not row.feasible
    assert row.gap is None
    assert {"commit", "cores", "seed", "numpy"} <= row.about.keys()


def test_bound_above_known_cost_is_reported(in_thread, tmp_path):
    results = tmp_path / "rows.jsonl"
    instance = Instance("Iris", "none")
    runner.run_all(
        [RunRequest(instance, CLUSTER, 10.0), RunRequest(instance, Liar(), 1.0)],
        results,
        None,
    )
    rows = load(results)
    assert [row.solver for row in wrong_bounds(rows)] == ["liar"]
    assert rows[0].gap is not None
    assert rows[0].gap <= 1e-3
    assert rows[0].scores["ARI"] == pytest.approx(0.73, abs=0.03)


def test_existing_rows_run_again_only_on_request(in_thread, tmp_path):
    results = tmp_path / "rows.jsonl"
    asked = [RunRequest(SMALL, Liar(), 1.0), RunRequest(SMALL, Liar(), 1.0)]
    for again, expected in ((False, 1), (False, 1), (True, 2)):
        runner.run_all(asked, results, None, again=again)
        assert len(load(results)) == expected
    runner.run_all([RunRequest(SMALL, Liar(), 2.0)], results, None)  # another limit: another row
    assert len(load(results)) == 3
    assert len(latest(load(results))) == 1


def test_skips_are_recorded_once(in_thread, tmp_path, monkeypatch):
    results = tmp_path / "rows.jsonl"
    asked = [
        RunRequest(Instance("Syn-1200", "ML"), Liar(), 1.0),
        RunRequest(Instance("SPNET3D", "ML"), Liar(), 1.0),
    ]
    for _ in range(2):
        runner.run_all(asked, results, tmp_path)
        rows = load(results)
        assert [row.stop_reason for row in rows] == [SKIPPED, SKIPPED]
        assert rows[0].note == "too many points"
        assert "3D_spatial_network.txt" in rows[1].note
    monkeypatch.setattr(Liar, "skip", lambda self, sizes, limit: None)
    runner.run_all(asked, results, tmp_path)
    assert [row.stop_reason for row in load(results)] == [SKIPPED, SKIPPED, "optimal"]


def test_solver_error_is_a_row(in_thread, tmp_path):
    results = tmp_path / "rows.jsonl"
    runner.run_all([RunRequest(SMALL, Liar(), 1.0, seed=3)], results, None)
    (row,) = load(results)
    assert row.stop_reason == CRASHED
    assert "no such luck" in row.note


@pytest.mark.parametrize(("seed", "reason"), [(1, KILLED), (2, CRASHED)])
def test_killed_process_is_a_row(monkeypatch, seed, reason):
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0.5)
    began = time.monotonic()
    ticker = runner.ProgressPrinter(1)
    request = RunRequest(SMALL, Liar(), 0.5, seed)
    ticker.start(request)
    row = runner.measure(request, None, ticker)
    assert row.stop_reason == reason
    assert time.monotonic() - began < 50


def test_root_values_precede_first_branching():
    recorder = Recorder()
    for event in (
        IncumbentFound(0.1, 10.0, "a"),
        BoundImproved(0.2, 6.0, "b"),
        TreeProgress(0.3, 1, 1, 0, 6.0),
        IncumbentFound(0.4, 8.0, "tree"),
        BoundImproved(0.5, 7.0, "b"),
        TreeProgress(0.6, 3, 2, 1, 7.0),
    ):
        recorder(event)
    assert recorder.root == (0.3, 10.0, 6.0)
    assert recorder.thinned()[-1] == (0.5, 8.0, 7.0)


def test_shorter_runs_become_points_of_the_curve():
    asked = []

    def once(problem, limit):
        asked.append(limit)
        return SolverOutcome(None, 1.0, 1, limit, "time_limit", ((limit, None, limit),))

    answer = run_with_curve(once, SMALL.build(None).problem, 16.0)
    assert asked == [16.0, 1.0, 2.0, 4.0, 8.0]
    assert [point[0] for point in answer.trace] == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert sum(asked) <= total_curve_seconds(16.0)


@pytest.mark.parametrize("solver", ["scip", "sdp"])
def test_exact_baselines_skip_large_problems(solver):
    pytest.importorskip("pyscipopt" if solver == "scip" else "certikmeans.baselines.sdp")
    one = SOLVERS[solver]
    problem = Problem.from_data([[0.0], [1.0], [9.0], [10.0]], 2, cannot_link=[(0, 3)])
    answer = one.run(problem, 20.0, 0)
    assert answer.labels is not None
    assert recomputed_cost(problem, answer.labels) == pytest.approx(1.0)
    assert answer.lower_bound == pytest.approx(1.0, rel=2e-3)
    assert one.skip(Sizes(10_000, 2, 3, 0, 0, 10_000), 20.0)


def test_grouped_rows_have_root_gap_and_trace():
    problem = Instance("Syn-1200", "ML", 2).build(None).problem
    answer = GROUPED.run(problem, 5.0, 0)
    root = answer.details["root"]
    assert 0.0 <= root["lower_bound"] <= root["cost"]
    assert answer.lower_bound is not None
    assert root["lower_bound"] <= answer.lower_bound
    assert answer.trace[-1][2] == answer.lower_bound


def test_row_without_labels_is_written(tmp_path):
    # Three points apart and two clusters: the bound is infinite, which JSON has no word for.
    problem = Problem.from_data([[0.0], [1.0], [2.0]], 2, cannot_link=[(0, 1), (1, 2), (2, 0)])
    answer = CLUSTER.run(problem, 5.0, 0)
    assert (answer.labels, answer.lower_bound) == (None, None)
    row = ResultRow(SMALL.name, CLUSTER.name, 5.0, 0, answer.stop_reason,
              lower_bound=answer.lower_bound, trace=answer.trace, details=answer.details,
    )  # fmt: skip
    append(tmp_path / "rows.jsonl", row)
    assert load(tmp_path / "rows.jsonl")[0].gap is None


def test_cluster_bound_stays_cluster_bound():
    # Noise in ten axes, where the defaults do.
    points = np.random.default_rng(0).normal(size=(20, 10))
    answer = CLUSTER.run(Problem.from_data(points, 3), 2.0, 0)
    assert answer.details["bound"] != "sdp"


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_has_rows_with_known_solvers(experiment):
    rows = requests(experiment)
    assert rows
    assert {row.solver.name for row in rows} <= SOLVERS.keys()
    assert all(row.limit == 3.0 for row in requests(experiment, limit=3.0))


def test_limits_of_single_solvers():
    parser = argparse.ArgumentParser()
    add_options(parser)
    given = parser.parse_args(["--limit-of", "scip=30", "--limit-of", "heuristics=15"]).limit_of
    assert given[0] == {"scip": 30.0}
    limit_of = given[0] | given[1]
    limits = {one.solver.name: one.limit for one in requests("1", limit_of=limit_of)}
    assert limits == LIMITS | limit_of
    assert limits["cop-kmeans"] == limits["sensitivity-coreset"] == 15.0
    others = {one.limit for one in requests("1", limit=9.0, limit_of=limit_of)}
    assert others == {9.0, 15.0, 30.0}


@pytest.mark.parametrize("text", ["scip", "scip=", "scip=-1", "cplex=3"])
def test_invalid_limits_are_rejected(text, capsys):
    parser = argparse.ArgumentParser()
    add_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--limit-of", text])
    assert "heuristics" in capsys.readouterr().err


def test_estimate_excludes_skipped_rows():
    small, large = (RunRequest(Instance(name, "ML"), Liar(), 60.0) for name in ("Iris", "Hemi"))
    assert estimate_minutes([small])[1] > 1.0
    assert estimate_minutes([large]) == (0.0, 0.0)


@pytest.mark.parametrize("instance", [Instance("Syn-1200", "ML+CL"), Instance("Iris", "CL")])
def test_nominal_sizes(instance):
    nominal, found = nominal_sizes(instance), Sizes.of(instance.build(None).problem)
    assert nominal.n_groups <= found.n_groups
    assert dataclasses.replace(nominal, n_groups=found.n_groups) == found


def test_estimated_total_time():
    rows = runner.unique([row for name in EXPERIMENTS for row in requests(name)])
    likely, most = estimate_minutes(rows)
    assert likely < 65
    assert most < 150
    assert set(LIMITS) <= SOLVERS.keys()


def test_page_depends_on_rows_only(tmp_path):
    sizes = Sizes(150, 4, 3, 0, 50, 150)
    here = {"cores": 2, "commit": "abc", "numpy": "2"}
    trace = ((0.01, 90.0, 10.0), (0.05, 80.3, 80.25))
    shared = {"limit": 5.0, "seed": 0, "sizes": sizes, "about": here, "pairs_broken": 0}
    rows = [
        ResultRow(SMALL.name, "certikmeans/cluster", stop_reason="gap_reached", cost=80.3,
            lower_bound=80.25, nodes=1, seconds=0.1, trace=trace,
            pairs="published, iris/x", **shared),
        ResultRow(SMALL.name, "blpkm-cc", stop_reason="converged", cost=80.2, seconds=0.05,
            details={"runs": 7}, **shared),
        ResultRow(SMALL.name, "scip", stop_reason=KILLED, note="late", **shared),
    ]  # fmt: skip
    path = tmp_path / "paper.jsonl"
    for row in rows:
        append(path, row)
    assert load(path) == rows
    text = " ".join(write_report(load(path), tmp_path).read_text().split())  # as one line
    assert "best heuristic: blpkm-cc" in text
    assert "1 lower bounds above a cost" in text  # 80.25 against 80.2
    assert "cheaper than ours** (by more than 1e-06): 1" in text
    assert "Table 2 Iris: 80.3000 against 80.21" in text
    assert (tmp_path / "paper_gap.png").is_file()


class Picky(AbstractSolver):
    """Finds out late that it does not take the problem."""

    name: ClassVar[str] = "picky"

    def run(self, problem, limit, seed):
        raise SkipError("not this one")


def test_skip_after_reading_the_problem(in_thread, tmp_path):
    results = tmp_path / "rows.jsonl"
    runner.run_all([RunRequest(SMALL, Picky(), 1.0)], results, None)
    (row,) = load(results)
    assert (row.stop_reason, row.note) == (SKIPPED, "not this one")
    assert row.sizes is not None


def test_unsupported_bound_is_a_skip(monkeypatch):
    def refuse(*_, **__):
        raise InputError("bound: too many groups for it", hint="ask for another")

    monkeypatch.setattr(certikmeans_solver, "solve", refuse)
    with pytest.raises(SkipError, match="too many groups"):
        CertikmeansSolver(bound="sdp").run(Problem.from_data([[0.0], [1.0]], 2), 5.0, 0)


def test_rows_of_other_commits_run_again():
    request = RunRequest(SMALL, Liar(), 1.0)
    row = empty_row(request, "optimal", "", about={"commit": "abc"})
    for commit, missing in ((None, []), ("abc", []), ("abd", [request]), ("abc+", [request])):
        assert runner.pending([request], [row], again=False, commit=commit) == missing
    changing = empty_row(request, "optimal", "", about={"commit": "abc+"})
    assert runner.pending([request], [changing], again=False, commit="abc+") == [request]
    assert runner.pending([request], [row], again=True) == [request]


def test_other_options_are_another_row():
    keys = {RunRequest(SMALL, CertikmeansSolver(gap=gap), 1.0).key for gap in (1e-3, 1e-6)}
    assert len(keys) == 2
    request = RunRequest(SMALL, CertikmeansSolver(), 1.0)
    assert empty_row(request, KILLED, "").key == request.key


def test_kmeans_rows_report_violated_pairs(in_thread, tmp_path):
    results = tmp_path / "rows.jsonl"
    apart = Instance("Syn-1200", "CL", 2)
    runner.run_all([RunRequest(apart, KMeansStarts(2), 1.0)], results, None)
    (row,) = load(results)
    assert row.cost is not None
    assert row.gap is None
    assert row.lower_bound is None


def test_rows_have_value_of_every_bound_and_certificate():
    problem = Problem.from_data([[0.0], [1.0], [9.0], [10.0], [4.0]], 2, cannot_link=[(0, 3)])
    answer = CertikmeansSolver(certify=True).run(problem, 20.0, 0)
    assert answer.details["certificate"]["accepted"]
    assert answer.details["certificate"]["size"] > 0
    reached = [one["lower_bound"] for one in answer.details["bounds"].values()]
    assert max(reached) == answer.lower_bound
