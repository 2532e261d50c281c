"""Certainty of a finished solve: multipliers, regions of centers, families, assignments.

If regions of centers cannot be proven, a bound on the overlap of two labellings still limits the
number of reassigned points.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from certikmeans._numbers import percent, percent_in_full
from certikmeans._types import Floats, Ints, Mask
from certikmeans.bounds.cluster.lagrangian_dual import LagrangianDual, benefits_from_threads
from certikmeans.bounds.cluster.pricing_error import mean_rounding_error
from certikmeans.bounds.sdp.bound import SdpWarmStart
from certikmeans.bounds.spectral.bound import SpectralEvidence
from certikmeans.certainty.artifacts import CertaintyProblem, SolveArtifacts
from certikmeans.certainty.center_regions import (
    OVERSTATED_BOUND,
    CenterRegion,
    boxes_in_user_coordinates,
    enclose,
    value_ranges,
)
from certikmeans.certainty.dual_ascent import (
    DualLevel,
    StrengthenedDual,
    max_reduced_cost,
    strengthened_multipliers,
)
from certikmeans.certainty.fixing import (
    AllowedAssignments,
    ClusterFamily,
    allowed_assignments,
    count_true,
    family_value_ranges,
    has_one_center_each,
    match_families,
    max_reassigned,
)
from certikmeans.certainty.overlap import (
    max_reassigned_points,
    semidefinite_overlap,
    spectral_overlap,
)
from certikmeans.certainty.params import CertaintyParams
from certikmeans.certainty.report import (
    FROM_REGIONS,
    FROM_SDP,
    FROM_SPECTRAL,
    NO_METHOD,
    ONE_CLUSTER,
    Certainty,
    confusable_pairs,
)
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal

Labels = Ints
Centers = Floats  # (n_clusters, n_dims): NaN for an empty cluster

ALL_FIXED = "every assignment is fixed"
RELAXED = "only pairs are taken into account here, not sets, sizes or soft pairs"


def compute_certainty(
    basis: SolveArtifacts,
    labels: Labels,
    cost: float,
    slack: float,
    stop: StopSignal | None = None,
    time_limit: float | None = None,
    params: CertaintyParams | None = None,
) -> Certainty:
    """Return what holds for every labelling of cost at most ``(1 + slack) cost``."""
    stop = StopSignal(time_limit) if stop is None else stop
    if time_limit is not None:
        stop = stop.with_time_limit(time_limit)
    case = CertaintyProblem.of(basis, labels, cost, slack, stop, time_limit, params)
    found = _certainty_of(case, stop)
    if not case.relaxed or found.certain.all():
        return found
    return dataclasses.replace(found, reason=f"{found.reason}; {RELAXED}")


def _certainty_of(case: CertaintyProblem, stop: StopSignal) -> Certainty:
    basis = case.basis
    if basis.problem.n_clusters == 1:
        return _one_cluster(case)
    if basis.n_threads == 1 or not benefits_from_threads(case.presolved.reduced):
        with one_blas_thread():
            return _certainty_from_dual(case, None, stop)
    with ThreadPoolExecutor(basis.n_threads, "certikmeans") as pool, one_blas_thread():
        return _certainty_from_dual(case, pool, stop)


def _certainty_from_dual(
    case: CertaintyProblem, executor: Executor | None, stop: StopSignal
) -> Certainty:
    presolved, params = case.presolved, case.params
    reduced = presolved.reduced
    most = max_reduced_cost(presolved, case.cost, case.slack)
    limited = stop.with_time_limit(params.region_time_fraction * case.seconds())
    sums, masses = reduced.cluster_sums(case.groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        centers = sums / masses[:, None]
    dual = LagrangianDual(reduced, executor)
    failure = "the bounds of this run do not locate centres or points"
    for found in strengthened_multipliers(case, dual, executor, stop):
        enclosure = enclose(dual, found, most, centers[masses > 0.0], limited, params.regions)
        level = enclosure.level
        if enclosure.failure is None:
            own = found.without_executor()
            claim = partial(_certificate_claim, case, own, level, most, centers)
            return _certainty_from_regions(case, level, enclosure.regions, centers, claim)
        failure = f"{enclosure.failure}; {_budget_text(case, level)}"
        if enclosure.failure != OVERSTATED_BOUND:
            break
    return _certainty_from_overlap(case, most, failure, stop)


def _certainty_from_regions(
    case: CertaintyProblem,
    level: DualLevel,
    regions: tuple[CenterRegion, ...],
    centers: Centers,
    claim: Callable[[], CertificateClaim | None],
) -> Certainty:
    """Derive assignments from regions that hold all centers."""
    reduced = case.presolved.reduced
    ranges = value_ranges(reduced, level.multipliers, regions)
    families = match_families(level, ranges, regions, centers, mean_rounding_error(reduced.points))
    if families is None:
        return _no_certainty(case, "regions of centres cannot be separated in floating point")
    family_ranges = family_value_ranges(ranges, families)
    assignments = allowed_assignments(reduced, family_ranges, families, level.budget)
    certainty = _certainty_of_points(case, level, regions, families, assignments)
    return dataclasses.replace(certainty, claim_of=claim)


def _certainty_from_overlap(
    case: CertaintyProblem, most: float, reason: str, stop: StopSignal
) -> Certainty:
    """Bound the number of reassigned points without regions of centers."""
    reduced, group_of_point = case.presolved.reduced, case.presolved.group_of_point
    eta, method = _overlap(case, most, stop)
    has_weight = group_of_point < reduced.n_groups
    sizes = np.bincount(group_of_point[has_weight], minlength=reduced.n_groups)
    reassigned = max_reassigned_points(reduced, case.groups, sizes, eta)
    nothing = _no_certainty(case, reason)
    if reassigned is None:
        return nothing
    n = len(group_of_point)
    n_weightless = int(n - has_weight.sum())
    reassigned = min(n, reassigned + n_weightless)
    possible, families = nothing.possible.copy(), nothing.families
    if reassigned == n_weightless:  # no point with weight
        k = nothing.possible.shape[1]
        possible[has_weight] = np.arange(k) == case.labels[has_weight, None]
        families = tuple((c,) for c in range(k))
    certain = count_true(possible) == 1
    return dataclasses.replace(
        nothing,
        certain=certain,
        possible=possible,
        agreement=_agreement(reassigned, n),
        most_elsewhere=reassigned,
        confusable=confusable_pairs(possible),
        families=families,
        method=method,
        reason=ALL_FIXED
        if certain.all()
        else f"{reason}; the number of reassigned points is bounded, but not which they are",
    )


def _overlap(case: CertaintyProblem, most: float, stop: StopSignal) -> tuple[float, str]:
    """Return the best bound on ``eta`` and the method that gave it."""
    reduced, params = case.presolved.reduced, case.params
    limited = stop.with_time_limit(case.seconds(params.min_overlap_seconds))
    spectral = admm_state = None
    for one in case.bound_artifacts():
        if isinstance(one.evidence, SpectralEvidence):
            spectral = one.evidence.multipliers
        if isinstance(one.warm_start, SdpWarmStart):
            admm_state = one.warm_start.admm_state
    best = (math.inf, FROM_SPECTRAL)
    # Where the run needed the semidefinite bound, the spectral one has nothing to add.
    if admm_state is None or spectral is not None:
        eta = spectral_overlap(reduced, case.groups, most, spectral, limited, params.overlap)
        best = (eta, FROM_SPECTRAL)
    if not best[0] < params.sufficient_eta:
        extra = case.slack * case.cost
        eta = semidefinite_overlap(
            reduced, case.groups, most, extra, admm_state, limited, params.overlap
        )
        best = min(best, (eta, FROM_SDP))
    return best


def _certainty_of_points(
    case: CertaintyProblem,
    level: DualLevel,
    regions: tuple[CenterRegion, ...],
    families: tuple[ClusterFamily, ...],
    assignments: AllowedAssignments,
) -> Certainty:
    """Translate assignments of groups to families into points and clusters."""
    presolved, problem = case.presolved, case.basis.problem
    n, k = problem.n_points, problem.n_clusters
    group_of_point = presolved.group_of_point
    has_weight = group_of_point < presolved.reduced.n_groups
    groups = group_of_point[has_weight]
    family_of = np.empty(k, dtype=np.int64)
    for f, family in enumerate(families):
        family_of[list(family.clusters)] = f
    possible, prices = np.ones((n, k), dtype=bool), np.zeros((n, k))
    for c, f in enumerate(family_of.tolist()):
        possible[has_weight, c] = assignments.possible[groups, f]
        prices[has_weight, c] = assignments.move_cost[groups, f]
    prices[~possible] = np.inf
    certain = count_true(possible) == 1
    sizes = np.bincount(groups, minlength=presolved.reduced.n_groups)
    most = max_reassigned(
        presolved.reduced, assignments, families, family_of[case.groups], sizes, level.budget
    )
    reassigned = min(n, math.floor(most) + int(n - has_weight.sum()))
    reassigned = min(reassigned, int(n - certain.sum()))
    region_boxes = boxes_in_user_coordinates(problem, presolved, regions)
    boxes = np.empty((k, problem.n_features, 2))
    for family in families:
        own = region_boxes[list(family.regions)]
        boxes[list(family.clusters), :, 0] = own[:, :, 0].min(axis=0)
        boxes[list(family.clusters), :, 1] = own[:, :, 1].max(axis=0)
    return Certainty(
        slack=case.slack,
        certain=certain,
        possible=possible,
        center_boxes=boxes,
        agreement=_agreement(reassigned, n),
        most_elsewhere=reassigned,
        confusable=confusable_pairs(possible),
        families=tuple(family.clusters for family in families),
        prices=prices,
        method=FROM_REGIONS,
        reason=_explain_limit(case, level, families, certain),
    )


def _agreement(reassigned: int, n_points: int) -> float:
    """Fraction of the points that keep their cluster, rounded down."""
    fraction = (n_points - reassigned) / n_points
    return fraction if reassigned == 0 else math.nextafter(fraction, 0.0)


def _explain_limit(
    case: CertaintyProblem,
    level: DualLevel,
    families: tuple[ClusterFamily, ...],
    certain: Mask,
) -> str:
    """Explain why some points are uncertain."""
    if certain.all():
        return ALL_FIXED
    reasons = []
    merged = [family for family in families if len(family.clusters) > 1]
    if merged:
        names = ", ".join(" and ".join(map(str, family.clusters)) for family in merged)
        reasons.append(f"clusters {names} cannot be separated")
    if np.any(case.presolved.group_of_point >= case.presolved.reduced.n_groups):
        reasons.append("points of weight 0 can be in any cluster")
    reasons.append(_budget_text(case, level))
    return "; ".join(reasons)


def _budget_text(case: CertaintyProblem, level: DualLevel) -> str:
    """Describe the budget of deficits relative to the slack."""
    fraction = level.budget / case.cost if case.cost > 0.0 else math.inf
    if fraction > 1.5 * case.slack:
        return (
            f"the slack is {percent_in_full(case.slack)}, but with the gap that remains, "
            f"labellings may differ by {percent(fraction)} of the cost: solve to a smaller gap"
        )
    return f"reassignments within {percent(fraction)} of the cost are not excluded"


def _data_box(problem: Problem) -> Floats:
    """Box of all points with weight: it holds every mean."""
    held = problem.points[problem.weights > 0.0]
    return np.stack([held.min(axis=0), held.max(axis=0)], axis=1)


def _no_certainty(case: CertaintyProblem, reason: str) -> Certainty:
    """Return a result that excludes nothing."""
    problem = case.basis.problem
    n, k = problem.n_points, problem.n_clusters
    possible = np.ones((n, k), dtype=bool)
    return Certainty(
        slack=case.slack,
        certain=np.zeros(n, dtype=bool),
        possible=possible,
        center_boxes=np.tile(_data_box(problem), (k, 1, 1)),
        agreement=0.0,
        most_elsewhere=n,
        confusable=confusable_pairs(possible),
        families=(tuple(range(k)),),
        prices=np.zeros((n, k)),
        method=NO_METHOD,
        reason=reason,
    )


def _one_cluster(case: CertaintyProblem) -> Certainty:
    """Return the result for K = 1: one labelling, whose center is the mean."""
    problem, presolved = case.basis.problem, case.presolved
    reduced = presolved.reduced
    mean = np.average(reduced.points, axis=0, weights=reduced.weights)
    error = mean_rounding_error(reduced.points)
    region = CenterRegion(mean - error, mean + error, mean, math.inf)
    n = problem.n_points
    return Certainty(
        slack=case.slack,
        certain=np.ones(n, dtype=bool),
        possible=np.ones((n, 1), dtype=bool),
        center_boxes=boxes_in_user_coordinates(problem, presolved, (region,)),
        agreement=1.0,
        most_elsewhere=0,
        confusable=(),
        families=((0,),),
        prices=np.zeros((n, 1)),
        method=ONE_CLUSTER,
        reason=ALL_FIXED,
    )


# Claims of a certificate.
#
# The verifier works with boxes alone and tests every group once, so only points that this much
# proves certain are claimed. It rounds in its own way: `dual_ascent.CHECKER_MARGIN` leaves room.


@final
@dataclass(frozen=True, slots=True, eq=False)
class CertificateClaim:
    """Multipliers and boxes; see ``docs/certificate-format.md``."""

    slack: float
    sigma: float
    multipliers: Floats  # (n_groups,): groups ordered by their smallest point
    low: Floats  # (n_boxes, n_dims), in the coordinates of presolve
    high: Floats
    cluster: Ints  # (n_boxes,): cluster of the labelling
    certain: Mask  # (n_points,)
    center: Floats  # (n_features,): the coordinates
    axes: Floats  # (n_features, n_dims)


def _certificate_claim(
    case: CertaintyProblem,
    dual: StrengthenedDual,
    level: DualLevel,
    most: float,
    centers: Centers,
) -> CertificateClaim | None:
    """Prove regions for a larger sigma, which the verifier can prove quickly with boxes alone."""
    reduced = case.presolved.reduced
    sigma = level.sigma + case.params.claim_margin * dual.target_gain / reduced.n_clusters
    pricing, known = LagrangianDual(reduced), centers[~np.isnan(centers).any(axis=1)]
    stop = StopSignal(case.seconds())
    found = enclose(pricing, dual, most, known, stop, case.params.regions, sigma)
    if found.failure is not None:
        return None
    ranges = value_ranges(reduced, level.multipliers, found.regions)
    tolerance = mean_rounding_error(reduced.points)
    families = match_families(found.level, ranges, found.regions, centers, tolerance)
    if families is None:
        return None
    return make_claim(case.presolved, case.slack, found.level, found.regions, families)


def make_claim(
    presolved: PresolvedProblem,
    slack: float,
    level: DualLevel,
    regions: tuple[CenterRegion, ...],
    families: tuple[ClusterFamily, ...],
) -> CertificateClaim | None:
    """Return what the verifier can prove; None if it could not separate the clusters."""
    if any(len(family.clusters) > 1 for family in families):
        return None
    reduced = presolved.reduced
    boxes = tuple(replace(region, radius=np.inf) for region in regions)
    ranges = family_value_ranges(value_ranges(reduced, level.multipliers, boxes), families)
    if not has_one_center_each(level, ranges.high):
        return None
    assignments = allowed_assignments(reduced, ranges, families, level.budget, rounds=1)
    cluster = np.empty(len(regions), dtype=np.int64)
    for family in families:
        cluster[list(family.regions)] = family.clusters[0]
    # A box that ends where the points end is extended: the verifier's points end elsewhere by a
    # rounding, and no center lies out there.
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    width = high - low
    fixed = assignments.possible.sum(axis=1) == 1
    group_of_point = presolved.group_of_point
    has_weight = group_of_point < reduced.n_groups
    certain = np.zeros(len(group_of_point), dtype=bool)
    certain[has_weight] = fixed[group_of_point[has_weight]]
    return CertificateClaim(
        slack=slack,
        sigma=level.sigma + 16.0 * level.error,
        multipliers=level.multipliers[np.argsort(presolved.group_representatives)],
        low=np.stack([np.where(one.low <= low, low - width, one.low) for one in regions]),
        high=np.stack([np.where(one.high >= high, high + width, one.high) for one in regions]),
        cluster=cluster,
        certain=certain,
        center=presolved.center,
        axes=presolved.axes,
    )
