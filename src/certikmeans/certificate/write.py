"""Writing the certificate of a finished solve."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certikmeans._atomic import write_atomically
from certikmeans._version import __version__
from certikmeans.certificate import format as form
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.check_arithmetic import add_up, scatter
from certikmeans.certificate.check_constraints import penalty_above
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.format import CertaintyClaim, Certificate, StatedConstraints
from certikmeans.certificate.leaves import CODES
from certikmeans.errors import CertificateWarning, InputError, warn_caller
from certikmeans.proof import CenterSplit, LeafProof, PairSplit, Proof

if TYPE_CHECKING:
    from certikmeans.certainty import Certainty
    from certikmeans.problem import Problem
    from certikmeans.result import Result

# Solver and verifier round differently. The claims are weaker than what the solver proved by this
# fraction of the cost, far below any usual gap.
COST_MARGIN = 1e-13
MIN_POSITIVE_COST = 1e-199  # unless it is 0
BOUND_MARGIN = 1e-9
# Rounding is proportional to the scatter of the data, which can be far larger than the cost.
SCATTER_MARGIN = 256 * 2.0**-52
# The verifier is run on the content before it is written where that takes little time.
_SELF_CHECK_SECONDS = 2.0
_SELF_CHECK_MAX_SIZE = 10_000_000
_MARGIN_FACTOR = 16.0
_SILENT_LOSS = 1e-4  # of the cost: more leads to a warning
# Where the verifier needs too many boxes, the claim is lowered by these fractions of the cost.
_LOWERED_FRACTIONS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_LOWERED_CHECK_SECONDS = 20.0


def write_certificate(
    path: str | os.PathLike[str],
    problem: Problem,
    result: Result,
    *,
    certainty: Certainty | None = None,
) -> None:
    """Write the claims of ``result`` about ``problem``, and their proof, to a file.

    Parameters
    ----------
    path : path-like
        Replaced atomically: a reader sees the old file or the complete new one.
    problem : Problem
        The problem that was solved.
    result : Result
        Of ``solve(problem, keep_proof=True)``.
    certainty : Certainty, optional
        Of ``result.certainty(slack)``; its claims are written and checked as well.

    Raises
    ------
    InputError
        If the result has no proof, or one that cannot be written.
    """
    content = certificate_bytes(problem, result, certainty)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise InputError(
            f"{path}: could not be written ({error.strerror or error})",
            hint="choose a place where files can be created",
        ) from error


def certificate_bytes(
    problem: Problem, result: Result, certainty: Certainty | None = None
) -> bytes:
    """Return the content of the file, which the verifier accepts within its limits.

    Where points differ by a few units in the last place, or a proof has numbers of very different
    sizes, the rounding of the verifier may exceed the margins here: then a weaker bound is claimed,
    or an `InputError` is raised for certainty claims. Where the verifier needs more boxes than it
    allows itself, a weaker bound is claimed with a `CertificateWarning`.
    """
    try:
        certificate = make_certificate(problem, result, certainty)
        deadline = time.monotonic() + _SELF_CHECK_SECONDS
        margin = _claim_margin(problem, result)
        reason = _self_check(problem, certificate, deadline)
        if math.isinf(certificate.lower_bound) and reason is form.Reason.BOUND:
            raise InputError(
                "the verifier cannot show by itself that these constraints are infeasible",
                hint="print the proof of the solver, Result.infeasibility, instead",
            )
        proven = certificate.lower_bound
        while certificate.lower_bound > 0.0 and reason is form.Reason.BOUND:
            margin *= _MARGIN_FACTOR
            certificate = _lowered(certificate, margin)
            reason = _self_check(problem, certificate, deadline)
        if proven - certificate.lower_bound > _SILENT_LOSS * certificate.cost:
            warn_caller(
                f"the certificate claims the lower bound {certificate.lower_bound:.6g} instead of "
                f"{proven:.6g}: the verifier cannot show more with this proof",
                CertificateWarning,
            )
        # More work than allowed, before the deadline: the claim is too close to the proven value.
        work_limit_reached = reason is form.Reason.LIMIT and time.monotonic() < deadline
        if work_limit_reached and certificate.certainty is not None:
            without_certainty = replace(certificate, certainty=None)
            if _self_check(problem, without_certainty, deadline) is form.Reason.ACCEPTED:
                reason, work_limit_reached = form.Reason.CERTAINTY, False
        if reason is form.Reason.CERTAINTY:
            raise InputError(
                "this certainty cannot be certified: it is lost to the rounding of the verifier",
                hint="omit it, or use another slack",
            )
        if work_limit_reached:
            certificate = _claim_less(problem, certificate)
        return form.encode(certificate)
    except form.Rejection as rejection:
        raise InputError(
            rejection.message, hint="use a larger gap or fewer nodes: every leaf needs memory"
        ) from rejection


def _claim_less(problem: Problem, certificate: Certificate) -> Certificate:
    """Lower the bound until the verifier accepts it within its limits; warn in any case."""
    deadline = time.monotonic() + _LOWERED_CHECK_SECONDS
    for fraction in _LOWERED_FRACTIONS:
        lowered = _lowered(certificate, fraction * certificate.cost)
        if _self_check(problem, lowered, deadline) is form.Reason.ACCEPTED:
            warn_caller(
                f"the certificate claims the lower bound {lowered.lower_bound:.6g} instead of "
                f"{certificate.lower_bound:.6g}: the verifier would reject more, because it would "
                "take more work than the verifier allows",
                CertificateWarning,
            )
            return lowered
        if time.monotonic() > deadline:
            break
    warn_caller(
        "the verifier rejects this certificate, because it takes more work than the verifier "
        "allows: solve with a larger gap, or check with larger certikmeans.certificate.Limits",
        CertificateWarning,
    )
    return certificate


def _lowered(certificate: Certificate, difference: float) -> Certificate:
    return replace(certificate, lower_bound=max(0.0, certificate.lower_bound - difference))


def _self_check(problem: Problem, certificate: Certificate, deadline: float) -> form.Reason:
    """Run the verifier, up to the deadline; return its reason."""
    if not problem.points.size * problem.n_clusters < _SELF_CHECK_MAX_SIZE:
        return form.Reason.ACCEPTED
    content = form.encode(certificate)
    verdict = check_certificate(problem.points, content, limits=Limits(deadline=deadline))
    return verdict.reason


def make_certificate(
    problem: Problem, result: Result, certainty: Certainty | None = None
) -> Certificate:
    """Return the certificate of a result."""
    proof = _proof_of(problem, result)
    infeasible = result.infeasibility is not None
    constraints = None
    if problem.has_other_kinds:
        constraints = StatedConstraints.of(problem.other_arrays(), problem.n_points)
    cost = math.inf if infeasible else _claimed_cost(problem, result, constraints)
    lower = math.inf if infeasible else max(0.0, proof.lower_bound - _claim_margin(problem, result))
    tree = _NodeArrays(proof)
    return Certificate(
        n_points=problem.n_points,
        n_features=problem.n_features,
        n_clusters=problem.n_clusters,
        cost=cost,
        lower_bound=lower,
        data_sha256=form.hash_points(problem.points),
        pairs_sha256=form.hash_pairs(problem.must_link, problem.cannot_link),
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
        weights=None if np.all(problem.weights == 1.0) else problem.weights,
        labels=None if infeasible else result.labels,
        center=np.asarray(proof.center, dtype=np.float64),
        axes=np.asarray(proof.axes, dtype=np.float64),
        kinds=np.array(tree.kinds, dtype=np.uint8),
        first=np.array(tree.first, dtype=np.int64),
        second=np.array(tree.second, dtype=np.int64),
        values=np.array(tree.values, dtype=np.float64),
        lengths=np.array([len(row) for row in tree.rows], dtype=np.int64),
        multipliers=np.concatenate([np.empty(0), *tree.rows]),
        writer=f"certikmeans {__version__}",
        certainty=None if certainty is None else _certainty_claim(proof, certainty),
        constraints=constraints,
        constraints_sha256="" if constraints is None else constraints.sha256(),
    )


def _proof_of(problem: Problem, result: Result) -> Proof:
    """Return the proof, or raise `InputError` if there is nothing that a certificate can hold."""
    proof = result.proof
    if proof is None and result.infeasibility is not None:
        proof = infeasible_proof(problem)
    if proof is None:
        raise InputError(
            "the result has no proof to write",
            hint="solve with keep_proof=True, and until a labelling is found",
        )
    if problem.n_points * problem.n_clusters > form.MAX_POINT_CLUSTER_PAIRS:
        raise InputError(
            f"{problem.n_points} points and {problem.n_clusters} clusters are too many for the "
            "verifier of certificates",
            hint=f"points times clusters may be at most {form.MAX_POINT_CLUSTER_PAIRS}",
        )
    if result.labels is None and result.infeasibility is None:
        raise InputError(
            "no labelling was found, so there is nothing to certify",
            hint="give the solver more time",
        )
    return proof


def _claimed_cost(problem: Problem, result: Result, constraints: StatedConstraints | None) -> float:
    """Cost to claim: not below the upper bound that the verifier computes."""
    assert result.labels is not None
    cost = result.cost * (1.0 + COST_MARGIN)
    if cost > 0.0:
        cost += MIN_POSITIVE_COST
    above = scatter(problem.points, problem.weights, result.labels, problem.n_clusters).above
    if constraints is not None:
        above = add_up(above, penalty_above(constraints, result.labels))
    return max(cost, above) if math.isfinite(above) else cost


def _certainty_claim(proof: Proof, certainty: Certainty) -> CertaintyClaim:
    """Translate certainty into claims of the file."""
    claim = certainty.claim
    if claim is None:
        why = "the verifier could not separate the clusters"
        if certainty.claim_of is None:
            why = f"certificates hold regions of centres, but its method is: {certainty.method}"
        raise InputError(
            f"this certainty cannot be certified: {why}",
            hint="omit it, or use a smaller slack",
        )
    if not (np.array_equal(claim.center, proof.center) and np.array_equal(claim.axes, proof.axes)):
        raise InputError(
            "certainty was derived in other coordinates than the proof",
            hint="compute both with the same number of threads of the linear algebra library",
        )
    return CertaintyClaim(
        slack=claim.slack,
        sigma=claim.sigma,
        multipliers=claim.multipliers,
        low=claim.low,
        high=claim.high,
        cluster=claim.cluster,
        certain=claim.certain.astype(np.int64),
    )


def infeasible_proof(problem: Problem) -> Proof:
    """Return the proof of infeasible pairs; the verifier searches for a coloring itself."""
    axes = np.eye(problem.n_features, 1)
    return Proof(math.inf, np.zeros(problem.n_features), axes, (LeafProof("infeasible"),))


def _claim_margin(problem: Problem, result: Result) -> float:
    """Difference between the bound that the solver proved and the bound that is claimed."""
    deviation = problem.points - np.average(problem.points, axis=0, weights=problem.weights)
    farthest = math.sqrt(float(np.sum(np.max(np.abs(deviation), axis=0) ** 2)))
    norms = np.sqrt(np.einsum("ij,ij->i", deviation, deviation))
    scatter = float(problem.weights @ (norms + farthest) ** 2)
    roundings = min(problem.n_points, 1_000) + problem.n_features + 16
    leaves = () if result.proof is None else result.proof.nodes
    evidence = [leaf.evidence for leaf in leaves if isinstance(leaf, LeafProof)]
    slack = max((one.slack for one in evidence if one is not None), default=0.0)
    return BOUND_MARGIN * result.cost + (SCATTER_MARGIN * roundings + slack) * scatter


class _NodeArrays:
    """The nodes as arrays; equal rows of multipliers are stored once."""

    def __init__(self, proof: Proof) -> None:
        self.kinds: list[int] = []
        self.first: list[int] = []
        self.second: list[int] = []
        self.values: list[float] = []
        self.rows: list[NDArray[np.float64]] = []
        self._row_of: dict[bytes, int] = {}
        for node in proof.nodes:
            match node:
                case CenterSplit(cluster, axis, value):
                    self._add(form.CENTER_SPLIT, cluster, axis, value)
                case PairSplit(first, second):
                    self._add(form.PAIR_SPLIT, first, second, 0.0)
                case LeafProof(kind, evidence):
                    row = None if evidence is None else evidence.row()
                    self._add(_leaf_code(kind), self._row(row), -1, 0.0)

    def _add(self, kind: int, first: int, second: int, value: float) -> None:
        self.kinds.append(kind)
        self.first.append(first)
        self.second.append(second)
        self.values.append(value)

    def _row(self, multipliers: NDArray[np.float64] | None) -> int:
        if multipliers is None:
            return -1
        row = np.ascontiguousarray(multipliers, dtype=np.float64)
        index = self._row_of.setdefault(row.tobytes(), len(self.rows))
        if index == len(self.rows):
            self.rows.append(row)
        return index


def _leaf_code(kind: str) -> int:
    if kind not in CODES:
        raise InputError(
            f"certificates cannot hold the evidence of the {kind} bound",
            hint="solve with --bound cluster (bound='cluster'), or without a certificate",
        )
    return CODES[kind]
