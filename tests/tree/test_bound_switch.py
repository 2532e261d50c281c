"""Where the cluster bound is lost, the semidefinite one takes over; certificates of trees check."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem, Status, StopReason, StopSignal, solve
from certikmeans.bounds.registry import make_bound
from certikmeans.certificate import check_certificate
from certikmeans.certificate.format import encode
from certikmeans.certificate.write import make_certificate
from certikmeans.events import BoundImproved, TreeProgress
from certikmeans.generate import random_pairs
from certikmeans.tree.branching import choose_branching
from tests.bounds.cluster_oracle import make_reduced


def noise(n, d, k, seed=0):
    return Problem.from_data(np.random.default_rng(seed).normal(size=(n, d)), k)


def test_many_axes_without_structure():
    problem = noise(40, 10, 3)
    result = solve(problem, time_limit=30)
    assert result.bound == "sdp"
    assert result.gap < 0.02
    alone = solve(problem, bound="cluster", time_limit=2, node_limit=1)
    assert alone.bound != "sdp"
    assert result.lower_bound > alone.lower_bound
    assert result.lower_bound <= alone.cost


def test_sdp_bound_by_option():
    result = solve(noise(25, 4, 3), bound="sdp", time_limit=30, gap=1e-4)
    assert result.status is Status.OPTIMAL
    assert result.bound == "sdp"


def test_rule_for_branching():
    def chosen(branching, bound, n_groups):
        problem = make_reduced(np.zeros((n_groups, 1)), np.ones(n_groups), [], 2)
        return choose_branching(branching, make_bound(bound), problem)

    assert chosen("auto", "cluster", 20_000) == "pairs"
    assert chosen("auto", "cluster", 20_001) == "centers"
    assert chosen("auto", "sdp", 300) == "pairs"
    assert chosen("auto", "grouped", 300) == "centers"
    assert chosen("centers", "cluster", 10) == "centers"


@pytest.mark.parametrize("branching", ["centers", "pairs"])
@pytest.mark.parametrize("node_limit", [1, 6, 5_000_000])
def test_certificate_of_a_tree(branching, node_limit):
    rng = np.random.default_rng(0)
    points, classes = rng.uniform(size=(30, 2)), rng.integers(4, size=30)
    _, cannot = random_pairs(classes, 0, 60, seed=0)
    problem = Problem.from_data(points, 4, cannot_link=cannot)
    nodes = []
    result = solve(
        problem,
        gap=1e-4,
        branching=branching,
        node_limit=node_limit,
        keep_proof=True,
        time_limit=30,
        callbacks=[lambda e: nodes.append(e.nodes) if isinstance(e, TreeProgress) else None],
    )
    assert nodes[-1] >= min(node_limit, 3)
    certificate = make_certificate(problem, result)
    verdict = check_certificate(problem.points, encode(certificate))
    assert verdict.accepted, verdict.message
    assert verdict.lower_bound == pytest.approx(result.lower_bound, rel=1e-8)
    assert verdict.cost >= result.cost


def test_root_bounds_are_reported():
    # Without a time limit the semidefinite root takes long: an interruption keeps what it has.
    problem = noise(80, 24, 4)
    stop, bounds = StopSignal(), []

    def listen(event):
        if isinstance(event, BoundImproved) and event.source == "sdp":
            bounds.append(event.lower_bound)
            if len(bounds) == 3:
                stop.interrupt()

    result = solve(problem, stop=stop, gap=1e-9, callbacks=[listen])
    assert result.stop_reason is StopReason.INTERRUPTED
    assert bounds == sorted(bounds)
    assert 0.0 < bounds[2] <= result.lower_bound
    assert result.bound == "sdp"


def test_cluster_bound_in_few_dimensions():
    rng = np.random.default_rng(1)
    points, classes = rng.uniform(size=(80, 2)), rng.integers(5, size=80)
    _, cannot = random_pairs(classes, 0, 300, seed=0)
    problem = Problem.from_data(points, 5, cannot_link=cannot)
    sources = set()
    solve(
        problem,
        gap=1e-6,
        time_limit=1.5,
        callbacks=[lambda e: sources.add(e.source) if isinstance(e, BoundImproved) else None],
    )
    assert "sdp" not in sources
