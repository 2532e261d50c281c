"""The cluster bound of a part: a box for every centre, a start from a larger part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import AbstractBound, BoundResult, Mixture
from certikmeans.bounds.cluster.bound import column_of
from certikmeans.bounds.cluster.bundle import Aim, LevelBundle
from certikmeans.bounds.cluster.families import Family, families_of
from certikmeans.bounds.cluster.multipliers import multiplier_space
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.one_centre import cost_about_one_centre
from certikmeans.bounds.sample import least_costs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal

MOST_ROUNDS = 60
LLOYD_STEPS = 12
# How far beyond the cutoff the cuts are asked to be, in units of the gap asked for.
BEYOND = 0.75
# Columns handed on to the parts of a part: the heaviest ones.
KEPT_COLUMNS = 40
LEAST_WEIGHT = 1e-6

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterRestart:
    """What a smaller part starts from."""

    multipliers: Vector  # (n_groups,)
    columns: tuple[Column, ...]
    centers: NDArray[np.float64]  # (n_clusters, n_axes)


@final
class ClusterBound(AbstractBound[Pricer, Subproblem]):
    """``sum lam - sum_k sigma_k(lam)``, cluster k worth what it can be with its centre in its box.

    Valid for any multipliers: a labelling in the part pays ``sum lam`` minus what its clusters are
    worth, and cluster k, whose mean lies in box k, is worth at most ``sigma_k``, the most that any
    set allowed there is worth about any centre in the box.

    Parameters
    ----------
    assigner : Assigner
        Of the same problem: finds labels to build the multipliers' box around.
    gap : float
        The relative gap asked for: sets the steps of the bundle.
    executor : concurrent.futures.Executor, optional
        For pricing boxes.
    """

    name: ClassVar[str] = "cluster"

    def __init__(
        self, assigner: Assigner, gap: float, executor: Executor | None = None, seed: int = 0
    ) -> None:
        self._assigner = assigner
        self._gap = gap
        self._executor = executor
        self._seed = seed

    def prepare(self, problem: ReducedProblem) -> Pricer:
        """Prepare pricing."""
        return Pricer(problem, self._executor)

    def evaluate(
        self,
        state: Pricer,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""
        reduced = state.reduced
        if reduced.n_clusters == 1:
            value = cost_about_one_centre(reduced.points, reduced.weights)
            return BoundResult(value, {"bound": "one cluster"})
        before: ClusterRestart | None = restart
        guess = _spread(reduced, part) if before is None else before.centers
        labels, centers = _settle(reduced, self._assigner, part, guess, stop)
        cost = float(_cost_about(reduced, labels, centers))
        if not np.isfinite(cutoff):
            cutoff = cost
        families = families_of(reduced, part)
        known = () if before is None else before.columns
        space = multiplier_space(
            reduced, labels, centers, None if before is None else before.multipliers
        )
        incumbent = [column_of(reduced, labels == k) for k in np.unique(labels)]
        unit = max(self._gap * (cutoff + reduced.offset), 1e-12 * max(cutoff, cost), 1e-300)
        aim = Aim(goal=cutoff, level=cutoff + BEYOND * unit, unit=unit)
        bundle = LevelBundle(state, space, families, incumbent, self._seed, columns=known)
        bundle.run(aim, stop, most_rounds=MOST_ROUNDS)
        mixture = mixture_of(
            bundle.model.columns,
            bundle.model.weights,
            lambda i: families[bundle.model.family_of(i)].clusters,
        )
        kept = heaviest_columns(bundle.model.columns, bundle.model.weights)
        lam = bundle.proven_lam
        return BoundResult(
            value=max(0.0, bundle.proven),
            evidence={"bound": self.name, "multipliers": lam},
            restart=ClusterRestart(lam, kept, centers),
            centers=(centers, *_rounded(mixture, families, centers)),
            mixture=mixture,
        )


def _spread(reduced: ReducedProblem, part: Subproblem) -> NDArray[np.float64]:
    """Centres far apart, each inside its box: for a start from nothing."""
    centers = 0.5 * (part.lower + part.upper)
    nearest = np.full(reduced.n_groups, np.inf)
    for k in range(reduced.n_clusters):
        away = reduced.points - np.clip(reduced.points, part.lower[k], part.upper[k])
        outside = np.einsum("ij,ij->i", away, away)
        score = reduced.weights * (np.minimum(nearest, 1e300) - outside)
        chosen = np.clip(reduced.points[int(np.argmax(score))], part.lower[k], part.upper[k])
        centers[k] = chosen
        away = reduced.points - chosen
        nearest = np.minimum(nearest, np.einsum("ij,ij->i", away, away))
    return centers


def _settle(
    reduced: ReducedProblem,
    assigner: Assigner,
    part: Subproblem,
    centers: NDArray[np.float64],
    stop: StopSignal,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Lloyd with the centres kept in their boxes: a good labelling of the part, or nearly."""
    centers = np.clip(centers, part.lower, part.upper)
    labels = np.full(reduced.n_groups, -1, dtype=np.int64)
    for _ in range(LLOYD_STEPS):
        if part.viable is None:
            step = assigner.step(centers, labels, stop=stop)
            masses, sums, changed = step.masses, step.sums, step.changed
        else:
            costs = least_costs(reduced, Subproblem(centers, centers))
            found = assigner.assign_costs(np.where(part.viable, costs, np.inf), stop=stop)
            changed = int(np.count_nonzero(found.labels != labels))
            labels = found.labels
            sums, masses = reduced.cluster_sums(labels)
        if changed == 0 or stop.cause() is not None:
            break
        filled = masses > 0.0
        moved = centers.copy()
        moved[filled] = sums[filled] / masses[filled, None]
        centers = np.clip(moved, part.lower, part.upper)
    return labels, centers


