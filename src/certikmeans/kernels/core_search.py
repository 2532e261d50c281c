"""The optimum of a dense core: prices bar labels, the core falls apart, pieces are searched."""

import numpy as np
from numba import njit

from certikmeans.kernels.core_moves import core_value, improve_by_swaps, permute_classes
from certikmeans.kernels.core_tabu import tabu_search
from certikmeans.kernels.prices import (
    best_two,
    drop_idle_prices,
    price_bound,
    raise_prices,
    reduce_costs,
)
from certikmeans.kernels.search import new_search_state, search_piece

EPS = np.finfo(np.float64).eps

SOLVED, UNFINISHED, IMPOSSIBLE = 0, 1, 2

_SWEEPS = 20
_TURNS = 8
_ROUNDS = 3
_SWAP_PASSES = 10
_MOST_STEPS, _MOST_LOOKS = 4000, 20_000_000


@njit(cache=True, nogil=True)
def _first_labelling(link_start, link, costs, witness, places):
    """Take the cheaper of ``places`` and the renamed witness, improve it. Returns its cost."""
    renamed = np.empty(places.size, np.int64)
    value = core_value(link_start, link, costs, places)
    if permute_classes(costs, witness, renamed):
        other = core_value(link_start, link, costs, renamed)
        if other < value:
            value = other
            for v in range(places.size):
                places[v] = renamed[v]
    if value < np.inf:
        improve_by_swaps(link_start, link, costs, places, _SWAP_PASSES)
        value = core_value(link_start, link, costs, places)
    return value


@njit(cache=True, nogil=True)
def _bar_dear_labels(reduced, bound, upper, places, allowed):
    """Bar every label that only labellings of cost ``upper`` or more can use.

    Labels in ``places`` stay, so that the labelling at hand survives; every better one does too.
    """
    barred = False
    for v in range(reduced.shape[0]):
        least, _, _ = best_two(reduced[v])
        for k in range(reduced.shape[1]):
            if allowed[v, k] and k != places[v] and bound + (reduced[v, k] - least) >= upper:
                allowed[v, k] = False
                barred = True
    return barred


@njit(cache=True, nogil=True)
def _propagate(link_start, link, allowed, count, stack):
    """Bar the only label of a vertex at its neighbours, repeatedly. False: nothing left for one."""
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
def _split(link_start, link, allowed, count, piece_of, members, begins):
    """Group the undecided vertices that can still clash. Returns the number of pieces."""
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
def _prices_by_piece(member_start, member, allowed, prices, piece_of, paid):
    """Sum the prices of each piece; the members that share a label are in one piece."""
    for p in range(paid.size):
        paid[p] = 0.0
    for q in range(prices.shape[0]):
        for k in range(prices.shape[1]):
            if prices[q, k] > 0.0:
                for i in range(member_start[q], member_start[q + 1]):
                    v = member[i]
                    if allowed[v, k]:
                        paid[piece_of[v]] += prices[q, k]
                        break


@njit(cache=True, nogil=True)
def _reprice(member_start, member, costs, upper, allowed, prices, reduced):
    """Bound the allowed labellings from below; inf proves that there is none."""
    drop_idle_prices(member_start, member, allowed, prices)
    reduce_costs(member_start, member, costs, allowed, prices, reduced)
    sweeps = _SWEEPS
    if not raise_prices(member_start, member, upper, reduced, prices, sweeps):
        return np.inf
    reduce_costs(member_start, member, costs, allowed, prices, reduced)
    return price_bound(reduced, prices)


@njit(cache=True, nogil=True)
def _piece_value(group, costs, reduced, paid, known, places):
    """Cost of the labels of a piece (inf if none are known), and its lower bound."""
    upper, lower = 0.0, -paid
    for i in range(group.size):
        v = group[i]
        least, _, _ = best_two(reduced[v])
        lower += least
        if known:
            upper += costs[v, places[v]]
    return upper if known else np.inf, lower


@njit(cache=True, nogil=True)
def _take_single_labels(allowed, count, places):
    for v in range(count.size):
        if count[v] == 1:
            places[v] = 0
            while not allowed[v, places[v]]:
                places[v] += 1


@njit(cache=True, nogil=True)
def _search_pieces(
    link_start, link, member_start, member, costs, reduced, allowed, prices, count, known, work,
    places,
):  # fmt: skip
    """Search piece by piece. Returns ``(status, sum of bounds gained, work left)``."""
    n_core, n_labels = costs.shape
    piece_of, members = np.empty(n_core, np.int64), np.empty(n_core, np.int64)
    begins, paid = np.empty(n_core + 1, np.int64), np.empty(n_core)
    n_pieces = _split(link_start, link, allowed, count, piece_of, members, begins)
    drop_idle_prices(member_start, member, allowed, prices)
    reduce_costs(member_start, member, costs, allowed, prices, reduced)
    _prices_by_piece(member_start, member, allowed, prices, piece_of, paid)
    state = new_search_state(n_core, n_labels)
    status, gained = SOLVED, 0.0
    if not known:
        _take_single_labels(allowed, count, places)
    left = begins[n_pieces]
    for p in range(n_pieces):
        group = members[begins[p] : begins[p + 1]]
        share = work * group.size // left
        left -= group.size
        upper, lower = _piece_value(group, costs, reduced, paid[p], known, places)
        finished, upper, used = search_piece(
            link_start, link, group, p, piece_of, costs, reduced, paid[p], upper, share, state,
            places,
        )  # fmt: skip
        work -= used
        if finished and upper == np.inf:
            return IMPOSSIBLE, np.inf, work
        if finished:
            gained += max(0.0, upper - lower)
        else:
            status = UNFINISHED
            if upper == np.inf:
                places[group[0]] = -1  # no labelling of this piece is known
    return status, gained, work


