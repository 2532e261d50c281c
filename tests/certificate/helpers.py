"""Certificates built from a problem, labels and a proof, without a solve."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np

from certikmeans.certificate import format as form
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.write import make_certificate
from certikmeans.presolve.pipeline import presolve
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.proof import GroupMultipliers, LeafProof, Proof
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import brute_force, exact_cost
from tests.bounds.cluster_root import cluster_bound


def certificate(problem, labels, cost, proof):
    """Certificate that the writer makes of these."""
    labels = np.asarray(labels, dtype=np.int64)
    result = SimpleNamespace(proof=proof, labels=labels, cost=float(cost), infeasibility=None)
    return make_certificate(problem, result)


def verdict(problem, made, **options):
    """Encode and check."""
    return check_certificate(problem.points, form.encode(made), **options)


def change(made, **fields):
    """Certificate with other fields; the hash of pairs is updated unless given."""
    changed = dataclasses.replace(made, **fields)
    if "pairs_sha256" in fields:
        return changed
    return dataclasses.replace(
        changed, pairs_sha256=form.hash_pairs(changed.must_link, changed.cannot_link)
    )


def in_order_of_points(presolved, values):
    """Values per reduced row, in the order of groups by their smallest point."""
    _, smallest = np.unique(presolved.group_of_point, return_index=True)
    return values[np.argsort(smallest)]


def root_proof(problem, labels, gap=1e-3):
    """Proof without a tree, by the cluster bound."""
    presolved = presolve(problem, StopSignal())
    reduced = presolved.presolve_labels(np.asarray(labels, dtype=np.int64))
    stop = StopSignal(1.0)  # far from the origin, a small gap may be out of reach
    found = cluster_bound(presolved.reduced, reduced, target_gap=gap, stop=stop)
    multipliers = in_order_of_points(presolved, found.multipliers)
    leaf = LeafProof("one cluster")
    if problem.n_clusters > 1:
        leaf = LeafProof("cluster", GroupMultipliers(multipliers))
    return Proof(presolved.postsolve_bound(found.value), presolved.center, presolved.axes, (leaf,))


def solved_by_force(seed, largest=6, min_clusters=2, most_features=3):
    """Random problem with several labellings, its optimum, and optimal labels."""
    for number in range(100):
        problem = feasible_problem(
            seed + 10_000 * number, largest=largest, min_clusters=min_clusters
        )
        if np.ptp(problem.points) > 0.0 and problem.n_features <= most_features:
            return problem, *brute_force(problem)
    raise AssertionError("nothing to test in 100 draws")


def group_rows(problem):
    """Exact means, weights and inner cost of the must-link groups, and the pairs between them."""
    groups = must_link_groups(problem.n_points, problem.must_link)
    means, masses, inner = [], [], Fraction(0)
    for g in range(groups.max() + 1):
        members = np.flatnonzero(groups == g)
        rows = [[Fraction(float(v)) for v in problem.points[i]] for i in members]
        weights = [Fraction(float(problem.weights[i])) for i in members]
        mass = sum(weights)
        mean = [
            sum(w * row[j] for w, row in zip(weights, rows, strict=True)) / mass
            for j in range(problem.n_features)
        ]
        means.append(mean)
        masses.append(mass)
        inner += exact_cost(
            problem.points[members], problem.weights[members], np.zeros(len(members), dtype=int)
        )
    edges = {tuple(sorted(map(int, pair))) for pair in groups[problem.cannot_link]}
    return means, masses, inner, edges


def exact_sigma(means, masses, edges, multipliers, box=None):
    """Value of the best cluster with its center in the box, by enumeration of all sets."""
    best = Fraction(0)
    n, d = len(means), len(means[0])
    lam = [Fraction(float(v)) for v in multipliers]
    for chosen in product((False, True), repeat=n):
        members = [s for s in range(n) if chosen[s]]
        if not members or any(chosen[a] and chosen[b] for a, b in edges):
            continue
        mass = sum(masses[s] for s in members)
        value = sum(lam[s] for s in members)
        for j in range(d):
            y = sum(masses[s] * means[s][j] for s in members) / mass
            if box is not None:
                y = min(max(y, box[0][j]), box[1][j])
            value -= sum(masses[s] * (means[s][j] - y) ** 2 for s in members)
        best = max(best, value)
    return best
