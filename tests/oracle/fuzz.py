"""Fuzz of solves and of certificates under every kind of constraint, in exact arithmetic.

`fuzz_solve(kind, seed)` compares a run with the exact optimum. `fuzz_forgery(kind, seed)` changes a
genuine certificate in every way that its format allows, encodes it again with valid checksums, and
compares every claim that the verifier accepts with the exact optimum of the problem that the
certificate states. The tests run some seeds; for more:

    python -m tests.oracle.fuzz --minutes 10 --first 0
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np

from certikmeans import InputError, Problem, solve
from certikmeans.bounds.registry import BOUNDS
from certikmeans.certificate import check_certificate
from certikmeans.certificate import format as form
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.write import make_certificate
from tests.oracle.subsets import Statement

KINDS = ("pairs", "dense pairs", "sets", "sizes", "demands", "soft pairs", "mixture")
LIMITS = Limits(boxes=5_000, base_boxes=5_000, threads=1)
LEAF_CODES = (2, 3, 4, 5, 6, 7, 8, 9)
FORGERIES_PER_CERTIFICATE = 25


def draw_problem(kind: str, seed: int) -> Problem:
    """Draw a tiny problem of a kind; some are infeasible."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n, d, k = int(rng.integers(3, 8)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    points = _points(rng, n, d)
    scale = float(((points - points.mean(axis=0)) ** 2).sum()) / n + 1e-9
    fields: dict[str, object] = {}
    # Constraints beside hard pairs do not allow the widest range of weights.
    wide = kind in ("pairs", "dense pairs") and rng.random() < 0.3
    if wide:
        fields["weights"] = 10.0 ** rng.uniform(-12, 12, size=n)
    elif rng.random() < 0.4:
        fields["weights"] = rng.choice([0.5, 1.0, 3.0], size=n) * rng.uniform(0.9, 1.1, size=n)

    def pairs(count: int) -> np.ndarray:
        drawn = rng.integers(0, n, size=(count, 2))
        return drawn[drawn[:, 0] != drawn[:, 1]]

    chosen = {kind}
    if kind == "mixture":
        chosen = {one for one in KINDS[:-1] if rng.random() < 0.4} or {"sizes", "sets"}
    if rng.random() < 0.3:
        fields["must_link"] = pairs(1)
    if "pairs" in chosen or rng.random() < 0.2:
        fields["cannot_link"] = pairs(int(rng.integers(1, n)))
    if "dense pairs" in chosen:
        part = rng.integers(0, k, size=n)
        fields["cannot_link"] = [
            (i, j) for i in range(n) for j in range(i)
            if (part[i] != part[j] or rng.random() < 0.1) and rng.random() < 0.8
        ]  # fmt: skip
    if "sets" in chosen:
        fields["cannot_link_groups"] = [
            rng.integers(-1, 3, size=n) for _ in range(int(rng.integers(1, 3)))
        ]
    if chosen & {"sizes", "demands"}:
        if "demands" in chosen:
            fields["demand"] = rng.choice([0.0, 0.5, 1.0, 2.5], size=n) + 0.25
        total = float(np.sum(fields.get("demand", np.ones(n))))
        low = math.floor(total / k * rng.choice([0.0, 0.5, 1.0]))
        fields["size_min"] = low
        fields["size_max"] = math.ceil(total / k * rng.choice([1.0, 1.5])) + int(rng.integers(2))
        if rng.random() < 0.2:
            fields["size_min"] = [0] + [low] * (k - 1)
    if "soft pairs" in chosen:
        for name in ("soft_must_link", "soft_cannot_link"):
            drawn = rng.integers(0, n, size=(int(rng.integers(1, 6)), 2))
            prices = scale * rng.choice([0.01, 0.3, 1.0, 5.0], size=len(drawn))
            fields[name] = np.column_stack([drawn, prices])
    return Problem.from_data(points, k, **fields)


