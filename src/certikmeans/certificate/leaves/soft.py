"""Bound for soft pairs: sizes of clusters, what proves them, and multipliers with these sizes."""

from __future__ import annotations

from certikmeans.certificate.check_domains import LeafContext, require_bound
from certikmeans.certificate.check_light_clusters import soft_lower_bound

NAME = "soft"
CODE = 10


def check(ctx: LeafContext) -> None:
    """Check the evidence at the root: its bound holds for every domain."""
    root_domain, budget = ctx.root_domain, ctx.budget
    if ctx.row_index not in budget.cached_bounds:
        for _ in range(2):
            budget.add_matrix(root_domain.n_groups)
        budget.cached_bounds[ctx.row_index] = soft_lower_bound(
            root_domain.points,
            root_domain.weights,
            root_domain.edges,
            ctx.original.n_clusters,
            ctx.evidence(),
            root_domain.constraints,
        )
    require_bound(budget.cached_bounds[ctx.row_index], root_domain)
