"""Going on from a certificate: it is checked first, then its labelling and its bound hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate import Reason, check_certificate
from certikmeans.certificate import format as form
from certikmeans.certificate.leaves import KINDS
from certikmeans.checkpoint.resuming import Essence, Resumed
from certikmeans.errors import InputError
from certikmeans.proof import AbstractEvidence, CenterSplit, Leaf, PairSplit, Proof

if TYPE_CHECKING:
    from certikmeans.certificate.format import Certificate
    from certikmeans.options import Options
    from certikmeans.problem import Problem

SOURCE = "certificate"  # who is credited with its bound
OTHER_PROBLEM = (Reason.DATA, Reason.PROBLEM, Reason.PAIRS)


def from_certificate(
    content: bytes, path: str | os.PathLike[str], problem: Problem, options: Options
) -> Resumed:
    """Check a certificate and take what it proves; whatever it lacks begins anew."""
    verdict = check_certificate(
        problem.points,
        content,
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
        weights=problem.weights,
        n_clusters=problem.n_clusters,
    )
    if verdict.reason in OTHER_PROBLEM:
        raise InputError(
            f"{path}: is a certificate of another problem: {verdict.message}",
            hint="resume with the same points, pairs, weights and number of clusters, in the same "
            "order",
        )
    if not verdict.accepted:
        raise InputError(
            f"{path}: is a certificate that was refused ({verdict.reason}: {verdict.message})",
            hint="certikmeans check says more; its labels may still serve as start labels",
        )
    found = form.decode(content, problem.points.shape)
    lower = 0.0 if found.labels is None else found.lower_bound
    essence = Essence(found.labels, 0, lower, SOURCE, len(found.kinds))
    proof = None if found.labels is None else _proof_of(found)
    return Resumed(options, essence, None, "it is a certificate", proof)


def _proof_of(found: Certificate) -> Proof:
    return Proof(found.lower_bound, found.centre, found.axes, tuple(_nodes_of(found)))


def _nodes_of(found: Certificate) -> Iterator[CenterSplit | PairSplit | Leaf]:
    ends = np.cumsum(found.lengths)
    columns = (found.kinds, found.first, found.second, found.values)
    for kind, first, second, value in zip(*(column.tolist() for column in columns), strict=True):
        if kind == form.CENTER_SPLIT:
            yield CenterSplit(first, second, value)
        elif kind == form.PAIR_SPLIT:
            yield PairSplit(first, second)
        else:
            row = None if first < 0 else found.multipliers[ends[first] - found.lengths[first] :]
            kept = None if row is None else CheckedRow(row[: found.lengths[first]])
            yield Leaf(KINDS[kind].NAME, kept)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CheckedRow(AbstractEvidence):
    """Evidence as a certificate holds it, whatever it means to its checker."""

    values: NDArray[np.float64]

    def renumbered(self, order: NDArray[np.int64]) -> CheckedRow:
        """It is in the order of certificates already."""
        return self

    def joined(
        self, group_of: NDArray[np.int64], n_groups: int, inside: NDArray[np.float64]
    ) -> CheckedRow:
        """Never asked for: it stays with the part that it was written for."""
        raise AssertionError("evidence of a certificate stays where it was")

    def row(self) -> NDArray[np.float64]:
        """Return the numbers as they were read."""
        return self.values