def _points(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    points = rng.normal(size=(n, d)) + 3.0 * rng.integers(0, 2, size=(n, 1))
    family = rng.integers(7)
    if family == 0:
        points = np.round(points)
    elif family == 1:
        points *= 10.0 ** rng.integers(-8, 9)
    elif family == 2:
        points += 10.0 ** rng.integers(3, 9)
    elif family == 3:
        points[1:] = points[rng.integers(0, n, size=n - 1)]
    elif family == 4:
        points = np.outer(points[:, 0], rng.normal(size=d))
    elif family == 5:
        points = 1e7 + 1e-4 * points
    return points


def statement_of(problem: Problem) -> Statement:
    """What a problem states."""
    return Statement.of(
        problem.points, problem.n_clusters, problem.must_link, problem.cannot_link,
        problem.weights, problem.other_arrays(),
    )  # fmt: skip


def run(problem: Problem, rng: np.random.Generator):
    """Solve with settings drawn at random."""
    settings = {
        "gap": float(rng.choice([0.0, 1e-6, 1e-3, 0.05])),
        "node_limit": int(rng.choice([1, 3, 20])),
        "branching": str(rng.choice(["auto", "pairs", "centers"])),
        "seed": int(rng.integers(5)),
        "jobs": 1,
    }
    try:
        bound = str(rng.choice(sorted(BOUNDS)))
        return solve(problem, bound=bound, keep_proof=True, **settings)
    except InputError:  # the bound or the branching does not support the problem
        settings["branching"] = "auto"
        return solve(problem, keep_proof=True, **settings)


def fuzz_solve(kind: str, seed: int) -> Counter[str]:
    """Compare labels, cost and bound of a run with exact values."""
    problem = draw_problem(kind, seed)
    stated = statement_of(problem)
    optimum = stated.optimum()
    result = run(problem, np.random.default_rng([seed, 99]))
    counts = Counter({"solves": 1, "infeasible": optimum is None})
    if optimum is None:
        assert result.labels is None
        return counts
    assert result.infeasibility is None
    assert Fraction(result.lower_bound) <= optimum
    if result.labels is not None:
        found = stated.cost(result.labels)
        assert found is not None
        assert optimum <= found <= Fraction(result.cost)
    return counts


def genuine(kind: str, seed: int):
    """A problem and its certificate, or None where the run proved nothing."""
    problem = draw_problem(kind, seed)
    result = run(problem, np.random.default_rng([seed, 99]))
    try:
        return problem, make_certificate(problem, result)
    except InputError:
        return problem, None


def fuzz_forgery(kind: str, seed: int, count: int = FORGERIES_PER_CERTIFICATE) -> Counter[str]:
    """Change a certificate in many ways; no false one may be accepted."""
    problem, made = genuine(kind, seed)
    counts: Counter[str] = Counter()
    if made is None:
        return counts
    rng = np.random.default_rng([seed, 7])
    counts["genuine"] += 1
    counts["genuine accepted"] += _check(problem, made)
    optimum = statement_of(problem).optimum()
    for _ in range(count):
        forged = made
        for _ in range(int(rng.integers(0, 3))):
            forged = CHANGES[rng.integers(len(CHANGES))](forged, rng)
        forged = _hashed(_with_claim(forged, optimum, rng), problem)
        counts["forged"] += 1
        counts["forged accepted"] += _check(problem, forged)
    if optimum is not None:
        assert not _check(problem, _claiming(made, _above(optimum)))
        counts["claims next to the optimum"] += 1
    return counts


def _check(problem: Problem, made: form.Certificate) -> bool:
    """Run the verifier; what it accepts has to be true."""
    try:
        content = form.encode(made)
    except (ValueError, OverflowError, IndexError, form.Rejection):  # not in the format
        return False
    verdict = check_certificate(problem.points, content, limits=LIMITS)
    if not verdict.accepted:
        return False
    other = {} if made.constraints is None else made.constraints.arrays()
    weights = np.ones(made.n_points) if made.weights is None else made.weights
    stated = Statement.of(
        problem.points, made.n_clusters, made.must_link, made.cannot_link, weights, other
    )
    optimum = stated.optimum()
    if made.labels is None:
        assert optimum is None
        return True
    cost = stated.cost(made.labels)
    assert cost is not None
    assert cost <= Fraction(made.cost)
    assert optimum is not None
    assert Fraction(made.lower_bound) <= optimum
    return True


def _above(optimum: Fraction) -> float:
    """Smallest float above an exact number."""
    value = float(optimum)
    while Fraction(value) <= optimum:
        value = math.nextafter(value, math.inf)
    return value


def _claiming(made: form.Certificate, value: float) -> form.Certificate:
    return replace(made, lower_bound=value, cost=max(made.cost, value))


def _with_claim(made, optimum, rng):
    """Claim anything from the bound that was proven to far above the optimum."""
    if optimum is None or made.labels is None:
        return made
    kind = rng.integers(4)
    if kind == 0:
        return made
    best = _above(optimum)
    if kind == 1:
        return _claiming(made, best)
    if kind == 2:
        return _claiming(made, best * (1.0 + 10.0 ** rng.uniform(-15, 1)))
    return _claiming(made, float(rng.uniform(0.5, 1.0)) * best)


def _hashed(made, problem):
    """Write the hashes of what is stated."""
    stated = made.constraints
    return replace(
        made,
        pairs_sha256=form.hash_pairs(made.must_link, made.cannot_link),
        constraints_sha256="" if stated is None else stated.sha256(),
        data_sha256=form.hash_points(problem.points),
    )


def _multipliers(made, rng):
    values = made.multipliers.copy()
    if len(values) == 0:
        return made
    at = rng.integers(len(values), size=int(rng.integers(1, 4)))
    size = np.abs(values).mean() + 1e-300
    kind = rng.integers(6)
    if kind == 0:
        values *= 1.0 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-16, 0)
    elif kind == 1:
        values[at] += size * rng.normal(size=len(at)) * 10.0 ** rng.uniform(-6, 2)
    elif kind == 2:
        values[at] = rng.choice([0.0, -1.0, np.nan, np.inf, 1e300, 5e-324, -1e145], size=len(at))
    elif kind == 3:
        values[at] = -values[at]
    elif kind == 4:
        values = rng.permutation(values)
    else:
        values += size * 10.0 ** rng.uniform(-12, 1)
    return replace(made, multipliers=values)


