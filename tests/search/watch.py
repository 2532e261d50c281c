"""A known optimum that follows the tree and fails on the first door closed over it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from certikmeans.events import NodeClosed
from certikmeans.presolve.pipeline import presolve
from certikmeans.search.pairs import PairPart
from certikmeans.stop import StopSignal


class OptimumWatch:
    """Listens; every node that holds an optimal labelling must have a bound at most the optimum."""

    def __init__(self, problem, optimum, labels):
        self.problem = problem
        self.optimum = Fraction(optimum)
        self.labels = np.array(labels)
        done = presolve(problem, StopSignal())
        groups = done.reduce_labels(self.labels)
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
        if isinstance(part, PairPart):
            same = all(self.labels[i] == self.labels[j] for i, j in part.together)
            return same and all(self.labels[i] != self.labels[j] for i, j in part.apart)
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
