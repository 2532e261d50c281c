"""Pair and triangle cuts of the clustering SDP: find violated ones, project on them."""

import numpy as np

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def violated_cuts(
    z,  # IN   (n, n) float64, symmetric
    least,  # IN   float64 >= 0, smallest violation that counts, relative to the diagonal entry
    fullest,  # IN   int64, cuts per group s at most
    cuts,  # OUT  (capacity, 3) int64: s, t, u with t < u; u = -1 for a pair cut
    amounts,  # OUT  (capacity,) float64, violation relative to the diagonal entry
):
    """Write violated ``z_st <= z_ss`` and ``z_st + z_su <= z_ss + z_tu``; return their number.

    For every s only the ``fullest`` most violated ones are kept, so that no group hides the rest.
    """
    n = z.shape[0]
    count = 0
    mine = np.empty(fullest)
    place = np.empty((fullest, 2), dtype=np.int64)
    # A cut takes off an entry z_tu: at most this is gained by it.
    bonus = -min(z.min(), 0.0)
    for s in range(n):
        diagonal = z[s, s]
        if diagonal <= 0.0:
            continue
        threshold = least * diagonal
        held = 0
        lowest = 0
        row = z[s]
        # Descending, so that a sum of two entries that is too small ends the search for partners.
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
                amount = row[t] - diagonal
                if u != t:
                    if amount + row[u] + bonus <= threshold:
                        break
                    amount += row[u] - z[t, u]
                if amount <= threshold:
                    continue
                if held < fullest:
                    k = held
                    held += 1
                elif amount > mine[lowest]:
                    k = lowest
                else:
                    continue
                mine[k] = amount
                place[k, 0] = min(t, u)
                place[k, 1] = max(t, u) if u != t else -1
                if held == fullest:
                    lowest = np.argmin(mine)
                    threshold = mine[lowest]
        for k in range(held):
            if count == cuts.shape[0]:
                return count
            cuts[count, 0] = s
            cuts[count, 1] = place[k, 0]
            cuts[count, 2] = place[k, 1]
            amounts[count] = mine[k] / diagonal
            count += 1
    return count


@njit(cache=True, nogil=True)
def project_on_cuts(
    entries,  # IN OUT (n * n,) float64: the matrix before clipping, upper triangle used
    fixed,  # IN   (n * n,) bool: entries that are 0
    places,  # IN   (m, 4) int64: entries of a cut, upper triangle
    factors,  # IN   (m, 4) float64: cut is sum factor * entry <= 0
    steps,  # IN   (m, 4) float64: what a unit of multiplier takes off the entry
    curvatures,  # IN   (m,) float64: sum factor * step
    multipliers,  # IN OUT (m,) float64, >= 0
    sweeps,  # IN   int64
):
    """Project on the cuts and the non-negative matrices by coordinate ascent (Hildreth).

    On entry ``entries`` already has ``multipliers`` taken off. The projection is the positive
    part of ``entries``, 0 where fixed; it is exact in the limit of many sweeps.
    """
    for _ in range(sweeps):
        for c in range(places.shape[0]):
            excess = 0.0
            for j in range(4):
                e = places[c, j]
                if entries[e] > 0.0 and not fixed[e]:
                    excess += factors[c, j] * entries[e]
            change = max(-multipliers[c], excess / curvatures[c])
            if change != 0.0:
                multipliers[c] += change
                for j in range(4):
                    entries[places[c, j]] -= change * steps[c, j]
