"""Published instances: the bound closes the gap and never passes the best known value."""

from __future__ import annotations

import pytest

from certikmeans.assignment import Assigner
from certikmeans.heuristics.base import Workshop
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.stop import StopSignal
from tests.bounds.cluster_root import cluster_bound
from tests.published import published, stated


def check(row):
    best_known = float(row["best_known_sse"])
    done = presolve(stated(row), StopSignal())
    assert isinstance(done, Presolved)
    assert done.witness is not None
    workshop = Workshop(
        done.reduced, Assigner(done.reduced, done.witness), done.witness, StopSignal(20.0)
    )
    labels = DefaultSearch().search(workshop)

    bound = cluster_bound(done.reduced, labels, target_gap=1e-3, stop=StopSignal(20.0))

    lower = done.restore_bound(bound.value)
    assert lower <= best_known * (1.0 + 1e-9)
    assert bound.reached
    assert lower >= best_known * (1.0 - 1.1e-3)


@pytest.mark.skipif(not published(), reason="the published instances are not here")
@pytest.mark.parametrize("start", range(0, 8))
def test_published_instances_close_at_the_root(start):
    for row in published()[start::24]:
        check(row)


@pytest.mark.slow
@pytest.mark.skipif(not published(), reason="the published instances are not here")
def test_all_published_instances_close_at_the_root():
    for row in published():
        check(row)
