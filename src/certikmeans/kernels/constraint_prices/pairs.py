"""Prices of hard and soft pairs."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.cycles import price_odd_cycles
from certikmeans.kernels.constraint_prices.flow import maximize_flow, read_solution
from certikmeans.kernels.constraint_prices.reduction import CORE, OUT, extend_solution, reduce_pairs


@njit(cache=True, nogil=True)
def gather_pairs(
    constraints,  # IN
    ids,  # IN   (m,) int32, ascending
    values,  # IN   (m,) float64
    position,  # IN   (n,) int32: members numbered
    pairs,  # OUT  PairWorkspace: arcs between active members
    price,  # OUT  (m,): of the pairs with an end that is not active
):
    """Collect the pairs among the members that can be in a best set; price the others.

    A member whose value and positive bonuses add up to 0 at most never pays off: it is charged
    with all bonuses of its must-links, which leaves it at 0 or below.

    Returns ``(number of arcs, sum of sizes of the charges)``.
    """
    indptr, neighbors, bonus = (
        constraints.pair_indptr,
        constraints.pair_neighbors,
        constraints.pair_bonus,
    )
    start, head, state = pairs.start, pairs.head, pairs.state
    for i in range(ids.size):
        potential = values[i]
        s = ids[i]
        for e in range(indptr[s], indptr[s + 1]):
            if bonus[e] > 0.0 and position[neighbors[e]] >= 0:
                potential += bonus[e]
        state[i] = CORE if potential > 0.0 else OUT
    filled = np.int64(0)
    size = 0.0
    for i in range(ids.size):
        s = ids[i]
        start[i] = filled
        charged = 0.0
        for e in range(indptr[s], indptr[s + 1]):
            j = position[neighbors[e]]
            if j < 0:
                continue
            if state[i] == CORE and state[j] == CORE:
                head[filled] = j
                pairs.bonus[filled] = bonus[e]
                pairs.charge[filled] = 0.0
                filled += 1
            elif bonus[e] > 0.0 and state[i] == OUT and (state[j] == CORE or i < j):
                charged -= bonus[e]
        price[i] = charged
        size -= charged
    start[ids.size] = filled
    cursor, reverse = pairs.cursor, pairs.reverse
    for i in range(ids.size):
        cursor[i] = start[i]
    for i in range(ids.size):  # rows are ascending: earlier members come first in a row
        for e in range(start[i], start[i + 1]):
            j = head[e]
            if j > i:
                f = cursor[j]
                cursor[j] += 1
                reverse[e] = f
                reverse[f] = e
    return filled, size


@njit(cache=True, nogil=True)
def center_prices(
    m,  # IN   number of members
    pairs,  # IN/OUT charge; reduced: values minus prices
):
    """Move every price to the middle of its best interval while the others stay.

    The bound does not rise, and other kinds of prices find room to move.
    """
    start, head, reverse, bonus = pairs.start, pairs.head, pairs.reverse, pairs.bonus
    charge, reduced = pairs.charge, pairs.reduced
    for i in range(m):
        for e in range(start[i], start[i + 1]):
            j, f, r = head[e], reverse[e], bonus[e]
            if j < i:
                continue
            own, other = reduced[i] + charge[e], reduced[j] + charge[f]
            if r < 0.0:
                middle = 0.5 * (max(own, 0.0) + max(other, 0.0))
                charge[e] = charge[f] = min(middle, -r)
            else:
                share = min(max(0.5 * (other + r - own), 0.0), r)
                charge[e] = -share
                charge[f] = -(r - share)
            reduced[i] = own - charge[e]
            reduced[j] = other - charge[f]


@njit(cache=True, nogil=True)
def price_pairs(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    centered,  # IN   whether other kinds of prices follow
    strengthen,  # IN   whether to price odd cycles, too
    work,  # IN/OUT PriceWorkspace, members numbered
    price,  # OUT  (m,)
):
    """Prices of the pairs at these values; ``work.x`` is a solution of the linear program.

    Returns ``(constant, sum of the sizes of all terms, largest number of terms of a price)``.
    """
    pairs = work.pairs
    n_arcs, size = gather_pairs(constraints, ids, values, work.position, pairs, price)
    indptr = constraints.pair_indptr
    terms = np.int64(0)
    for i in range(ids.size):
        terms = max(terms, indptr[ids[i] + 1] - indptr[ids[i]])
    m = ids.size
    start, head, charge = pairs.start, pairs.head, pairs.charge
    for i in range(m):
        pairs.reduced[i] = values[i]
    leaves, left, scanned = reduce_pairs(m, pairs)
    if left > 0:
        optimal, more = maximize_flow(m, n_arcs, pairs, work.flow, work.effort[0] - scanned)
        scanned += more
        read_solution(m, pairs, work.flow, optimal, work.x)
    extend_solution(m, leaves, pairs, work.x)
    constant, lost, cycle_terms = 0.0, 0.0, np.int64(0)
    if strengthen and left > 0:
        constant, cycle_terms, more = price_odd_cycles(m, n_arcs, pairs, work.x, work.cycles)
        scanned += more
        for i in range(m):
            pairs.reduced[i] -= work.cycles.cover[i]
        _, more = maximize_flow(m, n_arcs, pairs, work.flow, work.effort[0])
        scanned += more
        for i in range(m):
            price[i] += work.cycles.cover[i]
            size += work.cycles.cover[i]
    work.effort[1] += scanned
    if centered:
        for i in range(m):
            pairs.reduced[i] = values[i] - price[i]
            for e in range(start[i], start[i + 1]):
                pairs.reduced[i] -= charge[e]
        center_prices(m, pairs)
    for i in range(ids.size):
        total = price[i]
        for e in range(start[i], start[i + 1]):
            total += charge[e]
            size += abs(charge[e])
            if head[e] > i and charge[e] > 0.0:
                new = constant + charge[e]
                if constant >= charge[e]:
                    lost += (constant - new) + charge[e]
                else:
                    lost += (charge[e] - new) + constant
                constant = new
        price[i] = total
    return constant + lost, size, terms + cycle_terms
