"""Linear program of the pairs by a maximum flow in the bipartite double cover.

Every member has a node and a copy. A member of value ``w > 0`` has capacity ``w`` from the source
to its node and from its copy to the sink; one of value ``w < 0`` has capacity ``-w`` from its node
to the sink and from the source to its copy. A cannot-link of penalty ``P`` (infinite: hard) leads
from each node to the copy of the other with capacity ``P``. A must-link of bonus ``r`` gives
``r / 2`` to either value, and leads from node to node and from copy to copy with capacity
``r / 2``, in both directions. The mean of the flow through both images of a pair is its price:
**any flow gives valid prices**, a maximum flow the best ones. From a minimum cut follows a solution
of the linear program in 0, 1/2 and 1 (roof duality).

Dinic's algorithm: a blocking flow along shortest paths, again and again.
"""

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.reduction import CORE


@njit(cache=True, nogil=True)
def build_network(
    m,  # IN   number of members
    n_arcs,  # IN
    pairs,  # IN
    flow,  # OUT  FlowWorkspace
):
    """Set up the network of the open members with zero flow; returns the largest capacity."""
    start, head, state, bonus = pairs.start, pairs.head, pairs.state, pairs.bonus
    residual, terminal = flow.residual, flow.terminal
    largest = 0.0
    for i in range(m):
        value = pairs.reduced[i]
        if state[i] != CORE:
            terminal[i] = terminal[m + i] = 0.0
            for e in range(start[i], start[i + 1]):
                residual[e] = residual[n_arcs + e] = 0.0
            continue
        for e in range(start[i], start[i + 1]):
            copy = n_arcs + e
            if state[head[e]] != CORE:
                residual[e] = residual[copy] = 0.0
            elif bonus[e] > 0.0:
                value += 0.5 * bonus[e]
                residual[e] = residual[copy] = 0.5 * bonus[e]
            else:
                residual[e] = -bonus[e]
                residual[copy] = 0.0
        terminal[i] = value
        terminal[m + i] = -value
        largest = max(largest, abs(value))
    return largest


@njit(cache=True, nogil=True)
def push_directly(
    m,  # IN
    n_arcs,  # IN
    pairs,  # IN
    flow,  # IN/OUT
):
    """Greedy flow along single pairs, the same in both images of a pair."""
    start, head, reverse, bonus = pairs.start, pairs.head, pairs.reverse, pairs.bonus
    residual, terminal = flow.residual, flow.terminal
    for i in range(m):
        if pairs.state[i] != CORE:
            continue
        for e in range(start[i], start[i + 1]):
            j, f = head[e], reverse[e]
            if j < i or pairs.state[j] != CORE:
                continue
            own, other = terminal[i], terminal[j]
            if bonus[e] < 0.0:
                x = min(min(own, other), -bonus[e])
                if x > 0.0:
                    residual[e] -= x
                    residual[f] -= x
                    residual[n_arcs + e] += x
                    residual[n_arcs + f] += x
                    terminal[i] = own - x
                    terminal[j] = other - x
            else:
                x = min(min(own, -other), residual[e])
                y = min(min(-own, other), residual[f])
                x = x if x > 0.0 else -max(y, 0.0)  # from i to j
                residual[e] -= x
                residual[f] += x
                residual[n_arcs + e] += x
                residual[n_arcs + f] -= x
                terminal[i] = own - x
                terminal[j] = other + x
    for i in range(m):
        terminal[m + i] = -terminal[i]


@njit(cache=True, nogil=True)
def set_levels(
    m,  # IN
    n_arcs,  # IN
    pairs,  # IN
    flow,  # IN/OUT
    tiny,  # IN  capacities up to this count as none
):
    """Distances from the sources; returns ``(that of the nearest sink or -1, arcs scanned)``."""
    start, head, bonus = pairs.start, pairs.head, pairs.bonus
    residual, terminal, level, queue = flow.residual, flow.terminal, flow.level, flow.queue
    filled, scanned, nearest = 0, 0, -1
    for v in range(2 * m):
        level[v] = -1
        if terminal[v] > tiny:
            level[v] = 0
            queue[filled] = v
            filled += 1
    k = 0
    while k < filled:
        v = queue[k]
        k += 1
        if nearest >= 0 and level[v] >= nearest:
            break
        copied = v >= m
        i, shift = (v - m, n_arcs) if copied else (v, 0)
        scanned += start[i + 1] - start[i]
        for e in range(start[i], start[i + 1]):
            if residual[shift + e] > tiny:
                u = head[e]
                if copied != (bonus[e] < 0.0):
                    u += m
                if level[u] < 0:
                    level[u] = level[v] + 1
                    queue[filled] = u
                    filled += 1
                    if terminal[u] < -tiny and nearest < 0:
                        nearest = level[u]
    return nearest, scanned


