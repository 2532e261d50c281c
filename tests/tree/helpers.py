"""An instance with a root gap, and a listener that checks that no node cuts off a known optimum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from certikmeans import Problem
from certikmeans.events import NodeClosed
from certikmeans.generate import random_pairs
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.tree.pair_branching import PairDomain


def entangled(seed=0):
    rng = np.random.default_rng(seed)
    points, classes = rng.uniform(size=(30, 2)), rng.integers(4, size=30)
    _, cannot = random_pairs(classes, 0, 60, seed=seed)
    return Problem.from_data(points, 4, cannot_link=cannot)


# A listener that follows a known optimum down the tree and fails if its node is pruned.


class OptimumWatch:
    """Listens; every node that holds an optimal labelling must have a bound at most the optimum."""

    def __init__(self, problem, optimum, labels):
        self.problem = problem
        self.optimum = Fraction(optimum)
        self.labels = np.array(labels)
        done = presolve(problem, StopSignal())
        groups = done.presolve_labels(self.labels)
        means = [
            np.average(
                done.reduced.points[groups == k], axis=0, weights=done.reduced.weights[groups == k]
            )
            for k in np.unique(groups)
        ]
        self.means = np.array(sorted(means, key=lambda mean: mean[0]))
        self.seen = 0
        self.followed = 0
        self.doors = []

    def holds(self, part):
        if isinstance(part, PairDomain):
            same = all(self.labels[i] == self.labels[j] for i, j in part.must_link)
            return same and all(self.labels[i] != self.labels[j] for i, j in part.cannot_link)
        k = len(self.means)
        if k < self.problem.n_clusters:
            return False  # an empty cluster may be anywhere: not followed
        # Well inside: ties on a face belong to both parts.
        margin = 1e-9 * (1.0 + np.abs(self.means).max())
        return bool(
            (self.means >= part.lower + margin).all() and (self.means <= part.upper - margin).all()
        )

    def __call__(self, event):
        if isinstance(event, NodeClosed):
            self.seen += 1
            self.doors.append(event.door)
            if self.holds(event.part):
                self.followed += 1
                assert event.door != "infeasible", "the optimum was declared impossible"
                assert Fraction(event.lower_bound) <= self.optimum, "closed on the optimum"
