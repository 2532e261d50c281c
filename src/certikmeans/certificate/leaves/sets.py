"""Bound by matchings of cannot-link sets: disjoint sets, and multipliers of all matchings."""

from __future__ import annotations

from certikmeans.certificate.check_domains import LeafContext, require_bound
from certikmeans.certificate.check_sets import set_lower_bound

NAME = "sets"
CODE = 11


def check(ctx: LeafContext) -> None:
    """Check the evidence at the root: its bound holds for every domain."""
    root_domain, cached_bounds = ctx.root_domain, ctx.budget.cached_bounds
    if ctx.row_index not in cached_bounds:
        cached_bounds[ctx.row_index] = set_lower_bound(
            root_domain.points,
            root_domain.weights,
            root_domain.edges,
            ctx.original.n_clusters,
            ctx.evidence(),
            root_domain.constraints,
        )
    require_bound(cached_bounds[ctx.row_index], root_domain)
