"""Optimum of a dense core: reduced-cost fixing, decomposition, branch and bound. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.dense_assignment.branching import Piece, new_search_state, search_piece
from certikmeans.kernels.dense_assignment.dual_bound import (
    CoreSolution,
    DualState,
    ascend_multipliers,
    core_value,
    drop_inactive_multipliers,
    dual_bound,
    reduce_costs,
)
from certikmeans.kernels.dense_assignment.heuristics import (
    improve_by_swaps,
    permute_classes,
    tabu_search,
)
from certikmeans.kernels.rows import two_smallest
from certikmeans.rounding import EPS

SOLVED, UNFINISHED, INFEASIBLE = 0, 1, 2

_MAX_SWEEPS = 20
_MAX_TIGHTEN_ROUNDS = 8
_MAX_ROUNDS = 3
_SWAP_PASSES = 10
_MAX_TABU_STEPS, _MAX_TABU_WORK = 4000, 20_000_000


@njit(cache=True, nogil=True)
def _initial_labels(core, feasible_labels, labels):
    """Improve the cheaper of ``labels`` and the permuted feasible labels. Returns the cost."""
    renamed = np.empty(labels.size, np.int64)
    value = core_value(core, labels)
    if permute_classes(core.costs, feasible_labels, renamed):
        other = core_value(core, renamed)
        if other < value:
            value = other
            for v in range(labels.size):
                labels[v] = renamed[v]
    if value < np.inf:
        improve_by_swaps(core, labels, _SWAP_PASSES)
        value = core_value(core, labels)
    return value


@njit(cache=True, nogil=True)
def _fix_by_reduced_cost(reduced, bound, upper, labels, allowed):
    """Exclude every label that only labellings of cost ``upper`` or more can use.

    Labels in ``labels`` stay, so that the current labelling survives; every better one does too.
    """
    excluded = False
    for v in range(reduced.shape[0]):
        least, _, _ = two_smallest(reduced[v])
        for k in range(reduced.shape[1]):
            if allowed[v, k] and k != labels[v] and bound + (reduced[v, k] - least) >= upper:
                allowed[v, k] = False
                excluded = True
    return excluded


@njit(cache=True, nogil=True)
def _propagate(core, dual, stack):
    """Exclude the only label of a vertex at its neighbours. False if a vertex has none left."""
    link_start, link = core.link_start, core.link
    allowed, count = dual.allowed, dual.n_allowed
    n_core = allowed.shape[0]
    top = 0
    for v in range(n_core):
        count[v] = 0
        for k in range(allowed.shape[1]):
            count[v] += allowed[v, k]
        if count[v] == 0:
            return False
        if count[v] == 1:
            stack[top] = v
            top += 1
    while top > 0:
        top -= 1
        v = stack[top]
        k = 0
        while not allowed[v, k]:
            k += 1
        for e in range(link_start[v], link_start[v + 1]):
            u = link[e]
            if allowed[u, k]:
                allowed[u, k] = False
                count[u] -= 1
                if count[u] == 0:
                    return False
                if count[u] == 1:
                    stack[top] = u
                    top += 1
    return True


@njit(cache=True, nogil=True)
def _share_label(allowed, u, v):
    for k in range(allowed.shape[1]):  # noqa: SIM110 (compiled)
        if allowed[u, k] and allowed[v, k]:
            return True
    return False


@njit(cache=True, nogil=True)
def _split(core, dual, piece_of, members, begins):
    """Group the undecided vertices that can still conflict. Returns the number of pieces."""
    link_start, link = core.link_start, core.link
    allowed, count = dual.allowed, dual.n_allowed
    for v in range(count.size):
        piece_of[v] = -1
    n_pieces, filled = 0, 0
    for root in range(count.size):
        if count[root] < 2 or piece_of[root] >= 0:
            continue
        begins[n_pieces] = head = filled
        members[filled] = root
        filled += 1
        piece_of[root] = n_pieces
        while head < filled:
            v = members[head]
            head += 1
            for e in range(link_start[v], link_start[v + 1]):
                u = link[e]
                if count[u] > 1 and piece_of[u] < 0 and _share_label(allowed, u, v):
                    piece_of[u] = n_pieces
                    members[filled] = u
                    filled += 1
        n_pieces += 1
    begins[n_pieces] = filled
    return n_pieces


@njit(cache=True, nogil=True)
def _multipliers_by_piece(core, dual, piece_of, paid):
    """Sum the multipliers of each piece; the members that share a label are in one piece."""
    member_start, member = core.member_start, core.member
    allowed, multipliers = dual.allowed, dual.multipliers
    for p in range(paid.size):
        paid[p] = 0.0
    for q in range(multipliers.shape[0]):
        for k in range(multipliers.shape[1]):
            if multipliers[q, k] > 0.0:
                for i in range(member_start[q], member_start[q + 1]):
                    v = member[i]
                    if allowed[v, k]:
                        paid[piece_of[v]] += multipliers[q, k]
                        break


@njit(cache=True, nogil=True)
def _update_multipliers(core, dual, upper):
    """Bound the allowed labellings from below; inf proves that there is none."""
    allowed, multipliers, reduced = dual.allowed, dual.multipliers, dual.reduced
    drop_inactive_multipliers(core, allowed, multipliers)
    reduce_costs(core, allowed, multipliers, reduced)
    if not ascend_multipliers(core, upper, reduced, multipliers, _MAX_SWEEPS):
        return np.inf
    reduce_costs(core, allowed, multipliers, reduced)
    return dual_bound(reduced, multipliers)


@njit(cache=True, nogil=True)
def _piece_value(piece, costs, reduced, known, labels):
    """Cost of the labels of a piece (inf if none are known), and its lower bound."""
    upper, lower = 0.0, -piece.paid
    for i in range(piece.vertices.size):
        v = piece.vertices[i]
        least, _, _ = two_smallest(reduced[v])
        lower += least
        if known:
            upper += costs[v, labels[v]]
    return upper if known else np.inf, lower


@njit(cache=True, nogil=True)
def _take_single_labels(allowed, count, labels):
    for v in range(count.size):
        if count[v] == 1:
            labels[v] = 0
            while not allowed[v, labels[v]]:
                labels[v] += 1


@njit(cache=True, nogil=True)
def _search_pieces(core, dual, known, work, labels):
    """Search piece by piece. Returns ``(status, sum of bounds gained, work left)``."""
    costs, reduced = core.costs, dual.reduced
    n_core, n_labels = costs.shape
    piece_of, members = np.empty(n_core, np.int64), np.empty(n_core, np.int64)
    begins, paid = np.empty(n_core + 1, np.int64), np.empty(n_core)
    n_pieces = _split(core, dual, piece_of, members, begins)
    drop_inactive_multipliers(core, dual.allowed, dual.multipliers)
    reduce_costs(core, dual.allowed, dual.multipliers, reduced)
    _multipliers_by_piece(core, dual, piece_of, paid)
    state = new_search_state(n_core, n_labels)
    status, gained = SOLVED, 0.0
    if not known:
        _take_single_labels(dual.allowed, dual.n_allowed, labels)
    left = begins[n_pieces]
    for p in range(n_pieces):
        piece = Piece(members[begins[p] : begins[p + 1]], p, piece_of, paid[p])
        share = work * piece.vertices.size // left
        left -= piece.vertices.size
        upper, lower = _piece_value(piece, costs, reduced, known, labels)
        finished, upper, used = search_piece(core, piece, reduced, upper, share, state, labels)
        work -= used
        if finished and upper == np.inf:
            return INFEASIBLE, np.inf, work
        if finished:
            gained += max(0.0, upper - lower)
        else:
            status = UNFINISHED
            if upper == np.inf:
                labels[piece.vertices[0]] = -1  # no labelling of this piece is known
    return status, gained, work


@njit(cache=True, nogil=True)
def _tighten_bound(core, dual, stack, value, labels):
    """Alternate multipliers and excluded labels. Returns a bound on all that is still allowed."""
    bound = 0.0
    for _ in range(_MAX_TIGHTEN_ROUNDS):
        before = bound
        bound = _update_multipliers(core, dual, value)
        if bound == np.inf:
            break
        excluded = value < np.inf and _fix_by_reduced_cost(
            dual.reduced, bound, value, labels, dual.allowed
        )
        if excluded:
            _propagate(core, dual, stack)
        elif bound - before <= 0.02 * min(value - bound, bound):
            break
    return bound


@njit(cache=True, nogil=True)
def _improve_labels(core, reduced, value, labels):
    """Better labels without proof, from those that the multipliers suggest. Returns their cost."""
    start_labels = np.empty(labels.size, np.int64)
    for v in range(labels.size):
        _, _, start_labels[v] = two_smallest(reduced[v])
    steps = min(_MAX_TABU_STEPS, 20 * labels.size, _MAX_TABU_WORK // core.costs.size)
    value = tabu_search(core, reduced, start_labels, steps, value, labels)
    if value < np.inf:
        improve_by_swaps(core, labels, _SWAP_PASSES)
        value = core_value(core, labels)
    return value


@njit(cache=True, nogil=True)
def _rounding_margin(n_core, multipliers, value):
    """Bound on the rounding error of a bound that labels of cost ``value`` attain.

    A bound is a sum of ``terms`` rounded numbers: first up to ``value + paid``, then less ``paid``.
    """
    n_cliques, n_labels = multipliers.shape
    paid = 0.0
    for q in range(n_cliques):
        for k in range(n_labels):
            paid += multipliers[q, k]
    terms = n_core + n_cliques * (n_labels + 1) + 16
    return 8.0 * EPS * terms * (value + paid)


@njit(cache=True, nogil=True)
def search_core(
    core,  # IN
    feasible_labels,  # IN  (n_core,) int64 a feasible labelling of any cost
    work,  # IN  about the number of vertices that the search may visit
    margin,  # IN  bound on the rounding error when ``allowed`` was computed
    multipliers,  # IN/OUT  (n_cliques, n_labels) float64 >= 0, any
    labels,  # IN/OUT  (n_core,) int64 initial guess (any numbers); the best labelling found
    allowed,  # IN/OUT  (n_core, n_labels) bool: a labelling cheaper than ``labels`` uses only these
):
    """Least cost of a feasible labelling of a core.

    UNFINISHED: the work ran out; ``labels`` is feasible unless the value is inf.
    """
    n_core, n_labels = core.costs.shape
    dual = DualState(allowed, multipliers, np.empty((n_core, n_labels)), np.empty(n_core, np.int64))
    stack = np.empty(n_core, np.int64)
    value = _initial_labels(core, feasible_labels, labels)
    status, bound = UNFINISHED, 0.0
    for _ in range(_MAX_ROUNDS):
        before = value
        if before < np.inf:
            for v in range(n_core):
                allowed[v, labels[v]] = True
        if not _propagate(core, dual, stack):
            return CoreSolution(INFEASIBLE, np.inf, np.inf, margin)
        bound = _tighten_bound(core, dual, stack, value, labels)
        if bound == np.inf:
            return CoreSolution(INFEASIBLE, np.inf, np.inf, margin)
        status, gained, work = _search_pieces(core, dual, before < np.inf, work, labels)
        if status == INFEASIBLE:
            return CoreSolution(INFEASIBLE, np.inf, np.inf, margin)
        bound += gained
        value = core_value(core, labels)
        if before < np.inf or value < np.inf:
            closed_by = before if before < np.inf else value
            margin = max(margin, _rounding_margin(n_core, multipliers, closed_by))
        if status == SOLVED:
            return CoreSolution(SOLVED, value, max(0.0, value - margin), margin)
        value = _improve_labels(core, dual.reduced, value, labels)
        if not value < before:
            break
    return CoreSolution(status, value, max(0.0, min(bound, value) - margin), margin)