def _cost_about(
    reduced: ReducedProblem, labels: NDArray[np.int64], centers: NDArray[np.float64]
) -> Any:
    away = reduced.points - centers[labels]
    return reduced.weights @ np.einsum("ij,ij->i", away, away)


def heaviest_columns(columns: Sequence[Column], weights: Vector) -> tuple[Column, ...]:
    """Columns to hand on."""
    order = np.argsort(-weights, kind="stable")[:KEPT_COLUMNS]
    return tuple(columns[int(i)] for i in order)


def mixture_of(
    columns: Sequence[Column], weights: Vector, clusters_of: Callable[[int], tuple[int, ...]]
) -> Mixture | None:
    """The relaxation's own solution: columns in proportion to the weights that cap the model."""
    chosen = np.flatnonzero(weights > LEAST_WEIGHT)
    if len(chosen) == 0:
        return None
    return Mixture(
        members=np.stack([columns[int(i)].members for i in chosen]),
        centers=np.stack([columns[int(i)].centre for i in chosen]),
        weights=weights[chosen],
        clusters=tuple(clusters_of(int(i)) for i in chosen),
    )


def _rounded(
    mixture: Mixture | None, families: Sequence[Family], centers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Centres of the heaviest columns of every family."""
    if mixture is None:
        return ()
    rounded = centers.copy()
    for family in families:
        mine = [i for i, clusters in enumerate(mixture.clusters) if clusters == family.clusters]
        mine.sort(key=lambda i: -mixture.weights[i])
        for k, i in zip(family.clusters, mine, strict=False):
            rounded[k] = mixture.centers[i]
    return (rounded,)


def translate_restart(
    restart: ClusterRestart,
    before: ReducedProblem,
    after: ReducedProblem,
    joined: NDArray[np.int64],
) -> ClusterRestart:
    """Carry a start over to a problem in which some groups have become one.

    Group ``s`` of the problem before is part of group ``joined[s]`` afterwards. A joined group is
    worth to every centre what its parts were worth together: their multipliers add up, less the
    sum of squares that it has inside. Columns that hold a part of a joined group without the
    rest, or two groups that are apart now, are left behind.
    """
    inside = before.weights * np.einsum("ij,ij->i", before.points, before.points)
    within = np.bincount(joined, inside, after.n_groups)
    within -= after.weights * np.einsum("ij,ij->i", after.points, after.points)
    lam: Vector = np.bincount(joined, restart.multipliers, after.n_groups).astype(np.float64)
    lam -= np.maximum(within, 0.0)
    sizes = np.bincount(joined, minlength=after.n_groups)
    tails, heads = after.graph.edges().T
    columns = []
    for column in restart.columns:
        held = np.bincount(joined, column.members, after.n_groups)
        members = held > 0
        whole = bool((held[members] == sizes[members]).all())
        if whole and members.any() and not (members[tails] & members[heads]).any():
            columns.append(column_of(after, members))
    return ClusterRestart(lam, tuple(columns), restart.centers)
