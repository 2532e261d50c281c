"""Parts bounded ahead of their turn: answers are those of one worker, whoever is done first."""

from __future__ import annotations

import gc
import pickle
import random
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from certikmeans import Problem, StopReason, StopSignal, solve
from certikmeans.checkpoint.file import decode
from certikmeans.checkpoint.resume import resume
from certikmeans.events import CheckpointOpportunity, IncumbentFound, TreeProgress
from certikmeans.options import Options
from certikmeans.parallel import RemoteExecutor, TaskPool, resolve
from certikmeans.tree import node as node_module
from certikmeans.tree import speculation as speculation_module
from certikmeans.tree.node import Node
from tests.checkpoint.cases import RUN_SETTINGS, KillAt, Killed, clumps, same

WORKERS = 6


class Unsteady(Executor):
    """Workers of which nobody knows who is done first; some tasks are tried in vain."""

    def __init__(self, seed=0, fails=0, workers=WORKERS):
        self._max_workers = workers
        self._pool = ThreadPoolExecutor(workers)
        self._random = random.Random(seed)
        self._fails = fails
        self._lock = threading.Lock()
        self._busy = 0
        self.most_at_once = 0
        self.tasks = 0

    def submit(self, function, /, *arguments, **named):
        if function.__name__ != "run_batch":
            return self._pool.submit(function, *arguments, **named)
        delay, fails = 0.01 * self._random.random(), self._random.random() < self._fails

        def work():
            with self._lock:
                self._busy += 1
                self.tasks += len(arguments[1])
                self.most_at_once = max(self.most_at_once, self._busy)
            time.sleep(delay)
            with self._lock:
                self._busy -= 1
            if fails:
                raise ConnectionError("gone")
            return function(*arguments, **named)

        return self._pool.submit(work)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


@pytest.fixture
def always_far(monkeypatch):
    monkeypatch.setattr(TaskPool, "pays", lambda self, remote, count: True)


@pytest.fixture
def poor_heuristics(monkeypatch):
    """So that better labellings are found in the tree: that throws away what is ahead."""

    def offer_the_witness(workshop, patient, starts):
        workshop.incumbent.update_incumbent(workshop.feasible_labels, "witness")

    monkeypatch.setattr("certikmeans.solver.run.run_heuristics", offer_the_witness)


# The bound alone would find good labellings at the root.
BOUND = {"bound": "sample", "node_limit": 71}


@pytest.mark.parametrize("branching", ["centers", "pairs"])
@pytest.mark.parametrize("selection", ["best", "depth", "mixed"])
@pytest.mark.parametrize("seed", range(2))
def test_the_same_tree_whoever_is_done_first(
    always_far, poor_heuristics, seed, selection, branching
):
    problem, better = clumps(seed=seed), []
    settings = {**BOUND, "selection": selection, "branching": branching}

    def listen(event):
        if isinstance(event, IncumbentFound) and event.source == "tree":
            better.append(event.cost)

    alone = solve(problem, jobs=1, callbacks=[listen], **settings)
    assert alone.nodes > 20
    assert same(solve(problem, jobs=3, **settings), alone)
    executor = Unsteady(seed, fails=0.01)
    assert same(solve(problem, jobs=1, executor=executor, **settings), alone)
    executor.shutdown()
    assert executor.most_at_once > 2
    assert executor.tasks >= alone.nodes - 1
    assert better, "nothing was thrown away"


def evaluations(monkeypatch):
    """Parts, as they are bounded."""
    done, compute = [], node_module.compute

    def watched(shared, task):
        done.append((task.domain.must_link, task.domain.cannot_link))
        return compute(shared, task)

    monkeypatch.setattr(speculation_module, "compute", watched)
    return done


def test_workers_are_busy_with_what_comes_next(always_far, monkeypatch):
    """Nothing is bounded twice, and hardly anything in vain."""
    seen = evaluations(monkeypatch)
    settings = {"bound": "sample", "branching": "pairs", "node_limit": 201}
    executor = Unsteady()
    result = solve(clumps(), jobs=1, executor=executor, **settings)
    executor.shutdown()
    assert len(set(seen)) == len(seen)
    assert executor.most_at_once == WORKERS
    # Beyond the last node: at most what waits for a turn.
    assert result.nodes - 1 <= len(seen) <= result.nodes + 64 + 8 * 4 * WORKERS


