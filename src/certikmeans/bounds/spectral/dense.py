"""The multipliers of the spectral bound one by one: where a larger method starts from."""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.sdp.multipliers import MatrixMultipliers
from certikmeans.bounds.spectral.evidence import SpectralEvidence
from certikmeans.bounds.spectral.gram import Frame, all_columns
from certikmeans.bounds.spectral.safe import middle_matrix, usable_evidence
from certikmeans.problem import ReducedProblem


def dense_multipliers(problem: ReducedProblem, evidence: SpectralEvidence) -> MatrixMultipliers:
    """The same for the semidefinite bound: an n x n matrix, so for a few thousand groups at most.

    ``Lambda`` belongs to M, that of the semidefinite bound to Z: ``L_st = v_s v_t Lambda_st``.
    """
    usable = usable_evidence(problem, evidence)
    none = MatrixMultipliers.none(problem.n_groups)
    if usable is None:
        return none
    frame = Frame.of(problem)
    gram, columns = all_columns(problem, frame, usable)
    d = gram.n_axes
    middle = middle_matrix(gram, frame, usable)[d:, d:]
    entries = columns @ middle @ columns.T
    roots = np.sqrt(problem.weights)
    entries *= np.ldexp(roots[:, None] * roots, 2 * frame.exponent)
    return MatrixMultipliers(0.5 * (entries + entries.T), none.cuts, none.amounts)