def _nodes(made, rng):
    """Change one field of one node."""
    at = int(rng.integers(len(made.kinds)))
    leaves = np.flatnonzero(made.kinds > 1)
    kinds, first, second, values = (
        array.copy() for array in (made.kinds, made.first, made.second, made.values)
    )
    match rng.integers(5):
        case 0:
            kinds[at] = rng.choice([0, 1, *LEAF_CODES])
        case 1:
            first[at] = rng.integers(-1, max(len(made.lengths), made.n_clusters, made.n_points))
        case 2:
            second[at] = rng.integers(-1, max(made.n_points, made.axes.shape[1]))
        case 3:
            values[at] += rng.normal() * 10.0 ** rng.uniform(-9, 3) * (abs(values[at]) + 1e-3)
        case _ if len(leaves):
            one, two = rng.choice(leaves, 2)
            for array in (kinds, first):
                array[[one, two]] = array[[two, one]]
    return replace(made, kinds=kinds, first=first, second=second, values=values)


def _tree(made, rng):
    """Drop or double nodes, or divide a leaf, which keeps its evidence on one side or on both."""
    at = int(rng.integers(len(made.kinds)))
    arrays = (made.kinds, made.first, made.second, made.values)
    order, leaves = list(range(len(made.kinds))), np.flatnonzero(made.kinds > 1)
    kind = rng.integers(3 if len(leaves) else 2)
    if kind == 0 and len(order) > 1:
        del order[at]
    elif kind < 2:
        order.insert(at, at)
    else:
        leaf = int(rng.choice(leaves))
        order[leaf : leaf + 1] = [leaf, leaf, leaf]
    kinds, first, second, values = (array[order].copy() for array in arrays)
    if kind == 2:
        kinds[leaf] = rng.integers(2)
        first[leaf], second[leaf] = rng.integers(0, made.n_points, size=2)
        values[leaf] = 0.0
        if kinds[leaf] == form.CENTER_SPLIT:
            first[leaf] = rng.integers(made.n_clusters)
            second[leaf] = rng.integers(made.axes.shape[1])
            values[leaf] = rng.normal()
        if rng.random() < 0.7:
            kinds[leaf + 1 + rng.integers(2)] = rng.choice(LEAF_CODES)
    return replace(made, kinds=kinds, first=first, second=second, values=values)


def _coordinates(made, rng):
    size = float(np.abs(made.axes).max())
    match rng.integers(4):
        case 0:
            shift = rng.normal(size=len(made.center)) * 10.0 ** rng.uniform(-9, 20)
            return replace(made, center=made.center + shift)
        case 1:
            return replace(made, axes=made.axes * rng.choice([-1.0, 0.0, 0.5, 1.0 + 1e-12, 1.5]))
        case 2:
            noise = rng.normal(size=made.axes.shape) * size * 10.0 ** rng.uniform(-16, -1)
            return replace(made, axes=made.axes + noise)
        case _:
            return replace(made, axes=made.axes[:, rng.permutation(made.axes.shape[1])])