@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_data_are_sent_once_however_often_the_incumbent_changes(
    always_far, poor_heuristics, monkeypatch, branching
):
    """A task takes along no more than what it is about."""
    made, sizes, nodes, changes = [], [], [0], []

    class Counted(RemoteExecutor):  # type: ignore[misc]
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

        def submit(self, function, items, shared=None, **named):
            sizes.extend(len(pickle.dumps(item)) for item in items)
            return super().submit(function, items, shared, **named)

    def listen(event):
        if isinstance(event, TreeProgress):
            nodes.append(event.nodes)
        elif isinstance(event, IncumbentFound):
            changes.append(nodes[-1])

    monkeypatch.setattr(resolve, "RemoteExecutor", Counted)
    one = Unsteady(workers=1)
    problem = clumps(seed=3)
    many = Problem.from_data(
        np.repeat(problem.points, 200, axis=0),
        4,
        must_link=[(200 * i, 200 * i + j) for i in range(30) for j in range(1, 200)],
        cannot_link=200 * problem.cannot_link,
    )
    settings = {**BOUND, "branching": branching}
    solve(many, jobs=1, executor=one, callbacks=[listen], **settings)
    one.shutdown()
    assert max(changes) > 1, "it has not changed in the midst of the tree"
    assert len(sizes) > 60
    assert made[0].data_sent == 1
    assert max(sizes) < 4_000  # 6,000 points


@pytest.mark.parametrize("selection", ["best", "depth", "mixed"])
def test_nodes_whose_turn_came_are_forgotten(selection):
    """One thread never works ahead: what might have been worked on must not pile up."""
    most = []

    def listen(event):
        if isinstance(event, TreeProgress) and event.nodes % 100 == 1:
            gc.collect()
            alive = sum(isinstance(one, Node) for one in gc.get_objects())
            most.append((alive, event.open_nodes))

    result = solve(
        clumps(40),
        jobs=1,
        bound="sample",
        selection=selection,
        node_limit=2_001,
        callbacks=[listen],
    )
    assert result.nodes > 1_500
    assert len(most) > 10
    # Parts of the next node, and what may stay behind for a while.
    assert all(alive <= 2 * open_nodes + 150 for alive, open_nodes in most), most


@pytest.mark.parametrize("at", [12, 40, 90])
def test_what_is_known_ahead_is_saved(always_far, monkeypatch, tmp_path, at):
    """Killed with many workers, resumed with one: what was known is not worked out again."""
    settings, path = {**RUN_SETTINGS["sample, mixed"], "branching": "pairs"}, tmp_path / "state"
    whole, problem = solve(clumps(), jobs=1, **settings), clumps()
    done = evaluations(monkeypatch)
    executor = Unsteady(at)
    with pytest.raises(Killed):
        solve(
            problem,
            jobs=1,
            executor=executor,
            checkpoint=path,
            checkpoint_interval=0,
            callbacks=[KillAt(at)],
            **settings,
        )
    executor.shutdown()
    state = decode(path.read_bytes(), path).state.tree
    cached_children = len(state.cached_children) if state is not None else 0
    before = set(done)
    done.clear()
    assert same(solve(problem, jobs=1, resume=path, **settings), whole)
    if state is not None:
        assert cached_children + state.nodes > 3
        assert len(done) <= whole.nodes - state.nodes
        # Only what was on its way when the run was killed is done again.
        assert len(before & set(done)) <= 2 * 2 * WORKERS


