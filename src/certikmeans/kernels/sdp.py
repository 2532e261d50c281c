"""Kernels of the clustering SDP: distances, entrywise ADMM step, cuts and projection."""

from typing import Any, NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def violated_cuts(
    z,  # IN   (n, n) float64, symmetric
    min_violation,  # IN   float64 >= 0, smallest violation, relative to the diagonal entry
    max_per_group,  # IN   int64, largest number of cuts per group s
    cuts,  # OUT  (capacity, 3) int64: s, t, u with t < u; u = -1 for a pair cut
    violations,  # OUT  (capacity,) float64, violation relative to the diagonal entry
):
    """Write violated ``z_st <= z_ss`` and ``z_st + z_su <= z_ss + z_tu``; return their number.

    For every s only the ``max_per_group`` most violated ones are kept, so that no group displaces
    the others.
    """
    n = z.shape[0]
    count = 0
    kept_violations = np.empty(max_per_group)
    partners = np.empty((max_per_group, 2), dtype=np.int64)
    # The entry z_tu is subtracted: upper bound on what a negative one adds.
    bonus = -min(z.min(), 0.0)
    for s in range(n):
        diagonal = z[s, s]
        if diagonal <= 0.0:
            continue
        threshold = min_violation * diagonal
        n_kept = 0
        weakest = 0
        row = z[s]
        # Descending: the search for partners ends once a sum of two entries is too small.
        order = np.argsort(-row)
        for first in range(n):
            t = order[first]
            if t == s:
                continue
            if 2.0 * row[t] - diagonal + bonus <= threshold and row[t] - diagonal <= threshold:
                break
            for second in range(first, n):
                u = order[second]
                if u == s:
                    continue
                violation = row[t] - diagonal
                if u != t:
                    if violation + row[u] + bonus <= threshold:
                        break
                    violation += row[u] - z[t, u]
                if violation <= threshold:
                    continue
                if n_kept < max_per_group:
                    k = n_kept
                    n_kept += 1
                elif violation > kept_violations[weakest]:
                    k = weakest
                else:
                    continue
                kept_violations[k] = violation
                partners[k, 0] = min(t, u)
                partners[k, 1] = max(t, u) if u != t else -1
                if n_kept == max_per_group:
                    weakest = np.argmin(kept_violations)
                    threshold = kept_violations[weakest]
        for k in range(n_kept):
            if count == cuts.shape[0]:
                return count
            cuts[count, 0] = s
            cuts[count, 1] = partners[k, 0]
            cuts[count, 2] = partners[k, 1]
            violations[count] = kept_violations[k] / diagonal
            count += 1
    return count


class EntryLimits(NamedTuple):
    """Limits of the entries: 0 is the lower one off the diagonal."""

    lowest: Any  # (n,) float64 >= 0: of the diagonal
    highest: Any  # (n * n,) float64: 0 where entries are 0, infinite where there is no limit


