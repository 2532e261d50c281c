"""Mutants of the code that proofs rest on, one change each, and the tests that have to fail.

A mutant replaces one piece of text in one file. ``covered`` says why no test can fail: another term
covers the same error; such a mutant is run, too, and reported.
"""

from __future__ import annotations

from dataclasses import dataclass

VERIFIER = "src/certikmeans/certificate/"
PRESOLVE = "src/certikmeans/presolve/"
BOUNDS = "src/certikmeans/bounds/"
CLAIMS = "tests/certificate/test_exact_claims.py"
POSTSOLVE = "tests/presolve/test_exact_postsolve.py"


@dataclass(frozen=True)
class Mutant:
    """One change, and where it should be noticed."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    covered: str = ""  # why no test can fail; empty if one has to


MUTANTS = (
    # The verifier.
    Mutant(
        "verifier accepts a little less than required",
        VERIFIER + "check_domains.py",
        "if not value >= domain.required_bound:",
        "if not value >= domain.required_bound * (1.0 - 1e-12):",
        (CLAIMS,),
    ),
    Mutant(
        "verifier ignores the rounding of centering",
        VERIFIER + "check_domains.py",
        "root = up(up(math.sqrt(lower_bound)) + centering_error)",
        "root = up(up(math.sqrt(lower_bound)))",
        (CLAIMS,),
    ),
    Mutant(
        "verifier ignores the length of the axes",
        VERIFIER + "check_domains.py",
        "root = up(up(root * norm_factor) + rotation_error)",
        "root = up(up(root) + rotation_error)",
        (CLAIMS,),
    ),
    Mutant(
        "verifier ignores the rounding of the rotation",
        VERIFIER + "check_domains.py",
        "root = up(up(root * norm_factor) + rotation_error)",
        "root = up(up(root * norm_factor))",
        (CLAIMS,),
        covered="no instance was found that needs it beside the term for centering",
    ),
    Mutant(
        "verifier ignores the rounding of means",
        VERIFIER + "check_domains.py",
        "root = up(up(math.sqrt(up(rest))) + averaging_error)",
        "root = up(up(math.sqrt(up(rest))))",
        (CLAIMS,),
        covered="means are computed in two passes; the term for centering is larger",
    ),
    Mutant(
        "verifier computes the cost inside groups without margins",
        VERIFIER + "check_arithmetic.py",
        "below=max(0.0, down(summed, operations) - mean_error) * (1.0 - EPS),",
        "below=summed,",
        (CLAIMS,),
    ),
    Mutant(
        "verifier computes the cost of labels without margins",
        VERIFIER + "check_arithmetic.py",
        "above=max(0.0, up(summed, operations) - mean_correction) * (1.0 + EPS),",
        "above=summed * (1.0 - 1e-12),",
        ("tests/certificate/test_check_arithmetic.py", CLAIMS),
    ),
    Mutant(
        "verifier propagates limits on the first axis the wrong way",
        VERIFIER + "check_domains.py",
        "low[:, 0] = np.maximum.accumulate(low[:, 0])",
        "low[:, 0] = np.maximum.accumulate(low[::-1, 0])[::-1]",
        (CLAIMS,),
    ),
    Mutant(
        "verifier's colouring takes no new colour",
        VERIFIER + "check_coloring.py",
        "for color in range(min(n_colors, used + 1)):",
        "for color in range(min(n_colors, max(used, 1))):",
        (CLAIMS,),
    ),
    Mutant(
        "verifier's least cost of a colouring is not rounded down",
        VERIFIER + "check_coloring.py",
        "return down(total(best[roots]), BLOCK + self._largest + 8)",
        "return total(best[roots]) * (1.0 + 1e-12)",
        (CLAIMS,),
    ),
    Mutant(
        "verifier does not compare labels with must-links",
        VERIFIER + "check_claims.py",
        "if np.any(must[:, 0] != must[:, 1]):",
        "if False:",
        ("tests/certificate/test_tampering.py",),
    ),
    Mutant(
        "verifier does not compare labels with cannot-links",
        VERIFIER + "check_claims.py",
        "if np.any(cannot[:, 0] == cannot[:, 1]):",
        "if False:",
        ("tests/certificate/test_tampering.py",),
    ),
    Mutant(
        "verifier accepts a cost below that of the labels",
        VERIFIER + "check.py",
        "    if not cost <= certificate.cost:",
        "    if not cost * (1.0 - 1e-9) <= certificate.cost:",
        ("tests/certificate",),
    ),
    Mutant(
        "verifier does not count the last leaf",
        VERIFIER + "check.py",
        "    if pending:\n        raise Rejection(Reason.TREE",
        "    if False:\n        raise Rejection(Reason.TREE",
        ("tests/certificate/test_tampering.py", "tests/certificate/test_check_trees.py"),
    ),
    Mutant(
        "verifier's eigenvalues have no residual",
        VERIFIER + "check_arithmetic.py",
        "    residual += product * (1.0 + orthogonality_error) * total(np.abs(values))\n"
        "    return values, orthogonality_error, residual",
        "    return values, 0.0, 0.0",
        ("tests/certificate",),
    ),
    # Presolve.
    Mutant(
        "presolve ignores the rounding of the shift",
        PRESOLVE + "postsolve.py",
        "root = round_down(max(0.0, round_down(math.sqrt(value)) - self.error))",
        "root = round_down(math.sqrt(value))",
        (POSTSOLVE,),
    ),
    Mutant(
        "presolve bounds the rounding of the shift by 0",
        PRESOLVE + "pipeline.py",
        "Centering(center, round_up(2.0 * UNIT * round_up(norm, 2 * points.size)))",
        "Centering(center, 0.0)",
        (POSTSOLVE,),
    ),
    Mutant(
        "presolve ignores the rounding of means",
        PRESOLVE + "postsolve.py",
        "        root = max(0.0, root - self.mean_error)\n",
        "",
        (POSTSOLVE,),
    ),
    Mutant(
        "presolve ignores the rounding of weights",
        PRESOLVE + "postsolve.py",
        "root = round_down(math.sqrt(value / self.weight_factor))",
        "root = round_down(math.sqrt(value))",
        (POSTSOLVE,),
    ),
    Mutant(
        "presolve bounds the rounding of weights by 0",
        PRESOLVE + "reductions.py",
        "weight_factor=1.0 if whole else 1.0 + (largest + 4) * 2.0 * UNIT,",
        "weight_factor=1.0,",
        (POSTSOLVE,),
    ),
    Mutant(
        "presolve ignores the rounding of the rotation",
        PRESOLVE + "postsolve.py",
        "root = round_down(max(0.0, root - self.rounding_error) / self.stretch)",
        "root = round_down(max(0.0, root) / self.stretch)",
        (POSTSOLVE,),
    ),
    Mutant(
        "presolve ignores the length of the axes",
        PRESOLVE + "postsolve.py",
        "root = round_down(max(0.0, root - self.rounding_error) / self.stretch)",
        "root = round_down(max(0.0, root - self.rounding_error))",
        (POSTSOLVE,),
    ),
    Mutant(
        "presolve's cost inside groups is not rounded down",
        PRESOLVE + "reductions.py",
        "offset_lower_bound=max(0.0, round_down(offset, 12) - drift),",
        "offset_lower_bound=offset,",
        (POSTSOLVE,),
        covered="the sum is compensated, and the result is rounded down once more",
    ),
    # Gap and stop.
    Mutant(
        "a gap a little above the requested one is reached",
        "src/certikmeans/tolerances.py",
        "return relative_gap(cost, lower_bound) <= gap",
        "return relative_gap(cost, lower_bound) <= gap * (1.0 + 1e-12)",
        ("tests/solver",),
    ),
    Mutant(
        "a bound above a known cost is no error",
        "src/certikmeans/tolerances.py",
        "if not lower_bound <= cost:",
        "if not lower_bound <= cost * (1.0 + 1e-12):",
        ("tests/solver",),
    ),
    Mutant(
        "NaN is a bound",
        "src/certikmeans/tolerances.py",
        "if not lower_bound <= cost:",
        "if lower_bound > cost:",
        ("tests/solver",),
    ),
    Mutant(
        "interrupts are ignored",
        "src/certikmeans/stop.py",
        "        if self._interrupted.is_set():\n            return StopCause.INTERRUPTED\n",
        "",
        ("tests/solver",),
    ),
    Mutant(
        "work limits are ignored",
        "src/certikmeans/stop.py",
        "        if self._work.units >= self._work_limit:\n"
        "            return StopCause.WORK_LIMIT\n",
        "",
        ("tests/solver", "tests/contract/test_continuation.py"),
    ),
    # Safe values of the bounds.
    Mutant(
        "semidefinite bound: rank K instead of K - 1",
        BOUNDS + "sdp/dual_bound.py",
        "rank = min(model.n_clusters, n) - 1",
        "rank = max(0, min(model.n_clusters, n) - 2)",
        ("tests/bounds",),
    ),
    Mutant(
        "semidefinite bound: multipliers of any sign",
        BOUNDS + "sdp/dual_bound.py",
        "upper = np.where(model.zero_mask, upper, np.maximum(upper, 0.0))",
        "pass",
        ("tests/bounds",),
    ),
    Mutant(
        "semidefinite bound: cut multipliers of any sign",
        BOUNDS + "sdp/dual_bound.py",
        "cut_multipliers = np.maximum(multipliers.cut_multipliers, 0.0)",
        "cut_multipliers = multipliers.cut_multipliers",
        ("tests/bounds",),
    ),
    Mutant(
        "semidefinite bound: no eigenvalue error",
        BOUNDS + "sdp/dual_bound.py",
        "    error = math.sqrt(rank) * (perturbation + eigen.residual)\n    return",
        "    error = 0.0\n    return",
        ("tests/bounds",),
    ),
    Mutant(
        "verified eigenvalues: no residual",
        BOUNDS + "verified_eigen.py",
        "    return VerifiedEigenvalues(values, delta, rho)",
        "    return VerifiedEigenvalues(values, 0.0, 0.0)",
        ("tests/bounds",),
    ),
    Mutant(
        "sample bound is rounded up",
        BOUNDS + "sample.py",
        "return math.fsum(costs.min(axis=1).tolist()) * (1.0 - 4.0 * EPS)",
        "return math.fsum(costs.min(axis=1).tolist()) * (1.0 + 1e-12)",
        ("tests/bounds",),
    ),
    Mutant(
        "cluster bound: the sum of multipliers is not rounded down",
        BOUNDS + "cluster/pricing_error.py",
        "return ((total + constant) - sigma_sum) - rounding_margin",
        "return ((total + constant) - sigma_sum) + rounding_margin",
        ("tests/bounds",),
    ),
)
