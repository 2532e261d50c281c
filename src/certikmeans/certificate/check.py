"""The checker: is what a certificate claims about these points true?

Read this page first; it is the argument. `check_arithmetic` holds sums with a proven error,
`check_parts` the way from the rows to a part of the solution set, `check_leaves` what proves a
leaf, `check_pricing` the subdivision of space. Nothing is imported but the standard library,
numpy and the file format, and nothing in the file is trusted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from certikmeans.certificate import format as form
from certikmeans.certificate.check_arithmetic import Floats, Ints, scatter
from certikmeans.certificate.check_certain import check_certainty
from certikmeans.certificate.check_leaves import LeafChecker
from certikmeans.certificate.check_parts import Cuts, Stated, collapse
from certikmeans.certificate.check_pricing import Limits
from certikmeans.certificate.format import Certificate, Reason, Refusal
from certikmeans.certificate.leaves import KINDS

# The rounding analysis assumes these; see the document.
LARGEST_VALUE, SMALLEST_SPREAD = 1e60, 1e-60
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-12, 1e12
LARGEST_MULTIPLIER = 1e145
DEEPEST_TREE = 10_000


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. If ``accepted``, in exact arithmetic and for the points given:

    the labels respect every pair of the certificate, they cost at most ``cost``, and every
    labelling that respects all pairs costs at least ``lower_bound``; or, where both are
    infinite, no labelling respects all pairs. With ``details["certainty"]``, what the file says of
    every labelling within its slack is true as well.

    Attributes
    ----------
    accepted : bool
        Whether the claim is proven for the points given.
    reason : Reason
        Why not, as a word.
    message : str
        The same in a sentence.
    cost, lower_bound : float or None
        What the certificate claims; None if it could not be read.
    details : dict
        Sizes, and how much work the check was.
    """

    accepted: bool
    reason: Reason
    message: str
    cost: float | None = None
    lower_bound: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """Claimed ``(cost - lower_bound) / cost``."""
        if self.cost is None or self.lower_bound is None or np.isinf(self.cost):
            return None
        if self.lower_bound >= self.cost:
            return 0.0
        return (self.cost - self.lower_bound) / self.cost


def check_certificate(
    points: ArrayLike,
    content: bytes,
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    n_clusters: int | None = None,
    limits: Limits | None = None,
) -> Verdict:
    """Accept or refuse a certificate; any bytes are fine, and none make it raise.

    Parameters
    ----------
    points : array-like of shape (n_points, n_features)
        The rows, read from a source that is trusted.
    content : bytes
        The certificate.
    must_link, cannot_link, weights : array-like, optional
        If given, the certificate must be about exactly these (pairs in any order).
    n_clusters : int, optional
        Likewise.
    limits : Limits, optional
        How much work to do before refusing with `Reason.LIMIT`.
    """
    began = time.perf_counter()
    certificate: Certificate | None = None
    details: dict[str, Any] = {}
    try:
        with np.errstate(all="ignore"):  # comparisons below are written so that NaN refuses
            table = np.asarray(points, dtype=np.float64)
            certificate = form.decode(content, table.shape)
            stated = _stated(table, certificate)
            _compare(certificate, must_link, cannot_link, weights)
            if n_clusters is not None and n_clusters != certificate.n_clusters:
                raise Refusal(
                    Reason.PROBLEM, f"the certificate is about {certificate.n_clusters} clusters"
                )
            _check_labels(stated, certificate)
            _check_cost(stated, certificate)
            _check_bound(stated, certificate, limits or Limits(), details)
            check_certainty(stated, certificate, limits or Limits(), details)
        reason, message = Reason.ACCEPTED, "the claim is proven for these points"
    except Refusal as refusal:
        reason, message = refusal.reason, refusal.message
    except MemoryError:
        reason, message = Reason.LIMIT, "not enough memory to check this certificate"
    details["seconds"] = time.perf_counter() - began
    if certificate is None:
        return Verdict(False, reason, message, details=details)
    details |= {
        "n_points": certificate.n_points,
        "n_features": certificate.n_features,
        "n_clusters": certificate.n_clusters,
        "n_must_link": len(certificate.must_link),
        "n_cannot_link": len(certificate.cannot_link),
        "weighted": certificate.weights is not None,
    }
    return Verdict(
        accepted=reason is Reason.ACCEPTED,
        reason=reason,
        message=message,
        cost=certificate.cost,
        lower_bound=certificate.lower_bound,
        details=details,
    )


