"""Leaf without evidence: proves only the bound 0."""

from __future__ import annotations

from certikmeans.certificate.check_domains import LeafContext
from certikmeans.certificate.format import Reason, Rejection

NAME = "trivial"
CODE = 6


def check(ctx: LeafContext) -> None:
    """Reject: claims that need no evidence are accepted before this is called."""
    raise Rejection(Reason.BOUND, "a bound above 0 needs evidence")
