"""Partition bound: parts whose weights add up to at most those of the root."""

from __future__ import annotations

from certikmeans.certificate.check_domains import LeafContext, require_bound
from certikmeans.certificate.check_sdp import partition_lower_bound

NAME = "partition"
CODE = 9


def check(ctx: LeafContext) -> None:
    """Check the evidence at the root: its bound holds for every domain."""
    root_domain, cached_bounds = ctx.root_domain, ctx.budget.cached_bounds
    if ctx.row_index not in cached_bounds:
        cached_bounds[ctx.row_index] = partition_lower_bound(
            root_domain.points,
            root_domain.weights,
            root_domain.edges,
            ctx.original.n_clusters,
            ctx.evidence(),
            ctx.budget.limits.matrix_work,
            ctx.budget.limits.deadline,
        )
    require_bound(cached_bounds[ctx.row_index], root_domain)
