"""From an incumbent to a proof: bounds of the whole, then the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

from certikmeans.board import TRIVIAL, Board
from certikmeans.bounds.base import Cluster, Root, Setting
from certikmeans.conclusion import Ending
from certikmeans.errors import WorkerError
from certikmeans.events import BoundStatistics, Emitter, Timer
from certikmeans.execution import Crew
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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What proving takes place in."""

    options: Options
    board: Board
    emitter: Emitter
    timer: Timer
    stop: StopSignal
    executor: Executor | None
    recombine: Callable[[Sequence[Cluster]], None]


def prove(presolved: Presolved, setting: Setting, policy: Policy, around: Surroundings) -> Ending:
    """Raise the bound of the whole; if that does not close the gap, grow a tree."""
    board, keep_proof = around.board, around.options.keep_proof
    asked: list[Asked] = []
    attempts: list[Attempt] = []
    while keep_proof or not board.finished():
        request = policy.next(asked, board.gap)
        if request is None or (asked and board.finished()):
            break
        try:
            with around.timer.stage("bounds"):
                one, attempt = _ask(presolved, setting, request, around)
        except WorkerError as failure:
            proof = _proof_without_tree(presolved, asked, around) if asked else None
            return Ending(failure=failure, proof=proof, attempts=tuple(attempts))
        asked.append(one)
        attempts.append(attempt)
    if not asked or (board.finished() and not keep_proof):
        return Ending(attempts=tuple(attempts))
    with around.timer.stage("search"):
        return _grow(presolved, setting, policy, asked, tuple(attempts), around)


def _ask(
    presolved: Presolved, setting: Setting, request: Request, around: Surroundings
) -> tuple[Asked, Attempt]:
    """Have the whole bounded, in this thread: the bound may use the executor."""
    board, emitter, bound = around.board, around.emitter, request.bound
    began = emitter.seconds
    view = board.seen_from(presolved)
    cutoff = presolved.reduce_bound(target_bound(board.cost, around.options.gap))
    stop = around.stop.within(request.share * around.stop.remaining)
    root = Root(view, around.executor, around.recombine, request.in_a_hurry)
    state = bound.prepare(setting)
    whole = Subproblem.root(presolved.reduced)
    found = Crew().map(lambda part: bound.evaluate(state, part, cutoff, stop, None, root), [whole])[
        0
    ]
    view.prove(found.value, bound.name)
    if found.numbers:
        numbers = {k: v for k, v in found.numbers.items() if isinstance(v, int | float)}
        emitter.emit(BoundStatistics(emitter.seconds, bound.name, numbers))
    value = presolved.restore_bound(found.value)
    outcome = "the gap was reached" if board.gap_reached() else (
        "time was up" if stop.cause() is not None else "it could not be raised further"
    )  # fmt: skip
    return Asked(bound, found), Attempt(bound.name, value, began, emitter.seconds, outcome)


def _grow(
    presolved: Presolved,
    setting: Setting,
    policy: Policy,
    asked: Sequence[Asked],
    attempts: tuple[Attempt, ...],
    around: Surroundings,
) -> Ending:
    """Branch and bound until the gap is proven or something stops it."""
    options, board = around.options, around.board
    base = policy.for_the_tree(asked)
    branching = chosen_branching(options.branching, base.bound, presolved.reduced.n_groups)
    worker = make_worker(branching, presolved, base.bound, setting)
    search = Search(worker, board, options, around.emitter, Crew(around.executor))
    known, leaf = _best_known(presolved, asked, options.keep_proof)
    search.begin(worker.root(base.found, around.stop), known, leaf)
    failure, limited = None, False
    try:
        limited = search.run(around.stop)
    except WorkerError as error:  # the tree is as it was before the round that failed
        failure = error
    proof = None
    if options.keep_proof:
        proof = Proof(search.lower_bound, presolved.centre, presolved.axes, search.proof_nodes())
    return Ending(search.nodes, limited, None, failure, proof, attempts)


def _best_known(
    presolved: Presolved, asked: Sequence[Asked], keep_proof: bool
) -> tuple[float, Leaf]:
    """The best bound of the whole so far, and what proves it."""
    best = max(asked, key=lambda one: one.found.value)
    trivial = presolved.restore_bound(0.0)
    value = presolved.restore_bound(best.found.value)
    if value <= trivial:
        return trivial, Leaf(TRIVIAL)
    return value, stated_leaf(presolved, best.found.leaf, keep_proof)


def _proof_without_tree(
    presolved: Presolved, asked: Sequence[Asked], around: Surroundings
) -> Proof | None:
    """What a run that ended early can still show."""
    if not around.options.keep_proof:
        return None
    value, leaf = _best_known(presolved, asked, True)
    return Proof(value, presolved.centre, presolved.axes, (leaf,))
