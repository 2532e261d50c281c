"""Domain without a labelling: its cannot-link graph is not colorable."""

from __future__ import annotations

from certikmeans.certificate.check_coloring import is_uncolorable
from certikmeans.certificate.check_domains import LeafContext
from certikmeans.certificate.format import Reason, Rejection

NAME = "infeasible"
CODE = 5


def check(ctx: LeafContext) -> None:
    """Search for a coloring."""
    domain = ctx.domain
    if not is_uncolorable(domain.n_groups, domain.edges, ctx.original.n_clusters):
        raise Rejection(Reason.BOUND, "it is not proven that the domain is empty")
