"""The cluster bound: one Lagrangian subproblem in R^d for every family of alike clusters.

    z  >=  L(lam) = sum_s lam_s - sum_k sigma_k(lam)

for any multipliers ``lam``: relaxing "every group is in exactly one cluster" splits the
problem by cluster, and cluster k is worth at most ``sigma_k(lam)``. At the root all K clusters
look alike, and one subproblem does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.bounds.base import AbstractBound, BoundResult, Root, Setting
from certikmeans.bounds.cluster.columns import column_of
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.pricing_error import pricing_error
from certikmeans.bounds.cluster.raising import Manner, raise_at_the_root, raise_in_a_node
from certikmeans.bounds.cluster.starts import (
    ClusterRestart,
    Start,
    start_at_the_root,
    start_in_a_node,
)
from certikmeans.bounds.one_centre import cost_about_one_centre
from certikmeans.execution.blas import one_blas_thread
from certikmeans.kernels.pricing.ascent import ascend
from certikmeans.kernels.pricing.search import search_boxes
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import GroupMultipliers, Leaf
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterState:
    """What every evaluation shares."""

    pricer: Pricer
    assigner: AbstractAssigner  # finds labels to build the multipliers' box around
    gap: float
    seed: int
    multipliers: Vector | None = None  # of an earlier run
    familiar: bool = False  # it has proven something of this problem with them


@final
class ClusterBound(AbstractBound[ClusterState]):
    """``sum lam - sum_k sigma_k(lam)``, cluster k worth what it can be with its centre in its box.

    Valid for any multipliers: a labelling in the part pays ``sum lam`` minus what its clusters are
    worth, and cluster k, whose mean lies in box k, is worth at most ``sigma_k``, the most that any
    set allowed there is worth about any centre in the box.

    At the root the multipliers are sought around the best labelling known. Where they cannot reach
    the gap, that labelling is not optimal or the relaxation has a gap: the clusters found are
    handed back to be recombined, once, before the bound goes on to the best there is.

    Examples
    --------
    >>> from certikmeans.assignment import assigner_for
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> done = presolve(Problem.from_data([[0.0], [1.0], [8.0], [9.0]], 2), StopSignal())
    >>> bound = ClusterBound()
    >>> state = bound.prepare(Setting(done.reduced, assigner_for(done.reduced, done.witness)))
    >>> found = bound.evaluate(state, Subproblem.root(done.reduced), 0.999, StopSignal())
    >>> 0.999 <= found.value <= 1.0
    True
    """

    name: ClassVar[str] = "cluster"
    suggests_pairs: ClassVar[bool] = True

    def rounding(self, problem: ReducedProblem) -> float:
        """Return what pricing takes off, once per cluster."""
        nothing = np.zeros(problem.n_groups)
        return problem.n_clusters * pricing_error(problem.points, problem.weights, nothing)

    def kernels(self) -> Sequence[Any]:
        """Return the two that pricing consists of."""
        return ascend, search_boxes

    def rehearse(self, setting: Setting) -> None:
        """Share multipliers, and project on cuts as where there are hundreds."""
        from certikmeans.bounds.cluster.rehearsal import rehearse  # loads much

        rehearse(setting.problem)

    def prepare(self, setting: Setting) -> ClusterState:
        """Prepare pricing."""
        return ClusterState(
            Pricer(setting.problem),
            setting.assigner,
            setting.gap,
            setting.seed,
            setting.multipliers,
            setting.familiar,
        )

    def evaluate(
        self,
        state: ClusterState,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
        root: Root | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""
        reduced = state.pricer.reduced
        if reduced.n_clusters == 1:
            value = cost_about_one_centre(reduced.points, reduced.weights)
            return BoundResult(value, Leaf("one cluster"))
        if root is None:
            goal, manner = (cutoff, state.gap), Manner(state.gap, state.seed, hopeful=False)
            start = start_in_a_node(reduced, state.assigner, part, goal, stop, restart)
            if start.cost <= self.rounding(reduced):  # as many clusters as groups: it costs nothing
                return _nothing(reduced, start)
            return raise_in_a_node(state.pricer, part, start, manner, stop)
        start = start_at_the_root(reduced, root.news.labels(), state.gap, state.multipliers)
        start = start.after(restart)
        # What groups cost inside is enough; or there is no time, and a box takes seconds to build.
        if start.aim.goal <= 0.0 or stop.cause() is not None:
            return _nothing(reduced, start)
        manner = Manner(state.gap, state.seed, state.familiar)
        with one_blas_thread():
            pricer = Pricer(reduced, root.executor, root.on_work)
            return raise_at_the_root(pricer, part, start, manner, stop, root)

    def carried_over(
        self,
        restart: ClusterRestart,
        before: ReducedProblem,
        after: ReducedProblem,
        joined: NDArray[np.int64],
        centers: NDArray[np.float64],
    ) -> ClusterRestart:
        """Carry a start over to a problem in which some groups have become one.

        A joined group is worth to every centre what its parts were worth together: their
        multipliers add up, less the sum of squares that it has inside. Columns that hold a part
        of a joined group without the rest, or two groups that are apart now, are left behind.
        """
        inside = before.weights * np.einsum("ij,ij->i", before.points, before.points)
        within = np.bincount(joined, inside, after.n_groups).astype(np.float64)
        within -= after.weights * np.einsum("ij,ij->i", after.points, after.points)
        lam = GroupMultipliers(restart.multipliers).joined(joined, after.n_groups, within)
        sizes = np.bincount(joined, minlength=after.n_groups)
        tails, heads = after.graph.edges().T
        columns = []
        for column in restart.columns:
            held = np.bincount(joined, column.members, after.n_groups)
            members = held > 0
            whole = bool((held[members] == sizes[members]).all())
            if whole and members.any() and not (members[tails] & members[heads]).any():
                columns.append(column_of(after, members))
        return ClusterRestart(lam.values, tuple(columns), centers, restart.places)


def _nothing(reduced: ReducedProblem, start: Start) -> BoundResult:
    """No cost is negative: what is proven without a look."""
    nothing = ClusterRestart(np.zeros(reduced.n_groups), (), start.centers)
    return BoundResult(0.0, Leaf("trivial"), nothing)
