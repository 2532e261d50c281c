"""The cluster bound: one Lagrangian subproblem in R^d for every symmetry class of clusters.

    z  >=  L(lam) = sum_s lam_s - sum_k sigma_k(lam)

for any multipliers ``lam``: relaxing "every group is in exactly one cluster" splits the
problem by cluster, and ``sigma_k(lam)`` bounds the value of a column for cluster k from above. At
the root all K clusters are interchangeable, so that one subproblem suffices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.bounds.cluster.cut_model import Cuts, SparseRows
from certikmeans.bounds.cluster.driver import (
    DEFAULT_PARAMS,
    BundleSettings,
    ClusterParams,
    PricingMeter,
    relaxed_bound,
    solve_at_root,
    solve_in_node,
)
from certikmeans.bounds.cluster.dual_box import DualBoxParams, cells_of
from certikmeans.bounds.cluster.initial_point import (
    ClusterWarmStart,
    InitialPoint,
    column_of,
    node_initial_point,
    root_initial_point,
)
from certikmeans.bounds.cluster.priced import FoundSet, uses_prices
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.pricing_error import pricing_error
from certikmeans.bounds.cluster.size_cuts import supports_size_cuts
from certikmeans.bounds.cluster.step_rule import LogSumExpModel
from certikmeans.bounds.sample import cost_about_single_center
from certikmeans.kernels.pricing.ascent import ascend
from certikmeans.kernels.pricing.priced_ascent import ascend_priced
from certikmeans.kernels.pricing.priced_search import search_priced_boxes
from certikmeans.kernels.pricing.search import search_boxes
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import GroupMultipliers, LeafProof
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterModel:
    """Pricing, and settings that all calls share."""

    pricer: Pricer
    assigner: AbstractAssigner  # finds labels to build the multipliers' box around
    gap: float
    seed: int
    keep_proof: bool = False  # without size cuts, which the verifier does not know


@final
class ClusterBound(LowerBound[ClusterModel]):
    """``sum lam - sum_k sigma_k(lam)``, where the centre of cluster k lies in box k.

    Valid for any multipliers: the cost of a labelling in the domain is ``sum lam`` minus the values
    of its clusters. The value of cluster k, whose mean lies in box k, is at most ``sigma_k``, the
    largest value of any set allowed there about any centre in the box.

    At the root the multipliers are optimised in a box around the incumbent. Where they cannot reach
    the gap, the incumbent is not optimal or the relaxation has a gap: the columns found are
    recombined to a better labelling, once, before the bound is raised as far as the relaxation
    allows.

    Parameters
    ----------
    params : ClusterParams
        Settings.

    Examples
    --------
    >>> from certikmeans.assignment import make_assigner
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.stop import StopSignal
    >>> done = presolve(Problem.from_data([[0.0], [1.0], [8.0], [9.0]], 2), StopSignal())
    >>> bound = ClusterBound()
    >>> assigner = make_assigner(done.reduced, done.feasible_labels)
    >>> model = bound.setup(BoundInput(done.reduced, assigner))
    >>> found = bound.compute(model, Domain.root(done.reduced), 0.999, BoundContext())
    >>> 0.999 <= found.value <= 1.0
    True
    """

    name: ClassVar[str] = "cluster"
    has_fractional_solution: ClassVar[bool] = True

    def __init__(self, params: ClusterParams = DEFAULT_PARAMS) -> None:
        self._params = params

    def min_rounding_loss(self, problem: ReducedProblem) -> float:
        """Return the rounding error of pricing, times the number of clusters."""
        zeros = np.zeros(problem.n_groups)
        return problem.n_clusters * pricing_error(problem.points, problem.weights, zeros)

    def kernels(self) -> Sequence[Any]:
        """Return the kernels of heuristic and of exact pricing."""
        return ascend, search_boxes

    def kernels_for(self, problem: ReducedProblem) -> Sequence[Any]:
        """Return the kernels with prices where constraints are priced."""
        if uses_prices(problem.label_constraints):
            return ascend_priced, search_priced_boxes
        return self.kernels()

    def rehearse(self, inputs: BoundInput) -> None:
        """Compile the kernels of shared variables, of the smoothed model, and of prices."""
        rehearse_prices(inputs.problem)
        rehearse(inputs.problem)

    def setup(self, inputs: BoundInput) -> ClusterModel:
        """Prepare pricing."""
        return ClusterModel(
            Pricer(inputs.problem), inputs.assigner, inputs.gap, inputs.seed, inputs.keep_proof
        )

    def compute(
        self,
        model: ClusterModel,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: ClusterWarmStart | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        reduced = model.pricer.reduced
        if reduced.n_clusters == 1:
            value = cost_about_single_center(reduced.points, reduced.weights)
            return BoundResult(value, LeafProof("one cluster"))
        if ctx.at_root:
            return self._compute_at_root(model, domain, cutoff, ctx, warm_start)
        start = node_initial_point(
            reduced, model.assigner, domain, (cutoff, model.gap), ctx.stop, warm_start
        )
        if start.cost <= self.min_rounding_loss(reduced):  # as many clusters as groups: cost 0
            return _trivial_result(reduced, start)
        settings = BundleSettings(
            model.gap,
            model.seed,
            target_reachable=False,
            params=self._params,
            size_cuts=supports_size_cuts(reduced) and not model.keep_proof,
        )
        return solve_in_node(model.pricer, domain, start, settings, ctx.stop)

    def _compute_at_root(
        self,
        model: ClusterModel,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: ClusterWarmStart | None,
    ) -> BoundResult:
        reduced = model.pricer.reduced
        settings = BundleSettings(
            model.gap,
            model.seed,
            warm_start is not None and warm_start.proven,
            cutoff=cutoff,
            params=self._params,
            size_cuts=supports_size_cuts(reduced) and not model.keep_proof,
        )
        start = root_initial_point(reduced, ctx.incumbent.labels(), model.gap, cutoff)
        start = start.with_warm_start(warm_start)
        # The cost inside the groups is enough.
        if start.target.bound <= 0.0:
            return _trivial_result(reduced, start)
        progress = None if warm_start is None else warm_start.progress
        # There is no time left, and building a dual box takes seconds.
        if ctx.stop.reason() is not None and progress is None:
            return replace(_trivial_result(reduced, start), finished=False)
        with one_blas_thread():
            meter = PricingMeter(ctx)
            pricer = Pricer(reduced, ctx.pool.executor, meter)
            relaxed = None
            if pricer.constraints is not None and warm_start is None:
                relaxed = relaxed_bound(reduced, settings, meter)
            return solve_at_root(pricer, domain, start, settings, meter, progress, relaxed)

    def warm_start_from_multipliers(self, multipliers: Vector) -> ClusterWarmStart:
        """Return a warm start without columns."""
        return ClusterWarmStart(multipliers, (), np.empty((0, 0)))

    def node_warm_start(self, warm_start: ClusterWarmStart | None) -> ClusterWarmStart | None:
        """Multipliers and columns, without the state of the bundle."""
        return None if warm_start is None else replace(warm_start, progress=None)

    def map_warm_start(
        self,
        warm_start: ClusterWarmStart,
        before: ReducedProblem,
        after: ReducedProblem,
        joined: NDArray[np.int64],
        centers: NDArray[np.float64],
    ) -> ClusterWarmStart:
        """Map a warm start to a problem in which some groups have been merged.

        The value of a merged group at every centre is the sum of those of its groups if their
        multipliers are added and the sum of squares inside the merged group is subtracted.
        Columns that contain some but not all groups of a merged one, or two groups with a
        cannot-link, are dropped.
        """
        inside = before.weights * np.einsum("ij,ij->i", before.points, before.points)
        within = np.bincount(joined, inside, after.n_groups).astype(np.float64)
        within -= after.weights * np.einsum("ij,ij->i", after.points, after.points)
        lam = GroupMultipliers(warm_start.multipliers).joined(joined, after.n_groups, within)
        sizes = np.bincount(joined, minlength=after.n_groups)
        tails, heads = after.graph.edges().T
        columns = []
        for column in warm_start.columns:
            held = np.bincount(joined, column.members, after.n_groups)
            members = held > 0
            whole = bool((held[members] == sizes[members]).all())
            if whole and members.any() and not (members[tails] & members[heads]).any():
                columns.append(column_of(after, members))
        return ClusterWarmStart(lam.values, tuple(columns), centers, warm_start.column_centers)


def _trivial_result(reduced: ReducedProblem, start: InitialPoint) -> BoundResult:
    """Return the bound 0, which needs no computation: no cost is negative."""
    warm_start = ClusterWarmStart(np.zeros(reduced.n_groups), (), start.centers)
    return BoundResult(0.0, LeafProof("trivial"), warm_start)


def rehearse_prices(problem: ReducedProblem) -> None:
    """Call the kernels of pricing with prices, to compile them."""
    pricer = Pricer(problem, priced=True)
    lam = np.ones(problem.n_groups)
    found = FoundSet(0.0, problem.points[0].copy(), np.ones(problem.n_groups, dtype=np.uint8))
    pricer.price_exact(lam, 0.0, StopSignal(), tolerance=1.0)
    pricer.columns_of_sets(lam, [(0, found)], [pricer.full_region])


def rehearse(problem: ReducedProblem) -> None:
    """Call the kernels that only many groups or many cuts need, to compile them."""
    together = np.zeros(problem.n_groups, dtype=np.int64)
    for n_cells in (1, problem.n_groups):  # by a sample of the groups, and by all
        cells_of(problem.points, together, DualBoxParams(n_cells=n_cells))
    cuts = Cuts(
        SparseRows.of(np.array([[1.0, 0.0]])), np.zeros(1), np.zeros(1, dtype=np.int64),
        np.ones(1), np.ones(2), 0.0, np.ones(2),
    )  # fmt: skip
    LogSumExpModel(cuts, 1.0).value(np.zeros(2))
