"""The spectral bound: a few eigenvalues, with or without multipliers of few columns."""

from __future__ import annotations

import numpy as np

from certikmeans.certificate.check_cases import LeafCase, require
from certikmeans.certificate.check_spectral import least_by_spectrum

NAME = "spectral"
CODE = 8


def check(case: LeafCase) -> None:
    """The evidence is about the whole; what holds for all labellings holds for those of a part."""
    whole, known = case.whole, case.work.known
    if case.number not in known:
        row = np.empty(0) if case.row is None else case.row
        known[case.number] = least_by_spectrum(
            whole.points,
            whole.weights,
            whole.edges,
            case.stated.n_clusters,
            row,
            case.work.limits.deadline,
        )
    require(known[case.number], whole)
