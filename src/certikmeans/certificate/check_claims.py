"""Pairs, labels and constraints of a certificate: whether they are valid, and those expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certikmeans.certificate.check_arithmetic import Floats, Ints
from certikmeans.certificate.check_constraints import check_labels
from certikmeans.certificate.check_domains import OriginalProblem
from certikmeans.certificate.format import (
    Certificate,
    Reason,
    Rejection,
    StatedConstraints,
    hash_constraints,
)


def check_pairs(pairs: Ints, n_points: int) -> None:
    first, second = pairs.T
    if not np.all((first >= 0) & (first < second) & (second < n_points)):
        raise Rejection(Reason.PAIRS, "a pair does not name two points in ascending order")
    if not np.all(np.diff(first * n_points + second) > 0):
        raise Rejection(Reason.PAIRS, "the pairs are not sorted and distinct")


def compare_pairs_and_weights(
    certificate: Certificate,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
    weights: ArrayLike | None,
) -> None:
    """Compare with the pairs and weights given by the caller."""
    for name, given, own in (
        ("must-links", must_link, certificate.must_link),
        ("cannot-links", cannot_link, certificate.cannot_link),
    ):
        if given is None:
            continue
        pairs = np.sort(np.asarray(given, dtype=np.int64).reshape(-1, 2), axis=1)
        if not np.array_equal(np.unique(pairs, axis=0).reshape(-1, 2), own):
            raise Rejection(Reason.PAIRS, f"the certificate is about other {name}")
    if weights is not None:
        own_weights = certificate.weights
        if own_weights is None:
            own_weights = np.ones(certificate.n_points)
        if not np.array_equal(np.asarray(weights, dtype=np.float64), own_weights):
            raise Rejection(Reason.PROBLEM, "the certificate is about other weights")


def compare_constraints(certificate: Certificate, expected: Mapping[str, ArrayLike] | None) -> None:
    """Compare with the constraints beside hard pairs that are given by the caller."""
    if expected is None:
        return
    arrays = {name: np.asarray(array) for name, array in expected.items()}
    stated = certificate.constraints
    if hash_constraints(arrays) != ("" if stated is None else stated.sha256()):
        raise Rejection(Reason.PROBLEM, "the certificate is about other sets, sizes or soft pairs")


def describe_constraints(stated: StatedConstraints) -> dict[str, Any]:
    """Describe the constraints in numbers."""
    columns = [column[column >= 0] for column in stated.set_columns]
    found: dict[str, Any] = {
        "sets": sum(int(np.sum(np.bincount(column) > 1)) for column in columns),
        "soft_must_links": len(stated.must_penalties),
        "soft_cannot_links": len(stated.cannot_penalties),
        "demands": stated.demand is not None,
    }
    for name, limits in (("size_min", stated.size_min), ("size_max", stated.size_max)):
        if limits is not None:
            found[name] = _limit_or_list(limits)
    return found


def _limit_or_list(limits: Floats) -> float | list[float]:
    """Return the limit of all clusters, or a list with one per cluster."""
    return float(limits[0]) if np.all(limits == limits[0]) else limits.tolist()


def check_all_labels(original: OriginalProblem, certificate: Certificate) -> None:
    labels = certificate.labels
    if labels is None:
        return
    if not np.all((labels >= 0) & (labels < original.n_clusters)):
        raise Rejection(Reason.LABELS, "a label is not the number of a cluster")
    must, cannot = labels[original.must_link], labels[original.cannot_link]
    if np.any(must[:, 0] != must[:, 1]):
        row = original.must_link[must[:, 0] != must[:, 1]][0]
        raise Rejection(Reason.LABELS, f"points {row[0]} and {row[1]} violate a must-link")
    if np.any(cannot[:, 0] == cannot[:, 1]):
        row = original.cannot_link[cannot[:, 0] == cannot[:, 1]][0]
        raise Rejection(Reason.LABELS, f"points {row[0]} and {row[1]} violate a cannot-link")
    if original.constraints is not None:
        check_labels(original.constraints, labels, original.n_clusters)
