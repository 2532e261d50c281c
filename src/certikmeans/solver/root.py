"""From an incumbent to a proof: bounds of the whole, then the tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._jit.background_compiler import BackgroundCompiler
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult
from certikmeans.certainty.artifacts import BoundArtifact
from certikmeans.errors import WorkerError
from certikmeans.events import BoundStatistics, EventBus, ProgressCounter, Timer
from certikmeans.incumbent import CandidateCluster
from certikmeans.options import Options
from certikmeans.parallel import RemoteExecutor, TaskPool
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem.domain import Domain
from certikmeans.proof import LeafProof, Proof
from certikmeans.result import Attempt
from certikmeans.solver.bound_schedule import BoundRun, BoundSchedule, ScheduledBound
from certikmeans.solver.snapshot import CheckpointManager
from certikmeans.solver.state import TRIVIAL, SolveState
from certikmeans.solver.termination import Termination
from certikmeans.stop import StopSignal
from certikmeans.tolerances import target_bound
from certikmeans.tree.branch_and_bound import BranchAndBound
from certikmeans.tree.branching import choose_branching, make_branching_scheme
from certikmeans.tree.primal import certificate_leaf

# Evidence for less than this share of the best bound says nothing beyond it.
NEAR_THE_BEST = 0.9


@final
@dataclass(frozen=True, slots=True, eq=False)
class RootContext:
    """What proving takes place in."""

    options: Options
    state: SolveState
    events: EventBus
    timer: Timer
    stop: StopSignal
    executor: Executor | None  # threads
    remote: RemoteExecutor | None
    improve_incumbent: Callable[[Sequence[CandidateCluster]], None]
    snapshots: CheckpointManager
    background_compiler: BackgroundCompiler
    start_multipliers: NDArray[np.float64] | None = None  # one per group

    @property
    def failure(self) -> WorkerError | None:
        """Why nobody elsewhere can be asked any more."""
        return None if self.remote is None else self.remote.failure


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RootBoundContext(BoundContext):
    """Context of a bound at the root of a run."""

    run: RootContext
    progress: ProgressCounter

    def report(self, value: float | None = None, *, work: float = 0.0, **counts: int) -> None:
        """Report to the state of the run, and as events."""
        super().report(value, work=work)
        if counts:
            self.progress(**counts)

    def checkpoint(self, warm_start: Any) -> None:
        """Offer the state to the checkpoint of the run."""
        self.run.snapshots.keep(self.name, warm_start)

    def improve_incumbent(self, clusters: Sequence[CandidateCluster]) -> None:
        """Search for a better labelling by set partitioning."""
        self.run.improve_incumbent(clusters)


def initial_bound(
    presolved: PresolvedProblem, inputs: BoundInput, schedule: BoundSchedule, ctx: RootContext
) -> None:
    """Ask the bound that needs no labelling."""
    bound = schedule.initial_bound_of_schedule()
    if bound is not None and not ctx.snapshots.asked and ctx.stop.reason() is None:
        began = ctx.events.seconds
        whole = Domain.root(presolved.reduced)
        found = bound.compute(bound.setup(inputs), whole, math.inf, BoundContext(ctx.stop))
        record_bound(presolved, BoundRun(bound, found), began, "it takes one look", ctx)


def solve_root(
    presolved: PresolvedProblem,
    inputs: BoundInput,
    schedule: BoundSchedule,
    ctx: RootContext,
) -> Termination:
    """Raise the bound of the whole; if that does not close the gap, grow a tree."""
    state, snapshots, keep_proof = ctx.state, ctx.snapshots, ctx.options.keep_proof
    rounding_dominates = False
    while not state.finished() or (keep_proof and not snapshots.attempts):
        scheduled = schedule.next(state.gap)
        if scheduled is None:
            break
        at_stake = state.cost - presolved.reduced.offset
        if (
            not state.gap_reached()
            and scheduled.bound.min_rounding_loss(presolved.reduced) >= at_stake
        ):
            rounding_dominates = True
            continue
        snapshots.begin(scheduled.bound.name, schedule.left)
        snapshots.save_point()
        failure = None
        try:
            with ctx.timer.stage("bounds"):
                run_bound(presolved, inputs, scheduled, ctx)
            if not state.gap_reached():
                failure = ctx.failure  # the bound has done what it could
        except WorkerError as error:
            failure = error
        if failure is not None:
            proof = _root_proof(presolved, ctx)
            return Termination(failure=failure, proof=proof, attempts=tuple(snapshots.attempts))
    base = schedule.tree_bound(snapshots.asked)
    if base is None or (state.finished() and snapshots.saved_tree() is None):
        proof = _root_proof(presolved, ctx)
        return Termination(
            rounding=rounding_dominates, proof=proof, attempts=tuple(snapshots.attempts)
        )
    with ctx.timer.stage("search"):
        return run_tree(presolved, inputs, base, ctx)


def run_bound(
    presolved: PresolvedProblem,
    inputs: BoundInput,
    scheduled: ScheduledBound,
    ctx: RootContext,
) -> None:
    """Have the whole bounded, in this thread: the bound may use the executor."""
    state, events, bound, snapshots = ctx.state, ctx.events, scheduled.bound, ctx.snapshots
    if bound.kernels():
        ctx.background_compiler.wait(ctx.stop.reason)
    began = events.seconds
    view = state.reduced_view(presolved)
    cutoff = presolved.presolve_bound(target_bound(state.cost, ctx.options.gap))
    stop = ctx.stop.with_time_limit(scheduled.time_fraction * ctx.stop.remaining)
    root = RootBoundContext(
        stop,
        at_root=True,
        incumbent=view,
        pool=TaskPool(ctx.executor, ctx.remote, ctx.options.n_threads),
        time_boxed=scheduled.time_boxed,
        name=bound.name,
        run=ctx,
        progress=ProgressCounter(events, bound.name),
    )
    model = bound.setup(inputs)
    whole = Domain.root(presolved.reduced)
    warm_start = snapshots.saved_state(bound.name)
    if warm_start is None and ctx.start_multipliers is not None:
        warm_start = bound.warm_start_from_multipliers(ctx.start_multipliers)
    found = TaskPool().map(
        lambda domain: bound.compute(model, domain, cutoff, root, warm_start), [whole]
    )[0]
    if ctx.stop.reason() is None and ctx.failure is None:
        snapshots.ended()
    else:
        if found.warm_start is not None:
            snapshots.active_bound = bound.name, found.warm_start
        snapshots.freeze()
    outcome = "it could not be raised further"
    if stop.reason() is not None:
        outcome = "time was up"
    found = replace(found, warm_start=bound.node_warm_start(found.warm_start))
    record_bound(presolved, BoundRun(bound, found), began, outcome, ctx)


def record_bound(
    presolved: PresolvedProblem, one: BoundRun, began: float, outcome: str, ctx: RootContext
) -> None:
    """Tell what a bound has proven, and remember it."""
    state, events, found, name = ctx.state, ctx.events, one.found, one.bound.name
    value = presolved.postsolve_bound(found.value)
    state.update_bound(value, name)
    if found.numbers:
        numbers = {k: v for k, v in found.numbers.items() if isinstance(v, int | float)}
        events.emit(BoundStatistics(events.seconds, name, numbers))
    if state.gap_reached():
        outcome = "the gap was reached"
    ctx.snapshots.asked.append(one)
    ctx.snapshots.attempts.append(Attempt(name, value, began, events.seconds, outcome))


def run_tree(
    presolved: PresolvedProblem,
    inputs: BoundInput,
    base: BoundRun,
    ctx: RootContext,
) -> Termination:
    """Branch and bound until the gap is proven or something stops it."""
    options, state, snapshots = ctx.options, ctx.state, ctx.snapshots
    branching = choose_branching(options.branching, base.bound, presolved.reduced)
    scheme = make_branching_scheme(branching, presolved, base.bound, inputs)
    task_pool = TaskPool(ctx.executor, ctx.remote, options.n_threads)
    search = BranchAndBound(scheme, state, options, ctx.events, task_pool, snapshots.save_point)
    before = snapshots.saved_tree()
    if before is not None:
        search.restore(before)
    else:
        known, leaf = _best_root_bound(presolved, snapshots.asked, options.keep_proof)
        search.add_root(scheme.root(base.found, ctx.stop), known, leaf)
    snapshots.search = search
    failure, limited = None, False
    try:
        limited = search.run(ctx.stop)
    except WorkerError as error:  # the tree is as it was before the node that failed
        failure = error
    proof = None
    if options.keep_proof:
        proof = Proof(search.lower_bound, presolved.center, presolved.axes, search.proof_nodes())
    return Termination(search.nodes, limited, None, failure, proof, tuple(snapshots.attempts))


def root_artifacts(asked: Sequence[BoundRun], n_groups: int) -> tuple[BoundArtifact, ...]:
    """What of the evidence about the whole can say more than a bound, the best of each kind."""
    values = [one.found.value for one in asked]
    kept: dict[str, BoundResult] = {}
    for one in sorted(asked, key=lambda one: one.found.value):
        evidence = one.found.leaf.evidence
        near = one.found.value >= NEAR_THE_BEST * max(values) > 0.0
        if evidence is not None and n_groups <= evidence.certainty_max_groups and near:
            kept[one.found.leaf.kind] = one.found
    return tuple(
        BoundArtifact(found.leaf.evidence, found.value, found.warm_start)
        for found in kept.values()
        if found.leaf.evidence is not None
    )


def _best_root_bound(
    presolved: PresolvedProblem, asked: Sequence[BoundRun], keep_proof: bool
) -> tuple[float, LeafProof]:
    """The best bound of the whole so far, and what proves it."""
    value, leaf = presolved.postsolve_bound(0.0), LeafProof(TRIVIAL)
    for one in asked:
        found = presolved.postsolve_bound(one.found.value)
        if found > value:
            value, leaf = found, one.found.leaf
    return value, certificate_leaf(presolved, leaf, keep_proof)


def _root_proof(presolved: PresolvedProblem, ctx: RootContext) -> Proof | None:
    """What a run that grows no tree can show."""
    if not ctx.options.keep_proof:
        return None
    value, leaf = _best_root_bound(presolved, ctx.snapshots.asked, True)
    return Proof(value, presolved.center, presolved.axes, (leaf,))
