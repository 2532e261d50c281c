"""Semidefinite bound: multipliers for pairs of groups, and for cuts."""

from __future__ import annotations

from certikmeans.certificate.check_domains import LeafContext, require_bound
from certikmeans.certificate.check_sdp import sdp_lower_bound

NAME = "sdp"
CODE = 7


def check(ctx: LeafContext) -> None:
    """Check the bound for the groups of the domain; boxes of centers are not used."""
    domain, budget, row = ctx.domain, ctx.budget, ctx.evidence()
    value = budget.cached_bounds.get(ctx.row_index) if domain is ctx.root_domain else None
    if value is None:
        budget.add_matrix(domain.n_groups)
        value = sdp_lower_bound(
            domain.points,
            domain.weights,
            domain.edges,
            ctx.original.n_clusters,
            row,
            domain.constraints,
        )
        if domain is ctx.root_domain:
            budget.cached_bounds[ctx.row_index] = value
    require_bound(value, domain)
