"""Parts of the tree: node queue, proof tree, splits, failing workers, all executors."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

import certikmeans.options as options_module
from certikmeans import Problem, Status, StopReason, StopSignal, solve
from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.base import BoundInput, BoundResult, FractionalSolution
from certikmeans.bounds.grouped import GroupedBound
from certikmeans.bounds.ryan_foster import fractional_pairs
from certikmeans.bounds.sample import MAX_VERIFIED_CYCLIC_COMPONENT
from certikmeans.certificate import check_coloring
from certikmeans.errors import BoundError, InputError
from certikmeans.events import NodeClosed, StageStarted, TreeProgress
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.data import Domain
from certikmeans.proof import CenterSplit, LeafProof
from certikmeans.tolerances import check_bound
from certikmeans.tree.center_branching import (
    CenterBranching,
    CenterSplitter,
    is_empty,
    tighten_by_order,
)
from certikmeans.tree.node import Node, NodeOutcome, NodeQueue, NodeTask, ProofTree
from certikmeans.tree.pair_branching import undecided_pair
from tests.clock import timed
from tests.tree.helpers import entangled


def node(number, bound, depth=0):
    return Node(number, -1, depth, None, bound, LeafProof("trivial"))


class TestStore:
    def fill(self, selection):
        node_queue = NodeQueue(selection)
        for number, (bound, depth) in enumerate([(3.0, 1), (1.0, 2), (2.0, 3), (1.0, 3)]):
            node_queue.push(node(number, bound, depth))
        return node_queue

    def test_best_bound_first_older_on_ties(self):
        node_queue = self.fill("best")
        assert [node_queue.pop().number for _ in range(4)] == [1, 3, 2, 0]

    def test_depth_first(self):
        node_queue = self.fill("depth")
        assert [node_queue.pop().number for _ in range(4)] == [3, 2, 1, 0]

    def test_mixed_takes_turns(self):
        node_queue = self.fill("mixed")
        assert [node_queue.pop().number for _ in range(3)] == [3, 2, 1]
        assert node_queue.pop().number == 0

    @pytest.mark.parametrize("selection", ["best", "depth", "mixed"])
    def test_least_bound_is_right_after_any_take(self, selection):
        node_queue = self.fill(selection)
        while len(node_queue):
            assert node_queue.lower_bound == min(n.bound for n in node_queue.nodes())
            node_queue.pop()
        assert node_queue.lower_bound == float("inf")


class TestLedger:
    def test_a_node_leaves_once(self):
        proof_tree = ProofTree()
        one = node(0, 1.0)
        proof_tree.open(one)
        proof_tree.close(one, NodeOutcome.PRUNED)
        with pytest.raises(RuntimeError, match="not open"):
            proof_tree.close(one, NodeOutcome.PRUNED)
        with pytest.raises(RuntimeError, match="not open"):
            proof_tree.close(node(5, 1.0), NodeOutcome.PRUNED)

    def test_least_closed_bound_ignores_empty_parts(self):
        proof_tree = ProofTree()
        for number, (bound, reason) in enumerate(
            [
                (5.0, NodeOutcome.PRUNED),
                (float("inf"), NodeOutcome.INFEASIBLE),
                (4.0, NodeOutcome.UNSPLITTABLE),
            ]
        ):
            proof_tree.open(node(number, bound))
            proof_tree.close(node(number, bound), reason)
        assert proof_tree.closed_bound == 4.0
        assert proof_tree.outcomes == {
            NodeOutcome.PRUNED: 1,
            NodeOutcome.INFEASIBLE: 1,
            NodeOutcome.UNSPLITTABLE: 1,
        }

    def test_proof_is_the_tree_in_preorder(self):
        proof_tree = ProofTree(keep_proof=True)
        root, left, right = node(0, 0.0), node(1, 1.0), node(2, 2.0)
        proof_tree.open(root)
        split = CenterSplit(0, 0, 0.5)
        proof_tree.replace(root, split, [left, right])
        proof_tree.close(left, NodeOutcome.PRUNED)
        assert proof_tree.proof_nodes(0, [right]) == (split, left.leaf, right.leaf)


def reduced_of(points, k, **pairs):
    return presolve(Problem.from_data(points, k, **pairs), StopSignal()).reduced


@pytest.mark.parametrize("seed", range(40))
def test_children_cover_all_ordered_centres(seed):
    rng = np.random.default_rng(seed)
    reduced = reduced_of(rng.normal(size=(12, 2)), 3)
    splitter = CenterSplitter(reduced)
    children = [Domain.root(reduced)]
    for depth in range(6):
        splits = [splitter.choose(domain, None, depth) for domain in children]
        children = [
            child
            for domain, split in zip(children, splits, strict=True)
            for child in splitter.children(domain, split)
            if not is_empty(child)
        ]
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    for _ in range(200):
        centres = rng.uniform(low, high, size=(3, 2))
        centres = centres[np.argsort(centres[:, 0])]
        assert any(
            (centres >= domain.lower).all() and (centres <= domain.upper).all()
            for domain in children
        )


def test_order_can_empty_a_child():
    domain = Domain(np.array([[5.0], [0.0]]), np.array([[9.0], [4.0]]))
    assert is_empty(tighten_by_order(domain))


def test_fractional_solution_selects_split():
    reduced = reduced_of(np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 0.1], [10.0, 3.0]]), 2)
    inside = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 1]], dtype=np.uint8)
    centers = np.stack([inside @ reduced.points[:, j] / inside.sum(axis=1) for j in range(2)], 1)
    fractional = FractionalSolution(inside, centers, np.array([1.0, 0.5, 0.5]), ((0, 1),) * 3)
    root = Domain.root(reduced)
    split = CenterSplitter(reduced).choose(root, fractional, 0)
    # Between the two means that compete for a cluster, which the middle of the box is not.
    competing = np.sort(centers[1:, 0])
    assert split.axis == 0
    assert competing[0] < split.value < competing[1]
    middle = CenterSplitter(reduced).choose(root, None, 0).value
    assert not competing[0] < middle < competing[1]
    [pair] = fractional_pairs(reduced, fractional, 1)
    assert pair is not None
    together = inside[:, pair[0]] * inside[:, pair[1]] @ fractional.weights
    assert 0.0 < together < 1.0


def test_integral_solution_has_no_fractional_pair():
    reduced = reduced_of(np.array([[0.0], [1.0], [9.0], [10.0]]), 2)
    inside = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=np.uint8)
    fractional = FractionalSolution(inside, np.zeros((2, 1)), np.ones(2), ((0, 1),) * 2)
    assert fractional_pairs(reduced, fractional, 1) == []


def test_undecided_pairs_run_out():
    points = np.arange(4.0)[:, None]
    decided = list(itertools.combinations(range(4), 2))
    assert undecided_pair(reduced_of(points, 4, cannot_link=decided)) is None
    assert undecided_pair(reduced_of(points, 4, cannot_link=decided[:-1])) is not None


def hard(n=28, k=3, seed=5):
    rng = np.random.default_rng(seed)
    return Problem.from_data(
        rng.uniform(size=(n, 2)), k, cannot_link=[(0, 1), (1, 2), (2, 0), (5, 6), (7, 8)]
    )


OPTIONS = {"gap": 1e-3, "bound": "grouped", "node_limit": 40}


@pytest.mark.parametrize("branching", ["centers", "pairs"])
@pytest.mark.parametrize("bound", ["grouped", "sample", "cluster"])
def test_same_answer_for_any_number_of_workers(branching, bound):
    options = {**OPTIONS, "branching": branching, "bound": bound, "gap": 1e-7, "node_limit": 10}
    problem = entangled()
    alone = solve(problem, jobs=1, **options)
    threads = solve(problem, jobs=3, **options)
    with ThreadPoolExecutor(2) as executor:
        given = solve(problem, jobs=1, executor=executor, **options)
    assert alone.nodes > 1
    for other in (threads, given):
        assert other.cost == alone.cost
        assert other.lower_bound == alone.lower_bound
        assert other.nodes == alone.nodes


# Little work: nodes end before their bound has converged, and a gap that they do not reach.
@pytest.mark.parametrize(
    ("bound", "seconds"), [("sample", 2e-2), ("grouped", 1e-3), ("cluster", 1e-3), ("sdp", 1e-3)]
)
def test_work_limit_of_the_tree(bound, seconds, monkeypatch):
    monkeypatch.setattr(options_module, "TREE_SECONDS_WITHOUT_LIMIT", seconds)
    problem = entangled()
    alone = solve(problem, jobs=1, bound=bound, gap=1e-10)
    threads = solve(problem, jobs=3, bound=bound, gap=1e-10)
    with ThreadPoolExecutor(2) as executor:
        given = solve(problem, jobs=1, bound=bound, gap=1e-10, executor=executor)
    further = solve(problem, bound=bound, gap=1e-10, node_limit=alone.nodes + 4)
    assert alone.stop_reason is StopReason.NODE_LIMIT
    assert 3 <= alone.nodes < further.nodes
    for other in (threads, given):
        assert other.cost == alone.cost
        assert other.lower_bound == alone.lower_bound
        assert other.nodes == alone.nodes


@pytest.mark.parametrize("branching", ["pairs", pytest.param("centers", marks=pytest.mark.slow)])
def test_processes_give_the_same_answer(branching):
    options = {**OPTIONS, "branching": branching, "bound": "cluster", "gap": 1e-7, "node_limit": 7}
    problem = entangled()
    alone = solve(problem, jobs=1, **options)
    with ProcessPoolExecutor(2) as executor:
        others = solve(problem, jobs=1, executor=executor, **options)
    assert (others.cost, others.lower_bound, others.nodes) == (
        alone.cost,
        alone.lower_bound,
        alone.nodes,
    )


class Failing(Executor):
    """Works for a while, then every task raises."""

    def __init__(self, after):
        self.left = after
        self.lock = threading.Lock()

    def submit(self, function, /, *arguments, **named):
        future = Future()
        with self.lock:
            self.left -= 1
            broken = self.left < 0
        try:
            if broken:
                raise OSError("the machine is gone")
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def hard_for(bound):
    """One that the bound does not close at the root."""
    return entangled() if bound == "cluster" else hard(40, 4)


@cache
def honest_cost(bound):
    honest = solve(hard_for(bound), gap=1e-3, time_limit=60)
    assert honest.status is Status.OPTIMAL
    return honest.cost


@pytest.mark.parametrize("after", [0, 3, 12, 40])
@pytest.mark.parametrize("branching", ["centers", "pairs"])
@pytest.mark.parametrize("bound", ["cluster", "grouped"])
def test_failed_worker_proves_nothing(after, branching, bound):
    problem = hard_for(bound)
    options = {**OPTIONS, "gap": 1e-9, "bound": bound, "branching": branching}
    result = solve(problem, executor=Failing(after), **options)
    if after == 0:
        assert result.stop_reason is StopReason.WORKER_FAILED
    if result.stop_reason is StopReason.WORKER_FAILED:
        assert result.status is Status.FEASIBLE
        assert "the machine is gone" in result.failure
    assert result.labels is not None
    assert result.lower_bound <= honest_cost(bound) * (1 + 1e-9)


def test_dead_worker_ends_the_run():
    with ProcessPoolExecutor(1) as executor:
        executor.submit(int).result()
        for process in list(executor._processes.values()):
            process.kill()
        result = solve(hard(40, 4), executor=executor, **OPTIONS, branching="centers")
    assert result.stop_reason is StopReason.WORKER_FAILED
    assert result.status is Status.FEASIBLE
    assert np.isfinite(result.cost)


@pytest.mark.parametrize("branching", ["centers", "pairs"])
@timed(3.0)
def test_limits_and_interrupts(branching, seconds):
    options = {"gap": 1e-9, "bound": "grouped", "branching": branching}
    limited = solve(hard(40, 4), node_limit=9, **options)
    assert limited.stop_reason in (StopReason.NODE_LIMIT, StopReason.GAP_REACHED)
    assert limited.nodes <= 9
    brief = solve(hard(200, 5), time_limit=1.0, **options)
    assert brief.stop_reason is StopReason.TIME_LIMIT
    assert brief.seconds["total"] < seconds
    stop = StopSignal()

    def interrupt(event):
        if isinstance(event, TreeProgress) and event.nodes > 1:
            stop.interrupt()

    interrupted = solve(hard(40, 4), stop=stop, callbacks=[interrupt], **options)
    assert interrupted.stop_reason is StopReason.INTERRUPTED
    assert interrupted.lower_bound <= interrupted.cost


def test_events_print_as_short_lines():
    printed = {}
    solve(
        entangled(), callbacks=[lambda event: printed.setdefault(type(event).__name__, repr(event))]
    )
    assert {"CheckpointOpportunity", "NodeClosed", "Finished"} <= set(printed)
    assert max(map(len, printed.values())) < 400
    assert not any("\n" in line for line in printed.values())


def test_every_node_is_closed_once():
    closed, bounds = {}, []

    def listen(event):
        if isinstance(event, NodeClosed):
            assert event.number not in closed
            closed[event.number] = event
        if isinstance(event, TreeProgress):
            bounds.append(event.lower_bound)

    result = solve(hard(), callbacks=[listen], branching="centers", bound="grouped", gap=0.02)
    assert result.status is Status.OPTIMAL
    assert bounds == sorted(bounds)
    for event in closed.values():
        if event.parent >= 0:
            assert closed[event.parent].door == "split"
            assert event.lower_bound >= closed[event.parent].lower_bound


def test_kept_proof_is_a_tree():
    problem = hard(24, 3)
    options = {"branching": "pairs", "gap": 1e-7, "keep_proof": True}
    result = solve(problem, time_limit=20, **options)
    assert result.proof is not None
    assert result.proof.lower_bound == result.lower_bound
    depth = 1
    for one in result.proof.nodes:
        depth += -1 if isinstance(one, LeafProof) else 1
    assert depth == 0


def test_keep_proof_without_certifiable_bound():
    result = solve(hard(40, 4), bound="grouped", keep_proof=True, node_limit=5, gap=1e-9)
    assert result.labels is not None
    assert result.proof is not None


def test_internal_errors_are_raised():
    def broken(event):
        if isinstance(event, TreeProgress) and event.nodes > 1:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        solve(
            hard(40, 4),
            bound="sample",
            branching="centers",
            keep_proof=True,
            node_limit=50,
            callbacks=[broken],
        )


def test_leaf_bounds_are_at_most_their_target():
    # Pairs removed further up are removed for labellings that cost at least the target of then.
    problem = hard(40, 4)
    known = solve(problem, gap=1e-3, time_limit=30)
    presolved = presolve(problem, StopSignal())
    assigner = CannotLinkAssigner(presolved.reduced, presolved.feasible_labels)
    scheme = CenterBranching(presolved, GroupedBound(), BoundInput(presolved.reduced, assigner))
    domain, warm_start, closed = Domain.root(presolved.reduced), None, 0
    cutoff = 0.97 * known.cost
    for depth in range(40):
        task = NodeTask(
            domain, depth, warm_start, cutoff, scheme.incumbent_payload(known.labels), StopSignal()
        )
        answer = scheme.compute(task)
        assert answer.bound <= cutoff or answer.bound == np.inf
        closed += answer.bound == cutoff
        if answer.split is None:
            break
        domain, warm_start = (
            scheme.children(answer.domain, answer.split)[depth % 2],
            answer.warm_start,
        )
    assert closed, "without a part that reaches its target nothing is tested"


def test_nan_is_no_bound():
    with pytest.raises(BoundError, match="not a number"):
        BoundResult(np.nan, LeafProof("sample"))
    with pytest.raises(BoundError):
        check_bound(1.0, np.nan, "sample")


@pytest.mark.parametrize("limit", range(1, 12))
def test_node_limit(limit):
    result = solve(hard(40, 4), bound="grouped", branching="centers", gap=1e-9, node_limit=limit)
    assert result.nodes in (limit, limit - 1)


def test_unsupported_bound_is_rejected_first():
    problem = Problem.from_data(np.random.default_rng(0).normal(size=(2_600, 2)), 3)
    began = []
    with pytest.raises(InputError, match="2600 groups are too many"):
        solve(problem, bound="sdp", callbacks=[lambda e: began.append(e)])
    assert not any(isinstance(e, StageStarted) and e.stage == "heuristics" for e in began)


def test_claims_are_verifiable():
    assert MAX_VERIFIED_CYCLIC_COMPONENT == check_coloring.MAX_EXACT_NODES
