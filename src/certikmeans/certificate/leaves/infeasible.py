"""A part without any labelling: its cannot-links need more colours than there are."""

from __future__ import annotations

from certikmeans.certificate.check_cases import LeafCase
from certikmeans.certificate.check_colouring import cannot_be_coloured
from certikmeans.certificate.format import Reason, Refusal

NAME = "infeasible"
CODE = 5


def check(case: LeafCase) -> None:
    """Find out by searching for a colouring."""
    part = case.part
    if not cannot_be_coloured(part.n_groups, part.edges, case.stated.n_clusters):
        raise Refusal(Reason.BOUND, "it is not shown that the part is empty")
