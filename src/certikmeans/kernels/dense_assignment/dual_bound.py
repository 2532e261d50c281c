"""Core of a component, and a dual bound on its labellings by block-coordinate ascent. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.rows import two_smallest


class CoreProblem(NamedTuple):
    """Core of a component, without its trees; vertices are numbered by position. Read only."""

    link_start: np.ndarray  # (n_core + 1,) int64
    link: np.ndarray  # positions of the neighbours
    member_start: np.ndarray  # (n_cliques + 1,) int64 cliques that cover the links
    member: np.ndarray  # positions
    costs: np.ndarray  # (n_core, n_labels) float64 >= 0, inf = forbidden


class DualState(NamedTuple):
    """Allowed labels, multipliers and reduced costs."""

    allowed: np.ndarray  # (n_core, n_labels) bool
    multipliers: np.ndarray  # (n_cliques, n_labels) float64 >= 0
    reduced: np.ndarray  # (n_core, n_labels) costs plus multipliers, inf where not allowed
    n_allowed: np.ndarray  # (n_core,) int64 allowed labels of a vertex


class CoreSolution(NamedTuple):
    """Best labelling found and its lower bound."""

    status: int  # SOLVED, UNFINISHED or INFEASIBLE
    value: float  # cost of the labelling; inf if none was found
    lower_bound: float  # of every labelling
    margin: float  # what rounding may have hidden when labels were excluded


@njit(cache=True, nogil=True)
def core_value(
    core,  # IN
    labels,  # IN  (n_core,) int64, any numbers
):
    """Cost of a labelling of a core; inf if it is infeasible."""
    total = 0.0
    for v in range(labels.size):
        label = labels[v]
        if label < 0 or label >= core.costs.shape[1]:
            return np.inf
        for e in range(core.link_start[v], core.link_start[v + 1]):
            if labels[core.link[e]] == label:
                return np.inf
        total += core.costs[v, label]
    return total


# A lower bound for cores: a multiplier per clique and label, which a feasible labelling pays once.
#
# For multipliers ``p >= 0`` every feasible labelling costs at least
#
#     sum_v min_k (c_vk + sum of p_qk over the cliques q that hold v)  -  sum_qk p_qk
#
# because the members of a clique use a label at most once. This is the dual of the linear
# relaxation with clique inequalities, and the reduced costs show which labels no better labelling
# can use.

_REGRET_FRACTION = 0.4


@njit(cache=True, nogil=True)
def _clique_value(members, reduced, multiplier):
    """Terms of the bound that depend on the multipliers of one clique."""
    total = 0.0
    for i in range(members.size):
        least, _, _ = two_smallest(reduced[members[i]])
        total += least
    for k in range(multiplier.size):
        total -= multiplier[k]
    return total


@njit(cache=True, nogil=True)
def _shift(members, reduced, multiplier, k, change):
    multiplier[k] += change
    for i in range(members.size):
        reduced[members[i], k] += change


@njit(cache=True, nogil=True)
def _raise_contested(members, reduced, multiplier, largest, following):
    """Raise multipliers until no label is preferred by two members with positive regret.

    If several members prefer label k and each loses ``gap`` by its second best, raising the
    multiplier by the second largest gap gains at least as much as it costs. Returns False if two
    members have no other label.
    """
    n_labels = reduced.shape[1]
    for _ in range(2 * members.size):
        for k in range(n_labels):
            largest[k], following[k] = -1.0, 0.0
        for i in range(members.size):
            best, second, k = two_smallest(reduced[members[i]])
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
        _shift(members, reduced, multiplier, k, following[k])
    return True


@njit(cache=True, nogil=True)
def _share_regret(members, reduced, multiplier):
    """Add part of the regret of a label's only preferring member to the multiplier.

    The bound stays, but the label becomes more expensive for the other members. Without this the
    ascent ends far below the linear relaxation; with it mostly within a few percent.
    """
    for i in range(members.size):
        best, second, k = two_smallest(reduced[members[i]])
        gap = second - best
        if gap <= 0.0 or gap == np.inf:
            continue
        n_sharing = 0
        for j in range(members.size):
            n_sharing += reduced[members[j], k] < np.inf
        if n_sharing > 1:
            _shift(members, reduced, multiplier, k, _REGRET_FRACTION * gap)


@njit(cache=True, nogil=True)
def _update_clique(members, reduced, multiplier, old, largest, following):
    """Recompute the multipliers of one clique. False proves infeasibility."""
    before = _clique_value(members, reduced, multiplier)
    for k in range(multiplier.size):
        old[k] = multiplier[k]
        if multiplier[k] > 0.0:
            _shift(members, reduced, multiplier, k, -multiplier[k])
            multiplier[k] = 0.0
    if not _raise_contested(members, reduced, multiplier, largest, following):
        return False
    _share_regret(members, reduced, multiplier)
    # The raises are heuristic: undo them if the bound got worse.
    if _clique_value(members, reduced, multiplier) < before:
        for k in range(multiplier.size):
            _shift(members, reduced, multiplier, k, old[k] - multiplier[k])
            multiplier[k] = old[k]
    return True


@njit(cache=True, nogil=True)
def _update_pair(u, v, reduced, multiplier):
    """`_update_clique` for two members, in closed form: most of the time is spent here."""
    best_u, next_u, preferred_u = np.inf, np.inf, -1
    best_v, next_v, preferred_v = np.inf, np.inf, -1
    for k in range(multiplier.size):
        x, y = reduced[u, k] - multiplier[k], reduced[v, k] - multiplier[k]
        if x < best_u:
            best_u, next_u, preferred_u = x, best_u, k
        elif x < next_u:
            next_u = x
        if y < best_v:
            best_v, next_v, preferred_v = y, best_v, k
        elif y < next_v:
            next_v = y
    if preferred_u < 0 or preferred_v < 0:
        return False
    gap_u, gap_v = next_u - best_u, next_v - best_v
    multiplier_u, multiplier_v = 0.0, 0.0
    if preferred_u == preferred_v:
        least, most = min(gap_u, gap_v), max(gap_u, gap_v)
        if least == np.inf:
            return False
        multiplier_u = multiplier_v = least + (
            _REGRET_FRACTION * (most - least) if most < np.inf else 0.0
        )
    else:
        if gap_u < np.inf and reduced[v, preferred_u] < np.inf:
            multiplier_u = _REGRET_FRACTION * gap_u
        if gap_v < np.inf and reduced[u, preferred_v] < np.inf:
            multiplier_v = _REGRET_FRACTION * gap_v
    for k in range(multiplier.size):
        new = multiplier_u if k == preferred_u else (multiplier_v if k == preferred_v else 0.0)
        change = new - multiplier[k]
        if change != 0.0:
            reduced[u, k] += change
            reduced[v, k] += change
            multiplier[k] = new
    return True


@njit(cache=True, nogil=True)
def _active_cliques(core, reduced, active):
    """List the cliques in which two members have a label in common. Returns their number."""
    member_start, member = core.member_start, core.member
    n_active = 0
    for q in range(member_start.size - 1):
        shared = False
        for k in range(reduced.shape[1]):
            n_sharing = 0
            for i in range(member_start[q], member_start[q + 1]):
                n_sharing += reduced[member[i], k] < np.inf
            shared = shared or n_sharing > 1
        if shared:
            active[n_active] = q
            n_active += 1
    return n_active


@njit(cache=True, nogil=True)
def dual_bound(
    reduced,  # IN  (n_core, n_labels) float64
    multipliers,  # IN  (n_cliques, n_labels) float64
):
    """Evaluate the bound, not yet rounded down."""
    gained, paid = 0.0, 0.0
    for v in range(reduced.shape[0]):
        least, _, _ = two_smallest(reduced[v])
        gained += least
    for q in range(multipliers.shape[0]):
        for k in range(multipliers.shape[1]):
            paid += multipliers[q, k]
    return gained - paid


@njit(cache=True, nogil=True)
def ascend_multipliers(
    core,  # IN
    upper,  # IN  cost of a known labelling, or inf; the ascent stops there
    reduced,  # IN/OUT  (n_core, n_labels) float64, inf = excluded
    multipliers,  # IN/OUT  (n_cliques, n_labels) float64 >= 0
    sweeps,  # IN  at most this many rounds over all cliques
):
    """Ascend the bound clique by clique. False proves that no feasible labelling exists."""
    member_start, member = core.member_start, core.member
    n_cliques, n_labels = multipliers.shape
    largest, following, old = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    active = np.empty(n_cliques, np.int64)
    n_active = _active_cliques(core, reduced, active)
    bound = dual_bound(reduced, multipliers)
    for sweep in range(sweeps):
        for i in range(n_active):
            q = active[i if sweep % 2 == 0 else n_active - 1 - i]
            members = member[member_start[q] : member_start[q + 1]]
            if members.size == 2:
                possible = _update_pair(members[0], members[1], reduced, multipliers[q])
            else:
                possible = _update_clique(members, reduced, multipliers[q], old, largest, following)
            if not possible:
                return False
        if sweep % 10 == 9:
            before, bound = bound, dual_bound(reduced, multipliers)
            if bound >= upper or bound - before <= 0.01 * min(upper - bound, bound):
                break
    return True


@njit(cache=True, nogil=True)
def drop_inactive_multipliers(
    core,  # IN
    allowed,  # IN  (n_core, n_labels) bool
    multipliers,  # IN/OUT
):
    """Set to zero every multiplier that fewer than two members can still pay: never worse."""
    member_start, member = core.member_start, core.member
    for q in range(multipliers.shape[0]):
        begin, end = member_start[q], member_start[q + 1]
        for k in range(multipliers.shape[1]):
            if multipliers[q, k] > 0.0:
                n_sharing = 0
                for i in range(begin, end):
                    n_sharing += allowed[member[i], k]
                if n_sharing < 2:
                    multipliers[q, k] = 0.0


@njit(cache=True, nogil=True)
def reduce_costs(
    core,  # IN
    allowed,  # IN  (n_core, n_labels) bool
    multipliers,  # IN  (n_cliques, n_labels)
    reduced,  # OUT (n_core, n_labels) costs plus multipliers, inf where not allowed
):
    """Recompute the reduced costs from the multipliers, so that no rounding accumulates in them."""
    member_start, member, costs = core.member_start, core.member, core.costs
    n_core, n_labels = costs.shape
    for v in range(n_core):
        for k in range(n_labels):
            reduced[v, k] = costs[v, k] if allowed[v, k] else np.inf
    for q in range(multipliers.shape[0]):
        for k in range(n_labels):
            if multipliers[q, k] > 0.0:
                for i in range(member_start[q], member_start[q + 1]):
                    reduced[member[i], k] += multipliers[q, k]
