"""Connected components from a list of pairs. Compiled."""

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def number_components(
    pairs,  # IN   (m, 2) int64
    component,  # OUT  (n,) int64: components numbered by their smallest member
):
    """Join the two ends of every pair; returns the number of components.

    Links always lead to a smaller member, so the root of a component is its smallest one, and
    one pass in order numbers them all.
    """
    for v in range(component.size):
        component[v] = v
    for i in range(pairs.shape[0]):
        a, b = pairs[i, 0], pairs[i, 1]
        while component[a] != a:
            component[a] = component[component[a]]
            a = component[a]
        while component[b] != b:
            component[b] = component[component[b]]
            b = component[b]
        if a < b:
            component[b] = a
        else:
            component[a] = b
    count = 0
    for v in range(component.size):
        if component[v] == v:
            component[v] = count
            count += 1
        else:
            component[v] = component[component[v]]
    return count
