"""Price of the limits on the size of a cluster: one number ``theta`` per unit of demand.

With values ``v`` and demands ``a`` the best set of demand between ``L`` and ``U`` takes groups by
falling ``v / a``. The best ``theta`` lies between the ratio of the last group taken and that of the
first one left out; it is negative if groups of negative value are needed to reach ``L``. With unit
demands both are order statistics, which take no sorting.
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
def kth_largest(values, k):
    """The k-th largest of the values, k >= 1; -inf if there are fewer.

    Reorders them: larger ones come before it, smaller ones behind it.
    """
    n = values.size
    if k > n:
        return -np.inf
    first, last, target = 0, n - 1, k - 1
    while first < last:
        pivot = values[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            last = j
        elif target >= i:
            first = i
        else:
            break
    return values[target]


@njit(cache=True, nogil=True)
def value_between(
    values,  # IN/OUT (m,): reordered
    k,  # IN
):
    """Number between the k-th largest value and the next one; -inf if there is no next one."""
    if k >= values.size:
        return -np.inf
    last = kth_largest(values, k) if k > 0 else np.inf
    following = -np.inf
    for i in range(max(k, 0), values.size):
        following = max(following, values[i])
    return 0.5 * (last + following) if k > 0 else following


@njit(cache=True, nogil=True)
def price_of_units(
    values,  # IN   (m,)
    low,  # IN   lower limit
    high,  # IN   upper limit
    scratch,  # WORK (m,)
):
    """`price_of_size` for unit demands."""
    m = values.size
    scratch[:] = values
    at_high = value_between(scratch, np.int64(min(np.floor(high), m)))
    at_low = np.inf
    if low > 0.0 and m > 0:
        least = np.int64(min(np.ceil(low), m))
        at_low = value_between(scratch, least) if least < m else scratch.min()
    return max(at_high, min(at_low, 0.0))


@njit(cache=True, nogil=True)
def all_units(demand):
    """Whether all demands are 1."""
    n_others = 0
    for i in range(demand.size):
        if demand[i] != 1.0:
            n_others += 1
    return n_others == 0


@njit(cache=True, nogil=True)
def select_units(
    values,  # IN   (m,)
    low,  # IN   lower limit
    high,  # IN   upper limit
    scratch,  # WORK (m,)
    chosen,  # OUT  (m,) uint8
):
    """Best set for unit demands; of equal values, the first. Returns its value, -inf if none."""
    m = values.size
    least, most = np.int64(min(np.ceil(max(low, 0.0)), m + 1.0)), np.int64(min(np.floor(high), m))
    chosen[:] = 0
    if least > most:
        return -np.inf
    count = 0
    for i in range(m):
        scratch[i] = values[i]
        if values[i] > 0.0:
            count += 1
    count = min(max(count, least), most)
    threshold = kth_largest(scratch, count) if count > 0 else np.inf
    n_equal = count
    for i in range(m):
        if values[i] > threshold:
            n_equal -= 1
    total = 0.0
    for i in range(m):
        if values[i] == threshold and n_equal > 0:
            n_equal -= 1
        elif not values[i] > threshold:
            continue
        chosen[i] = 1
        total += values[i]
    return total


@njit(cache=True, nogil=True)
def price_of_size(
    values,  # IN   (m,)
    demand,  # IN   (m,): of the members
    low,  # IN   lower limit
    high,  # IN   upper limit
):
    """A good ``theta``; any other number would be valid, too."""
    m = values.size
    if all_units(demand):
        return price_of_units(values, low, high, np.empty(m))
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
