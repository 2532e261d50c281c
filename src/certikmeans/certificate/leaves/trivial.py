"""A leaf without evidence: nothing but 0 follows from it."""

from __future__ import annotations

from certikmeans.certificate.check_cases import LeafCase
from certikmeans.certificate.format import Reason, Refusal

NAME = "trivial"
CODE = 6


def check(case: LeafCase) -> None:
    """Claims that need no evidence have been accepted before."""
    raise Refusal(Reason.BOUND, "a bound above 0 needs evidence")
