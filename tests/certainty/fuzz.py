"""Fuzzing of certainty: random small instances, every method, all labellings.

`fuzz_instance(seed)` draws an instance, a method, a slack, sometimes a labelling that is not
optimal, wrong evidence or an early stop, and compares every claim with every labelling in exact
arithmetic; also the claims of certificates, and of certificates after a change. The tests run some
seeds; for more:

    python -m tests.certainty.fuzz --minutes 30 --first 0
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from unittest import mock

import numpy as np

from certikmeans import InputError, Problem, Result, check_certificate, solve
from certikmeans.certainty import Certainty, compute
from certikmeans.certainty.artifacts import BoundArtifact
from certikmeans.certainty.params import AggregationParams
from certikmeans.certificate import Reason
from certikmeans.certificate import format as form
from certikmeans.certificate.format import CertaintyClaim
from certikmeans.certificate.write import certificate_bytes
from certikmeans.presolve.pipeline import presolve
from certikmeans.proof import GroupMultipliers
from certikmeans.stop import StopCause, StopSignal
from certikmeans.testing.oracle import exact_cost, feasible_labellings
from tests.certainty.enumeration import (
    certainty_with_aggregation,
    check_all_claims,
    exact_mean,
    has_valid_relabelling,
    near_optimal_labellings,
    sorted_costs,
)

SLACKS = (0.0, 1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3, 1.0)
METHODS = ("cluster", "aggregation", "tree", "spectral", "sdp", "partition", "auto")
MAX_DRAWS = 50  # draws until the pairs are feasible


def random_problem(seed: int) -> Problem:
    """An instance with several feasible labellings."""
    for number in range(MAX_DRAWS):
        rng = np.random.default_rng([seed, number])
        problem = _problem(rng)
        if problem is not None and len(list(feasible_labellings(problem))) > 1:
            return problem
    raise AssertionError("nothing could be drawn")


def _problem(rng: np.random.Generator) -> Problem | None:
    # With more than five clusters, multipliers come from the smoothed dual ascent.
    k = int(rng.choice([2, 2, 2, 3, 3, 3, 4, 4, 6]))
    n = int(rng.integers(k + 1, 9))
    d = int(rng.choice([1, 1, 2, 2, 3, 5, 9]))
    points = _points(rng, n, d, k)
    weights = _weights(rng, n)
    must, cannot = _pairs(rng, n)
    try:
        problem = Problem.from_data(
            points * 10.0 ** rng.integers(-3, 4) + rng.choice([0.0, 0.0, 1e3, 1e7]),
            k,
            must_link=must,
            cannot_link=cannot,
            weights=weights,
        )
        presolve(problem, StopSignal())
    except InputError:  # a weightless point with a cannot-link
        return None
    return problem


def _points(rng: np.random.Generator, n: int, d: int, k: int) -> np.ndarray:
    match int(rng.integers(5)):
        case 0:  # ties
            points = rng.integers(0, 4, size=(n, d)).astype(float)
        case 1:  # no structure
            points = rng.normal(size=(n, d))
        case 2:  # on a line, at equal distances
            points = np.outer(np.arange(n), np.ones(d)) * 1.0
        case _:  # clumps, one point between them
            middles = rng.normal(size=(k, d)) * rng.uniform(1.0, 6.0)
            points = middles[np.arange(n) % k] + rng.normal(size=(n, d)) * rng.uniform(0.05, 1.0)
            points[-1] = points[:-1].mean(axis=0) if rng.random() < 0.4 else points[-1]
    if rng.random() < 0.3:
        points[rng.integers(n)] = points[rng.integers(n)]
    if rng.random() < 0.1:
        points[:, rng.integers(d)] = 1.0
    return points


def _weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    match int(rng.integers(5)):
        case 0:
            weights = rng.integers(1, 5, n).astype(float)
        case 1:
            weights = rng.uniform(0.1, 3.0, n)
        case 2:
            weights = 10.0 ** rng.uniform(-4, 4, n)
        case _:
            return None
    if rng.random() < 0.4:
        weights[rng.integers(n)] = 0.0
    return weights


def _pairs(rng: np.random.Generator, n: int) -> tuple[list, list]:
    must, cannot = [], []
    if rng.random() < 0.4:
        must = [tuple(rng.choice(n, 2, replace=False)) for _ in range(int(rng.integers(1, 3)))]
    some = rng.permutation(n)[: int(rng.integers(2, 5))]
    match int(rng.integers(6)):
        case 0:  # a path
            cannot = list(pairwise(some))
        case 1:  # a cycle
            cannot = list(zip(some, np.roll(some, 1), strict=True)) if len(some) > 2 else []
        case 2:  # a clique
            cannot = [(a, b) for i, a in enumerate(some) for b in some[:i]]
        case 3:
            cannot = [
                tuple(rng.choice(n, 2, replace=False)) for _ in range(int(rng.integers(1, 5)))
            ]
    return must, cannot


def _solved(problem: Problem, method: str, rng: np.random.Generator) -> Result:
    """Solve with one method, and with a gap that may be large."""
    gap = float(rng.choice([1e-6, 1e-3, 1e-3, 0.2]))
    options = {"gap": gap, "jobs": int(rng.choice([1, 2])), "keep_proof": True}
    match method:
        case "tree":
            return solve(problem, bound="sample", node_limit=int(rng.choice([1, 40])), **options)
        case "cluster" | "aggregation":
            return solve(problem, bound="cluster", **options)
        case "auto":
            return solve(problem, **options)
        case _:
            return solve(problem, bound=method, node_limit=5, **options)


def _perturb_result(result: Result, problem: Problem, rng: np.random.Generator) -> Result:
    """Sometimes another labelling than the optimum, or wrong or missing artifacts."""
    if rng.random() < 0.15:
        every = list(feasible_labellings(problem))
        labels = np.array(every[int(rng.integers(len(every)))])
        cost = exact_cost(problem.points, problem.weights, labels)
        above = float(cost)
        while Fraction(above) < cost:
            above = float(np.nextafter(above, np.inf))
        result = replace(result, labels=labels, cost=above)
    basis = result.basis
    assert basis is not None
    if rng.random() < 0.2:
        basis = replace(basis, presolved=None)
    if rng.random() < 0.2:
        basis = replace(
            basis,
            bound_artifacts=tuple(_perturb_artifact(one, rng) for one in basis.bound_artifacts),
        )
    return replace(result, basis=basis)


def _perturb_artifact(artifact: BoundArtifact, rng: np.random.Generator) -> BoundArtifact:
    """Other multipliers, with a wrong bound."""
    evidence = artifact.evidence
    if isinstance(evidence, GroupMultipliers):
        noise = rng.normal(size=len(evidence.values)) * np.abs(evidence.values).max()
        evidence = GroupMultipliers(evidence.values + noise)
    return replace(
        artifact,
        evidence=evidence,
        value=artifact.value * rng.choice([0.5, 1.0, 1.5]),
    )


def _slack(problem: Problem, result: Result, rng: np.random.Generator) -> float:
    """A usual slack, or one that just admits another labelling."""
    costs = sorted_costs(problem)
    if rng.random() < 0.5 or result.cost <= 0.0:
        return float(rng.choice(SLACKS))
    slack = costs[int(rng.integers(min(6, len(costs))))] / result.cost - 1.0
    return float(min(max(0.0, slack * (1.0 + rng.choice([-1e-12, 0.0, 1e-12]))), 1.0))


def _compute_certainty(
    result: Result, slack: float, method: str, rng: np.random.Generator
) -> Certainty:
    """Certainty, with one method where there is a choice."""
    with ExitStack() as changed:
        params = AggregationParams()
        if method == "aggregation":
            params = AggregationParams(min_groups=0, max_remaining_fraction=1.0)
        if method in ("spectral", "sdp", "partition") and rng.random() < 0.7:
            nothing = mock.patch.object(compute, "strengthened_multipliers", return_value=())
            changed.enter_context(nothing)
            if method != "spectral" and rng.random() < 0.5:
                no_overlap = mock.patch.object(compute, "spectral_overlap", return_value=np.inf)
                changed.enter_context(no_overlap)
        if rng.random() < 0.2:
            changed.enter_context(_stopped_after(int(rng.integers(60))))
        return certainty_with_aggregation(result, slack, params)


def _stopped_after(n_polls: int) -> AbstractContextManager[object]:
    """Stop signal that reports a stop after some polls."""
    left = iter(range(n_polls))

    def reason(signal: StopSignal) -> StopCause | None:
        return None if next(left, None) is not None else StopCause.TIME_LIMIT

    return mock.patch.object(StopSignal, "reason", reason)


def _check_prices(problem: Problem, certainty: Certainty, result: Result) -> None:
    """Check that no labelling with a point in a cluster costs less than its price."""
    most = Fraction(result.cost) * (1 + Fraction(certainty.slack))
    prices = np.where(np.isfinite(certainty.prices), certainty.prices, 0.0)
    for labels in near_optimal_labellings(problem, most):
        cost = exact_cost(problem.points, problem.weights, labels)

        def fits(cluster, number, labels=labels, cost=cost) -> bool:
            mine = prices[[i for i, label in enumerate(labels) if label == cluster], number]
            return Fraction(float(mine.max(initial=0.0))) <= cost

        assert has_valid_relabelling(problem.n_clusters, fits)


def _claim_holds(problem: Problem, labels, claim: CertaintyClaim, cost: float, axes) -> bool:
    """Whether the claim of a certificate holds for every labelling within the slack."""
    n, k = problem.n_points, problem.n_clusters
    certain = np.flatnonzero(claim.certain == 1)
    center, rotation = axes
    for other in near_optimal_labellings(problem, Fraction(cost) * (1 + Fraction(claim.slack))):
        means = [exact_mean(problem, [i for i in range(n) if other[i] == c]) for c in range(k)]
        if any(mean is None for mean in means):
            return False
        places = np.array(
            [[float(v - Fraction(float(o))) for v, o in zip(mean, center, strict=True)]
            for mean in means]
        ) @ rotation  # fmt: skip
        size = 1e-9 * (1.0 + float(np.abs(places).max()))

        def fits(cluster, number, other=other, places=places, size=size) -> bool:
            mine, place = claim.cluster == number, places[cluster]
            near = (claim.low[mine] - size <= place) & (place <= claim.high[mine] + size)
            kept = all(labels[i] == number for i in certain if other[i] == cluster)
            return kept and bool(near.all(axis=1).any())

        if not has_valid_relabelling(k, fits):
            return False
    return True


def _mutate_claim(claim: CertaintyClaim, rng: np.random.Generator) -> CertaintyClaim:
    """The claim with one change."""
    wide = claim.high - claim.low
    match int(rng.integers(8)):
        case 0:
            return replace(claim, certain=np.ones_like(claim.certain))
        case 1:
            return replace(claim, slack=claim.slack * 3.0 + 0.05)
        case 2:
            return replace(claim, low=claim.low + 0.3 * wide, high=claim.high - 0.3 * wide)
        case 3:
            away = rng.normal(size=claim.low.shape[1]) * np.abs(wide).max()
            return replace(claim, low=claim.low + away, high=claim.high + away)
        case 4:
            return replace(claim, cluster=np.roll(claim.cluster, 1))
        case 5:
            return replace(claim, sigma=claim.sigma * 0.8)
        case 6:
            noise = 1.0 + 0.3 * rng.normal(size=len(claim.multipliers))
            return replace(claim, multipliers=claim.multipliers * noise)
        case _:
            flipped = claim.certain.copy()
            flipped[rng.integers(len(flipped))] = 1
            return replace(claim, certain=flipped)


def _check_certificate(problem: Problem, result: Result, certainty: Certainty, rng) -> Counter[str]:
    """Certificates are accepted and true; changed ones are rejected, or true as well."""
    counts: Counter[str] = Counter()
    if certainty.claim is None or result.proof is None:
        return counts
    try:
        content = certificate_bytes(problem, result, certainty)
    except InputError as error:  # rounding leaves nothing to claim
        if "cannot be certified" not in str(error):
            raise
        counts["certificates not written"] += 1
        return counts
    certificate = form.decode(content)
    if certificate.certainty is None:
        return counts
    given = {
        "must_link": problem.must_link,
        "cannot_link": problem.cannot_link,
        "weights": problem.weights,
    }
    axes = certificate.center, certificate.axes
    verdict = check_certificate(problem.points, form.encode(certificate), **given)
    if verdict.reason is Reason.LIMIT:  # the self-check of the writer takes two seconds at most
        counts["certificates that take too long to check"] += 1
        return counts
    assert verdict.accepted, verdict
    assert _claim_holds(problem, certificate.labels, certificate.certainty, result.cost, axes)
    counts["certificates accepted"] += 1
    for _ in range(2):
        claim = _mutate_claim(certificate.certainty, rng)
        changed = replace(certificate, certainty=claim)
        verdict = check_certificate(problem.points, form.encode(changed), **given)
        if verdict.accepted:
            assert _claim_holds(problem, certificate.labels, claim, result.cost, axes)
            counts["changed claims that are true"] += 1
        else:
            counts["changed claims rejected"] += 1
    return counts


def fuzz_instance(seed: int) -> Counter[str]:
    """Check one instance; return counts. Raises AssertionError at a false claim."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # NaN must not occur
        return _fuzz_instance(seed)


