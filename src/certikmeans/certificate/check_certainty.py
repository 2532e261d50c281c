"""Check of certainty claims: statements about every labelling within a slack of the cost.

Claimed: multipliers ``lam``, a number ``sigma``, boxes of centers with a cluster each, and points
that are certain. Let ``T`` be a reduced cost that no labelling of original cost up to
``cost (1 + slack)`` reaches (`aggregate_domain` maps costs as it maps bounds), and
``delta = T - sum lam + K sigma``.

1. No cluster has a value above ``sigma``: shown box by box, and outside of them by 2.
2. Outside the boxes no cluster has the value ``sigma - delta``. So a labelling within the slack,
   whose clusters lose at most ``delta`` against ``sigma`` together, has all its centers in the
   boxes. As ``sigma > delta``, none of its clusters is empty.
3. There is one center in the boxes of each cluster. Two do not fit where all groups together have a
   value less than ``2 sigma - delta``; without one, groups with a negative value in all other boxes
   would lose that much, and where it is more than ``delta`` there is one. All counts add up to K,
   each center counted once, for one of the clusters whose boxes it is in. And the centers of the
   labels of the certificate are in boxes of their own cluster, and of no other.
4. A group in another cluster j pays its negative value there, and what the other clusters lose
   that could have it (less the value of its neighbors in the cannot-link graph there, which would
   have to leave). A point is certain if that is more than ``delta`` for every j but its own.

**Rounding.** Ranges as in `check_boxes`: a range errs by less than ``(r + 8) EPS`` of
``|lam| + w far``; twice that is added outward. Sums of numbers that are not negative:
``(n + 8) EPS`` of themselves. Means: ``8 (n + 16) EPS`` of the largest coordinate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, connected_components, up
from certikmeans.certificate.check_boxes import CenterRegion, CutoffExceeded
from certikmeans.certificate.check_domains import (
    BranchingPath,
    Domain,
    OriginalProblem,
    aggregate_domain,
    check_table_size,
)
from certikmeans.certificate.check_pricing import Pricing
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.format import CertaintyClaim, Certificate, Reason, Rejection

MAX_PIECES = 200_000
MAX_PIECE_TESTS = 100_000_000  # pieces times boxes

Box = tuple[Floats, Floats]  # lower and upper limits
Boxes = tuple[Floats, Floats]  # the same with a row per box


@final
@dataclass(frozen=True, slots=True)
class _DualLevel:
    sigma: float
    delta: float  # at least
    threshold: float  # below ``sigma - delta``


def check_certainty(
    original: OriginalProblem, certificate: Certificate, limits: Limits, details: dict[str, Any]
) -> None:
    """Derive the claims again, or raise `Rejection`."""
    claim, labels = certificate.certainty, certificate.labels
    if claim is None:
        return
    if labels is None:
        raise Rejection(Reason.CERTAINTY, "certainty is claimed without labels")
    limits = limits.for_size(certificate.n_points + len(claim.multipliers) + claim.low.size)
    most = up(certificate.cost * (1.0 + claim.slack), 8)
    domain = aggregate_domain(original, BranchingPath.root(), math.nextafter(most, math.inf))
    _check_numbers(original, domain, claim)
    check_table_size(domain.n_groups, original.n_clusters, original.points)
    level = _dual_level(domain, claim, original.n_clusters)
    try:
        _check_boxes(domain, claim, level, limits)
    except CutoffExceeded as exceeded:
        raise Rejection(
            Reason.CERTAINTY, "centres within the slack may lie outside the boxes"
        ) from exceeded
    group_of_point = _group_of_point(original)
    group_labels = np.zeros(domain.n_groups, dtype=np.int64)
    inside = group_of_point >= 0
    group_labels[group_of_point[inside]] = labels[inside]
    low, high = _value_ranges(domain, claim, original.n_clusters)
    _check_counts(domain, claim, level, high, group_labels)
    _check_fixed_points(domain, level, low, high, group_labels, group_of_point, claim.certain == 1)
    details["certainty"] = {
        "slack": claim.slack,
        "certain": int(np.count_nonzero(claim.certain == 1)),
        "boxes": len(claim.cluster),
    }


def _check_numbers(original: OriginalProblem, domain: Domain, claim: CertaintyClaim) -> None:
    if len(claim.multipliers) != domain.n_groups:
        raise Rejection(
            Reason.CERTAINTY, f"there is not one multiplier for each of {domain.n_groups}"
        )
    for array in (claim.multipliers, claim.low, claim.high):
        if not np.all(np.abs(array) <= 1e145):
            raise Rejection(Reason.FIELD, "a number of certainty is out of range")
    if not np.all(claim.low <= claim.high):
        raise Rejection(Reason.CERTAINTY, "a box is empty")
    if not np.array_equal(np.unique(claim.cluster), np.arange(original.n_clusters)):
        raise Rejection(Reason.CERTAINTY, "there is not a box for every cluster, and no others")


def _dual_level(domain: Domain, claim: CertaintyClaim, n_clusters: int) -> _DualLevel:
    total = math.fsum(claim.multipliers.tolist())
    rounding_error = 32.0 * EPS * (abs(total) + domain.required_bound + n_clusters * claim.sigma)
    delta = max(0.0, domain.required_bound - total + n_clusters * claim.sigma) + rounding_error
    threshold = claim.sigma - delta - rounding_error
    if not threshold > 0.0:
        raise Rejection(Reason.CERTAINTY, "a cluster may be empty")
    return _DualLevel(claim.sigma, delta, threshold)


def _check_boxes(domain: Domain, claim: CertaintyClaim, level: _DualLevel, limits: Limits) -> None:
    """Steps 1 and 2."""
    pricing = Pricing(domain.points, domain.weights, domain.edges, claim.multipliers, limits)
    least, most = domain.points.min(axis=0), domain.points.max(axis=0)

    def region(low: Floats, high: Floats) -> CenterRegion:
        return CenterRegion(low, high, low > least, high < most)

    for low, high in zip(*_outside((least, most), claim, limits), strict=True):
        pricing.prove(region(low, high), level.threshold)
    for low, high in zip(claim.low, claim.high, strict=True):
        inner_low, inner_high = np.maximum(low, least), np.minimum(high, most)
        if np.all(inner_low <= inner_high):
            pricing.prove(region(inner_low, inner_high), level.sigma)


def _outside(whole: Box, claim: CertaintyClaim, limits: Limits) -> Boxes:
    """Cut what lies outside all boxes of the claim into boxes."""
    pieces: Boxes = (whole[0][None].copy(), whole[1][None].copy())
    tests = 0
    for box in zip(claim.low, claim.high, strict=True):
        limits.check_deadline()
        tests += len(pieces[0])
        if len(pieces[0]) > MAX_PIECES or tests > MAX_PIECE_TESTS:
            raise Rejection(Reason.LIMIT, "the boxes leave too many pieces outside")
        pieces = _box_difference(pieces, box)
    return pieces


def _box_difference(pieces: Boxes, box: Box) -> Boxes:
    """Parts of the pieces that lie outside the box."""
    touched = np.all((pieces[0] <= box[1]) & (pieces[1] >= box[0]), axis=1)
    lows, highs = [pieces[0][~touched]], [pieces[1][~touched]]
    low, high = pieces[0][touched], pieces[1][touched]  # what is left of them, within the box
    for axis in range(low.shape[1]):
        for is_low in (True, False):
            face = box[0][axis] if is_low else box[1][axis]
            cut = low[:, axis] < face if is_low else high[:, axis] > face
            side_low, side_high = low[cut], high[cut]
            (side_high if is_low else side_low)[:, axis] = face
            lows.append(side_low)
            highs.append(side_high)
            (low if is_low else high)[cut, axis] = face
    return np.concatenate(lows), np.concatenate(highs)


def _group_of_point(original: OriginalProblem) -> Ints:
    """Group of every point as `aggregate_domain` numbers them; -1 for groups of weight 0."""
    labels = connected_components(len(original.points), original.must_link)
    representatives, group = np.unique(labels, return_inverse=True)
    has_weight = np.bincount(group, original.weights, len(representatives)) > 0.0
    index = np.where(has_weight, np.cumsum(has_weight) - 1, -1)
    groups_of_points: Ints = index[group]
    return groups_of_points


def _value_ranges(domain: Domain, claim: CertaintyClaim, n_clusters: int) -> tuple[Floats, Floats]:
    """Lower and upper bounds on the value of every group for a center of every cluster."""
    n, r = domain.points.shape
    low, high = np.full((n, n_clusters), np.inf), np.full((n, n_clusters), -np.inf)
    lam, w, slack = claim.multipliers, domain.weights, 2.0 * (r + 8) * EPS
    least, most = domain.points.min(axis=0), domain.points.max(axis=0)
    for box_low, box_high, k in zip(claim.low, claim.high, claim.cluster.tolist(), strict=True):
        below, above = np.maximum(box_low, least), np.minimum(box_high, most)
        if np.any(below > above):
            continue  # means lie in the box of the points: no center is there
        middle = 0.5 * (below + above)
        half = np.maximum(middle - below, above - middle) * (1.0 + 4.0 * EPS)
        deviation = np.abs(domain.points - middle)
        near = w * np.sum(np.maximum(0.0, deviation - half) ** 2, axis=1)
        far = w * np.sum((deviation + half) ** 2, axis=1)
        size = np.abs(lam) + far
        low[:, k] = np.minimum(low[:, k], lam - far - slack * size - 1e-300)
        high[:, k] = np.maximum(high[:, k], lam - near + slack * size + 1e-300)
    return low, high


def _center_counts(high: Floats, level: _DualLevel) -> tuple[Ints, Ints]:
    """Lower and upper bounds on the centers in the boxes of every cluster; K in all."""
    k = high.shape[1]
    least, most = np.zeros(k, dtype=np.int64), np.full(k, k)
    for j in range(k):
        max_value = math.fsum(np.maximum(high[:, j], 0.0).tolist()) * (1.0 + 8.0 * EPS)
        if max_value < (2.0 * level.sigma - level.delta) * (1.0 - 8.0 * EPS):
            most[j] = 1
        others = np.delete(high, j, axis=1).max(axis=1)
        missing_value = math.fsum(np.maximum(-others, 0.0).tolist()) * (1.0 - 8.0 * EPS)
        if missing_value > level.delta:
            least[j] = 1
    for _ in range(k + 1):
        most = np.minimum(most, k - (least.sum() - least))
        least = np.maximum(least, k - (most.sum() - most))
    return least, most


def _check_counts(
    domain: Domain, claim: CertaintyClaim, level: _DualLevel, high: Floats, group_labels: Ints
) -> None:
    """Step 3."""
    n = domain.n_groups
    if high.shape[1] > 1:
        least, most = _center_counts(high, level)
        for k in np.flatnonzero((least != 1) | (most != 1)).tolist():
            raise Rejection(
                Reason.CERTAINTY,
                f"the boxes of cluster {k} may hold {least[k]} to {most[k]} centres",
            )
    error = 8.0 * (n + 16) * EPS * np.abs(domain.points).max(axis=0)
    for k in range(high.shape[1]):
        members = group_labels == k
        if not members.any():
            raise Rejection(Reason.CERTAINTY, f"cluster {k} is empty")
        mass = domain.weights[members]
        mean = mass @ domain.points[members] / mass.sum()
        inside = np.all((claim.low - error <= mean) & (mean <= claim.high + error), axis=1)
        if not (inside.any() and np.all(claim.cluster[inside] == k)):
            raise Rejection(Reason.CERTAINTY, f"the centre of cluster {k} is not in its boxes")


def _check_fixed_points(
    domain: Domain,
    level: _DualLevel,
    low: Floats,
    high: Floats,
    group_labels: Ints,
    group_of_point: Ints,
    certain: NDArray[np.bool_],
) -> None:
    """Step 4."""
    n, k = high.shape
    gain = np.maximum(low, 0.0)
    if len(domain.edges):
        tail, head = np.concatenate([domain.edges, domain.edges[:, ::-1]]).T
        max_degree = int(np.bincount(tail).max())
        for j in range(k):
            neighbor_value = np.bincount(tail, np.maximum(high[head, j], 0.0), n) * (
                1.0 + max_degree * EPS * 2.0
            )
            left = low[:, j] - neighbor_value - 4.0 * EPS * (np.abs(low[:, j]) + neighbor_value)
            gain[:, j] = np.where(neighbor_value > 0.0, np.maximum(left, 0.0), gain[:, j])
    groups = np.unique(group_of_point[certain])
    if len(groups) and groups[0] < 0:
        raise Rejection(Reason.CERTAINTY, "a point of weight 0 is claimed to be certain")
    for j in range(k):
        others = np.delete(gain, j, axis=1).sum(axis=1)
        move_cost = (np.maximum(-high[:, j], 0.0) + others) * (1.0 - 2.0 * (k + 8) * EPS)
        chosen = groups[group_labels[groups] != j]
        if not np.all(move_cost[chosen] > level.delta):
            worst = chosen[~(move_cost[chosen] > level.delta)][0]
            raise Rejection(Reason.CERTAINTY, f"points of group {worst} may be in cluster {j}")
