"""From a finished run to what is certain: multipliers, regions, families, statements."""

from __future__ import annotations

import dataclasses
import math
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.assignment import assigner_for
from certikmeans.bounds.base import Root, Setting
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.pricing_error import mean_slack
from certikmeans.certainty.basis import Basis
from certikmeans.certainty.claim import claim_of
from certikmeans.certainty.counting import Family, families_of
from certikmeans.certainty.level import Level, level_of, most_reduced_cost
from certikmeans.certainty.overlap import most_points_elsewhere, spectral_overlap
from certikmeans.certainty.places import stated_boxes
from certikmeans.certainty.ranges import worth_of
from certikmeans.certainty.regions import CenterRegion, Enclosure, enclose
from certikmeans.certainty.report import (
    BY_NOTHING,
    BY_OVERLAP,
    BY_REGIONS,
    ONE_CLUSTER,
    Certainty,
    confusable_pairs,
)
from certikmeans.certainty.statements import (
    Statements,
    family_worth,
    most_elsewhere,
    who_can_be_where,
)
from certikmeans.news import Unheard
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import AbstractEvidence, GroupMultipliers
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]

# Multipliers are raised until what is left to gain is this share of the slack.
AIM = 0.1
LEAST_AIM = 1e-5  # of the cost
LEAST_SECONDS = 8.0  # whatever the proof took: nobody minds, and half an answer is none
# Of the time that the proof took: after this much multipliers are raised no further, after this
# much regions are given up, and so much is there to count overlaps where they were.
TIME_SHARE, UNTIL_REGIONS, TIME_OF_OVERLAP = 0.4, 0.75, 0.25
# Beyond so many axes exact pricing is hopeless without multipliers to begin with.
MOST_AXES = 8


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A labelling, and the problem it is about in both forms."""

    basis: Basis
    presolved: Presolved
    labels: Labels  # of the points
    groups: Labels  # of the groups
    cost: float
    slack: float

    @property
    def seconds(self) -> float:
        """How long it may take: as long as the proof."""
        return max(LEAST_SECONDS, self.basis.seconds)

    def evidence(self) -> tuple[tuple[AbstractEvidence, float], ...]:
        """What the run has left behind and what it proves, if groups are numbered as they were."""
        known = self.basis.first_points
        same = known is not None and np.array_equal(known, self.presolved.first_points)
        basis = self.basis
        return tuple(zip(basis.evidence, basis.values, strict=True)) if same else ()


def find_certainty(
    basis: Basis, labels: Labels, cost: float, slack: float, stop: StopSignal | None = None
) -> Certainty:
    """Say what is true of every labelling that costs at most ``(1 + slack) cost``."""
    if stop is None:
        stop = StopSignal()
    presolved = presolve(basis.problem, stop, feasibility_seconds=0.0)
    if isinstance(presolved, InfeasibilityProof):  # there are labels: it cannot be
        raise AssertionError("a problem with a labelling was called infeasible")
    case = _Case(basis, presolved, labels, presolved.reduce_labels(labels), cost, slack)
    if basis.problem.n_clusters == 1:
        return _one_cluster(case)
    with ThreadPoolExecutor(basis.n_threads, "certikmeans") as pool:
        threads = pool if basis.n_threads > 1 else None
        with threadpool_limits(limits=1):
            return _from_multipliers(case, threads, stop)


def _from_multipliers(case: _Case, threads: Executor | None, stop: StopSignal) -> Certainty:
    presolved = case.presolved
    reduced = presolved.reduced
    most = most_reduced_cost(presolved, case.cost, case.slack)
    limited = stop.within(UNTIL_REGIONS * case.seconds)
    found = _multipliers(case, most, threads, stop)
    if found is None:
        reason = "what was proven of the cost does not say where centres and points can be"
        return _from_overlap(case, most, reason, stop)
    level = level_of(reduced, found[0], found[1], most)
    sums, masses = reduced.cluster_sums(case.groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        centers = sums / masses[:, None]  # NaN: empty
    pricer = Pricer(reduced, threads)
    enclosure: Enclosure = enclose(pricer, level, centers[masses > 0.0], limited)
    if enclosure.failure is not None:
        return _from_overlap(case, most, f"{enclosure.failure}; {_room(case, level)}", stop)
    regions = enclosure.regions
    worth = worth_of(reduced, level.multipliers, regions)
    families = families_of(level, worth, regions, centers, mean_slack(reduced.points))
    if families is None:
        return _nothing(case, "regions are too close to tell them apart in floating point")
    held = family_worth(worth, families)
    statements = who_can_be_where(reduced, held, families, level.delta)
    return _told(case, level, regions, families, statements)


def _from_overlap(case: _Case, most: float, reason: str, stop: StopSignal) -> Certainty:
    """What can be said without regions: how many points can be elsewhere."""
    reduced, rows = case.presolved.reduced, case.presolved.row_of_point
    limited = stop.within(TIME_OF_OVERLAP * case.seconds)
    eta = spectral_overlap(reduced, case.groups, most, limited)
    kept = rows < reduced.n_groups
    sizes = np.bincount(rows[kept], minlength=reduced.n_groups)
    elsewhere = most_points_elsewhere(reduced, case.groups, sizes, eta)
    nothing = _nothing(case, reason)
    if elsewhere is None:
        return nothing
    n = len(rows)
    elsewhere = min(n, elsewhere + int(n - kept.sum()))
    possible = nothing.possible.copy()
    if elsewhere == int(n - kept.sum()):
        possible[kept] = np.arange(nothing.possible.shape[1]) == case.labels[kept, None]
    certain = possible.sum(axis=1) == 1
    return dataclasses.replace(
        nothing,
        certain=certain,
        possible=possible,
        agreement=_share(elsewhere, n),
        most_elsewhere=elsewhere,
        confusable=confusable_pairs(possible),
        method=BY_OVERLAP,
        reason="all there is to know"
        if certain.all()
        else f"{reason}; this many points can be elsewhere, and it is not known which",
    )


def _multipliers(
    case: _Case, most: float, threads: Executor | None, stop: StopSignal
) -> tuple[NDArray[np.float64], float] | None:
    """Good multipliers and their value: those of the run, raised; None: nothing was proven."""
    reduced, basis = case.presolved.reduced, case.basis
    given, before = next(
        ((one, value) for one, value in case.evidence() if isinstance(one, GroupMultipliers)),
        (None, 0.0),
    )
    if given is None and reduced.n_axes > MOST_AXES:
        return None
    bound = ClusterBound()
    aim = max(AIM * case.slack, LEAST_AIM)
    setting = Setting(
        reduced,
        assigner_for(reduced, case.groups),
        gap=aim,
        seed=basis.seed,
        multipliers=None if given is None else given.values,
        familiar=given is not None,
    )
    goal = max(0.0, most_reduced_cost(case.presolved, case.cost, 0.0) - aim * case.cost)
    limited = stop.within(TIME_SHARE * case.seconds)
    root = Root(_Known(case.groups), threads, in_a_hurry=given is None)
    whole = Subproblem.root(reduced)
    found = bound.evaluate(bound.prepare(setting), whole, goal, limited, None, root)
    if given is not None and before > max(found.value, 0.0):
        return given.values, before  # there was no time to raise them; regions prove it again
    evidence = found.leaf.evidence
    if not isinstance(evidence, GroupMultipliers) or not 0.0 < found.value < math.inf:
        return None
    return evidence.values, found.value


class _Known(Unheard):
    """News of a labelling that stays the best."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def labels(self) -> Labels:
        """Return the labelling."""
        return self._labels