@njit(cache=True, nogil=True)
def _tighten(
    link_start, link, member_start, member, costs, value, places, allowed, prices, reduced, count,
    stack,
):  # fmt: skip
    """Alternate prices and barred labels. Returns a bound on all that is still allowed."""
    bound = 0.0
    for _ in range(_TURNS):
        before = bound
        bound = _reprice(member_start, member, costs, value, allowed, prices, reduced)
        if bound == np.inf:
            break
        barred = value < np.inf and _bar_dear_labels(reduced, bound, value, places, allowed)
        if barred:
            _propagate(link_start, link, allowed, count, stack)
        elif bound - before <= 0.02 * min(value - bound, bound):
            break
    return bound


@njit(cache=True, nogil=True)
def _look_around(link_start, link, costs, reduced, value, places):
    """Better labels without proof, from those that the prices suggest. Returns their cost."""
    labels = np.empty(places.size, np.int64)
    for v in range(places.size):
        _, _, labels[v] = best_two(reduced[v])
    steps = min(_MOST_STEPS, 20 * places.size, _MOST_LOOKS // costs.size)
    value = tabu_search(link_start, link, costs, reduced, labels, steps, value, places)
    if value < np.inf:
        improve_by_swaps(link_start, link, costs, places, _SWAP_PASSES)
        value = core_value(link_start, link, costs, places)
    return value


@njit(cache=True, nogil=True)
def _rounding(n_core, prices, value):
    """How much the rounding of a bound can hide, if labels of cost ``value`` close it.

    A bound is a sum of ``terms`` rounded numbers: first up to ``value + paid``, then less ``paid``.
    """
    n_cliques, n_labels = prices.shape
    paid = 0.0
    for q in range(n_cliques):
        for k in range(n_labels):
            paid += prices[q, k]
    terms = n_core + n_cliques * (n_labels + 1) + 16
    return 8.0 * EPS * terms * (value + paid)


@njit(cache=True, nogil=True)
def search_core(
    link_start,  # IN  (n_core + 1,) int64
    link,  # IN  places of the neighbours
    member_start,  # IN  (n_cliques + 1,) int64 cliques that cover the links
    member,  # IN  places
    costs,  # IN  (n_core, n_labels) float64 >= 0, inf = forbidden
    witness,  # IN  (n_core,) int64 a proper labelling of any cost
    work,  # IN  at most about this many vertices are looked at in the search
    margin,  # IN  what rounding may have hidden when ``allowed`` was made
    prices,  # IN/OUT  (n_cliques, n_labels) float64 >= 0, any; zeros if nothing is known
    places,  # IN/OUT  (n_core,) int64 a first guess (any numbers); the best labelling found
    allowed,  # IN/OUT  (n_core, n_labels) bool: a labelling cheaper than ``places`` uses only these
):
    """Least cost of a proper labelling of a core.

    Returns ``(status, value, lower, margin)``: SOLVED, UNFINISHED (the work ran out; ``places`` is
    proper unless ``value`` is inf) or IMPOSSIBLE. No labelling costs less than ``lower``.
    """
    n_core, n_labels = costs.shape
    reduced = np.empty((n_core, n_labels))
    count, stack = np.empty(n_core, np.int64), np.empty(n_core, np.int64)
    value = _first_labelling(link_start, link, costs, witness, places)
    status, bound = UNFINISHED, 0.0
    for _ in range(_ROUNDS):
        before = value
        if before < np.inf:
            for v in range(n_core):
                allowed[v, places[v]] = True
        if not _propagate(link_start, link, allowed, count, stack):
            return IMPOSSIBLE, np.inf, np.inf, margin
        bound = _tighten(
            link_start, link, member_start, member, costs, value, places, allowed, prices, reduced,
            count, stack,
        )  # fmt: skip
        if bound == np.inf:
            return IMPOSSIBLE, np.inf, np.inf, margin
        status, gained, work = _search_pieces(
            link_start, link, member_start, member, costs, reduced, allowed, prices, count,
            before < np.inf, work, places,
        )  # fmt: skip
        if status == IMPOSSIBLE:
            return IMPOSSIBLE, np.inf, np.inf, margin
        bound += gained
        value = core_value(link_start, link, costs, places)
        if before < np.inf or value < np.inf:
            closed_by = before if before < np.inf else value
            margin = max(margin, _rounding(n_core, prices, closed_by))
        if status == SOLVED:
            return SOLVED, value, max(0.0, value - margin), margin
        value = _look_around(link_start, link, costs, reduced, value, places)
        if not value < before:
            break
    return status, value, max(0.0, min(bound, value) - margin), margin
