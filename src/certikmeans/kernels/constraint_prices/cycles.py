"""Odd cycles of hard cannot-links: at most ``(k - 1) / 2`` of ``k`` members are in a set.

The linear program of the pairs leaves members at 1/2, where prices ``pi`` of the pairs pay exactly
for all value, at half of it. If the pairs of an odd cycle of length ``k`` all have a price of at
least ``delta``, then take ``delta`` from each and price the cycle by ``q = 2 delta`` instead, which
adds ``q`` to the price of its members and ``q (k - 1) / 2`` to the constant: the prices of the
members stay, and the constant falls by ``delta``.

So the prices of the pairs are first spread over as many pairs as possible (``pi_uv = y_u y_v``,
scaled to pay for the values), then triangles and cycles of length five are priced greedily. Both
are repeated with the value that is left. In the end the pairs are priced by a maximum flow at the
values that the cycles leave. Any ``q >= 0`` is valid.
"""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.reduction import CORE
from certikmeans.kernels.constraint_prices.workspace import add_compensated

ROUNDS = 5
SCALINGS = 30
MIN_GAIN = 2e-3  # relative improvement by a round that justifies another one


@njit(cache=True, nogil=True)
def is_usable(
    e,  # IN   arc
    pairs,  # IN
    x,  # IN   (m,)
):
    """Whether a pair is a hard cannot-link between undecided members."""
    j, i = pairs.head[e], pairs.head[pairs.reverse[e]]
    return (
        pairs.bonus[e] == -np.inf
        and pairs.state[i] == CORE
        and pairs.state[j] == CORE
        and x[i] == 0.5
        and x[j] == 0.5
    )


@njit(cache=True, nogil=True)
def spread_prices(
    m,  # IN
    pairs,  # IN
    cycles,  # IN/OUT CycleWorkspace: ``pi`` is 0 or more where usable, negative elsewhere
):
    """Prices of all usable pairs that pay for the values left, as evenly as possible."""
    start, head, reverse, pi = pairs.start, pairs.head, pairs.reverse, cycles.pi
    y, row = cycles.y, cycles.row
    for i in range(m):
        y[i] = np.sqrt(max(pairs.reduced[i] - cycles.cover[i], 0.0))
    for scaling in range(SCALINGS + 1):
        for i in range(m):
            total = 0.0
            for e in range(start[i], start[i + 1]):
                if pi[e] >= 0.0:
                    total += y[head[e]]
            row[i] = total
        if scaling == SCALINGS:
            break
        for i in range(m):
            if row[i] > 0.0 and y[i] > 0.0:
                y[i] = np.sqrt(y[i] * max(pairs.reduced[i] - cycles.cover[i], 0.0) / row[i])
            else:
                y[i] = 0.0
    for i in range(m):
        left = max(pairs.reduced[i] - cycles.cover[i], 0.0)
        paid = y[i] * row[i]
        row[i] = left / paid if paid > left else 1.0
    for i in range(m):
        for e in range(start[i], start[i + 1]):
            j = head[e]
            if pi[e] >= 0.0 and i < j:
                pi[e] = y[i] * y[j] * min(row[i], row[j])
                pi[reverse[e]] = pi[e]


@njit(cache=True, nogil=True)
def price_cycle(
    arcs,  # IN   (k,) int64: the cycle
    length,  # IN
    delta,  # IN
    pairs,  # IN
    cycles,  # IN/OUT pi, cover, uses
):
    """Move ``delta`` from the pairs of a cycle to the cycle; returns what this saves."""
    for k in range(length):
        e = arcs[k]
        f = pairs.reverse[e]
        cycles.pi[e] = max(cycles.pi[e] - delta, 0.0)
        cycles.pi[f] = cycles.pi[e]
        i = pairs.head[f]
        cycles.cover[i] += 2.0 * delta
        cycles.uses[i] += 1
    add_compensated(cycles.constant, (length - 1) * delta)
    return delta


@njit(cache=True, nogil=True)
def price_triangles(
    m,  # IN
    pairs,  # IN
    cycles,  # IN/OUT
    tiny,  # IN
):
    """Price all triangles in turn; returns ``(what this saves, arcs scanned)``."""
    start, head, pi, mark, arcs = pairs.start, pairs.head, cycles.pi, cycles.mark, cycles.arcs
    saved, scanned = 0.0, 0
    for u in range(m):
        for e in range(start[u], start[u + 1]):
            if pi[e] > tiny:
                mark[head[e]] = e
        for e in range(start[u], start[u + 1]):
            w = head[e]
            if w < u or not pi[e] > tiny:
                continue
            scanned += start[w + 1] - start[w]
            for f in range(start[w], start[w + 1]):
                g = mark[head[f]]
                if head[f] > w and g >= 0 and pi[f] > tiny:
                    delta = min(pi[e], min(pi[f], pi[g]))
                    if delta > tiny:
                        arcs[0], arcs[1], arcs[2] = e, f, pairs.reverse[g]
                        saved += price_cycle(arcs, 3, delta, pairs, cycles)
        for e in range(start[u], start[u + 1]):
            mark[head[e]] = -1
    return saved, scanned


