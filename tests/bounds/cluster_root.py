"""The cluster bound at the root, around labels that a test chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import Root, Setting
from certikmeans.bounds.cluster import ClusterBound
from certikmeans.bounds.cluster.columns import columns_of
from certikmeans.news import Unheard
from certikmeans.problem.subproblem import Subproblem


class Known(Unheard):
    """News that begin with given labels."""

    def __init__(self, labels, on_bound):
        self._labels = labels
        self._on_bound = on_bound

    def labels(self):
        return self._labels

    def offer(self, labels, source, iterations=0):
        self._labels = labels

    def prove(self, value, source):
        assert source == "cluster"
        self._on_bound(value)


@dataclass
class AtRoot:
    value: float
    multipliers: np.ndarray
    labels: np.ndarray  # the best labelling known at the end
    reached: bool  # whether the gap asked for is proven


def cluster_bound(
    reduced,
    labels,
    *,
    target_gap,
    stop,
    executor=None,
    improve=None,
    on_bound=lambda value: None,
):
    """Bound the whole; ``improve`` is given the columns where the goal is out of reach."""
    labels = np.asarray(labels)
    news = Known(labels, on_bound)

    def recombine(columns):
        if improve is not None:
            news.offer(improve(columns), "test")

    bound = ClusterBound()
    state = bound.prepare(Setting(reduced, Assigner(reduced, labels), target_gap))
    root = Root(news, executor, recombine)
    whole = Subproblem.root(reduced)
    found = bound.evaluate(state, whole, np.inf, stop, None, root)
    cost = sum(column.cost for column in columns_of(reduced, news.labels()))
    goal = cost - target_gap * (cost + reduced.offset)
    evidence = found.leaf.evidence
    multipliers = np.zeros(reduced.n_groups) if evidence is None else evidence.values
    return AtRoot(found.value, multipliers, news.labels(), found.value >= goal - 1e-12 * cost)
