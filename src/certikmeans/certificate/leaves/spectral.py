"""Spectral bound: a few eigenvalues, with or without multipliers of few columns."""

from __future__ import annotations

import numpy as np

from certikmeans.certificate.check_domains import LeafContext, require_bound
from certikmeans.certificate.check_spectral import spectral_lower_bound

NAME = "spectral"
CODE = 8


def check(ctx: LeafContext) -> None:
    """Check the evidence at the root: its bound holds for every domain."""
    root_domain, cached_bounds = ctx.root_domain, ctx.budget.cached_bounds
    if ctx.row_index not in cached_bounds:
        row = np.empty(0) if ctx.row is None else ctx.row
        cached_bounds[ctx.row_index] = spectral_lower_bound(
            root_domain.points,
            root_domain.weights,
            root_domain.edges,
            ctx.original.n_clusters,
            row,
            ctx.budget.limits.deadline,
        )
    require_bound(cached_bounds[ctx.row_index], root_domain)
