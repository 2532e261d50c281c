"""A lower bound for cores: a price per clique and label, which a proper labelling pays once.

For prices ``p >= 0`` every proper labelling costs at least

    sum_v min_k (c_vk + sum of p_qk over the cliques q that hold v)  -  sum_qk p_qk

because the members of a clique use a label at most once. This is the dual of the linear relaxation
with clique inequalities, and the reduced costs show which labels no better labelling can use.
"""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.smallest import two_least

_SHARE = 0.4


@njit(cache=True, nogil=True)
def _clique_value(members, reduced, price):
    """Return the part of the bound that the prices of one clique can change."""
    total = 0.0
    for i in range(members.size):
        least, _, _ = two_least(reduced[members[i]])
        total += least
    for k in range(price.size):
        total -= price[k]
    return total


@njit(cache=True, nogil=True)
def _shift(members, reduced, price, k, change):
    price[k] += change
    for i in range(members.size):
        reduced[members[i], k] += change


@njit(cache=True, nogil=True)
def _raise_wanted(members, reduced, price, largest, following):
    """Raise prices until no label is wanted twice with regret.

    If several members want label k and would each lose ``gap`` by the next best, a rise to the
    second largest gap gains at least as much as it costs. False: two members have nothing else.
    """
    n_labels = reduced.shape[1]
    for _ in range(2 * members.size):
        for k in range(n_labels):
            largest[k], following[k] = -1.0, 0.0
        for i in range(members.size):
            best, second, k = two_least(reduced[members[i]])
            if k < 0:
                return False
            gap = second - best
            if gap > largest[k]:
                following[k] = max(largest[k], 0.0)
                largest[k] = gap
            elif gap > following[k]:
                following[k] = gap
        k = 0
        for other in range(1, n_labels):
            if following[other] > following[k]:
                k = other
        if following[k] == np.inf:
            return False
        if following[k] <= 0.0:
            return True
        _shift(members, reduced, price, k, following[k])
    return True


@njit(cache=True, nogil=True)
def _share_regret(members, reduced, price):
    """Let every member that wants a label alone put part of its regret into the price.

    The bound stays, but the other members now feel that the label is wanted. Without this the
    ascent ends far below the linear relaxation; with it mostly within a few percent.
    """
    for i in range(members.size):
        best, second, k = two_least(reduced[members[i]])
        gap = second - best
        if gap <= 0.0 or gap == np.inf:
            continue
        payers = 0
        for j in range(members.size):
            payers += reduced[members[j], k] < np.inf
        if payers > 1:
            _shift(members, reduced, price, k, _SHARE * gap)


@njit(cache=True, nogil=True)
def _update_clique(members, reduced, price, old, largest, following):
    """Set the prices of one clique anew, the others fixed. False proves that nothing is left."""
    before = _clique_value(members, reduced, price)
    for k in range(price.size):
        old[k] = price[k]
        if price[k] > 0.0:
            _shift(members, reduced, price, k, -price[k])
            price[k] = 0.0
    if not _raise_wanted(members, reduced, price, largest, following):
        return False
    _share_regret(members, reduced, price)
    if _clique_value(members, reduced, price) < before:  # raises are not always the best choice
        for k in range(price.size):
            _shift(members, reduced, price, k, old[k] - price[k])
            price[k] = old[k]
    return True


@njit(cache=True, nogil=True)
def _update_pair(u, v, reduced, price):
    """`_update_clique` for two members, in closed form; this is where the time goes."""
    best_u, next_u, wish_u = np.inf, np.inf, -1
    best_v, next_v, wish_v = np.inf, np.inf, -1
    for k in range(price.size):
        x, y = reduced[u, k] - price[k], reduced[v, k] - price[k]
        if x < best_u:
            best_u, next_u, wish_u = x, best_u, k
        elif x < next_u:
            next_u = x
        if y < best_v:
            best_v, next_v, wish_v = y, best_v, k
        elif y < next_v:
            next_v = y
    if wish_u < 0 or wish_v < 0:
        return False
    gap_u, gap_v = next_u - best_u, next_v - best_v
    price_u, price_v = 0.0, 0.0
    if wish_u == wish_v:
        least, most = min(gap_u, gap_v), max(gap_u, gap_v)
        if least == np.inf:
            return False
        price_u = price_v = least + (_SHARE * (most - least) if most < np.inf else 0.0)
    else:
        if gap_u < np.inf and reduced[v, wish_u] < np.inf:
            price_u = _SHARE * gap_u
        if gap_v < np.inf and reduced[u, wish_v] < np.inf:
            price_v = _SHARE * gap_v
    for k in range(price.size):
        new = price_u if k == wish_u else (price_v if k == wish_v else 0.0)
        change = new - price[k]
        if change != 0.0:
            reduced[u, k] += change
            reduced[v, k] += change
            price[k] = new
    return True


