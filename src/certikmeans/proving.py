"""From an incumbent to a proof: bounds of the whole, then the tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

from certikmeans.board import TRIVIAL, Board
from certikmeans.bounds.base import BoundResult, Root, Setting
from certikmeans.certainty.basis import Shown
from certikmeans.compiling.ahead import Ahead
from certikmeans.conclusion import Ending
from certikmeans.course import Course
from certikmeans.errors import WorkerError
from certikmeans.events import BoundStatistics, Emitter, Meter, Timer
from certikmeans.execution import Crew, Far
from certikmeans.news import Cluster
from certikmeans.options import Options
from certikmeans.policy import Asked, Policy, Request
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import Leaf, Proof
from certikmeans.result import Attempt
from certikmeans.search.loop import Search
from certikmeans.search.tree import chosen_branching, make_worker
from certikmeans.search.upper import stated_leaf
from certikmeans.stop import StopSignal
from certikmeans.tolerances import target_bound

# Evidence for less than this share of the best bound says nothing beyond it.
NEAR_THE_BEST = 0.9


@final
@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What proving takes place in."""

    options: Options
    board: Board
    emitter: Emitter
    timer: Timer
    stop: StopSignal
    executor: Executor | None  # threads
    far: Far | None
    recombine: Callable[[Sequence[Cluster]], None]
    course: Course
    ahead: Ahead

    @property
    def failure(self) -> WorkerError | None:
        """Why nobody elsewhere can be asked any more."""
        return None if self.far is None else self.far.failure


def look_first(
    presolved: Presolved, setting: Setting, policy: Policy, around: Surroundings
) -> None:
    """Ask the bound that needs no labelling."""
    bound = policy.before_heuristics()
    if bound is not None and not around.course.asked and around.stop.cause() is None:
        began = around.emitter.seconds
        whole = Subproblem.root(presolved.reduced)
        found = bound.evaluate(bound.prepare(setting), whole, math.inf, around.stop)
        _note(presolved, Asked(bound, found), began, "it takes one look", around)


def prove(
    presolved: Presolved,
    setting: Setting,
    policy: Policy,
    around: Surroundings,
) -> Ending:
    """Raise the bound of the whole; if that does not close the gap, grow a tree."""
    board, course, keep_proof = around.board, around.course, around.options.keep_proof
    swamped = False
    while not board.finished() or (keep_proof and not course.attempts):
        request = policy.next(board.gap)
        if request is None:
            break
        at_stake = board.cost - presolved.reduced.offset
        if not board.gap_reached() and request.bound.rounding(presolved.reduced) >= at_stake:
            swamped = True
            continue
        course.begin(request.bound.name, policy.left)
        course.mark()
        failure = None
        try:
            with around.timer.stage("bounds"):
                _ask(presolved, setting, request, around)
            if not board.gap_reached():
                failure = around.failure  # the bound has done what it could
        except WorkerError as error:
            failure = error
        if failure is not None:
            proof = _proof_without_tree(presolved, around)
            return Ending(failure=failure, proof=proof, attempts=tuple(course.attempts))
    base = policy.for_the_tree(course.asked)
    if base is None or (board.finished() and course.tree_before() is None):
        proof = _proof_without_tree(presolved, around)
        return Ending(rounding=swamped, proof=proof, attempts=tuple(course.attempts))
    with around.timer.stage("search"):
        return _grow(presolved, setting, base, around)