@njit(cache=True, nogil=True)
def best_two_paths(
    u,  # IN   member
    pairs,  # IN
    cycles,  # IN/OUT strength, first, second, reached
    tiny,  # IN
):
    """Paths of two pairs from a member with the largest least price; returns their number."""
    start, head, pi = pairs.start, pairs.head, cycles.pi
    count = 0
    for e in range(start[u], start[u + 1]):
        if not pi[e] > tiny:
            continue
        a = head[e]
        for f in range(start[a], start[a + 1]):
            x = head[f]
            if x == u or not pi[f] > tiny:
                continue
            strength = min(pi[e], pi[f])
            if cycles.strength[x] == 0.0:
                cycles.reached[count] = x
                count += 1
            if strength > cycles.strength[x]:
                cycles.strength[x] = strength
                cycles.first[x] = e
                cycles.second[x] = f
    return count


@njit(cache=True, nogil=True)
def price_five_cycles(
    m,  # IN
    pairs,  # IN
    cycles,  # IN/OUT
    tiny,  # IN
):
    """Price the best cycle of length five through every pair.

    Returns ``(what this saves, arcs scanned)``.
    """
    start, head, reverse, pi, arcs = (
        pairs.start,
        pairs.head,
        pairs.reverse,
        cycles.pi,
        cycles.arcs,
    )
    saved, scanned = 0.0, 0
    for u in range(m):
        count = best_two_paths(u, pairs, cycles, tiny)
        scanned += count
        for e in range(start[u], start[u + 1]):
            w = head[e]
            if not pi[e] > tiny:
                continue
            best, best_f, best_g = tiny, -1, -1
            for f in range(start[w], start[w + 1]):
                b = head[f]
                if b == u or not pi[f] > best:
                    continue
                scanned += start[b + 1] - start[b]
                for g in range(start[b], start[b + 1]):
                    x = head[g]
                    if not pi[g] > best or not cycles.strength[x] > best:
                        continue
                    if (x - w) * (x - u) == 0:
                        continue
                    a = head[cycles.first[x]]
                    if (a - b) * (a - w) == 0:
                        continue
                    delta = min(pi[cycles.first[x]], pi[cycles.second[x]])
                    delta = min(min(delta, pi[e]), min(pi[f], pi[g]))
                    if delta > best:
                        best, best_f, best_g = delta, f, g
            if best_f >= 0:
                x = head[best_g]
                arcs[0], arcs[1], arcs[2] = e, best_f, best_g
                arcs[3], arcs[4] = reverse[cycles.second[x]], reverse[cycles.first[x]]
                saved += price_cycle(arcs, 5, best, pairs, cycles)
        for k in range(count):
            cycles.strength[cycles.reached[k]] = 0.0
    return saved, scanned


@njit(cache=True, nogil=True)
def price_odd_cycles(
    m,  # IN   number of members
    n_arcs,  # IN
    pairs,  # IN   PairWorkspace
    x,  # IN   (m,): solution of the linear program in halves
    cycles,  # OUT  CycleWorkspace: cover, the price of the cycles
):
    """Price triangles and cycles of length five among members at 1/2.

    Returns ``(constant, most cycles of a member, arcs scanned)``.
    """
    value = 0.0
    for i in range(m):
        cycles.cover[i] = 0.0
        cycles.uses[i] = 0
        cycles.mark[i] = -1
        cycles.strength[i] = 0.0
        if pairs.state[i] == CORE and x[i] == 0.5:
            value += max(pairs.reduced[i], 0.0)
    for e in range(n_arcs):
        cycles.pi[e] = 0.0 if is_usable(e, pairs, x) else -1.0
    terms, scanned = 0, 0
    cycles.constant[:] = 0.0
    tiny = 1e-6 * value / max(m, 1)
    if tiny == 0.0:
        return 0.0, terms, scanned
    for _ in range(ROUNDS):
        spread_prices(m, pairs, cycles)
        threes, more = price_triangles(m, pairs, cycles, tiny)
        fives, yet_more = price_five_cycles(m, pairs, cycles, tiny)
        scanned += more + yet_more + SCALINGS * n_arcs // 4
        if threes + fives < MIN_GAIN * value:
            break
    for i in range(m):
        terms = max(terms, cycles.uses[i])
    return cycles.constant[0] + cycles.constant[1], terms, scanned
