"""The verifier: decides whether the claims of a certificate about these points are true.

This module holds the argument. `check_arithmetic` has sums with a proven error, `check_domains` the
map from the rows to a domain of the tree, the package `leaves` the proof of each kind of leaf, and
`check_pricing` the subdivision of space. Only the standard library, numpy and the file format are
imported, and nothing in the file is trusted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from certikmeans.certificate import format as form
from certikmeans.certificate.check_arithmetic import Floats, Ints, add_up, scatter
from certikmeans.certificate.check_certainty import check_certainty
from certikmeans.certificate.check_claims import (
    check_all_labels,
    check_pairs,
    compare_constraints,
    compare_pairs_and_weights,
    describe_constraints,
)
from certikmeans.certificate.check_constraints import penalty_above, validate_constraints
from certikmeans.certificate.check_domains import (
    BranchingPath,
    Domain,
    LeafContext,
    OriginalProblem,
    WorkBudget,
    aggregate_domain,
)
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.format import Certificate, Reason, Rejection
from certikmeans.certificate.leaves import KINDS

# Ranges assumed by the rounding analysis; see docs/certificate-format.md.
MAX_COORDINATE, MIN_SPREAD = 1e60, 1e-60
MIN_WEIGHT, MAX_WEIGHT = 1e-12, 1e12
MAX_MULTIPLIER = 1e145
MAX_TREE_DEPTH = 10_000
# Splits on the paths to all leaves: a base, and more per node.
PATH_SPLITS, PATH_SPLITS_PER_NODE = 10_000_000, 200


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a check. If ``accepted``, in exact arithmetic and for the points given:

    the labels satisfy every pair of the certificate, they cost at most ``cost``, and every
    labelling that satisfies all pairs costs at least ``lower_bound``; or, where both are
    infinite, no labelling satisfies all pairs. With ``details["certainty"]``, the claims about
    every labelling within the slack hold as well. In a condition, a verdict is ``accepted``.

    Attributes
    ----------
    accepted : bool
        Whether the claim is proven for the points given.
    reason : Reason
        Why it was rejected, as a code.
    message : str
        Why it was rejected, as a sentence.
    cost, lower_bound : float or None
        Values claimed by the certificate; None if it could not be read.
    details : dict
        Sizes, and the amount of work of the check.
    """

    accepted: bool
    reason: Reason
    message: str
    cost: float | None = None
    lower_bound: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.accepted

    def _repr_html_(self) -> str:
        rows = [
            ("verdict", "accepted" if self.accepted else f"rejected: {self.reason}"),
            ("message", self.message),
            ("claimed cost", str(self.cost)),
            ("claimed lower bound", str(self.lower_bound)),
        ]
        cells = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f"<table>{cells}</table>"

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
    constraints: Mapping[str, ArrayLike] | None = None,
    limits: Limits | None = None,
) -> Verdict:
    """Accept or reject a certificate; any bytes are allowed, and none raise an exception.

    The parameters are those of `certikmeans.check_certificate`, which also reads files.
    """
    start_time = time.perf_counter()
    certificate: Certificate | None = None
    details: dict[str, Any] = {}
    try:
        with np.errstate(all="ignore"):  # comparisons below reject NaN
            table = np.asarray(points, dtype=np.float64)
            certificate = form.decode(content, table.shape)
            original = _original_problem(table, certificate)
            compare_pairs_and_weights(certificate, must_link, cannot_link, weights)
            compare_constraints(certificate, constraints)
            if n_clusters is not None and n_clusters != certificate.n_clusters:
                raise Rejection(
                    Reason.PROBLEM, f"the certificate is about {certificate.n_clusters} clusters"
                )
            check_all_labels(original, certificate)
            _check_cost(original, certificate)
            _check_bound(original, certificate, limits or Limits(), details)
            check_certainty(original, certificate, limits or Limits(), details)
        reason, message = Reason.ACCEPTED, "the claim is proven for these points"
    except Rejection as rejection:
        reason, message = rejection.reason, rejection.message
    except MemoryError:
        reason, message = Reason.LIMIT, "not enough memory to check this certificate"
    details["seconds"] = time.perf_counter() - start_time
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
    if certificate.constraints is not None:
        details["constraints"] = describe_constraints(certificate.constraints)
    return Verdict(
        accepted=reason is Reason.ACCEPTED,
        reason=reason,
        message=message,
        cost=certificate.cost,
        lower_bound=certificate.lower_bound,
        details=details,
    )


