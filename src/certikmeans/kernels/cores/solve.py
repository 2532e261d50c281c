"""The optimum of a dense core: prices bar labels, the core falls apart, pieces are searched."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.cores.branching import Piece, new_search_state, search_piece
from certikmeans.kernels.cores.core import CoreAnswer, Priced, core_value
from certikmeans.kernels.cores.moves import improve_by_swaps, permute_classes
from certikmeans.kernels.cores.prices import (
    drop_idle_prices,
    price_bound,
    raise_prices,
    reduce_costs,
)
from certikmeans.kernels.cores.tabu import tabu_search
from certikmeans.kernels.smallest import two_least
from certikmeans.rounding import EPS

SOLVED, UNFINISHED, IMPOSSIBLE = 0, 1, 2

_SWEEPS = 20
_TURNS = 8
_ROUNDS = 3
_SWAP_PASSES = 10
_MOST_STEPS, _MOST_LOOKS = 4000, 20_000_000


@njit(cache=True, nogil=True)
def _first_labelling(core, witness, places):
    """Take the cheaper of ``places`` and the renamed witness, improve it. Returns its cost."""
    renamed = np.empty(places.size, np.int64)
    value = core_value(core, places)
    if permute_classes(core.costs, witness, renamed):
        other = core_value(core, renamed)
        if other < value:
            value = other
            for v in range(places.size):
                places[v] = renamed[v]
    if value < np.inf:
        improve_by_swaps(core, places, _SWAP_PASSES)
        value = core_value(core, places)
    return value


@njit(cache=True, nogil=True)
def _bar_dear_labels(reduced, bound, upper, places, allowed):
    """Bar every label that only labellings of cost ``upper`` or more can use.

    Labels in ``places`` stay, so that the labelling at hand survives; every better one does too.
    """
    barred = False
    for v in range(reduced.shape[0]):
        least, _, _ = two_least(reduced[v])
        for k in range(reduced.shape[1]):
            if allowed[v, k] and k != places[v] and bound + (reduced[v, k] - least) >= upper:
                allowed[v, k] = False
                barred = True
    return barred


@njit(cache=True, nogil=True)
def _propagate(core, priced, stack):
    """Bar the only label of a vertex at its neighbours, repeatedly. False: nothing left for one."""
    link_start, link = core.link_start, core.link
    allowed, count = priced.allowed, priced.n_allowed
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
def _split(core, priced, piece_of, members, begins):
    """Group the undecided vertices that can still clash. Returns the number of pieces."""
    link_start, link = core.link_start, core.link
    allowed, count = priced.allowed, priced.n_allowed
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
def _prices_by_piece(core, priced, piece_of, paid):
    """Sum the prices of each piece; the members that share a label are in one piece."""
    member_start, member = core.member_start, core.member
    allowed, prices = priced.allowed, priced.prices
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
def _reprice(core, priced, upper):
    """Bound the allowed labellings from below; inf proves that there is none."""
    allowed, prices, reduced = priced.allowed, priced.prices, priced.reduced
    drop_idle_prices(core, allowed, prices)
    reduce_costs(core, allowed, prices, reduced)
    if not raise_prices(core, upper, reduced, prices, _SWEEPS):
        return np.inf
    reduce_costs(core, allowed, prices, reduced)
    return price_bound(reduced, prices)


@njit(cache=True, nogil=True)
def _piece_value(piece, costs, reduced, known, places):
    """Cost of the labels of a piece (inf if none are known), and its lower bound."""
    upper, lower = 0.0, -piece.paid
    for i in range(piece.places.size):
        v = piece.places[i]
        least, _, _ = two_least(reduced[v])
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
def _search_pieces(core, priced, known, work, places):
    """Search piece by piece. Returns ``(status, sum of bounds gained, work left)``."""
    costs, reduced = core.costs, priced.reduced
    n_core, n_labels = costs.shape
    piece_of, members = np.empty(n_core, np.int64), np.empty(n_core, np.int64)
    begins, paid = np.empty(n_core + 1, np.int64), np.empty(n_core)
    n_pieces = _split(core, priced, piece_of, members, begins)
    drop_idle_prices(core, priced.allowed, priced.prices)
    reduce_costs(core, priced.allowed, priced.prices, reduced)
    _prices_by_piece(core, priced, piece_of, paid)
    state = new_search_state(n_core, n_labels)
    status, gained = SOLVED, 0.0
    if not known:
        _take_single_labels(priced.allowed, priced.n_allowed, places)
    left = begins[n_pieces]
    for p in range(n_pieces):
        piece = Piece(members[begins[p] : begins[p + 1]], p, piece_of, paid[p])
        share = work * piece.places.size // left
        left -= piece.places.size
        upper, lower = _piece_value(piece, costs, reduced, known, places)
        finished, upper, used = search_piece(core, piece, reduced, upper, share, state, places)
        work -= used
        if finished and upper == np.inf:
            return IMPOSSIBLE, np.inf, work
        if finished:
            gained += max(0.0, upper - lower)
        else:
            status = UNFINISHED
            if upper == np.inf:
                places[piece.places[0]] = -1  # no labelling of this piece is known
    return status, gained, work


@njit(cache=True, nogil=True)
def _tighten(core, priced, stack, value, places):
    """Alternate prices and barred labels. Returns a bound on all that is still allowed."""
    bound = 0.0
    for _ in range(_TURNS):
        before = bound
        bound = _reprice(core, priced, value)
        if bound == np.inf:
            break
        barred = value < np.inf and _bar_dear_labels(
            priced.reduced, bound, value, places, priced.allowed
        )
        if barred:
            _propagate(core, priced, stack)
        elif bound - before <= 0.02 * min(value - bound, bound):
            break
    return bound


@njit(cache=True, nogil=True)
def _look_around(core, reduced, value, places):
    """Better labels without proof, from those that the prices suggest. Returns their cost."""
    labels = np.empty(places.size, np.int64)
    for v in range(places.size):
        _, _, labels[v] = two_least(reduced[v])
    steps = min(_MOST_STEPS, 20 * places.size, _MOST_LOOKS // core.costs.size)
    value = tabu_search(core, reduced, labels, steps, value, places)
    if value < np.inf:
        improve_by_swaps(core, places, _SWAP_PASSES)
        value = core_value(core, places)
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
    core,  # IN
    witness,  # IN  (n_core,) int64 a proper labelling of any cost
    work,  # IN  at most about this many vertices are looked at in the search
    margin,  # IN  what rounding may have hidden when ``allowed`` was made
    prices,  # IN/OUT  (n_cliques, n_labels) float64 >= 0, any; zeros if nothing is known
    places,  # IN/OUT  (n_core,) int64 a first guess (any numbers); the best labelling found
    allowed,  # IN/OUT  (n_core, n_labels) bool: a labelling cheaper than ``places`` uses only these
):
    """Least cost of a proper labelling of a core.

    UNFINISHED: the work ran out; ``places`` is proper unless the value is inf.
    """
    n_core, n_labels = core.costs.shape
    priced = Priced(allowed, prices, np.empty((n_core, n_labels)), np.empty(n_core, np.int64))
    stack = np.empty(n_core, np.int64)
    value = _first_labelling(core, witness, places)
    status, bound = UNFINISHED, 0.0
    for _ in range(_ROUNDS):
        before = value
        if before < np.inf:
            for v in range(n_core):
                allowed[v, places[v]] = True
        if not _propagate(core, priced, stack):
            return CoreAnswer(IMPOSSIBLE, np.inf, np.inf, margin)
        bound = _tighten(core, priced, stack, value, places)
        if bound == np.inf:
            return CoreAnswer(IMPOSSIBLE, np.inf, np.inf, margin)
        status, gained, work = _search_pieces(core, priced, before < np.inf, work, places)
        if status == IMPOSSIBLE:
            return CoreAnswer(IMPOSSIBLE, np.inf, np.inf, margin)
        bound += gained
        value = core_value(core, places)
        if before < np.inf or value < np.inf:
            closed_by = before if before < np.inf else value
            margin = max(margin, _rounding(n_core, prices, closed_by))
        if status == SOLVED:
            return CoreAnswer(SOLVED, value, max(0.0, value - margin), margin)
        value = _look_around(core, priced.reduced, value, places)
        if not value < before:
            break
    return CoreAnswer(status, value, max(0.0, min(bound, value) - margin), margin)