@njit(cache=True, nogil=True)
def project_on_cuts(
    entries,  # IN OUT (n * n,) float64: the matrix before clipping, only the upper triangle
    limits,  # IN   EntryLimits
    entry_indices,  # IN   (m, 4) int64: entries of a cut, upper triangle
    factors,  # IN   (m, 4) float64: cut is sum factor * entry <= 0
    steps,  # IN   (m, 4) float64: decrease of the entry per unit of the multiplier
    curvatures,  # IN   (m,) float64: sum factor * step
    multipliers,  # IN OUT (m,) float64, >= 0
    sweeps,  # IN   int64
):
    """Project on the cuts and the non-negative matrices by coordinate ascent (Hildreth).

    On entry the terms of ``multipliers`` are already subtracted from ``entries``. The projection
    is ``entries`` clipped to their limits; it is exact in the limit of many sweeps. The third entry
    of a cut is on the diagonal.
    """
    lowest, highest = limits.lowest, limits.highest
    n = len(lowest)
    for _ in range(sweeps):
        for c in range(entry_indices.shape[0]):
            excess = 0.0
            for j in range(4):
                e = entry_indices[c, j]
                value = min(max(entries[e], 0.0), highest[e])
                if j == 2:
                    value = max(value, lowest[e // n])
                excess += factors[c, j] * value
            change = max(-multipliers[c], excess / curvatures[c])
            if change != 0.0:
                multipliers[c] += change
                for j in range(4):
                    entries[entry_indices[c, j]] -= change * steps[c, j]


@njit(cache=True, nogil=True)
def project_on_size_cuts(
    entries,  # IN OUT (n, n) float64: the matrix before clipping, only the upper triangle
    limits,  # IN   EntryLimits
    members,  # IN   (c, n) int64: groups of every set, ascending, then -1
    factors,  # IN   (n,) float64: cut is sum factor_i factor_j entry_ij <= right side
    right_sides,  # IN   (c,) float64
    multipliers,  # IN OUT (c,) float64, >= 0
    sweeps,  # IN   int64
):
    """Project on the size cuts by coordinate ascent with Newton steps, as `project_on_cuts`.

    On entry the terms of ``multipliers`` are already subtracted from ``entries``.
    """
    lowest, highest = limits.lowest, limits.highest
    n = len(lowest)
    for _ in range(sweeps):
        for c in range(members.shape[0]):
            excess, curvature = -right_sides[c], 0.0
            for p in range(n):
                i = members[c, p]
                if i < 0:
                    break
                for q in range(p, n):
                    j = members[c, q]
                    if j < 0:
                        break
                    factor = factors[i] * factors[j]
                    share = factor if i == j else 2.0 * factor
                    low = lowest[i] if i == j else 0.0
                    value, high = entries[i, j], highest[i * n + j]
                    if low < value < high:
                        curvature += share * factor
                    excess += share * min(max(value, low), high)
            if curvature <= 0.0:
                continue
            change = max(-multipliers[c], excess / curvature)
            if change == 0.0:
                continue
            multipliers[c] += change
            for p in range(n):
                i = members[c, p]
                if i < 0:
                    break
                for q in range(p, n):
                    j = members[c, q]
                    if j < 0:
                        break
                    entries[i, j] -= change * factors[i] * factors[j]


@njit(cache=True, nogil=True)
def leading_sums(
    matrix,  # IN   (n, n) float64, symmetric
    orderings,  # IN   (m, n) int64: permutations
    sums,  # OUT  (m, n) float64: sum over the first t + 1 rows and columns
):
    """Sums over leading blocks of a matrix in several orders."""
    m, n = orderings.shape
    for k in range(m):
        total = 0.0
        for p in range(n):
            row = matrix[orderings[k, p]]
            before = 0.0
            for q in range(p):
                before += row[orderings[k, q]]
            total += 2.0 * before + row[orderings[k, p]]
            sums[k, p] = total


@njit(cache=True, nogil=True)
def shift_entries(
    spectral,  # IN   (n, n) float64: the spectral iterate
    entrywise,  # IN   (n, n) float64
    dual,  # IN OUT (n, n) float64: becomes the shifted matrix, upper triangle
    cut_sum,  # IN   (n, n) float64: sum of cuts with their multipliers, upper triangle
    relaxation,  # IN   float64
    unclipped,  # OUT  (n, n) float64, upper triangle: shifted minus cut_sum
):
    """Over-relax, add the dual, subtract the cuts."""
    n = spectral.shape[0]
    for i in range(n):
        for j in range(i, n):
            y = entrywise[i, j]
            shifted = y + relaxation * (spectral[i, j] - y) + dual[i, j]
            dual[i, j] = shifted
            unclipped[i, j] = shifted - cut_sum[i, j]


@njit(cache=True, nogil=True)
def clip_entries(
    spectral,  # IN   (n, n) float64
    unclipped,  # IN   (n, n) float64, upper triangle
    limits,  # IN   EntryLimits
    entrywise,  # IN OUT (n, n) float64, symmetric
    dual,  # IN OUT (n, n) float64: shifted (upper triangle) on entry, symmetric on exit
    cut_sum,  # OUT  (n, n) float64, upper triangle
):
    """Clip; return squared norms of primal residual, change, entries and dual."""
    lowest, highest = limits.lowest, limits.highest
    n = spectral.shape[0]
    difference = change = size = weight = 0.0
    for i in range(n):
        for j in range(i, n):
            shifted = dual[i, j]
            raw = unclipped[i, j]
            cut_sum[i, j] = shifted - raw
            y = min(max(raw, 0.0), highest[i * n + j])
            if i == j:
                y = max(y, lowest[i])
            factor = 1.0 if i == j else 2.0
            d = spectral[i, j] - y
            c = y - entrywise[i, j]
            u = shifted - y
            difference += factor * d * d
            change += factor * c * c
            size += factor * y * y
            weight += factor * u * u
            entrywise[i, j] = y
            dual[i, j] = u
    mirror(entrywise)
    mirror(dual)
    return np.array([difference, change, size, weight])


@njit(cache=True, nogil=True)
def mirror(matrix):  # IN OUT (n, n) float64: the lower triangle is copied from the upper
    """Make symmetric, in blocks that fit into the cache."""
    n = matrix.shape[0]
    block = 32
    for top in range(0, n, block):
        for left in range(top, n, block):
            for i in range(top, min(top + block, n)):
                for j in range(max(left, i + 1), min(left + block, n)):
                    matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True)
def all_squared_distances(
    points,  # IN   (n, d) float64
    squares,  # OUT  (n, n) float64, symmetric
):
    """Squared distances from differences: entries err by at most (d + 2) units roundoff."""
    n, d = points.shape
    for i in range(n):
        squares[i, i] = 0.0
        for j in range(i + 1, n):
            # Four independent sums, for instruction-level parallelism.
            a = b = c = e = 0.0
            for k in range(0, d - 3, 4):
                p = points[i, k] - points[j, k]
                q = points[i, k + 1] - points[j, k + 1]
                r = points[i, k + 2] - points[j, k + 2]
                t = points[i, k + 3] - points[j, k + 3]
                a += p * p
                b += q * q
                c += r * r
                e += t * t
            for k in range(d - d % 4, d):
                p = points[i, k] - points[j, k]
                a += p * p
            squares[i, j] = (a + b) + (c + e)
    mirror(squares)
