"""Stages that prove the lower bound: bounds of the whole problem, then branch and bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._jit.background_compiler import BackgroundCompiler
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.errors import WorkerError
from certikmeans.events import BoundStatistics, ProgressCounter
from certikmeans.heuristics.base import HeuristicContext
from certikmeans.heuristics.set_partitioning import SetPartitioningHeuristic
from certikmeans.incumbent import CandidateCluster
from certikmeans.parallel import TaskPool
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import LeafProof, Proof
from certikmeans.result import Attempt
from certikmeans.solver.bound_schedule import BoundRun, BoundSchedule, ScheduledBound
from certikmeans.solver.context import SolveContext
from certikmeans.solver.state import TRIVIAL, SolveState
from certikmeans.tolerances import target_bound
from certikmeans.tree.branch_and_bound import BranchAndBound
from certikmeans.tree.branching import choose_branching, make_branching_scheme
from certikmeans.tree.primal import certificate_leaf


@final
@dataclass(frozen=True, slots=True, eq=False)
class RootProblem:
    """Reduced problem, prepared for heuristics and bounds."""

    presolved: PresolvedProblem
    inputs: BoundInput
    schedule: BoundSchedule
    heuristics: HeuristicContext
    start_multipliers: NDArray[np.float64] | None  # one per group
    compiler: BackgroundCompiler


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RootBoundContext(BoundContext):
    """Context of a bound at the root of a run."""

    state: SolveState
    entry: ScheduledBound
    heuristics: HeuristicContext
    progress: ProgressCounter

    def report(self, value: float | None = None, *, work: float = 0.0, **counts: int) -> None:
        """Report to the state of the run, and as events."""
        super().report(value, work=work)
        if counts:
            self.progress(**counts)

    def checkpoint(self, warm_start: Any) -> None:
        """Store the warm start in the schedule; a checkpoint may be written."""
        self.entry.warm_start = warm_start
        self.state.checkpoint()

    def improve_incumbent(self, clusters: Sequence[CandidateCluster]) -> None:
        """Search for a better labelling by set partitioning."""
        SetPartitioningHeuristic(clusters, self.incumbent.labels()).search(self.heuristics)


def compute_initial_bound(root: RootProblem, state: SolveState, ctx: SolveContext) -> None:
    """Compute the bound that needs no labelling, unless an earlier run has."""
    bound = root.schedule.before_heuristics()
    if bound is None or state.bound_runs or ctx.stop.reason() is not None:
        return
    with ctx.timer.counted("bounds"):
        began = ctx.events.seconds
        whole = Domain.root(root.presolved.reduced)
        found = bound.compute(bound.setup(root.inputs), whole, math.inf, BoundContext(ctx.stop))
        _record(root, BoundRun(bound, found), began, "it needs no iterations", state, ctx)


def run_bounds(root: RootProblem, state: SolveState, ctx: SolveContext) -> None:
    """Run the bounds of the schedule until the gap is closed or none is left."""
    presolved, reduced = root.presolved, root.presolved.reduced
    while not state.finished or (ctx.options.keep_proof and not state.attempts):
        cutoff = presolved.presolve_bound(target_bound(state.cost, ctx.options.gap))
        entry = root.schedule.next(state.gap, cutoff)
        if entry is None:
            break
        loss = entry.bound.min_rounding_loss(reduced)
        if not state.gap_closed and loss >= state.cost - reduced.offset:
            state.rounding_dominates = entry.finished = True
            continue
        state.checkpoint()
        try:
            with ctx.timer.stage("bounds"):
                run_bound(root, entry, cutoff, state, ctx)
            if not state.gap_closed:  # the bound may have ended because remote workers failed
                state.failure = ctx.worker_failure
        except WorkerError as error:
            state.failure = error
        if state.failure is not None:
            break
    if ctx.options.keep_proof:
        value, leaf = _best_root_bound(root, state, keep_proof=True)
        state.proof = Proof(value, presolved.center, presolved.axes, (leaf,))


def run_bound(
    root: RootProblem, entry: ScheduledBound, cutoff: float, state: SolveState, ctx: SolveContext
) -> None:
    """Run one turn of a bound of the whole problem, in this thread; it may use the task pool."""
    bound, presolved = entry.bound, root.presolved
    if bound.kernels_for(presolved.reduced):
        root.compiler.wait(ctx.stop.reason)
    began = ctx.events.seconds
    stop = ctx.stop.with_work_limit(entry.work_limit)
    bound_ctx = RootBoundContext(
        stop,
        at_root=True,
        incumbent=state.reduced_view(presolved),
        pool=ctx.pool,
        time_boxed=entry.work_limit < math.inf,
        name=bound.name,
        state=state,
        entry=entry,
        heuristics=root.heuristics,
        progress=ProgressCounter(ctx.events, bound.name),
    )
    if entry.model is None:
        entry.model = bound.setup(root.inputs)
    model, whole = entry.model, Domain.root(presolved.reduced)
    warm_start = entry.warm_start
    if warm_start is None and root.start_multipliers is not None:
        warm_start = bound.warm_start_from_multipliers(root.start_multipliers)
    found = TaskPool().map(  # raises failures of workers as WorkerError
        lambda domain: bound.compute(model, domain, cutoff, bound_ctx, warm_start), [whole]
    )[0]
    outcome = "it could not be raised further" if found.finished else "its turn ended"
    if ctx.stop.reason() is None and ctx.worker_failure is None:
        root.schedule.record(entry, found)
    else:
        outcome, entry.warm_start = "time was up", found.warm_start
        state.freeze()
    found = replace(found, warm_start=bound.node_warm_start(found.warm_start))
    _record(root, BoundRun(bound, found), began, outcome, state, ctx)


def _record(
    root: RootProblem,
    run: BoundRun,
    began: float,
    outcome: str,
    state: SolveState,
    ctx: SolveContext,
) -> None:
    """Update the lower bound and the list of attempts."""
    events, found, name = ctx.events, run.found, run.bound.name
    value = root.presolved.postsolve_bound(found.value)
    state.update_bound(value, name)
    if found.numbers:
        numbers = {k: v for k, v in found.numbers.items() if isinstance(v, int | float)}
        events.emit(BoundStatistics(events.seconds, name, numbers))
    if state.gap_closed:
        outcome = "the gap was reached"
    state.record_run(run, Attempt(name, value, began, events.seconds, outcome))


def run_tree(root: RootProblem, state: SolveState, ctx: SolveContext) -> None:
    """Branch and bound with the best bound that is usable in nodes, if the gap is open."""
    base = root.schedule.tree_bound(state.bound_runs)
    if base is None or state.failure is not None:
        return
    if state.finished and state.saved_tree is None:
        return
    presolved, options = root.presolved, ctx.options
    with ctx.timer.stage("search"):
        branching = choose_branching(options.branching, base.bound, presolved.reduced)
        scheme = make_branching_scheme(branching, presolved, base.bound, root.inputs)
        tree = BranchAndBound(scheme, state, ctx)
        if state.saved_tree is not None:
            tree.restore(state.saved_tree)
        else:
            value, leaf = _best_root_bound(root, state, options.keep_proof)
            tree.add_root(scheme.root(base.found, ctx.stop), value, leaf)
        state.tree = tree
        try:
            state.node_limit_reached = tree.run(ctx.stop)
        except WorkerError as error:  # the tree is as it was before the node that failed
            state.failure = error
        if options.keep_proof:
            nodes = tree.proof_nodes()
            state.proof = Proof(tree.lower_bound, presolved.center, presolved.axes, nodes)


def _best_root_bound(
    root: RootProblem, state: SolveState, keep_proof: bool
) -> tuple[float, LeafProof]:
    """Best bound of the whole problem so far, and its proof."""
    presolved = root.presolved
    value, leaf = presolved.postsolve_bound(0.0), LeafProof(TRIVIAL)
    for run in state.bound_runs:
        found = presolved.postsolve_bound(run.found.value)
        if found > value:
            value, leaf = found, run.found.leaf
    return value, certificate_leaf(presolved, leaf, keep_proof)
