"""The partition bound: parts whose weights add up to at most those of the whole."""

from __future__ import annotations

from certikmeans.certificate.check_cases import LeafCase, require
from certikmeans.certificate.check_partition import least_by_partition

NAME = "partition"
CODE = 9


def check(case: LeafCase) -> None:
    """The evidence is about the whole; what holds for all labellings holds for those of a part."""
    whole, known = case.whole, case.work.known
    if case.number not in known:
        known[case.number] = least_by_partition(
            whole.points,
            whole.weights,
            whole.edges,
            case.stated.n_clusters,
            case.evidence(),
            case.work.limits.matrix_work,
            case.work.limits.deadline,
        )
    require(known[case.number], whole)