def _clusters(made, rng):
    return replace(made, n_clusters=max(1, made.n_clusters + int(rng.choice([-1, 1]))))


def _labels(made, rng):
    if made.labels is None:
        return replace(made, labels=rng.integers(0, made.n_clusters, size=made.n_points),
                       cost=1e9, lower_bound=float(rng.uniform(0, 2)))  # fmt: skip
    if rng.random() < 0.2:  # claim that there is no labelling
        infinite = replace(made, labels=None, cost=math.inf, lower_bound=math.inf)
        if rng.random() < 0.5:
            kinds = np.where(made.kinds > 1, 5, made.kinds).astype(np.uint8)
            infinite = replace(infinite, kinds=kinds)
        return infinite
    labels = made.labels.copy()
    labels[rng.integers(len(labels))] = rng.integers(made.n_clusters)
    return replace(made, labels=labels, cost=made.cost * float(rng.choice([1.0, 1.0, 10.0])))


def _pairs(made, rng):
    """Drop, add or move pairs."""
    name = str(rng.choice(["must_link", "cannot_link"]))
    pairs = getattr(made, name)
    keep = rng.random(len(pairs)) < 0.7
    added = np.sort(rng.integers(0, made.n_points, size=(int(rng.integers(2)), 2)), axis=1)
    changed = np.concatenate([pairs[keep], added[added[:, 0] < added[:, 1]]])
    return replace(made, **{name: np.unique(changed, axis=0).astype(np.int64).reshape(-1, 2)})


def _weights(made, rng):
    weights = np.ones(made.n_points) if made.weights is None else made.weights.copy()
    choices = [0.0, 1e-12, 0.5, 1.0 + 1e-15, 2.0, 1e12]
    weights[rng.integers(len(weights))] *= rng.choice(choices)
    return replace(made, weights=weights)


def _constraints(made, rng):
    """Change one number of the sets, sizes or penalties, or leave all of them out."""
    stated = made.constraints
    if stated is None:
        n, none = made.n_points, np.empty((0, 2), dtype=np.int64)
        column = np.full((1, n), -1)
        column[0, rng.integers(n, size=2)] = 0
        return replace(made, constraints=form.StatedConstraints(
            column, None, np.full(made.n_clusters, float(rng.integers(1, n + 1))), None,
            none, np.empty(0), none, np.empty(0),
        ))  # fmt: skip
    if rng.random() < 0.15:
        return replace(made, constraints=None)
    present = [
        name for name in ("set_columns", "size_min", "size_max", "demand", "soft_must_link",
                          "must_penalties", "soft_cannot_link", "cannot_penalties")
        if getattr(stated, name) is not None and getattr(stated, name).size
    ]  # fmt: skip
    name = str(rng.choice(present))
    array = getattr(stated, name).copy()
    at = tuple(rng.integers(length) for length in array.shape)
    if array.dtype.kind == "i":
        array[at] = rng.integers(-1 if name == "set_columns" else 0, made.n_points)
    elif name in ("size_min", "size_max", "demand"):
        array[at] = max(0.0, array[at] + rng.choice([-1.0, -0.5, 0.5, 1.0, 100.0]))
    else:
        array[at] *= rng.choice([0.0, 0.5, 1.0 + 1e-15, 2.0, 1e6])
    return replace(made, constraints=replace(stated, **{name: array}))


CHANGES = (
    _multipliers, _multipliers, _nodes, _tree, _coordinates, _clusters, _labels, _pairs,
    _weights, _constraints,
)  # fmt: skip


def main() -> None:
    """Run for some minutes of processor time; print counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    total: Counter[str] = Counter()
    seed, reported = given.first, time.monotonic()
    while time.process_time() < 60.0 * given.minutes:
        if time.monotonic() > reported + 20.0:
            reported = time.monotonic()
            print(f"{time.process_time():.0f} s, seed {seed}: {dict(total)}", flush=True)
        for kind in KINDS:
            for fuzz in (fuzz_solve, fuzz_forgery):
                try:
                    total += fuzz(kind, seed)
                except Exception as error:
                    print(f"{fuzz.__name__} {kind!r} {seed}: {error!r}", file=sys.stderr,
                          flush=True)  # fmt: skip
                    total["failures"] += 1
        seed += 1
    print(f"seeds {given.first} to {seed - 1}")
    for name, number in sorted(total.items()):
        print(f"{name}: {number:,}")


if __name__ == "__main__":
    main()
