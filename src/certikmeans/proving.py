"""From an incumbent to a proof: the bound at the root, then the tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, final

import numpy as np

from certikmeans.assignment import Assigner
from certikmeans.bounds.cluster.bound import ClusterProof, cluster_bound
from certikmeans.errors import WorkerError
from certikmeans.events import BoundStatistics, NodeClosed, TreeProgress
from certikmeans.execution import Crew
from certikmeans.heuristics.base import Labels, Workshop
from certikmeans.heuristics.columns import CandidateCluster, ColumnSearch
from certikmeans.presolve.pipeline import Presolved
from certikmeans.proof import Proof
from certikmeans.record import Record
from certikmeans.search.bounding import BoundMaker
from certikmeans.search.loop import AbstractHooks, Search, TreeState
from certikmeans.search.node import Door, Node
from certikmeans.search.tree import Tree, chosen_branching

# Where the cluster bound leaves more than this at the root, with at most so many groups and at
# least so many axes, the semidefinite bound takes over: axes are no obstacle to it. With few axes
# the pricing of the cluster bound always ends, and it only needs its time.
SWITCH_GAP = 0.01
SWITCH_UP_TO = 400
SWITCH_FROM_AXES = 6
# Where another bound may take over, the cluster bound gets this share of a time limit, and its
# exact pricing has to show progress from so many boxes on.
SWITCH_SHARE = 0.25
DOUBT_SOON = 25_000


@final
class Proving:
    """Raises the bound of a record until its gap is proven or something stops it."""

    def __init__(
        self,
        record: Record,
        reduced: Presolved,
        assigner: Assigner,
        workshop: Workshop,
        executor: Executor | None,
    ) -> None:
        self._record = record
        self._reduced = reduced
        self._assigner = assigner
        self._workshop = workshop
        self._executor = executor

    def run(self) -> None:
        """Raise the bound at the root; if that does not close the gap, in the tree."""
        record, options = self._record, self._record.options
        bound = "cluster" if options.bound == "auto" else options.bound
        found = None
        if bound == "cluster" and (options.keep_proof or not self._workshop.finished()):
            with record.stage("bounds"):
                found = self._cluster_bound()
        if self._workshop.finished() and not options.keep_proof:
            return
        with record.stage("search"):
            lost = self._may_switch() and record.gap > SWITCH_GAP
            if not (lost and self._grow("sdp", None, only_if_better=True)):
                self._grow(bound, found)

    def _may_switch(self) -> bool:
        """Whether the semidefinite bound may take over from the cluster bound."""
        options, reduced = self._record.options, self._reduced.reduced
        fits = reduced.n_groups <= SWITCH_UP_TO and reduced.n_axes >= SWITCH_FROM_AXES
        return fits and options.bound == "auto" and options.branching != "centers"

    def _cluster_bound(self) -> ClusterProof:
        """Raise the bound; where it cannot reach the incumbent, look for a better one."""
        record, reduced = self._record, self._reduced

        def improve(columns: Sequence[CandidateCluster]) -> Labels | None:
            before = record.incumbent.cost
            ColumnSearch(columns, incumbent()).search(self._workshop)
            return incumbent() if record.incumbent.cost < before else None

        def incumbent() -> Labels:
            return reduced.reduce_labels(record.known()[1])

        may_switch = self._may_switch()
        share = SWITCH_SHARE if may_switch else 1.0
        found = cluster_bound(
            reduced.reduced,
            incumbent(),
            target_gap=record.options.gap,
            stop=record.stop.within(share * record.stop.remaining),
            executor=self._executor,
            improve=improve,
            on_bound=lambda value: record.raise_bound(reduced.restore_bound(value), "cluster"),
            seed=record.options.seed,
            doubt_after=DOUBT_SOON if may_switch else np.inf,
        )
        record.raise_bound(reduced.restore_bound(found.value), "cluster")
        numbers = dataclasses.asdict(found.statistics)
        record.emitter.emit(BoundStatistics(record.emitter.seconds, "cluster", numbers))
        return found

    def _grow(
        self, bound: str, found: ClusterProof | None, *, only_if_better: bool = False
    ) -> bool:
        """Branch and bound until the gap is proven or something stops it.

        ``found`` is the root's bound, where it is known already. Returns False if there is no
        tree because the root is no better than what is known.
        """
        record, options = self._record, self._record.options
        tree = Tree(
            record.problem,
            self._reduced,
            self._assigner,
            BoundMaker(bound, options.gap, options.seed),
            chosen_branching(options.branching, bound, self._reduced.reduced),
            executor=self._executor,
            keep_proof=options.keep_proof,
            on_bound=lambda value: record.raise_bound(value, bound),
        )
        search = Search(
            tree.worker,
            record.known,
            _TreeHooks(record),
            gap=options.gap,
            node_limit=options.node_limit,
            selection=options.selection,
            crew=Crew(self._executor),
            keep_proof=options.keep_proof,
        )
        before = record.lower
        if found is None:
            root = search.ask(tree.root_worker(), tree.root, record.stop)
        else:
            root = tree.root_from(found)
        if only_if_better and root.bound <= before:
            return False
        search.begin(root, known=record.lower)
        try:
            record.node_limit_reached = search.run(record.stop)
        except WorkerError as failure:  # the tree is as it was before the round that failed
            record.failure = failure
        record.nodes = search.nodes
        if options.keep_proof:
            centre, axes = self._reduced.centre, self._reduced.axes
            record.proof = Proof(record.lower, centre, axes, search.proof_nodes())
        return True


@final
class _TreeHooks(AbstractHooks):
    """Passes on what happens in the tree."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def offer(self, labels: Labels) -> None:
        self._record.offer(labels, 0, "tree")

    def bound(self, value: float, source: str) -> None:
        self._record.raise_bound(value, source)

    def closed(self, node: Node[Any], door: Door) -> None:
        emitter = self._record.emitter
        books = (node.number, node.parent, node.depth, str(door), node.bound)
        emitter.emit(NodeClosed(emitter.seconds, *books, part=node.part))

    def progress(self, state: TreeState) -> None:
        emitter = self._record.emitter
        emitter.emit(TreeProgress(emitter.seconds, **dataclasses.asdict(state)))