def _ask(
    presolved: Presolved,
    setting: Setting,
    request: Request,
    around: Surroundings,
) -> None:
    """Have the whole bounded, in this thread: the bound may use the executor."""
    board, emitter, bound, course = around.board, around.emitter, request.bound, around.course
    if bound.kernels():
        around.ahead.wait(around.stop.cause)
    began = emitter.seconds
    view = board.seen_from(presolved)
    cutoff = presolved.reduce_bound(target_bound(board.cost, around.options.gap))
    stop = around.stop.within(request.share * around.stop.remaining)
    root = Root(
        view,
        around.executor,
        around.recombine,
        around.options.n_threads,
        request.in_a_hurry,
        around.far,
        kept=course.kept_for(bound.name),
        keep=lambda state: course.keep(bound.name, state),
        on_work=Meter(emitter, bound.name),
    )
    state = bound.prepare(setting)
    whole = Subproblem.root(presolved.reduced)
    found = Crew().map(lambda part: bound.evaluate(state, part, cutoff, stop, None, root), [whole])[
        0
    ]
    if around.stop.cause() is None and around.failure is None:
        course.ended()
    else:
        course.cut_short()
    outcome = "it could not be raised further"
    if stop.cause() is not None:
        outcome = "time was up"
    _note(presolved, Asked(bound, found), began, outcome, around)


def _note(
    presolved: Presolved, one: Asked, began: float, outcome: str, around: Surroundings
) -> None:
    """Tell what a bound has proven, and remember it."""
    board, emitter, found, name = around.board, around.emitter, one.found, one.bound.name
    value = presolved.restore_bound(found.value)
    board.prove(value, name)
    if found.numbers:
        numbers = {k: v for k, v in found.numbers.items() if isinstance(v, int | float)}
        emitter.emit(BoundStatistics(emitter.seconds, name, numbers))
    if board.gap_reached():
        outcome = "the gap was reached"
    around.course.asked.append(one)
    around.course.attempts.append(Attempt(name, value, began, emitter.seconds, outcome))


def _grow(
    presolved: Presolved,
    setting: Setting,
    base: Asked,
    around: Surroundings,
) -> Ending:
    """Branch and bound until the gap is proven or something stops it."""
    options, board, course = around.options, around.board, around.course
    branching = chosen_branching(options.branching, base.bound, presolved.reduced)
    worker = make_worker(branching, presolved, base.bound, setting)
    crew = Crew(around.executor, around.far, options.n_threads)
    search = Search(worker, board, options, around.emitter, crew, course.mark)
    before = course.tree_before()
    if before is not None:
        search.go_on(before)
    else:
        known, leaf = _best_known(presolved, course.asked, options.keep_proof)
        search.begin(worker.root(base.found, around.stop), known, leaf)
    course.search = search
    failure, limited = None, False
    try:
        limited = search.run(around.stop)
    except WorkerError as error:  # the tree is as it was before the node that failed
        failure = error
    proof = None
    if options.keep_proof:
        proof = Proof(search.lower_bound, presolved.centre, presolved.axes, search.proof_nodes())
    return Ending(search.nodes, limited, None, failure, proof, tuple(course.attempts))


def root_evidence(asked: Sequence[Asked], n_groups: int) -> tuple[Shown, ...]:
    """What of the evidence about the whole can say more than a bound, the best of each kind."""
    values = [one.found.value for one in asked]
    kept: dict[str, BoundResult] = {}
    for one in sorted(asked, key=lambda one: one.found.value):
        evidence = one.found.leaf.evidence
        near = one.found.value >= NEAR_THE_BEST * max(values) > 0.0
        if evidence is not None and n_groups <= evidence.says_more_up_to and near:
            kept[one.found.leaf.kind] = one.found
    return tuple(
        Shown(found.leaf.evidence, found.value, found.restart)
        for found in kept.values()
        if found.leaf.evidence is not None
    )


def _best_known(
    presolved: Presolved, asked: Sequence[Asked], keep_proof: bool
) -> tuple[float, Leaf]:
    """The best bound of the whole so far, and what proves it."""
    value, leaf = presolved.restore_bound(0.0), Leaf(TRIVIAL)
    for one in asked:
        found = presolved.restore_bound(one.found.value)
        if found > value:
            value, leaf = found, one.found.leaf
    return value, stated_leaf(presolved, leaf, keep_proof)


def _proof_without_tree(presolved: Presolved, around: Surroundings) -> Proof | None:
    """What a run that grows no tree can show."""
    if not around.options.keep_proof:
        return None
    value, leaf = _best_known(presolved, around.course.asked, True)
    return Proof(value, presolved.centre, presolved.axes, (leaf,))