@njit(cache=True, nogil=True)
def push_blocking_flow(
    m,  # IN
    n_arcs,  # IN
    pairs,  # IN
    flow,  # IN/OUT
    nearest,  # IN  level of the sinks
    tiny,  # IN
):
    """Saturate all shortest paths; returns the number of arcs scanned."""
    start, head, reverse, bonus = pairs.start, pairs.head, pairs.reverse, pairs.bonus
    residual, terminal, level = flow.residual, flow.terminal, flow.level
    current, path = flow.current, flow.path
    scanned = 0
    for i in range(m):
        current[i] = current[m + i] = start[i]
    for source in range(2 * m):
        if level[source] != 0:
            continue
        length, v = 0, source
        while terminal[source] > tiny:
            if level[v] == nearest:
                if terminal[v] < -tiny:
                    x = min(terminal[source], -terminal[v])
                    for k in range(length):
                        x = min(x, residual[path[k]])
                    terminal[source] -= x
                    terminal[v] += x
                    cut = length
                    for k in range(length - 1, -1, -1):
                        arc = path[k]
                        copied = arc >= n_arcs
                        e = arc - n_arcs if copied else arc
                        back = reverse[e]
                        if copied != (bonus[e] < 0.0):
                            back += n_arcs
                        residual[arc] -= x
                        residual[back] += x
                        if residual[arc] <= tiny:
                            cut = k
                    if cut < length:
                        length = cut
                        arc = path[cut]
                        copied = arc >= n_arcs
                        v = head[reverse[arc - n_arcs if copied else arc]]
                        if copied:
                            v += m
                        continue
                    if terminal[v] < -tiny:
                        break  # the source is exhausted
                level[v] = -1
            else:
                copied = v >= m
                i, shift = (v - m, n_arcs) if copied else (v, 0)
                found = False
                e = current[v]
                last = start[i + 1]
                while e < last:
                    if residual[shift + e] > tiny:
                        u = head[e]
                        if copied != (bonus[e] < 0.0):
                            u += m
                        if level[u] == level[v] + 1:
                            found = True
                            break
                    e += 1
                scanned += e - current[v] + 1
                current[v] = e
                if found:
                    path[length] = shift + e
                    length += 1
                    v = u
                    continue
                level[v] = -1
            if length == 0:
                break
            length -= 1
            arc = path[length]
            copied = arc >= n_arcs
            v = head[reverse[arc - n_arcs if copied else arc]]
            if copied:
                v += m
    return scanned


@njit(cache=True, nogil=True)
def read_charges(
    m,  # IN
    n_arcs,  # IN
    pairs,  # IN/OUT charge
    flow,  # IN
):
    """Prices of the pairs from the flow, clipped to their valid ranges."""
    residual, reverse, bonus = flow.residual, pairs.reverse, pairs.bonus
    for i in range(m):
        if pairs.state[i] != CORE:
            continue
        for e in range(pairs.start[i], pairs.start[i + 1]):
            j, f = pairs.head[e], reverse[e]
            if j < i or pairs.state[j] != CORE:
                continue
            if bonus[e] < 0.0:
                pi = 0.5 * (residual[n_arcs + e] + residual[n_arcs + f])
                pairs.charge[e] = pairs.charge[f] = min(pi, -bonus[e])
            else:
                own = 0.5 * (residual[e] + residual[n_arcs + f])
                own = min(max(own, 0.0), bonus[e])
                pairs.charge[e] = -own
                pairs.charge[f] = -(bonus[e] - own)


@njit(cache=True, nogil=True)
def maximize_flow(
    m,  # IN   number of members
    n_arcs,  # IN
    pairs,  # IN/OUT PairWorkspace: prices of the pairs between open members
    flow,  # WORK FlowWorkspace: afterwards, ``level >= 0`` where the sources reach
    limit,  # IN   arcs scanned, about
):
    """Prices of the pairs between open members; returns ``(whether optimal, arcs scanned)``."""
    largest = build_network(m, n_arcs, pairs, flow)
    push_directly(m, n_arcs, pairs, flow)
    tiny, scanned = 1e-13 * largest, 2 * n_arcs
    optimal = False
    while scanned <= limit:
        nearest, more = set_levels(m, n_arcs, pairs, flow, tiny)
        scanned += more
        if nearest < 0:
            optimal = True
            break
        scanned += push_blocking_flow(m, n_arcs, pairs, flow, nearest, tiny)
    read_charges(m, n_arcs, pairs, flow)
    return optimal, scanned


@njit(cache=True, nogil=True)
def read_solution(
    m,  # IN
    pairs,  # IN
    flow,  # IN
    optimal,  # IN  whether the flow is a maximum flow
    x,  # OUT  (m,): of the open members
):
    """Solution of the linear program in halves, from the last levels.

    If the flow was cut short, members with a value left are in, others undecided.
    """
    for i in range(m):
        if pairs.state[i] == CORE:
            if optimal:
                inside = 1.0 if flow.level[i] >= 0 else 0.0
                outside = 1.0 if flow.level[m + i] >= 0 else 0.0
            else:
                inside = 1.0 if flow.terminal[i] > 0.0 else 0.0
                outside = 1.0 if flow.terminal[i] < 0.0 else 0.0
            x[i] = 0.5 * (1.0 + inside - outside)
