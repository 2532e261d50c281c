"""Price of the limits on the size of a cluster: one number ``theta`` per unit of demand.

With values ``v`` and demands ``a`` the best set of demand between ``L`` and ``U`` takes groups by
falling ``v / a``. The best ``theta`` lies between the ratio of the last group taken and that of the
first one left out; it is negative if groups of negative value are needed to reach ``L``.
"""

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def demand_prefix(
    values,  # IN   (m,)
    demand,  # IN   (m,)
    limit,  # IN
    ratio,  # IN   (k,) ratios of the groups with a demand
    order,  # IN   (k,) falling ratio
):
    """Ratio at which groups taken by falling ratio reach a total demand; -inf if they never do."""
    total = 0.0
    for k in range(order.size):
        i = order[k]
        total += demand[i]
        if total > limit:
            return ratio[i]
        if total == limit:
            if k + 1 < order.size:
                return 0.5 * (ratio[i] + ratio[order[k + 1]])
            return -np.inf
    return -np.inf


@njit(cache=True, nogil=True)
def price_of_size(
    values,  # IN   (m,)
    demand,  # IN   (m,): of the members
    low,  # IN   lower limit
    high,  # IN   upper limit
):
    """A good ``theta``; any other number would be valid, too."""
    m = values.size
    ratio = np.empty(m)
    for i in range(m):
        ratio[i] = values[i] / demand[i] if demand[i] > 0.0 else np.inf
    order = np.argsort(-ratio)
    first = 0
    while first < m and demand[order[first]] == 0.0:
        first += 1
    order = order[first:]
    at_high = demand_prefix(values, demand, high, ratio, order)
    at_low = demand_prefix(values, demand, low, ratio, order) if low > 0.0 else np.inf
    if at_low == -np.inf and order.size > 0:
        at_low = ratio[order[-1]]  # every group is needed
    return max(at_high, min(at_low, 0.0))
