"""A bound that is stopped by a work limit and continued ends like one that is not stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest

from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.registry import make_bound
from certikmeans.checkpoint.codec import Decoder, Encoder
from certikmeans.incumbent import NullIncumbent
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.stop import StopCause, StopSignal
from certikmeans.testing.contracts import make_bound_input

SETTINGS = {
    "cluster": {},
    "grouped": {"max_group_size": 8, "max_evaluations": 10},
    "partition": {"size": 15},
    "sdp": {},
    "spectral": {},
}


def instance():
    rng = np.random.default_rng(5)
    truth = np.arange(45) % 3
    points = 2.0 * rng.normal(size=(3, 3))[truth] + rng.normal(size=(45, 3))
    problem = Problem.from_data(points, 3)
    done = presolve(problem, StopSignal())
    assigner = make_bound_input(done).assigner
    labels = done.presolve_labels(truth)
    for _ in range(20):
        labels = assigner.assign(done.reduced.cluster_means(labels)).labels
    return done, labels


def encoded_and_decoded(warm_start):
    """The warm start as it comes back from a checkpoint: nothing of it may be lost."""
    encoder = Encoder()
    text = json.loads(json.dumps([encoder.encode(warm_start), encoder.objects]))
    return Decoder(text[1], encoder.arrays).decode(text[0])


@pytest.mark.parametrize("name", list(SETTINGS))
def test_stopped_and_continued_equals_uninterrupted(name):
    done, labels = instance()
    bound = make_bound(name, **SETTINGS[name])
    model, whole = bound.setup(make_bound_input(done)), Domain.root(done.reduced)
    incumbent = NullIncumbent(labels)
    cost = sum(
        float(
            done.reduced.weights[labels == k] @ ((done.reduced.points[labels == k] - c) ** 2).sum(1)
        )
        for k, c in enumerate(done.reduced.cluster_means(labels))
    )
    cutoff = 0.9999 * cost

    def compute(stop, warm_start=None):
        ctx = BoundContext(stop, at_root=True, incumbent=incumbent, name=name)
        return bound.compute(model, whole, cutoff, ctx, warm_start)

    counted = StopSignal()
    full = compute(counted)
    assert full.finished
    assert counted.work >= 1.0, "nothing to stop"
    for fraction in (0.01, 0.5):
        stop, warm_start, turns, units = StopSignal(), None, 0, fraction * counted.work
        while True:
            found = compute(stop.with_work_limit(units), warm_start)
            turns += 1
            if found.finished:
                break
            assert found.value <= full.value
            # As in the schedule: exact pricing gets half of a limit, and starts again.
            warm_start, units = encoded_and_decoded(found.warm_start), 2.0 * units
        assert turns > 1
        if name == "cluster":
            # Rounds are not the same, the limit of the bundle is, up to its tolerance.
            assert found.value >= (1.0 - 1e-5) * min(cutoff, full.value)
        else:
            assert found.value == full.value
            # The ascent of the spectral bound is repeated from its start.
            assert stop.work == counted.work or name == "spectral"


def test_turns_of_a_run_with_a_time_limit_continue():
    # Limits inside a turn are then in seconds: a pricing that they end has not failed.
    done, labels = instance()
    bound = make_bound("cluster")
    model, whole = bound.setup(make_bound_input(done)), Domain.root(done.reduced)
    incumbent = NullIncumbent(labels)

    def compute(stop, warm_start=None):
        ctx = BoundContext(stop, at_root=True, incumbent=incumbent, name="cluster")
        return bound.compute(model, whole, np.inf, ctx, warm_start)

    counted = StopSignal()
    full = compute(counted)
    stop, warm_start, turns, units = StopSignal(3_600.0), None, 0, 1e-4 * counted.work
    while True:
        found = compute(stop.with_work_limit(units), warm_start)
        turns += 1
        if found.finished:
            break
        warm_start, units = found.warm_start, 2.0 * units
    assert turns > 1
    assert found.value >= (1.0 - 1e-5) * full.value


def test_work_limit_stops_children_and_counts_in_parents():
    run = StopSignal()
    limited = run.with_work_limit(3.0)
    child = limited.with_time_limit(60.0)
    child.add_work(2.0)
    assert child.reason() is limited.reason() is run.reason() is None
    child.add_work(1.0)
    assert child.reason() is limited.reason() is StopCause.WORK_LIMIT
    assert run.reason() is None
    assert (run.work, limited.work, child.work) == (3.0, 3.0, 3.0)
    run.interrupt()
    assert child.reason() is StopCause.INTERRUPTED
