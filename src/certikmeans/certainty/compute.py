"""What of certainty goes into a certificate: numbers from which a checker derives it again.

The checker works with boxes alone, and asks of every group once; so it is told of the points that
this much shows to be certain. It rounds in its own way: `level.CHECKER_MARGIN` leaves room for that.
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
from numpy.typing import NDArray

from certikmeans._numbers import percent, percent_in_full
from certikmeans.bounds.cluster.pricing import DEFAULT_PARAMS, Pricer
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


@final
@dataclass(frozen=True, slots=True, eq=False)
class CertificateClaim:
    """Multipliers and boxes; see ``docs/certificate-format.md``."""

    slack: float
    sigma: float
    multipliers: NDArray[np.float64]  # (n_groups,): by smallest row
    low: NDArray[np.float64]  # (n_boxes, n_axes), in the coordinates of presolve
    high: NDArray[np.float64]
    cluster: NDArray[np.int64]  # (n_boxes,): of ours
    certain: NDArray[np.bool_]  # (n_points,)
    center: NDArray[np.float64]  # (n_features,): the coordinates
    axes: NDArray[np.float64]  # (n_features, n_axes)


def make_claim(
    presolved: PresolvedProblem,
    slack: float,
    level: DualLevel,
    regions: tuple[CenterRegion, ...],
    families: tuple[ClusterFamily, ...],
) -> CertificateClaim | None:
    """What a checker can be told; None where it could not tell clusters apart."""
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
    # A box that ends where the points end goes on beyond: the checker's points end elsewhere, by a
    # rounding, and no centre is out there.
    least, most = reduced.points.min(axis=0), reduced.points.max(axis=0)
    wide = most - least
    fixed = assignments.possible.sum(axis=1) == 1
    rows = presolved.group_of_point
    kept = rows < reduced.n_groups
    certain = np.zeros(len(rows), dtype=bool)
    certain[kept] = fixed[rows[kept]]
    return CertificateClaim(
        slack=slack,
        sigma=level.sigma + 16.0 * level.error,
        multipliers=level.multipliers[np.argsort(presolved.group_representatives)],
        low=np.stack(
            [np.where(region.low <= least, least - wide, region.low) for region in regions]
        ),
        high=np.stack(
            [np.where(region.high >= most, most + wide, region.high) for region in regions]
        ),
        cluster=cluster,
        certain=certain,
        center=presolved.center,
        axes=presolved.axes,
    )


# From a finished run to what is certain: multipliers, regions, families, statements.

Labels = NDArray[np.int64]

# Of the time there is, after this much regions are given up. To count overlaps instead may take as
# long as the proof, or so many seconds.
REGION_TIME_FRACTION, MIN_OVERLAP_TIME = 0.75, 2.0
CLAIM_MARGIN = 0.1  # of what it is worth while to gain
SUFFICIENT_ETA = 0.3  # an eta that is not worth while to improve with matrices of all groups


def compute_certainty(
    basis: SolveArtifacts,
    labels: Labels,
    cost: float,
    slack: float,
    stop: StopSignal | None = None,
    time_limit: float | None = None,
) -> Certainty:
    """Say what is true of every labelling that costs at most ``(1 + slack) cost``."""
    stop = StopSignal(time_limit) if stop is None else stop
    if time_limit is not None:
        stop = stop.with_time_limit(time_limit)
    case = CertaintyProblem.of(basis, labels, cost, slack, stop, time_limit)
    if basis.problem.n_clusters == 1:
        return _one_cluster(case)
    small = case.presolved.reduced.points.size < DEFAULT_PARAMS.min_parallel_size
    if basis.n_threads == 1 or small:
        with one_blas_thread():
            return _certainty_from_dual(case, None, stop)
    with ThreadPoolExecutor(basis.n_threads, "certikmeans") as pool, one_blas_thread():
        return _certainty_from_dual(case, pool, stop)


def _certainty_from_dual(
    case: CertaintyProblem, threads: Executor | None, stop: StopSignal
) -> Certainty:
    presolved = case.presolved
    reduced = presolved.reduced
    most = max_reduced_cost(presolved, case.cost, case.slack)
    limited = stop.with_time_limit(REGION_TIME_FRACTION * case.seconds())
    sums, masses = reduced.cluster_sums(case.groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        centers = sums / masses[:, None]  # NaN: empty
    pricer = Pricer(reduced, threads)
    failure = "what was proven of the cost does not say where centres and points can be"
    for dual in strengthened_multipliers(case, pricer, threads, stop):
        enclosure = enclose(pricer, dual, most, centers[masses > 0.0], limited)
        level = enclosure.level
        if enclosure.failure is None:
            claim = partial(_certificate_claim, case, dual.without_threads(), level, most, centers)
            return _certainty_from_regions(case, level, enclosure.regions, centers, claim)
        failure = f"{enclosure.failure}; {_budget_text(case, level)}"
        if enclosure.failure != OVERSTATED_BOUND:
            break
    return _certainty_from_overlap(case, most, failure, stop)


def _certainty_from_regions(
    case: CertaintyProblem,
    level: DualLevel,
    regions: tuple[CenterRegion, ...],
    centers: NDArray[np.float64],
    claim: Callable[[], CertificateClaim | None],
) -> Certainty:
    """What follows where it is known in which places all centres are."""
    reduced = case.presolved.reduced
    ranges = value_ranges(reduced, level.multipliers, regions)
    families = match_families(level, ranges, regions, centers, mean_rounding_error(reduced.points))
    if families is None:
        return _no_certainty(case, "regions are too close to tell them apart in floating point")
    held = family_value_ranges(ranges, families)
    statements = allowed_assignments(reduced, held, families, level.budget)
    certainty = _certainty_of_points(case, level, regions, families, statements)
    return dataclasses.replace(certainty, claim_of=claim)


def _certificate_claim(
    case: CertaintyProblem,
    dual: StrengthenedDual,
    level: DualLevel,
    most: float,
    centers: NDArray[np.float64],
) -> CertificateClaim | None:
    """The same with a sigma that a checker, who works with boxes alone, can show in a moment."""
    reduced = case.presolved.reduced
    sigma = level.sigma + CLAIM_MARGIN * dual.target_gain / reduced.n_clusters
    pricer, ours = Pricer(reduced), centers[~np.isnan(centers).any(axis=1)]
    found = enclose(pricer, dual, most, ours, StopSignal(case.seconds()), sigma)
    if found.failure is not None:
        return None
    ranges = value_ranges(reduced, level.multipliers, found.regions)
    slack = mean_rounding_error(reduced.points)
    families = match_families(found.level, ranges, found.regions, centers, slack)
    if families is None:
        return None
    return make_claim(case.presolved, case.slack, found.level, found.regions, families)


def _certainty_from_overlap(
    case: CertaintyProblem, most: float, reason: str, stop: StopSignal
) -> Certainty:
    """What can be said without regions: how many points can be elsewhere."""
    reduced, rows = case.presolved.reduced, case.presolved.group_of_point
    eta, method = _overlap(case, most, stop)
    kept = rows < reduced.n_groups
    sizes = np.bincount(rows[kept], minlength=reduced.n_groups)
    elsewhere = max_reassigned_points(reduced, case.groups, sizes, eta)
    nothing = _no_certainty(case, reason)
    if elsewhere is None:
        return nothing
    n = len(rows)
    elsewhere = min(n, elsewhere + int(n - kept.sum()))
    possible, families = nothing.possible.copy(), nothing.families
    if elsewhere == int(n - kept.sum()):  # nobody that weighs something
        k = nothing.possible.shape[1]
        possible[kept] = np.arange(k) == case.labels[kept, None]
        families = tuple((c,) for c in range(k))
    certain = count_true(possible) == 1
    return dataclasses.replace(
        nothing,
        certain=certain,
        possible=possible,
        agreement=_agreement(elsewhere, n),
        most_elsewhere=elsewhere,
        confusable=confusable_pairs(possible),
        families=families,
        method=method,
        reason="all there is to know"
        if certain.all()
        else f"{reason}; this many points can be elsewhere, and it is not known which",
    )


def _overlap(case: CertaintyProblem, most: float, stop: StopSignal) -> tuple[float, str]:
    """The best bound on ``eta``, and where it comes from."""
    reduced, limited = case.presolved.reduced, stop.with_time_limit(case.seconds(MIN_OVERLAP_TIME))
    spectrum = matrix = None
    for one in case.bound_artifacts():
        if isinstance(one.evidence, SpectralEvidence):
            spectrum = one.evidence.multipliers
        if isinstance(one.warm_start, SdpWarmStart):
            matrix = one.warm_start.admm_state
    found = (math.inf, FROM_SPECTRAL)
    if matrix is None or spectrum is not None:  # who needed matrices has no use for a few columns
        found = (spectral_overlap(reduced, case.groups, most, spectrum, limited), FROM_SPECTRAL)
    if not found[0] < SUFFICIENT_ETA:
        slack = case.slack * case.cost
        eta = semidefinite_overlap(reduced, case.groups, most, slack, matrix, limited)
        found = min(found, (eta, FROM_SDP))
    return found


def _certainty_of_points(
    case: CertaintyProblem,
    level: DualLevel,
    regions: tuple[CenterRegion, ...],
    families: tuple[ClusterFamily, ...],
    statements: AllowedAssignments,
) -> Certainty:
    """The statements in terms of points and clusters."""
    presolved, problem = case.presolved, case.basis.problem
    n, k = problem.n_points, problem.n_clusters
    rows = presolved.group_of_point
    kept = rows < presolved.reduced.n_groups
    family_of = np.empty(k, dtype=np.int64)
    for f, family in enumerate(families):
        family_of[list(family.clusters)] = f
    possible, prices = np.ones((n, k), dtype=bool), np.zeros((n, k))
    for c, where in enumerate(family_of.tolist()):
        possible[kept, c] = statements.possible[rows[kept], where]
        prices[kept, c] = statements.move_cost[rows[kept], where]
    prices[~possible] = np.inf
    certain = count_true(possible) == 1
    sizes = np.bincount(rows[kept], minlength=presolved.reduced.n_groups)
    most = max_reassigned(
        presolved.reduced, statements, families, family_of[case.groups], sizes, level.budget
    )
    elsewhere = min(n, math.floor(most) + int(n - kept.sum()))
    elsewhere = min(elsewhere, int(n - certain.sum()))
    in_user_axes = boxes_in_user_coordinates(problem, presolved, regions)
    boxes = np.empty((k, problem.n_features, 2))
    for family in families:
        places = in_user_axes[list(family.regions)]
        boxes[list(family.clusters), :, 0] = places[:, :, 0].min(axis=0)
        boxes[list(family.clusters), :, 1] = places[:, :, 1].max(axis=0)
    return Certainty(
        slack=case.slack,
        certain=certain,
        possible=possible,
        center_boxes=boxes,
        agreement=_agreement(elsewhere, n),
        most_elsewhere=elsewhere,
        confusable=confusable_pairs(possible),
        families=tuple(family.clusters for family in families),
        prices=prices,
        method=FROM_REGIONS,
        reason=_explain_limit(case, level, families, certain),
    )


def _agreement(elsewhere: int, n_points: int) -> float:
    """Share of the points that are not elsewhere, rounded down."""
    share = (n_points - elsewhere) / n_points
    return share if elsewhere == 0 else math.nextafter(share, 0.0)


def _explain_limit(
    case: CertaintyProblem,
    level: DualLevel,
    families: tuple[ClusterFamily, ...],
    certain: NDArray[np.bool_],
) -> str:
    """Say why it is no more."""
    if certain.all():
        return "all there is to know"
    parts = []
    merged = [family for family in families if len(family.clusters) > 1]
    if merged:
        names = ", ".join(" and ".join(map(str, family.clusters)) for family in merged)
        parts.append(f"clusters {names} cannot be told apart")
    if np.any(case.presolved.group_of_point >= case.presolved.reduced.n_groups):
        parts.append("points of weight 0 can be anywhere")
    parts.append(_budget_text(case, level))
    return "; ".join(parts)


def _budget_text(case: CertaintyProblem, level: DualLevel) -> str:
    """What labellings may lose against the multipliers, in terms of the slack."""
    share = level.budget / case.cost if case.cost > 0.0 else math.inf
    if share > 1.5 * case.slack:
        return (
            f"the slack is {percent_in_full(case.slack)}, but with what is not proven of the cost "
            f"labellings may differ by {percent(share)} of it: a smaller gap says more"
        )
    return f"points may be elsewhere for {percent(share)} of the cost"


def _data_box(problem: Problem) -> NDArray[np.float64]:
    """Where all means are."""
    held = problem.points[problem.weights > 0.0]
    return np.stack([held.min(axis=0), held.max(axis=0)], axis=1)


def _no_certainty(case: CertaintyProblem, reason: str) -> Certainty:
    """Say that nothing follows: everything is possible."""
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
    """There is one labelling; its centre is the mean."""
    problem, presolved = case.basis.problem, case.presolved
    reduced = presolved.reduced
    mean = np.average(reduced.points, axis=0, weights=reduced.weights)
    slack = mean_rounding_error(reduced.points)
    region = CenterRegion(mean - slack, mean + slack, mean, math.inf)
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
        reason="all there is to know",
    )