def _original_problem(points: Floats, certificate: Certificate) -> OriginalProblem:
    """Validate points, weights and pairs, and compare the hashes."""
    shape = (certificate.n_points, certificate.n_features)
    if points.ndim != 2 or 0 in points.shape:
        raise Rejection(Reason.DATA, "the data are not a table")
    if points.shape != shape:
        raise Rejection(Reason.DATA, f"the data have shape {points.shape}, not {shape}")
    if form.hash_points(points) != certificate.data_sha256:
        raise Rejection(Reason.DATA, "the data are not those of the certificate (SHA-256 differs)")
    if not np.all(np.abs(points) <= MAX_COORDINATE):
        raise Rejection(Reason.DATA, f"a value of the data is not within {MAX_COORDINATE:g}")
    if 0.0 < float(np.ptp(points, axis=0).max()) < MIN_SPREAD:
        raise Rejection(Reason.DATA, "the points differ too little for this arithmetic")
    weights = np.ones(len(points)) if certificate.weights is None else certificate.weights
    in_range = (weights >= MIN_WEIGHT) & (weights <= MAX_WEIGHT)
    if not (np.all(in_range | (weights == 0.0)) and np.any(in_range)):
        raise Rejection(Reason.FIELD, "a weight is out of range")
    if not 1 <= certificate.n_clusters <= len(points):
        raise Rejection(Reason.FIELD, f"{certificate.n_clusters} clusters of {len(points)} points")
    if len(points) * certificate.n_clusters > form.MAX_POINT_CLUSTER_PAIRS:
        raise Rejection(Reason.LIMIT, "points times clusters exceeds the limit of the verifier")
    for pairs in (certificate.must_link, certificate.cannot_link):
        check_pairs(pairs, len(points))
    if form.hash_pairs(certificate.must_link, certificate.cannot_link) != certificate.pairs_sha256:
        raise Rejection(Reason.PAIRS, "the pairs are not those that were hashed")
    stated = certificate.constraints
    if stated is not None:
        validate_constraints(stated, len(points), certificate.n_clusters)
        if not np.all(in_range):
            raise Rejection(Reason.FIELD, "weights of 0 are not allowed with these constraints")
        if stated.sha256() != certificate.constraints_sha256:
            raise Rejection(Reason.PAIRS, "the constraints are not those that were hashed")
    center, axes = certificate.center, certificate.axes
    if axes.shape[1] == 0 or not np.all(np.abs(axes) <= 2.0):
        raise Rejection(Reason.FIELD, "the axes are not a matrix of numbers up to 2")
    if not np.all(np.abs(center) <= MAX_COORDINATE):
        raise Rejection(Reason.FIELD, "the centre is out of range")
    return OriginalProblem(
        points, weights, certificate.n_clusters,
        certificate.must_link, certificate.cannot_link, center, axes, stated,
    )  # fmt: skip


def _check_cost(original: OriginalProblem, certificate: Certificate) -> None:
    if certificate.labels is None:
        return
    if certificate.lower_bound > certificate.cost:
        raise Rejection(Reason.BOUND, "the lower bound is above the cost")
    cost_bounds = scatter(
        original.points, original.weights, certificate.labels, original.n_clusters
    )
    cost = cost_bounds.above
    if original.constraints is not None:
        cost = add_up(cost, penalty_above(original.constraints, certificate.labels))
    if not cost <= certificate.cost:
        raise Rejection(
            Reason.COST, f"the labels cost up to {cost!r}, the claim is {certificate.cost!r}"
        )


def _check_bound(
    original: OriginalProblem, certificate: Certificate, limits: Limits, details: dict[str, Any]
) -> None:
    """Check that the leaves cover all labellings and that no leaf holds one below the bound.

    A labelling descends the tree: at a pair split to one side, at a center split to a side that
    holds the mean of that cluster, clusters being numbered by the first coordinate of their means.
    The two sides cover all cases, so it arrives at a leaf.
    """
    if not np.all(np.abs(certificate.multipliers) <= MAX_MULTIPLIER):
        raise Rejection(Reason.FIELD, "a multiplier is not a number of reasonable size")
    limits = limits.for_size(certificate.n_points + len(certificate.multipliers))
    ends = np.cumsum(certificate.lengths)
    root = aggregate_domain(original, BranchingPath.root(), certificate.lower_bound)
    checker = LeafChecker(original, root, certificate.labels, certificate.lower_bound, limits)
    leaves = 0
    for node, path in _leaves(certificate, root.points.shape[1]):
        code = int(certificate.kinds[node])
        row = int(certificate.first[node])
        if not -1 <= row < len(ends):
            raise Rejection(Reason.TREE, f"node {node} refers to multipliers that do not exist")
        multipliers = None
        if row >= 0:
            multipliers = certificate.multipliers[ends[row] - certificate.lengths[row] : ends[row]]
        try:
            checker.check(code, path, row, multipliers)
        except Rejection as rejection:
            message = f"node {node}, {KINDS[code].NAME}: {rejection.message}"
            raise Rejection(rejection.reason, message) from rejection
        except (ArithmeticError, ValueError) as error:  # `math.fsum` raises on overflow
            message = f"node {node}, {KINDS[code].NAME}: numbers too large for this arithmetic"
            raise Rejection(Reason.BOUND, message) from error
        leaves += 1
    details |= {"leaves": leaves, "groups": root.n_groups, "boxes": checker.boxes}


