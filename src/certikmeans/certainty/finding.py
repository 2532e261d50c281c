"""From a finished run to what is certain: multipliers, regions, families, statements."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import percent, percent_in_full
from certikmeans.bounds.cluster.pricing import SHORT_CLIMB, Pricer
from certikmeans.bounds.cluster.pricing_error import mean_slack
from certikmeans.bounds.sdp.bound import SdpRestart
from certikmeans.bounds.spectral.bound import AboutTheWhole
from certikmeans.certainty.basis import Basis
from certikmeans.certainty.case import Case
from certikmeans.certainty.claim import RegionClaim, claim_of
from certikmeans.certainty.counting import Family, families_of
from certikmeans.certainty.level import Level, most_reduced_cost
from certikmeans.certainty.overlap import most_points_elsewhere, spectral_overlap
from certikmeans.certainty.places import stated_boxes
from certikmeans.certainty.raising import Raised, raised_multipliers
from certikmeans.certainty.ranges import worth_of
from certikmeans.certainty.regions import WORTH_LESS, CenterRegion, enclose
from certikmeans.certainty.report import (
    BY_MATRIX,
    BY_NOTHING,
    BY_REGIONS,
    BY_SPECTRUM,
    ONE_CLUSTER,
    Certainty,
    confusable_pairs,
)
from certikmeans.certainty.semidefinite import semidefinite_overlap
from certikmeans.certainty.statements import (
    Statements,
    family_worth,
    how_many,
    most_elsewhere,
    who_can_be_where,
)
from certikmeans.execution.blas import one_blas_thread
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]

# Of the time there is, after this much regions are given up. To count overlaps instead may take as
# long as the proof, or so many seconds.
UNTIL_REGIONS, OVERLAP_SECONDS = 0.75, 2.0
ROOM_FOR_A_CHECKER = 0.1  # of what it is worth while to gain
ENOUGH = 0.3  # an eta that is not worth while to improve with matrices of all groups


def find_certainty(
    basis: Basis,
    labels: Labels,
    cost: float,
    slack: float,
    stop: StopSignal | None = None,
    time_limit: float | None = None,
) -> Certainty:
    """Say what is true of every labelling that costs at most ``(1 + slack) cost``."""
    stop = StopSignal(time_limit) if stop is None else stop
    if time_limit is not None:
        stop = stop.within(time_limit)
    case = Case.of(basis, labels, cost, slack, stop, time_limit)
    if basis.problem.n_clusters == 1:
        return _one_cluster(case)
    if basis.n_threads == 1 or case.presolved.reduced.points.size < SHORT_CLIMB:
        with one_blas_thread():
            return _from_multipliers(case, None, stop)
    with ThreadPoolExecutor(basis.n_threads, "certikmeans") as pool, one_blas_thread():
        return _from_multipliers(case, pool, stop)


def _from_multipliers(case: Case, threads: Executor | None, stop: StopSignal) -> Certainty:
    presolved = case.presolved
    reduced = presolved.reduced
    most = most_reduced_cost(presolved, case.cost, case.slack)
    limited = stop.within(UNTIL_REGIONS * case.seconds())
    sums, masses = reduced.cluster_sums(case.groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        centers = sums / masses[:, None]  # NaN: empty
    pricer = Pricer(reduced, threads)
    failure = "what was proven of the cost does not say where centres and points can be"
    for raised in raised_multipliers(case, pricer, threads, stop):
        enclosure = enclose(pricer, raised, most, centers[masses > 0.0], limited)
        level = enclosure.level
        if enclosure.failure is None:
            claim = partial(_for_a_checker, case, raised.alone(), level, most, centers)
            return _from_regions(case, level, enclosure.regions, centers, claim)
        failure = f"{enclosure.failure}; {_room(case, level)}"
        if enclosure.failure != WORTH_LESS:
            break
    return _from_overlap(case, most, failure, stop)


def _from_regions(
    case: Case,
    level: Level,
    regions: tuple[CenterRegion, ...],
    centers: NDArray[np.float64],
    claim: Callable[[], RegionClaim | None],
) -> Certainty:
    """What follows where it is known in which places all centres are."""
    reduced = case.presolved.reduced
    worth = worth_of(reduced, level.multipliers, regions)
    families = families_of(level, worth, regions, centers, mean_slack(reduced.points))
    if families is None:
        return _nothing(case, "regions are too close to tell them apart in floating point")
    held = family_worth(worth, families)
    statements = who_can_be_where(reduced, held, families, level.delta)
    told = _told(case, level, regions, families, statements)
    return dataclasses.replace(told, claim_of=claim)


def _for_a_checker(
    case: Case, raised: Raised, level: Level, most: float, centers: NDArray[np.float64]
) -> RegionClaim | None:
    """The same with a sigma that a checker, who works with boxes alone, can show in a moment."""
    reduced = case.presolved.reduced
    sigma = level.sigma + ROOM_FOR_A_CHECKER * raised.unit / reduced.n_clusters
    pricer, ours = Pricer(reduced), centers[~np.isnan(centers).any(axis=1)]
    found = enclose(pricer, raised, most, ours, StopSignal(case.seconds()), sigma)
    if found.failure is not None:
        return None
    worth = worth_of(reduced, level.multipliers, found.regions)
    slack = mean_slack(reduced.points)
    families = families_of(found.level, worth, found.regions, centers, slack)
    if families is None:
        return None
    return claim_of(case.presolved, case.slack, found.level, found.regions, families)


def _from_overlap(case: Case, most: float, reason: str, stop: StopSignal) -> Certainty:
    """What can be said without regions: how many points can be elsewhere."""
    reduced, rows = case.presolved.reduced, case.presolved.row_of_point
    eta, method = _overlap(case, most, stop)
    kept = rows < reduced.n_groups
    sizes = np.bincount(rows[kept], minlength=reduced.n_groups)
    elsewhere = most_points_elsewhere(reduced, case.groups, sizes, eta)
    nothing = _nothing(case, reason)
    if elsewhere is None:
        return nothing
    n = len(rows)
    elsewhere = min(n, elsewhere + int(n - kept.sum()))
    possible, families = nothing.possible.copy(), nothing.families
    if elsewhere == int(n - kept.sum()):  # nobody that weighs something
        k = nothing.possible.shape[1]
        possible[kept] = np.arange(k) == case.labels[kept, None]
        families = tuple((c,) for c in range(k))
    certain = how_many(possible) == 1
    return dataclasses.replace(
        nothing,
        certain=certain,
        possible=possible,
        agreement=_share(elsewhere, n),
        most_elsewhere=elsewhere,
        confusable=confusable_pairs(possible),
        families=families,
        method=method,
        reason="all there is to know"
        if certain.all()
        else f"{reason}; this many points can be elsewhere, and it is not known which",
    )


def _overlap(case: Case, most: float, stop: StopSignal) -> tuple[float, str]:
    """The best bound on ``eta``, and where it comes from."""
    reduced, limited = case.presolved.reduced, stop.within(case.seconds(OVERLAP_SECONDS))
    spectrum = matrix = None
    for one in case.shown():
        if isinstance(one.evidence, AboutTheWhole):
            spectrum = one.evidence.inner
        if isinstance(one.restart, SdpRestart):
            matrix = one.restart.last
    found = (math.inf, BY_SPECTRUM)
    if matrix is None or spectrum is not None:  # who needed matrices has no use for a few columns
        found = (spectral_overlap(reduced, case.groups, most, spectrum, limited), BY_SPECTRUM)
    if not found[0] < ENOUGH:
        slack = case.slack * case.cost
        eta = semidefinite_overlap(reduced, case.groups, most, slack, matrix, limited)
        found = min(found, (eta, BY_MATRIX))
    return found


def _told(
    case: Case,
    level: Level,
    regions: tuple[CenterRegion, ...],
    families: tuple[Family, ...],
    statements: Statements,
) -> Certainty:
    """The statements in terms of points and clusters."""
    presolved, problem = case.presolved, case.basis.problem
    n, k = problem.n_points, problem.n_clusters
    rows = presolved.row_of_point
    kept = rows < presolved.reduced.n_groups
    family_of = np.empty(k, dtype=np.int64)
    for f, family in enumerate(families):
        family_of[list(family.clusters)] = f
    possible, prices = np.ones((n, k), dtype=bool), np.zeros((n, k))
    for c, where in enumerate(family_of.tolist()):
        possible[kept, c] = statements.possible[rows[kept], where]
        prices[kept, c] = statements.price[rows[kept], where]
    prices[~possible] = np.inf
    certain = how_many(possible) == 1
    sizes = np.bincount(rows[kept], minlength=presolved.reduced.n_groups)
    most = most_elsewhere(
        presolved.reduced, statements, families, family_of[case.groups], sizes, level.delta
    )
    elsewhere = min(n, math.floor(most) + int(n - kept.sum()))
    elsewhere = min(elsewhere, int(n - certain.sum()))
    in_user_axes = stated_boxes(problem, presolved, regions)
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
        agreement=_share(elsewhere, n),
        most_elsewhere=elsewhere,
        confusable=confusable_pairs(possible),
        families=tuple(family.clusters for family in families),
        prices=prices,
        method=BY_REGIONS,
        reason=_why(case, level, families, certain),
    )


def _share(elsewhere: int, n_points: int) -> float:
    """Share of the points that are not elsewhere, rounded down."""
    share = (n_points - elsewhere) / n_points
    return share if elsewhere == 0 else math.nextafter(share, 0.0)


def _why(case: Case, level: Level, families: tuple[Family, ...], certain: NDArray[np.bool_]) -> str:
    """Say why it is no more."""
    if certain.all():
        return "all there is to know"
    parts = []
    merged = [family for family in families if len(family.clusters) > 1]
    if merged:
        names = ", ".join(" and ".join(map(str, family.clusters)) for family in merged)
        parts.append(f"clusters {names} cannot be told apart")
    if np.any(case.presolved.row_of_point >= case.presolved.reduced.n_groups):
        parts.append("points of weight 0 can be anywhere")
    parts.append(_room(case, level))
    return "; ".join(parts)


def _room(case: Case, level: Level) -> str:
    """What labellings may lose against the multipliers, in terms of the slack."""
    share = level.delta / case.cost if case.cost > 0.0 else math.inf
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


def _nothing(case: Case, reason: str) -> Certainty:
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
        method=BY_NOTHING,
        reason=reason,
    )


def _one_cluster(case: Case) -> Certainty:
    """There is one labelling; its centre is the mean."""
    problem, presolved = case.basis.problem, case.presolved
    reduced = presolved.reduced
    mean = np.average(reduced.points, axis=0, weights=reduced.weights)
    slack = mean_slack(reduced.points)
    region = CenterRegion(mean - slack, mean + slack, mean, math.inf)
    n = problem.n_points
    return Certainty(
        slack=case.slack,
        certain=np.ones(n, dtype=bool),
        possible=np.ones((n, 1), dtype=bool),
        center_boxes=stated_boxes(problem, presolved, (region,)),
        agreement=1.0,
        most_elsewhere=0,
        confusable=(),
        families=((0,),),
        prices=np.zeros((n, 1)),
        method=ONE_CLUSTER,
        reason="all there is to know",
    )