def _stated(points: Floats, certificate: Certificate) -> Stated:
    """Check the points, the weights and the pairs, and that the hashes are theirs."""
    shape = (certificate.n_points, certificate.n_features)
    if points.ndim != 2 or 0 in points.shape:
        raise Refusal(Reason.DATA, "the data are not a table")
    if points.shape != shape:
        raise Refusal(Reason.DATA, f"the data have shape {points.shape}, not {shape}")
    if form.hash_points(points) != certificate.data_sha256:
        raise Refusal(Reason.DATA, "the data are not those of the certificate (SHA-256 differs)")
    if not np.all(np.abs(points) <= LARGEST_VALUE):
        raise Refusal(Reason.DATA, f"a value of the data is not within {LARGEST_VALUE:g}")
    if 0.0 < float(np.ptp(points, axis=0).max()) < SMALLEST_SPREAD:
        raise Refusal(Reason.DATA, "the points differ too little for this arithmetic")
    weights = np.ones(len(points)) if certificate.weights is None else certificate.weights
    usual = (weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT)
    if not (np.all(usual | (weights == 0.0)) and np.any(usual)):
        raise Refusal(Reason.FIELD, "a weight is out of range")
    if not 1 <= certificate.n_clusters <= len(points):
        raise Refusal(Reason.FIELD, f"{certificate.n_clusters} clusters of {len(points)} points")
    if len(points) * certificate.n_clusters > form.MOST_CHOICES:
        raise Refusal(Reason.LIMIT, "too many choices of a point and a cluster for this checker")
    for pairs in (certificate.must_link, certificate.cannot_link):
        _check_pairs(pairs, len(points))
    if form.hash_pairs(certificate.must_link, certificate.cannot_link) != certificate.pairs_sha256:
        raise Refusal(Reason.PAIRS, "the pairs are not those that were hashed")
    centre, axes = certificate.centre, certificate.axes
    if axes.shape[1] == 0 or not np.all(np.abs(axes) <= 2.0):
        raise Refusal(Reason.FIELD, "the axes are not a matrix of numbers up to 2")
    if not np.all(np.abs(centre) <= LARGEST_VALUE):
        raise Refusal(Reason.FIELD, "the centre is out of range")
    return Stated(
        points, weights, certificate.n_clusters,
        certificate.must_link, certificate.cannot_link, centre, axes,
    )  # fmt: skip


def _check_pairs(pairs: Ints, n_points: int) -> None:
    first, second = pairs.T
    if not np.all((first >= 0) & (first < second) & (second < n_points)):
        raise Refusal(Reason.PAIRS, "a pair does not name two points in ascending order")
    if not np.all(np.diff(first * n_points + second) > 0):
        raise Refusal(Reason.PAIRS, "the pairs are not sorted and distinct")


def _compare(
    certificate: Certificate,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
    weights: ArrayLike | None,
) -> None:
    """Compare with what the caller knows the problem to be."""
    for name, given, own in (
        ("must-links", must_link, certificate.must_link),
        ("cannot-links", cannot_link, certificate.cannot_link),
    ):
        if given is None:
            continue
        pairs = np.sort(np.asarray(given, dtype=np.int64).reshape(-1, 2), axis=1)
        if not np.array_equal(np.unique(pairs, axis=0).reshape(-1, 2), own):
            raise Refusal(Reason.PAIRS, f"the certificate is about other {name}")
    if weights is not None:
        own_weights = certificate.weights
        if own_weights is None:
            own_weights = np.ones(certificate.n_points)
        if not np.array_equal(np.asarray(weights, dtype=np.float64), own_weights):
            raise Refusal(Reason.PROBLEM, "the certificate is about other weights")


def _check_labels(stated: Stated, certificate: Certificate) -> None:
    labels = certificate.labels
    if labels is None:
        return
    if not np.all((labels >= 0) & (labels < stated.n_clusters)):
        raise Refusal(Reason.LABELS, "a label is not the number of a cluster")
    must, cannot = labels[stated.must_link], labels[stated.cannot_link]
    if np.any(must[:, 0] != must[:, 1]):
        row = stated.must_link[must[:, 0] != must[:, 1]][0]
        raise Refusal(Reason.LABELS, f"points {row[0]} and {row[1]} must link but do not")
    if np.any(cannot[:, 0] == cannot[:, 1]):
        row = stated.cannot_link[cannot[:, 0] == cannot[:, 1]][0]
        raise Refusal(Reason.LABELS, f"points {row[0]} and {row[1]} cannot link but do")


