"""A leaf without evidence: nothing but 0 follows from it."""

from __future__ import annotations

from certikmeans.certificate.check_domains import LeafContext
from certikmeans.certificate.format import Reason, Rejection

NAME = "trivial"
CODE = 6


def check(ctx: LeafContext) -> None:
    """Claims that need no evidence have been accepted before."""
    raise Rejection(Reason.BOUND, "a bound above 0 needs evidence")
