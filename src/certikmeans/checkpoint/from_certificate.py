"""Resuming from a certificate, which is verified first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.certificate import Reason, check_certificate
from certikmeans.certificate import format as form
from certikmeans.certificate.leaves import KINDS
from certikmeans.checkpoint.file import BestKnown
from certikmeans.checkpoint.resume import ResumeState
from certikmeans.errors import InputError
from certikmeans.proof import AbstractEvidence, CenterSplit, LeafProof, PairSplit, Proof

if TYPE_CHECKING:
    from certikmeans.certificate.format import Certificate
    from certikmeans.options import Options
    from certikmeans.problem import Problem

SOURCE = "certificate"  # source of its bound, in results and events
OTHER_PROBLEM = (Reason.DATA, Reason.PROBLEM, Reason.PAIRS)


def from_certificate(
    content: bytes, path: str | os.PathLike[str], problem: Problem, options: Options
) -> ResumeState:
    """Verify a certificate and start from its labels and bound; the rest is computed again."""
    verdict = check_certificate(
        problem.points,
        content,
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
        weights=problem.weights,
        n_clusters=problem.n_clusters,
        constraints=problem.other_arrays(),
    )
    if verdict.reason in OTHER_PROBLEM:
        raise InputError(
            f"{path}: is a certificate of another problem: {verdict.message}",
            hint="resume with the same points, constraints, weights and number of clusters, in the "
            "same order",
        )
    if not verdict.accepted:
        raise InputError(
            f"{path}: is a certificate that was refused ({verdict.reason}: {verdict.message})",
            hint="certikmeans check says more; its labels may still serve as start labels",
        )
    found = form.decode(content, problem.points.shape)
    lower = 0.0 if found.labels is None else found.lower_bound
    essence = BestKnown(found.labels, 0, lower, SOURCE, len(found.kinds))
    proof = None if found.labels is None else _to_proof(found)
    return ResumeState(options, essence, None, "it is a certificate", proof)


def _to_proof(found: Certificate) -> Proof:
    return Proof(found.lower_bound, found.center, found.axes, tuple(_tree_nodes(found)))


def _tree_nodes(found: Certificate) -> Iterator[CenterSplit | PairSplit | LeafProof]:
    ends = np.cumsum(found.lengths)
    columns = (found.kinds, found.first, found.second, found.values)
    for kind, first, second, value in zip(*(column.tolist() for column in columns), strict=True):
        if kind == form.CENTER_SPLIT:
            yield CenterSplit(first, second, value)
        elif kind == form.PAIR_SPLIT:
            yield PairSplit(first, second)
        else:
            row = None if first < 0 else found.multipliers[ends[first] - found.lengths[first] :]
            kept = None if row is None else VerbatimEvidence(row[: found.lengths[first]])
            yield LeafProof(KINDS[kind].NAME, kept)


@final
@dataclass(frozen=True, slots=True, eq=False)
class VerbatimEvidence(AbstractEvidence):
    """Evidence in the array form of a certificate, not interpreted."""

    values: Floats

    def renumbered(self, order: Ints) -> VerbatimEvidence:
        """Return the evidence itself: it is in the order of certificates already."""
        return self

    def joined(self, group_of: Ints, n_groups: int, inside: Floats) -> VerbatimEvidence:
        """Never called: the evidence of a leaf is not moved to another domain."""
        raise AssertionError("evidence of a certificate belongs to its leaf")

    def row(self) -> Floats:
        """Return the numbers as they were read."""
        return self.values
