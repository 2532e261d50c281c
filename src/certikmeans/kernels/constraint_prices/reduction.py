"""Elimination of members from the linear program of the pairs, exactly.

Write ``delta`` for the value of a member minus its prices so far and ``M`` for the sum of the
bonuses of its open must-links. Three rules, repeated until none applies:

* *out*: with ``delta + M <= 0`` a member never pays off; it is charged with its bonuses;
* *in*: with ``delta`` at least the sum over its open cannot-links of ``min(P, max(delta_u + M_u,
  0))`` a member can buy all that its neighbours might lose, and they get its bonuses;
* *leaf*: a member with one open pair is eliminated by the recursion for forests: its neighbour
  sees the value ``m(delta) = max(0, delta + r) - max(0, delta)`` more.

A graph without cycles is solved by the last rule alone. Where an interval of prices is optimal,
its middle is taken: values at the prices are then away from 0, where ``max(v - p, 0)`` is linear.
"""

from certikmeans._jit.dispatcher import njit

OUT, CORE, IN, ALONE, LEAF = 0, 1, 2, 3, 4  # states of a member
MAX_CHECKS = 6  # of one member


@njit(cache=True, nogil=True)
def set_charges(
    e,  # IN   arc
    at_tail,  # IN
    at_head,  # IN
    pairs,  # IN/OUT
):
    """Price a pair, and subtract the prices from the values of its ends."""
    f = pairs.reverse[e]
    pairs.charge[e] = at_tail
    pairs.charge[f] = at_head
    pairs.reduced[pairs.head[f]] -= at_tail
    pairs.reduced[pairs.head[e]] -= at_head


@njit(cache=True, nogil=True)
def close_pair(
    e,  # IN   arc from the member that is eliminated
    pairs,  # IN/OUT
):
    """Remove a pair from the counts of its other end."""
    j = pairs.head[e]
    pairs.degree[j] -= 1
    if pairs.bonus[e] > 0.0:
        pairs.bonuses[j] -= pairs.bonus[e]
        if pairs.degree[j] == 0:
            pairs.bonuses[j] = 0.0


@njit(cache=True, nogil=True)
def eliminate_leaf(
    i,  # IN   member with one open pair
    pairs,  # IN/OUT
):
    """Price the pair of a leaf; returns its arc."""
    e = pairs.start[i]
    while pairs.state[pairs.head[e]] != CORE:
        e += 1
    r, delta, j = pairs.bonus[e], pairs.reduced[i], pairs.head[e]
    if r > 0.0:
        own = min(max(-delta, 0.0), r)
        set_charges(e, -own, -(r - own), pairs)
    else:
        pi = max(delta, 0.0)
        other = max(pairs.reduced[j] + pairs.bonuses[j], 0.0)
        if other < pi:
            pi = 0.5 * (pi + other)
        pi = min(pi, -r)
        set_charges(e, pi, pi, pairs)
    close_pair(e, pairs)
    return e


@njit(cache=True, nogil=True)
def eliminate_out(
    i,  # IN   member that never pays off
    pairs,  # IN/OUT
):
    """Charge a member with all its open bonuses."""
    for e in range(pairs.start[i], pairs.start[i + 1]):
        if pairs.state[pairs.head[e]] == CORE:
            if pairs.bonus[e] > 0.0:
                set_charges(e, -pairs.bonus[e], 0.0, pairs)
            close_pair(e, pairs)


@njit(cache=True, nogil=True)
def price_of_exclusion(
    e,  # IN   arc of a cannot-link
    pairs,  # IN
):
    """What the member at the head may lose if the one at the tail is in the set."""
    j = pairs.head[e]
    return min(-pairs.bonus[e], max(pairs.reduced[j] + pairs.bonuses[j], 0.0))