def _check_cost(stated: Stated, certificate: Certificate) -> None:
    if certificate.labels is None:
        return
    if certificate.lower_bound > certificate.cost:
        raise Refusal(Reason.BOUND, "the lower bound is above the cost")
    spent = scatter(stated.points, stated.weights, certificate.labels, stated.n_clusters)
    if not spent.above <= certificate.cost:
        raise Refusal(
            Reason.COST, f"the labels cost up to {spent.above!r}, the claim is {certificate.cost!r}"
        )


def _check_bound(
    stated: Stated, certificate: Certificate, limits: Limits, details: dict[str, Any]
) -> None:
    """Every labelling is in some leaf of the tree, and no leaf holds a cheaper one.

    A labelling goes down the tree: at a pair to one side, at a centre to a side on which the
    mean of that cluster is, clusters being numbered by the first coordinate of their means.
    Both sides together hold everything, so it arrives at a leaf.
    """
    if not np.all(np.abs(certificate.multipliers) <= LARGEST_MULTIPLIER):
        raise Refusal(Reason.FIELD, "a multiplier is not a number of reasonable size")
    limits = limits.for_size(certificate.n_points + len(certificate.multipliers))
    ends = np.cumsum(certificate.lengths)
    root = collapse(stated, Cuts(), certificate.lower_bound)
    checker = LeafChecker(stated, root, certificate.labels, certificate.lower_bound, limits)
    leaves = 0
    for node, cuts in _leaves(certificate, root.points.shape[1]):
        code = int(certificate.kinds[node])
        row = int(certificate.first[node])
        if not -1 <= row < len(ends):
            raise Refusal(Reason.TREE, f"node {node} names multipliers that are not there")
        multipliers = None
        if row >= 0:
            multipliers = certificate.multipliers[ends[row] - certificate.lengths[row] : ends[row]]
        try:
            checker.check(code, cuts, row, multipliers)
        except Refusal as refusal:
            name = KINDS[code].NAME
            raise Refusal(refusal.reason, f"node {node}, {name}: {refusal.message}") from refusal
        except (ArithmeticError, ValueError) as error:  # `math.fsum` does not take what overflows
            message = f"node {node}, {KINDS[code].NAME}: numbers too large for this arithmetic"
            raise Refusal(Reason.BOUND, message) from error
        leaves += 1
    details |= {"leaves": leaves, "groups": root.n_groups, "boxes": checker.boxes}


def _leaves(certificate: Certificate, n_axes: int) -> Iterator[tuple[int, Cuts]]:
    """Walk the tree in preorder; yields the leaves, each with the cuts on its way."""
    kinds = certificate.kinds
    if not np.all(np.isin(kinds, [form.CENTER_SPLIT, form.PAIR_SPLIT, *KINDS])):
        raise Refusal(Reason.TREE, "a node is of no known kind")
    if np.any(kinds == form.CENTER_SPLIT) and np.any(kinds == form.PAIR_SPLIT):
        raise Refusal(Reason.TREE, "a tree divides centres or pairs, not both")
    waiting = [Cuts()]
    for node, kind in enumerate(kinds.tolist()):
        if not waiting:
            raise Refusal(Reason.TREE, f"the tree is complete before node {node}")
        cuts = waiting.pop()
        if kind in KINDS:
            yield node, cuts
            continue
        if cuts.depth >= DEEPEST_TREE:
            raise Refusal(Reason.LIMIT, f"the tree is deeper than {DEEPEST_TREE}")
        a, b = int(certificate.first[node]), int(certificate.second[node])
        value = float(certificate.values[node])
        if kind == form.PAIR_SPLIT:
            valid = 0 <= a < certificate.n_points and 0 <= b < certificate.n_points and a != b
        else:
            valid = 0 <= a < certificate.n_clusters and 0 <= b < n_axes and np.isfinite(value)
        if not valid:
            raise Refusal(Reason.TREE, f"node {node} divides what does not exist")
        paired = kind == form.PAIR_SPLIT
        waiting += [Cuts(cuts, paired, a, b, value, side) for side in (1, 0)]
    if waiting:
        raise Refusal(Reason.TREE, f"{len(waiting)} parts of the solution set have no leaf")
