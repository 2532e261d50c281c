"""Workers that sleep: the same tree as with one, and sooner."""

from __future__ import annotations

from concurrent.futures import wait

import pytest
from benchmarks.datasets.recipes import crossed
from benchmarks.solvers import emulated
from benchmarks.solvers.emulated import EmulatedClusterSolver, EmulatedWorkers, Recorder
from benchmarks.studies import executors

from certikmeans.bounds.partition import run as partition
from certikmeans.parallel import dispatch_policy
from certikmeans.parallel.worker import run_batch


def test_the_same_answer_from_what_was_recorded():
    problem = crossed(60, 3, 5, 120, 2).problem
    solver = EmulatedClusterSolver(gap=1e-5, node_limit=9, workers=(1, 4))
    before = dispatch_policy.OFFLOAD_AFTER_SECONDS, partition.seconds_per_iteration
    answer = solver.run(problem, 60.0, 0)
    assert before == (dispatch_policy.OFFLOAD_AFTER_SECONDS, partition.seconds_per_iteration)
    assert answer.nodes > 3
    assert answer.details["tasks"] >= answer.nodes - 3  # the first two are done here
    runs = answer.details["runs"]
    assert set(runs) == {"1", "4"}
    for run in runs.values():
        assert run["same"]
        assert run["same_bound"]
    assert runs["1"]["unknown"] <= 4  # with one worker, hardly anything is done in vain


class Part:
    """A number."""

    def __init__(self, number):
        self.together, self.apart = number, ()


class Task:
    """Of a tree, about one number."""

    def __init__(self, number):
        self.part = Part(number)
        self.target = 0.0


def number_of(task):
    return task.part.together


@pytest.mark.parametrize("workers", [1, 4])
def test_tasks_take_as_long_as_they_did(workers, monkeypatch):
    """Eight tasks of 0.1 s each."""
    monkeypatch.setattr(emulated, "LATENCY", 0.0)
    recorder, tasks = Recorder(), [Task(i) for i in range(8)]
    found = [recorder.submit(run_batch, number_of, [task]).result() for task in tasks]
    assert [one.done[0].answer for one in found] == list(range(8))
    slow = {key: (packed, 0.1) for key, (packed, _) in recorder.answers.items()}
    sleepers = EmulatedWorkers(workers, slow)
    running = [sleepers.submit(run_batch, number_of, [task]) for task in tasks]
    early = wait(running, timeout=0.5 * 0.8 / workers).done
    assert len(early) < 8
    assert [one.result().done[0].answer for one in running] == list(range(8))
    assert sleepers.unknown == 0
    sleepers.shutdown()


def test_a_row_has_two_lines():
    row = type("Row", (), {})()
    same = {"same": True, "same_bound": True}
    runs = {
        "1": {"stages": {"total": 10.0, "search": 8.0}, **same},
        "8": {"stages": {"total": 4.0, "search": 1.0}, **same},
    }
    row.details, row.nodes = {"tasks": 80, "task_seconds": 8.0, "runs": runs}, 81
    whole, tree = executors._emulated_lines("name", row)
    assert whole[:5] == ["name", "whole run", 80, "100", "10"]
    assert whole[6] == "2.5"
    assert tree[1] == "tree"
    assert tree[6] == "8.0"
    assert tree[-1] == "yes"
    runs["8"]["same_bound"] = False  # of a tree, nearly the same is not the same
    assert [line[-1] for line in executors._emulated_lines("name", row)] == ["no", "no"]