@njit(cache=True, nogil=True)
def can_pay_all(
    i,  # IN   member
    pairs,  # IN/OUT
):
    """Apply the rule *in* to a member. Returns whether it applies."""
    need, links = 0.0, 0
    delta = pairs.reduced[i]
    for e in range(pairs.start[i], pairs.start[i + 1]):
        if pairs.bonus[e] < 0.0 and pairs.state[pairs.head[e]] == CORE:
            need += price_of_exclusion(e, pairs)
            links += 1
            if need > delta:
                return False
    if delta < 0.0:
        return False
    spare = (delta - need) / (links + 1)
    for e in range(pairs.start[i], pairs.start[i + 1]):
        if pairs.state[pairs.head[e]] == CORE:
            if pairs.bonus[e] < 0.0:
                pi = min(price_of_exclusion(e, pairs) + spare, -pairs.bonus[e])
                set_charges(e, pi, pi, pairs)
            else:
                set_charges(e, 0.0, -pairs.bonus[e], pairs)
            close_pair(e, pairs)
    return True


@njit(cache=True, nogil=True)
def reduce_pairs(
    m,  # IN   number of members
    pairs,  # IN/OUT PairWorkspace: state is CORE where open, reduced has the values
):
    """Eliminate members until no rule applies; returns ``(eliminated, left, arcs scanned)``.

    Eliminated leaves are listed in ``pairs.order`` with their arcs in ``pairs.anchor``.
    """
    start, head, state, degree = pairs.start, pairs.head, pairs.state, pairs.degree
    queue, queued, checks = pairs.queue, pairs.queued, pairs.cursor
    first, waiting, leaves, scanned, left = 0, 0, 0, 0, 0
    for i in range(m):
        degree[i] = start[i + 1] - start[i]
        pairs.bonuses[i] = 0.0
        for e in range(start[i], start[i + 1]):
            if pairs.bonus[e] > 0.0:
                pairs.bonuses[i] += pairs.bonus[e]
        queued[i] = 0
        checks[i] = 0
        if state[i] == CORE:
            left += 1
            queue[waiting] = i
            queued[i] = 1
            waiting += 1
    while waiting > 0:
        i = queue[first]
        first = first + 1 if first + 1 < m else 0
        waiting -= 1
        queued[i] = 0
        checks[i] += 1
        if state[i] != CORE:
            continue
        found = CORE
        if pairs.reduced[i] + pairs.bonuses[i] <= 0.0:
            found = OUT
            state[i] = OUT
            eliminate_out(i, pairs)
        elif degree[i] == 0:
            state[i] = ALONE
            left -= 1
            continue
        elif degree[i] == 1:
            found = LEAF
            state[i] = LEAF
            pairs.order[leaves] = i
            pairs.anchor[leaves] = eliminate_leaf(i, pairs)
            leaves += 1
        elif checks[i] <= MAX_CHECKS:
            scanned += start[i + 1] - start[i]
            if can_pay_all(i, pairs):
                found = IN
                state[i] = IN
        if found == CORE:
            continue
        left -= 1
        scanned += start[i + 1] - start[i]
        for e in range(start[i], start[i + 1]):
            j = head[e]
            if state[j] == CORE and queued[j] == 0:
                last = first + waiting
                queue[last if last < m else last - m] = j
                queued[j] = 1
                waiting += 1
    return leaves, left, scanned


@njit(cache=True, nogil=True)
def extend_solution(
    m,  # IN   number of members
    leaves,  # IN   number of eliminated leaves
    pairs,  # IN
    x,  # IN/OUT (m,): solution of the core, in halves; then of all members
):
    """Values of the eliminated members in a best solution of the linear program."""
    state, head = pairs.state, pairs.head
    for i in range(m):
        if state[i] == OUT:
            x[i] = 0.0
        elif state[i] == IN or state[i] == ALONE:
            x[i] = 1.0
    for k in range(leaves - 1, -1, -1):
        i, e = pairs.order[k], pairs.anchor[k]
        r = pairs.bonus[e]
        delta = pairs.reduced[i] + pairs.charge[e]  # before the elimination
        other = x[head[e]]
        if r > 0.0:
            x[i] = 1.0 if delta >= 0.0 else (0.0 if delta + r <= 0.0 else other)
        else:
            x[i] = 0.0 if delta <= 0.0 else (1.0 if delta >= -r else 1.0 - other)
