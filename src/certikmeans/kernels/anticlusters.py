"""Swaps that balance the sums of the parts of a cluster."""

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def balance_sums(
    vectors,  # IN   (m, r) float64: summed over parts
    movable,  # IN   (m,) bool
    n_parts,  # IN   int64
    candidates,  # IN   int64: random partners tried for every row
    sweeps,  # IN   int64
    seed,  # IN   uint64, not 0
    part_index,  # IN OUT (m,) int64: numbers of parts
):
    """Swap rows between parts while that reduces the squared norms of the sums."""
    m, r = vectors.shape
    sums = np.zeros((n_parts, r))
    for i in range(m):
        for j in range(r):
            sums[part_index[i], j] += vectors[i, j]
    free = np.flatnonzero(movable)
    count = free.size
    state = seed
    if count < 2:
        return
    for _ in range(sweeps):
        swaps = 0
        for index in range(count):
            i = free[index]
            a = part_index[i]
            best, chosen = 0.0, -1
            for _ in range(candidates):
                # xorshift: the same numbers on every platform
                state ^= (state << np.uint64(13)) & np.uint64(0xFFFFFFFFFFFFFFFF)
                state ^= state >> np.uint64(7)
                state ^= (state << np.uint64(17)) & np.uint64(0xFFFFFFFFFFFFFFFF)
                k = free[np.int64(state % np.uint64(count))]
                b = part_index[k]
                if a == b:
                    continue
                # Half the change: D (S_a - S_b) + |D|^2 with D = y_k - y_i.
                one, two = 0.0, 0.0
                for j in range(0, r - 1, 2):
                    d = vectors[k, j] - vectors[i, j]
                    one += d * (sums[a, j] - sums[b, j] + d)
                    e = vectors[k, j + 1] - vectors[i, j + 1]
                    two += e * (sums[a, j + 1] - sums[b, j + 1] + e)
                if r % 2 == 1:
                    d = vectors[k, r - 1] - vectors[i, r - 1]
                    one += d * (sums[a, r - 1] - sums[b, r - 1] + d)
                if one + two < best:
                    best, chosen = one + two, k
            if chosen >= 0:
                b = part_index[chosen]
                for j in range(r):
                    d = vectors[chosen, j] - vectors[i, j]
                    sums[a, j] += d
                    sums[b, j] -= d
                part_index[i], part_index[chosen] = b, a
                swaps += 1
        if swaps == 0:
            return
