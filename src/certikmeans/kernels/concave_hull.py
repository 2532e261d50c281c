"""What can be had of groups that come together, for how much: the upper hull. Compiled."""

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def concave_hull_steps(
    starts,  # IN   (n_sets + 1,) int64: sets are slices of
    gain,  # IN   (n,)
    cost,  # IN   (n,) ascending in every set: all up to one cost what that one costs
    step_gain,  # OUT  (n,)
    step_cost,  # OUT  (n,)
):
    """Write the steps of the least concave functions above "gain for a price"; returns how many.

    The steps of a set are in the order of price for gain, the cheapest first.
    """
    top = 0
    for q in range(starts.size - 1):
        bottom = top
        before = 0.0
        for i in range(starts[q], starts[q + 1]):
            g, p = gain[i], cost[i] - before
            before = cost[i]
            # A step that is cheaper for its gain than the one before it becomes one with it. Where
            # products underflow they stay two, which promises more, never less.
            while top > bottom and p * step_gain[top - 1] < step_cost[top - 1] * g:
                top -= 1
                g += step_gain[top]
                p += step_cost[top]
            step_gain[top], step_cost[top] = g, p
            top += 1
    return top