@njit(cache=True, nogil=True)
def _active_cliques(core, reduced, active):
    """List the cliques in which two members have a label in common. Returns their number."""
    member_start, member = core.member_start, core.member
    n_active = 0
    for q in range(member_start.size - 1):
        shared = False
        for k in range(reduced.shape[1]):
            payers = 0
            for i in range(member_start[q], member_start[q + 1]):
                payers += reduced[member[i], k] < np.inf
            shared = shared or payers > 1
        if shared:
            active[n_active] = q
            n_active += 1
    return n_active


@njit(cache=True, nogil=True)
def price_bound(
    reduced,  # IN  (n_core, n_labels) float64
    prices,  # IN  (n_cliques, n_labels) float64
):
    """Evaluate the bound, not yet rounded down."""
    gained, paid = 0.0, 0.0
    for v in range(reduced.shape[0]):
        least, _, _ = two_least(reduced[v])
        gained += least
    for q in range(prices.shape[0]):
        for k in range(prices.shape[1]):
            paid += prices[q, k]
    return gained - paid


@njit(cache=True, nogil=True)
def raise_prices(
    core,  # IN
    upper,  # IN  cost of a known labelling, or inf: reaching it is enough
    reduced,  # IN/OUT  (n_core, n_labels) float64, inf = barred
    prices,  # IN/OUT  (n_cliques, n_labels) float64 >= 0
    sweeps,  # IN  at most this many rounds over all cliques
):
    """Ascend the bound clique by clique. False proves that no proper labelling exists."""
    member_start, member = core.member_start, core.member
    n_cliques, n_labels = prices.shape
    largest, following, old = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    active = np.empty(n_cliques, np.int64)
    n_active = _active_cliques(core, reduced, active)
    bound = price_bound(reduced, prices)
    for sweep in range(sweeps):
        for i in range(n_active):
            q = active[i if sweep % 2 == 0 else n_active - 1 - i]
            members = member[member_start[q] : member_start[q + 1]]
            if members.size == 2:
                possible = _update_pair(members[0], members[1], reduced, prices[q])
            else:
                possible = _update_clique(members, reduced, prices[q], old, largest, following)
            if not possible:
                return False
        if sweep % 10 == 9:
            before, bound = bound, price_bound(reduced, prices)
            if bound >= upper or bound - before <= 0.01 * min(upper - bound, bound):
                break
    return True


@njit(cache=True, nogil=True)
def drop_idle_prices(
    core,  # IN
    allowed,  # IN  (n_core, n_labels) bool
    prices,  # IN/OUT
):
    """Set to zero every price that fewer than two members can still pay: never worse."""
    member_start, member = core.member_start, core.member
    for q in range(prices.shape[0]):
        begin, end = member_start[q], member_start[q + 1]
        for k in range(prices.shape[1]):
            if prices[q, k] > 0.0:
                payers = 0
                for i in range(begin, end):
                    payers += allowed[member[i], k]
                if payers < 2:
                    prices[q, k] = 0.0


@njit(cache=True, nogil=True)
def reduce_costs(
    core,  # IN
    allowed,  # IN  (n_core, n_labels) bool
    prices,  # IN  (n_cliques, n_labels)
    reduced,  # OUT (n_core, n_labels) costs plus prices, inf where not allowed
):
    """Recompute the reduced costs from the prices, so that no rounding accumulates in them."""
    member_start, member, costs = core.member_start, core.member, core.costs
    n_core, n_labels = costs.shape
    for v in range(n_core):
        for k in range(n_labels):
            reduced[v, k] = costs[v, k] if allowed[v, k] else np.inf
    for q in range(prices.shape[0]):
        for k in range(n_labels):
            if prices[q, k] > 0.0:
                for i in range(member_start[q], member_start[q + 1]):
                    reduced[member[i], k] += prices[q, k]