@pytest.mark.parametrize("heuristics", ["good", "poor"])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(
    always_far, request, heuristics, tmp_path
):
    """Stopped by hand with many workers, gone on with few.

    Where better labellings are found in the tree, what was cut short may hold one: it is not lost,
    but the tree must not know of it before its turn.
    """
    if heuristics == "poor":
        request.getfixturevalue("poor_heuristics")
    settings, path = {"bound": "sample", "branching": "pairs", "node_limit": 99}, tmp_path / "state"
    problem = clumps()
    whole = solve(problem, jobs=1, **settings)
    for nodes in (5, 21, 60):
        stop, executor = StopSignal(), Unsteady(nodes)

        def pull(event, stop=stop, nodes=nodes):
            if isinstance(event, TreeProgress) and event.nodes >= nodes:
                stop.interrupt()

        first = solve(
            problem, executor=executor, checkpoint=path, callbacks=[pull], stop=stop, **settings
        )
        executor.shutdown()
        assert first.nodes <= whole.nodes
        assert first.lower_bound <= whole.cost
        saved = decode(path.read_bytes(), path)
        assert np.array_equal(saved.essence.labels, first.labels)
        again = solve(problem, jobs=2, resume=path, **settings)
        assert same(again, whole)
        assert again.cost <= first.cost


def test_what_was_known_ahead_is_told_at_the_end(always_far):
    """Stopped with many parts known ahead of their turn: what they prove is in the result."""
    improved = 0
    for nodes in (9, 15, 21, 27):
        stop, executor, told = StopSignal(), Unsteady(nodes), []

        def pull(event, stop=stop, nodes=nodes, told=told):
            if isinstance(event, TreeProgress) and stop.reason() is None:
                told.append(event.lower_bound)
                if event.nodes >= nodes:
                    stop.interrupt()

        result = solve(
            clumps(),
            executor=executor,
            callbacks=[pull],
            stop=stop,
            bound="sample",
            branching="pairs",
            node_limit=999,
            keep_proof=True,
        )
        executor.shutdown()
        assert result.stop_reason is StopReason.INTERRUPTED
        assert result.lower_bound == result.proof.lower_bound >= told[-1]
        improved += result.lower_bound > told[-1]
    assert improved, "nothing was known ahead"


def test_after_a_failure_the_rest_is_exact(always_far, tmp_path):
    """A run that ends because workers fail goes on from there."""
    settings, path = {"bound": "sample", "branching": "pairs", "node_limit": 99}, tmp_path / "state"
    problem = clumps()
    whole = solve(problem, jobs=1, **settings)

    class Ending(Unsteady):
        def submit(self, function, /, *arguments, **named):
            if self.tasks > 30:
                raise OSError("the machine is gone")
            return super().submit(function, *arguments, **named)

    executor = Ending()
    broken = solve(problem, jobs=1, executor=executor, checkpoint=path, **settings)
    executor.shutdown()
    assert "the machine is gone" in broken.failure
    assert broken.nodes < whole.nodes
    assert broken.lower_bound <= whole.lower_bound
    assert same(solve(problem, jobs=1, resume=path, **settings), whole)


def slightly_worse(problem, labels):
    """Another proper labelling: one point is somewhere else."""
    for point in range(problem.n_points):
        for cluster in range(problem.n_clusters):
            other = labels.copy()
            other[point] = cluster
            first, second = problem.cannot_link.T
            if cluster != labels[point] and (other[first] != other[second]).all():
                return other
    raise AssertionError("there is none")


def test_what_was_found_too_early_is_kept_for_the_end(tmp_path):
    """A better labelling than the tree goes on with: always saved, and told in the end."""
    settings, path, problem = {"bound": "sample", "branching": "pairs"}, tmp_path / "s", clumps()
    best = solve(problem, node_limit=3, checkpoint=path, **settings)
    saved = resume(path, problem, Options().changed(node_limit=9, **settings))
    tree = replace(saved.state.tree, labels=slightly_worse(problem, best.labels))
    seen, costs = [], []

    def listen(event):
        if isinstance(event, CheckpointOpportunity):
            seen.append(event.essence().labels)
        elif isinstance(event, IncumbentFound):
            costs.append(event.cost)

    before = replace(saved, state=replace(saved.state, tree=tree))
    again = solve(problem, node_limit=9, resume=before, callbacks=[listen])
    assert costs[0] > best.cost
    assert costs[-1] == again.cost == best.cost
    assert np.array_equal(again.labels, best.labels)
    assert len(seen) > 3
    assert all(np.array_equal(labels, best.labels) for labels in seen)