def _fuzz_instance(seed: int) -> Counter[str]:
    rng = np.random.default_rng([seed, 77])
    problem = random_problem(seed)
    method = METHODS[seed % len(METHODS)]
    result = _perturb_result(_solved(problem, method, rng), problem, rng)
    slack = _slack(problem, result, rng)
    certainty = _compute_certainty(result, slack, method, rng)
    counts: Counter[str] = Counter(
        {"instances": 1, f"method {method}": 1, f"by {certainty.method}": 1}
    )
    counts["labellings"] += check_all_claims(problem, result, certainty)
    _check_prices(problem, certainty, result)
    counts["certain points"] += int(certainty.certain.sum())
    counts["clusters ruled out"] += int((~certainty.possible).sum())
    counts["with claims"] += bool(certainty.agreement > 0.0)
    counts["with uncertain points"] += bool(0.0 < certainty.agreement < 1.0)
    counts += _check_certificate(problem, result, certainty, rng)
    for question in result.questions(5, slack=slack):
        assert 0 <= question.point < problem.n_points
        assert question.point != question.example
        counts["questions"] += 1
    return counts


def main() -> None:
    """Run for some minutes of processor time; print counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    total: Counter[str] = Counter()
    seed = given.first
    while time.process_time() < 60.0 * given.minutes:
        try:
            total += fuzz_instance(seed)
        except Exception:
            print(f"seed {seed}", file=sys.stderr, flush=True)
            raise
        seed += 1
    for name, number in sorted(total.items()):
        print(f"{name}: {number:,}")


if __name__ == "__main__":
    main()
