"""The semidefinite bound: multipliers for pairs of groups, and for cuts."""

from __future__ import annotations

from certikmeans.certificate.check_cases import LeafCase, require
from certikmeans.certificate.check_matrix import least_by_matrix

NAME = "sdp"
CODE = 7


def check(case: LeafCase) -> None:
    """What holds for all labellings holds for those of the part: boxes are not looked at."""
    part, work, row = case.part, case.work, case.evidence()
    value = work.known.get(case.number) if part is case.whole else None
    if value is None:
        work.add_matrix(part.n_groups)
        value = least_by_matrix(part.points, part.weights, part.edges, case.stated.n_clusters, row)
        if part is case.whole:
            work.known[case.number] = value
    require(value, part)