def _told(
    case: _Case,
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
    possible[kept] = statements.possible[rows[kept]][:, family_of]
    prices[kept] = statements.price[rows[kept]][:, family_of]
    prices[~possible] = np.inf
    certain = possible.sum(axis=1) == 1
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
        if len(places) == 0:  # they are empty
            places = _data_box(problem)[None]
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
        claim_of=partial(claim_of, presolved, case.slack, level, regions, families),
    )


def _share(elsewhere: int, n_points: int) -> float:
    """Share of the points that are not elsewhere, rounded down."""
    share = (n_points - elsewhere) / n_points
    return share if elsewhere == 0 else math.nextafter(share, 0.0)


def _why(
    case: _Case, level: Level, families: tuple[Family, ...], certain: NDArray[np.bool_]
) -> str:
    """Say why it is no more."""
    if certain.all():
        return "all there is to know"
    parts = []
    merged = [family for family in families if len(family.clusters) > 1]
    if merged:
        names = ", ".join(" and ".join(map(str, family.clusters)) for family in merged)
        parts.append(f"clusters {names} cannot be told apart")
    if not all(family.filled for family in families):
        parts.append("a cluster may be empty")
    if np.any(case.presolved.row_of_point >= case.presolved.reduced.n_groups):
        parts.append("points of weight 0 can be anywhere")
    parts.append(_room(case, level))
    return "; ".join(parts)


def _room(case: _Case, level: Level) -> str:
    """What labellings may lose against the multipliers, in terms of the slack."""
    share = level.delta / case.cost if case.cost > 0.0 else math.inf
    if share > 1.5 * case.slack:
        return (
            f"the slack is {100.0 * case.slack:.3g} %, but with what is not proven of the cost "
            f"labellings may differ by {100.0 * share:.3g} % of it: a smaller gap says more"
        )
    return f"points may be elsewhere for {100.0 * share:.3g} % of the cost"


def _data_box(problem: Problem) -> NDArray[np.float64]:
    """Where all means are."""
    held = problem.points[problem.weights > 0.0]
    return np.stack([held.min(axis=0), held.max(axis=0)], axis=1)


def _nothing(case: _Case, reason: str) -> Certainty:
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


def _one_cluster(case: _Case) -> Certainty:
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
