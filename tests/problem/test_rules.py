"""Constraints are a type: whoever cannot take account of one refuses it by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certikmeans import InputError
from certikmeans.assignment import assigner_for
from certikmeans.problem import AbstractRules
from certikmeans.testing.oracle import feasible_labellings
from tests.bounds.cluster_oracle import make_reduced


class Sizes(AbstractRules):
    """At most two groups in a cluster, beside cannot-links."""

    kind = "cluster sizes"

    def __init__(self, apart):
        self._apart = apart

    @property
    def apart(self):
        return self._apart

    @property
    def only_apart(self):
        return False

    def respected_by(self, labels):
        return bool(np.bincount(labels).max() <= 2)


def reduced_and_labellings():
    points = np.arange(5.0)[:, None]
    reduced = make_reduced(points, np.ones(5), [(0, 1), (1, 2)], 3)
    from certikmeans import Problem

    edges = reduced.graph.edges()
    return reduced, list(
        feasible_labellings(Problem.from_data(reduced.points, 3, cannot_link=edges))
    )


def test_cannot_links_know_who_respects_them():
    reduced, labellings = reduced_and_labellings()
    assert labellings
    assert all(reduced.rules.respected_by(np.array(labels)) for labels in labellings)
    assert not reduced.rules.respected_by(np.zeros(5, dtype=np.int64))


def test_rules_that_nobody_knows_are_refused_by_name():
    reduced, _ = reduced_and_labellings()
    other = replace(reduced, rules=Sizes(reduced.graph))
    with pytest.raises(InputError, match="cannot take account of cluster sizes") as error:
        assigner_for(other, np.array([0, 1, 0, 1, 2]))
    assert error.value.hint