def _leaves(certificate: Certificate, n_dims: int) -> Iterator[tuple[int, BranchingPath]]:
    """Traverse the tree in preorder; yield the leaves, each with its branching path.

    A path is valid until the next one is requested. The splits on all paths together are limited:
    in a tree that is a chain their number grows with the square of its size.
    """
    kinds = certificate.kinds
    if not np.all(np.isin(kinds, [form.CENTER_SPLIT, form.PAIR_SPLIT, *KINDS])):
        raise Rejection(Reason.TREE, "a node has an unknown kind")
    if np.any(kinds == form.CENTER_SPLIT) and np.any(kinds == form.PAIR_SPLIT):
        raise Rejection(Reason.TREE, "a tree splits centres or pairs, not both")
    path = BranchingPath.allocate(min(MAX_TREE_DEPTH, len(kinds)))
    left = PATH_SPLITS + PATH_SPLITS_PER_NODE * len(kinds)
    pending = [(0, -1, 0)]  # depth, node that was split, side
    for node, kind in enumerate(kinds.tolist()):
        if not pending:
            raise Rejection(Reason.TREE, f"the tree is complete before node {node}")
        depth, parent, side = pending.pop()
        if parent >= 0:
            path.set_split(
                depth - 1,
                kinds[parent] == form.PAIR_SPLIT,
                certificate.first[parent],
                certificate.second[parent],
                certificate.values[parent],
                side,
            )
        if kind in KINDS:
            left -= depth
            if left < 0:
                raise Rejection(Reason.LIMIT, "the tree is too deep for its number of nodes")
            yield node, path.head(depth)
            continue
        if depth >= MAX_TREE_DEPTH:
            raise Rejection(Reason.LIMIT, f"the tree is deeper than {MAX_TREE_DEPTH}")
        a, b = int(certificate.first[node]), int(certificate.second[node])
        value = float(certificate.values[node])
        if kind == form.PAIR_SPLIT:
            valid = 0 <= a < certificate.n_points and 0 <= b < certificate.n_points and a != b
        else:
            valid = 0 <= a < certificate.n_clusters and 0 <= b < n_dims and np.isfinite(value)
        if not valid:
            raise Rejection(
                Reason.TREE, f"node {node} splits a cluster, axis or point that does not exist"
            )
        pending += [(depth + 1, node, 1), (depth + 1, node, 0)]
    if pending:
        raise Rejection(Reason.TREE, f"{len(pending)} nodes of the tree are missing")


@final
class LeafChecker:
    """Checks leaves in sequence; counts the work of all of them."""

    def __init__(
        self,
        original: OriginalProblem,
        root: Domain,
        labels: Ints | None,
        lower_bound: float,
        limits: Limits,
    ) -> None:
        self._original_problem, self._root = original, root
        self._labels, self._lower_bound = labels, lower_bound
        self._budget = WorkBudget(limits)

    @property
    def boxes(self) -> int:
        """Boxes evaluated so far."""
        return self._budget.boxes

    def check(self, code: int, path: BranchingPath, row_index: int, row: Floats | None) -> None:
        """Return if the leaf is proven, else raise `Rejection`; ``row`` has index ``row_index``."""
        if self._lower_bound <= 0.0:
            return  # no cost is negative
        self._budget.limits.check_deadline()
        domain = self._root
        if path.is_pair.any():
            original = self._original_problem
            pairs = len(original.must_link) + len(original.cannot_link) + len(path.is_pair)
            self._budget.add_domain(len(original.points) + pairs)
            domain = aggregate_domain(self._original_problem, path, self._lower_bound)
        if domain.infeasible or domain.required_bound <= 0.0:
            return  # no labelling, or the cost within groups suffices
        low, high = path.boxes(self._original_problem.n_clusters, domain.points.shape[1])
        # Means lie in the box of the points; an empty cluster may have any center of another one.
        floor, ceiling = domain.points.min(axis=0), domain.points.max(axis=0)
        cut_low, cut_high = low > floor, high < ceiling
        low, high = np.maximum(low, floor), np.minimum(high, ceiling)
        if np.any(low > high):
            return  # no centres, so no labelling
        KINDS[code].check(
            LeafContext(
                self._original_problem,
                self._root,
                domain,
                self._labels,
                self._lower_bound,
                low,
                high,
                cut_low,
                cut_high,
                row_index,
                row,
                self._budget,
            )
        )
