"""A set of large value at a point under soft pairs and cannot-links that are nearly a forest.

On a forest the best set follows from what a group adds to its parent: with ``delta`` the value of
the best sets of a subtree that contain its root less that of the best ones without it,

    delta_v = a_v + sum over children (max(0, delta_c + r) - max(0, delta_c)),

and a group is chosen if ``delta_v``, plus ``r`` if its parent is chosen, is positive.
"""

from certikmeans._jit.dispatcher import njit

MAX_PASSES = 8


@njit(cache=True, nogil=True)
def select_by_forest(
    constraints,  # IN   ConstraintArrays, pairs only
    forest,  # IN   Forest: a spanning forest of the pairs
    values,  # IN   (n,); -inf for groups that must not be chosen
    delta,  # OUT  (n,)
    chosen,  # OUT  (n,) uint8
):
    """Choose the best set of the forest, then improve it with all pairs group by group.

    Without other pairs the set is the best one.
    """
    for s in range(values.size):
        delta[s] = values[s]
        chosen[s] = 1 if values[s] > 0.0 else 0
    order, parent, bonus = forest.order, forest.parent, forest.bonus
    for position in range(order.size - 1, -1, -1):
        if parent[position] >= 0:
            t = delta[order[position]]
            delta[parent[position]] += max(0.0, t + bonus[position]) - max(0.0, t)
    for position in range(order.size):
        s, p = order[position], parent[position]
        t = delta[s]
        if p >= 0 and chosen[p] == 1:
            t += bonus[position]
        chosen[s] = 1 if t > 0.0 else 0
    for _ in range(MAX_PASSES):
        changed = False
        for s in order:
            gain = values[s]
            for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
                if chosen[constraints.pair_neighbors[e]] == 1:
                    gain += constraints.pair_bonus[e]
            if (chosen[s] == 1 and gain < 0.0) or (chosen[s] == 0 and gain > 0.0):
                chosen[s] = 1 - chosen[s]
                changed = True
        if not changed:
            break
