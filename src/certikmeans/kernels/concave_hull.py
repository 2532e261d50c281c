"""Upper concave hulls of gain over cost."""

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def concave_hull_steps(
    starts,  # IN   (n_sets + 1,) int64: sets are slices of the arrays
    gain,  # IN   (n,)
    cost,  # IN   (n,) ascending in every set: cost of taking all elements up to this one
    step_gain,  # OUT  (n,)
    step_cost,  # OUT  (n,)
):
    """Write the steps of the upper concave hull of gain over cost of every set.

    Returns the number of steps; those of a set are in ascending order of cost per gain.
    """
    top = 0
    for q in range(starts.size - 1):
        bottom = top
        before = 0.0
        for i in range(starts[q], starts[q + 1]):
            g, p = gain[i], cost[i] - before
            before = cost[i]
            # A step with less cost per gain than the one before is merged with it. If products
            # underflow, both remain, and the result is larger, never smaller.
            while top > bottom and p * step_gain[top - 1] < step_cost[top - 1] * g:
                top -= 1
                g += step_gain[top]
                p += step_cost[top]
            step_gain[top], step_cost[top] = g, p
            top += 1
    return top
