"""The stages in order: presolve, heuristics, bounds, search, result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.assignment import Assigner
from certikmeans.bounds.cluster.bound import ClusterProof, cluster_bound
from certikmeans.bounds.sample import SampleBound
from certikmeans.errors import WorkerError
from certikmeans.events import (
    BoundImproved,
    BoundStatistics,
    Emitter,
    Finished,
    HeuristicProgress,
    IncumbentFound,
    NodeClosed,
    PresolveDone,
    StageFinished,
    StageStarted,
    TreeProgress,
)
from certikmeans.execution import Crew
from certikmeans.heuristics.base import Centers, Labels, Workshop
from certikmeans.heuristics.columns import CandidateCluster, ColumnSearch
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.heuristics.local_search import LocalSearch, means_of
from certikmeans.incumbent import Incumbent
from certikmeans.options import Options
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Proof
from certikmeans.result import Result
from certikmeans.search.bounding import BoundMaker
from certikmeans.search.loop import Hooks, Search, TreeState
from certikmeans.search.node import Answer, Door, Node, Task
from certikmeans.search.tree import Tree, chosen_branching
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopCause, StopSignal
from certikmeans.tolerances import check_bound, gap_reached, relative_gap, target_bound

# Of a time limit, heuristics get at most this much, so that there is time for a proof.
HEURISTICS_SHARE = 0.5
# Where the cluster bound leaves more than this at the root, with at most so many groups, the
# semidefinite bound takes over: many axes without structure are no obstacle to it.
SWITCH_GAP = 0.01
SWITCH_UP_TO = 400
SWITCH_SHARE = 0.25  # of a time limit, for the cluster bound where another may take over


@final
@dataclass(frozen=True, slots=True)
class Crews:
    """Who works: threads share memory with the heuristics; anyone can run bounds."""

    threads: Executor | None
    bounds: Executor | None


@final
class _TreeHooks(Hooks):
    """Passes on what happens in the tree."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def offer(self, labels: Labels) -> None:
        self._run.offer(labels, 0, "tree")

    def bound(self, value: float, source: str) -> None:
        self._run.raise_bound(value, source)

    def closed(self, node: Node[Any], door: Door) -> None:
        emitter = self._run.emitter
        books = (node.number, node.parent, node.depth, str(door), node.bound)
        emitter.emit(NodeClosed(emitter.seconds, *books, part=node.part))

    def progress(self, state: TreeState) -> None:
        emitter = self._run.emitter
        emitter.emit(TreeProgress(emitter.seconds, **dataclasses.asdict(state)))


