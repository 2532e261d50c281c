"""Speculative evaluation: the tree does not depend on the order in which results arrive."""

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
from certikmeans.parallel import RemoteExecutor
from certikmeans.tree import node as node_module
from certikmeans.tree import speculation as speculation_module
from certikmeans.tree.node import Node
from tests.checkpoint.cases import RUN_SETTINGS, KillAt, Killed, clumps, same

WORKERS = 6


class Unsteady(Executor):
    """Workers that take random times; some tasks fail."""

    def __init__(self, seed=0, fails=0, workers=WORKERS, seconds=0.01):
        self._max_workers = workers
        self._pool = ThreadPoolExecutor(workers)
        self._random = random.Random(seed)
        self._fails = fails
        self._seconds = seconds
        self._lock = threading.Lock()
        self._busy = 0
        self.most_at_once = 0
        self.tasks = 0

    def submit(self, function, /, *arguments, **named):
        delay = self._seconds * self._random.random()
        fails = self._random.random() < self._fails

        def work():
            with self._lock:
                self._busy += 1
                self.tasks += 1
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
def poor_heuristics(monkeypatch):
    """Let the tree find better labellings, which discards speculative results."""

    def use_feasible_labels(ctx, assigner, starts):
        ctx.incumbent.update_incumbent(ctx.feasible_labels, "feasible labels")

    monkeypatch.setattr("certikmeans.solver.run.run_heuristics", use_feasible_labels)


# The bound alone would find good labellings at the root.
BOUND = {"bound": "sample", "node_limit": 71}


@pytest.mark.parametrize("branching", ["centers", "pairs"])
@pytest.mark.parametrize("selection", ["best", "depth", "mixed"])
@pytest.mark.parametrize("seed", range(2))
def test_tree_is_independent_of_workers(poor_heuristics, seed, selection, branching):
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
    assert better, "nothing was discarded"


def evaluations(monkeypatch):
    """Domains in the order of their evaluation."""
    done, compute = [], node_module.compute

    def watched(shared, task):
        done.append((task.domain.must_link, task.domain.cannot_link))
        return compute(shared, task)

    monkeypatch.setattr(speculation_module, "compute", watched)
    return done


def test_workers_are_busy(monkeypatch):
    """No domain is evaluated twice, and few that are not needed."""
    seen = evaluations(monkeypatch)
    settings = {"bound": "sample", "branching": "pairs", "node_limit": 201}
    executor = Unsteady(seconds=0.1)
    result = solve(clumps(), jobs=1, executor=executor, **settings)
    executor.shutdown()
    assert len(set(seen)) == len(seen)
    assert executor.most_at_once == WORKERS
    # Beyond the last node: at most the results that are kept.
    assert result.nodes - 1 <= len(seen) <= result.nodes + 64 + 8 * 4 * WORKERS


@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_data_sent_once_per_tree(poor_heuristics, branching):
    """Shared data once, and small tasks, also when the incumbent changes."""
    sizes, nodes, changes = [], [0], []

    class Measured(Unsteady):
        def submit(self, function, /, *arguments, **named):
            sizes.append(len(pickle.dumps(arguments[1])))
            return super().submit(function, *arguments, **named)

    def listen(event):
        if isinstance(event, TreeProgress):
            nodes.append(event.nodes)
        elif isinstance(event, IncumbentFound):
            changes.append(nodes[-1])

    one = Measured(workers=1)
    remote = RemoteExecutor(one)
    problem = clumps(seed=3)
    many = Problem.from_data(
        np.repeat(problem.points, 200, axis=0),
        4,
        must_link=[(200 * i, 200 * i + j) for i in range(30) for j in range(1, 200)],
        cannot_link=200 * problem.cannot_link,
    )
    settings = {**BOUND, "branching": branching}
    solve(many, jobs=1, executor=remote, callbacks=[listen], **settings)
    one.shutdown()
    assert max(changes) > 1, "the incumbent has not changed within the tree"
    assert len(sizes) > 60
    assert remote.n_data_sent == 1
    assert max(sizes) < 4_000  # 6,000 points


@pytest.mark.parametrize("selection", ["best", "depth", "mixed"])
def test_branched_nodes_are_released(selection):
    """Candidates for speculation must not accumulate where nothing is speculative."""
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
    # Children of the next node, and what is not compacted yet.
    assert all(alive <= 2 * open_nodes + 150 for alive, open_nodes in most), most


@pytest.mark.parametrize("at", [12, 40, 90])
def test_speculative_results_are_saved(monkeypatch, tmp_path, at):
    """Killed with many workers, resumed with one: known results are not computed again."""
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
        # Only what was running when the process was killed is computed again.
        assert len(before & set(done)) <= 2 * 2 * WORKERS


@pytest.mark.parametrize("heuristics", ["good", "poor"])
def test_resume_after_interrupt(request, heuristics, tmp_path):
    """Interrupted with many workers, resumed with few: as if it had not been interrupted.

    A result that was cut short may hold a better labelling: it is kept, but the tree must not use
    it before its turn.
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


def test_speculative_results_count_at_the_stop():
    """Interrupted with many speculative results: the bound includes them."""
    improved = 0
    for nodes in (9, 15, 21, 27):
        stop, executor, bounds = StopSignal(), Unsteady(nodes), []

        def pull(event, stop=stop, nodes=nodes, bounds=bounds):
            if isinstance(event, TreeProgress) and stop.reason() is None:
                bounds.append(event.lower_bound)
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
        assert result.lower_bound == result.proof.lower_bound >= bounds[-1]
        improved += result.lower_bound > bounds[-1]
    assert improved, "no result was speculative"


def test_resume_after_worker_failure(tmp_path):
    """A run that ended by failing workers can be resumed."""
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
    """Another feasible labelling, with one point moved."""
    for point in range(problem.n_points):
        for cluster in range(problem.n_clusters):
            other = labels.copy()
            other[point] = cluster
            first, second = problem.cannot_link.T
            if cluster != labels[point] and (other[first] != other[second]).all():
                return other
    raise AssertionError("there is none")


def test_early_incumbent_is_deferred(tmp_path):
    """A labelling better than that of the tree is saved, and returned at the end."""
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
