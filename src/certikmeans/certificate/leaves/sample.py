"""Sample bound: every group costs at least its distance to the box of its center."""

from __future__ import annotations

import math

from certikmeans.certificate.check_coloring import ColoringBounds, allowed_colors, box_costs
from certikmeans.certificate.check_domains import LeafContext, check_table_size, require_bound

NAME = "sample"
CODE = 3


def check(ctx: LeafContext) -> None:
    """Color every component at minimum cost."""
    domain = ctx.domain
    check_table_size(domain.n_groups, ctx.original.n_clusters, ctx.original.points)
    costs = box_costs(domain.points, domain.weights, ctx.low, ctx.high)
    value = ColoringBounds(costs, domain.edges).min_cost()
    if value < domain.required_bound < math.inf:
        allowed = allowed_colors(costs, domain.edges, domain.required_bound)
        costs[~allowed] = domain.required_bound
        value = max(value, ColoringBounds(costs, domain.edges).min_cost())
    require_bound(value, domain)