@final
class Run:
    """One call of `solve`: what is known so far, and the clock."""

    def __init__(
        self,
        problem: Problem,
        options: Options,
        emitter: Emitter,
        stop: StopSignal,
        crews: Crews,
    ) -> None:
        self._problem = problem
        self._crews = crews
        self._options = options
        self.emitter = emitter
        self._stop = stop
        self._incumbent = Incumbent(problem)
        self._lower = 0.0
        self._bound = "trivial"
        self._nodes = 1
        self._node_limit_reached = False
        self._failure: WorkerError | None = None
        self._proof: Proof | None = None
        self._seconds: dict[str, float] = {}

    def execute(self, labels: Labels | None, centers: Centers | None) -> Result:
        """Run the stages; whatever ends them early, return what is known."""
        if labels is not None:
            self.offer(labels, 0, "start labels")
        with self._stage("presolve"):
            reduced = presolve(self._problem, self._stop)
        if isinstance(reduced, InfeasibilityProof):
            return self._finish(infeasibility=reduced)
        self._tell_presolve(reduced)
        witness = reduced.witness
        if witness is None and labels is not None:
            witness = reduced.reduce_labels(labels)
        if witness is None:
            self.raise_bound(reduced.restore_bound(0.0), "trivial")
            return self._finish()

        with self._stage("bounds"):
            assigner = Assigner(reduced.reduced, witness)
            self._sample_bound(reduced, assigner)
        workshop = self._workshop(reduced, assigner, witness)
        with self._stage("heuristics"):
            hurried = workshop.but(
                starts=_starts(reduced, labels, centers),
                stop=self._stop.within(HEURISTICS_SHARE * self._stop.remaining),
            )
            self._find(reduced, hurried, assigner)
        try:
            with threadpool_limits(limits=1):  # small products: more threads get in the way
                self._prove(reduced, assigner, workshop)
        except WorkerError as failure:
            self._failure = failure
        return self._finish()

    def _prove(self, reduced: Presolved, assigner: Assigner, workshop: Workshop) -> None:
        """Raise the bound at the root; if that does not close the gap, in the tree."""
        options = self._options
        bound = "cluster" if options.bound == "auto" else options.bound
        found = None
        if bound == "cluster" and (options.keep_proof or not workshop.finished()):
            with self._stage("bounds"):
                found = self._cluster_bound(reduced, workshop)
        if workshop.finished() and not options.keep_proof:
            return
        with self._stage("search"):
            if self._may_switch(reduced) and self._gap() > SWITCH_GAP:
                tree = self._tree("sdp", reduced, assigner)
                root = Crew().map(tree.root_worker.evaluate, [self._root_task(tree)])[0]
                if root.bound > self._lower:
                    self._grow(tree, lambda _: root, reduced)
                    return
            tree = self._tree(bound, reduced, assigner)
            proof = found
            self._grow(
                tree,
                tree.root_worker.evaluate if proof is None else lambda _: tree.root_from(proof),
                reduced,
            )

    def _tree(self, bound: str, reduced: Presolved, assigner: Assigner) -> Tree:
        options = self._options
        return Tree(
            self._problem,
            reduced,
            assigner,
            BoundMaker(bound, options.gap, options.seed),
            chosen_branching(options.branching, bound, reduced.reduced),
            executor=self._crews.bounds,
            keep_proof=options.keep_proof,
        )

    def _root_task(self, tree: Tree) -> Task[Any]:
        cost, labels = self._known()
        return Task(tree.root, 0, None, target_bound(cost, self._options.gap), labels, self._stop)

    def _sample_bound(self, reduced: Presolved, assigner: Assigner) -> None:
        bound = SampleBound(assigner)
        state = bound.prepare(reduced.reduced)
        root = Subproblem.root(reduced.reduced)
        found = bound.evaluate(state, root, self._incumbent.cost, self._stop)
        self.raise_bound(reduced.restore_bound(found.value), bound.name)

    def _workshop(self, reduced: Presolved, assigner: Assigner, witness: Labels) -> Workshop:
        return Workshop(
            problem=reduced.reduced,
            # Seconds would make the answer depend on the machine, and add up over many trials.
            assigner=assigner.with_hard_seconds(0.0),
            witness=witness,
            stop=self._stop,
            seed=self._options.seed,
            executor=self._crews.threads,
            on_labels=lambda labels, steps, source: self.offer(
                reduced.restore_labels(labels), steps, source
            ),
            on_progress=lambda trials, budget: self.emitter.emit(
                HeuristicProgress(self.emitter.seconds, trials, budget)
            ),
            good_enough=self._gap_reached,
        )

    def _may_switch(self, reduced: Presolved) -> bool:
        """Whether the semidefinite bound may take over from the cluster bound."""
        options = self._options
        small = reduced.reduced.n_groups <= SWITCH_UP_TO
        free = options.bound == "auto" and options.branching != "centers"
        return small and free

    def _gap(self) -> float:
        return relative_gap(self._incumbent.cost, self._lower)

    def _grow(
        self, tree: Tree, root: Callable[[Task[Any]], Answer[Any]], reduced: Presolved
    ) -> None:
        """Branch and bound until the gap is proven or something stops it."""
        options = self._options
        search = Search(
            tree.worker,
            self._known,
            _TreeHooks(self),
            gap=options.gap,
            node_limit=options.node_limit,
            selection=options.selection,
            crew=Crew(self._crews.bounds),
            keep_proof=options.keep_proof,
        )
        search.start(tree.root, root, self._stop, known=self._lower)
        try:
            self._node_limit_reached = search.run(self._stop)
        except WorkerError as failure:
            self._failure = failure
        self._nodes = search.nodes
        if options.keep_proof:
            self._proof = Proof(self._lower, reduced.centre, reduced.axes, search.proof_nodes())

    def _known(self) -> tuple[float, Labels]:
        assert self._incumbent.labels is not None
        return self._incumbent.cost, self._incumbent.labels

    def _find(self, reduced: Presolved, workshop: Workshop, assigner: Assigner) -> None:
        labels = DefaultSearch().search(workshop)
        self.offer(reduced.restore_labels(labels), self._incumbent.iterations, "heuristics")
        if not workshop.finished():
            # Once more with time for components that a short search does not finish.
            patient = workshop.but(assigner=assigner)
            polished = LocalSearch(reduced.reduced, assigner).from_labels(labels, patient)
            self.offer(reduced.restore_labels(polished.labels), polished.iterations, "polish")

    def _cluster_bound(self, reduced: Presolved, workshop: Workshop) -> ClusterProof:
        """Raise the bound; where it cannot reach the incumbent, look for a better one."""

        def improve(columns: Sequence[CandidateCluster]) -> Labels | None:
            before = self._incumbent.cost
            ColumnSearch(columns, incumbent()).search(workshop)
            return incumbent() if self._incumbent.cost < before else None

        def incumbent() -> Labels:
            assert self._incumbent.labels is not None
            return reduced.reduce_labels(self._incumbent.labels)

        may_switch = self._may_switch(reduced)
        share = SWITCH_SHARE if may_switch else 1.0
        found = cluster_bound(
            reduced.reduced,
            incumbent(),
            target_gap=self._options.gap,
            stop=self._stop.within(share * self._stop.remaining),
            executor=self._crews.bounds,
            improve=improve,
            on_bound=lambda value: self.raise_bound(reduced.restore_bound(value), "cluster"),
            seed=self._options.seed,
            patient=not may_switch,
        )
        self.raise_bound(reduced.restore_bound(found.value), "cluster")
        numbers = dataclasses.asdict(found.statistics)
        self.emitter.emit(BoundStatistics(self.emitter.seconds, "cluster", numbers))
        return found

    def offer(self, labels: Labels, iterations: int, source: str) -> None:
        """Take a labelling of the points if it is better."""
        if self._incumbent.offer(labels, iterations):
            check_bound(self._incumbent.cost, self._lower, self._bound)
            self.emitter.emit(IncumbentFound(self.emitter.seconds, self._incumbent.cost, source))

    def raise_bound(self, value: float, source: str) -> None:
        """Take a bound, as stated, if it is better."""
        check_bound(self._incumbent.cost, value, source)
        if value > self._lower or self._bound == "trivial":
            self._lower = max(self._lower, value)
            self._bound = source
            self.emitter.emit(BoundImproved(self.emitter.seconds, self._lower, source))

    def _gap_reached(self) -> bool:
        return gap_reached(self._incumbent.cost, self._lower, self._options.gap)

    def _tell_presolve(self, reduced: Presolved) -> None:
        graph = reduced.reduced.graph
        self.emitter.emit(
            PresolveDone(
                self.emitter.seconds,
                n_points=self._problem.n_points,
                n_groups=reduced.reduced.n_groups,
                n_axes=reduced.reduced.n_axes,
                n_components=graph.n_components,
                largest_component=int(np.diff(graph.starts).max(initial=1)),
            )
        )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self.emitter.emit(StageStarted(self.emitter.seconds, name))
        began = self.emitter.seconds
        try:
            yield
        finally:
            spent = self.emitter.seconds - began
            self._seconds[name] = self._seconds.get(name, 0.0) + spent
        self.emitter.emit(StageFinished(self.emitter.seconds, name))

    def _finish(self, infeasibility: InfeasibilityProof | None = None) -> Result:
        status, reason = self._verdict(infeasibility)
        problem, incumbent = self._problem, self._incumbent
        result = Result(
            status=status,
            stop_reason=reason,
            cost=incumbent.cost,
            lower_bound=np.inf if infeasibility is not None else self._lower,
            labels=incumbent.labels,
            centers=incumbent.centers,
            n_clusters=problem.n_clusters,
            n_points=problem.n_points,
            n_features=problem.n_features,
            n_must_link=len(problem.must_link),
            n_cannot_link=len(problem.cannot_link),
            nodes=0 if infeasibility is not None else self._nodes,
            iterations=incumbent.iterations,
            seconds={"total": self.emitter.seconds, **self._seconds},
            seed=self._options.seed,
            bound="infeasibility proof" if infeasibility is not None else self._bound,
            infeasibility=infeasibility,
            failure=None if self._failure is None else self._failure.message,
            proof=self._proof,
        )
        self.emitter.emit(Finished(self.emitter.seconds, result))
        return result

    def _verdict(self, infeasibility: InfeasibilityProof | None) -> tuple[Status, StopReason]:
        if infeasibility is not None:
            return Status.INFEASIBLE, StopReason.PROVEN_INFEASIBLE
        status = Status.UNKNOWN if self._incumbent.labels is None else Status.FEASIBLE
        if self._failure is not None:
            return status, StopReason.WORKER_FAILED
        if self._gap_reached():
            return Status.OPTIMAL, StopReason.GAP_REACHED
        if self._node_limit_reached:
            return status, StopReason.NODE_LIMIT
        match self._stop.cause():
            case StopCause.TIME_LIMIT:
                return status, StopReason.TIME_LIMIT
            case StopCause.INTERRUPTED:
                return status, StopReason.INTERRUPTED
            case None:
                return status, StopReason.METHODS_EXHAUSTED


def _starts(
    reduced: Presolved, labels: Labels | None, centers: Centers | None
) -> tuple[Centers, ...]:
    starts = []
    if labels is not None:
        starts.append(means_of(reduced.reduced, reduced.reduce_labels(labels)))
    if centers is not None:
        starts.append(reduced.reduce_centers(centers))
    return tuple(starts)
