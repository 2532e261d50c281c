"""A smaller problem with the same good multipliers: groups far from every border become one.

With many groups nearly all of them are worth something to their own centre wherever it can be, and
less than nothing to the others. Good clusters hold all of those of one centre, or none. So they are
joined, as must-links would join them: their multipliers add up, less what they cost inside. What
joined groups gain or lose in multipliers is shared out by weight when the core is taken apart.

Nothing here is proven, and nothing need be: any multipliers are valid, and what they are worth is
shown on the whole problem. Cannot-links of joined groups are left out: their neighbours are worth
less than nothing where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.columns import column_of
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.cluster.starts import ClusterRestart
from certikmeans.graphs import build_apart_graph
from certikmeans.kernels.settled import SETTLED, settle
from certikmeans.problem import CannotLinks, ReducedProblem

Labels = NDArray[np.int64]
Vector = NDArray[np.float64]

LEAST_GROUPS = 4_000  # with fewer, there is nothing to gain
MOST_LEFT = 0.3  # of the groups, or it is not worth while
# How far centres may be from ours: so many times as far as our own clusters would allow.
REACH = 2.0
# How far multipliers of joined groups may move, as a share of the way to another cluster.
MARGIN = 0.05
# A cluster that holds more than this share of what is joined, and not the rest of it, is none of
# the core.
SPLIT = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """The smaller problem, and the way back."""

    problem: ReducedProblem
    labels: Labels
    multipliers: Vector
    group_of: Labels  # (n_groups,): of the whole problem's groups
    inside: float  # sum of squares inside joined groups
    before: Vector  # multipliers of the whole problem
    share: Vector  # (n_groups,): of its group's weight

    def taken_apart(self, multipliers: Vector) -> Vector:
        """Multipliers of all groups, given those of the core."""
        gained = (multipliers - self.multipliers)[self.group_of]
        return self.before + self.share * gained

    def restart(self, known: ClusterRestart) -> tuple[ClusterRestart, list[Column]]:
        """Clusters of the whole problem as clusters of the core, and those that are none of it.

        Places are the same.
        """
        n, rows = self.problem.n_groups, np.flatnonzero(self.share < 1.0)
        blocks, share = self.group_of[rows], self.share[rows]
        whole = np.bincount(blocks, share, n)
        joined = whole > 0.0
        inner, others = list[Column](), list[Column]()
        for column in known.columns:
            members = column.members
            held = np.bincount(blocks, share * members[rows], n)[joined] / whole[joined]
            if np.any((held > SPLIT) & (held < 1.0 - SPLIT)):
                others.append(column)
                continue
            mine = np.empty(n, dtype=bool)
            mine[self.group_of] = members
            mine[joined] = held > 0.5
            if mine.any():
                inner.append(column_of(self.problem, mine))
        again = ClusterRestart(self.multipliers, tuple(inner), known.centers, known.places)
        return again, others


def core_of(
    pricer: Pricer,
    labels: Labels,
    multipliers: Vector,
    room: float,
    least_groups: int = LEAST_GROUPS,
) -> Core | None:
    """Join what is far from every border; None: too little is, or too few groups there are.

    ``room`` is what labellings may lose against the multipliers, all clusters together.
    """
    reduced = pricer.reduced
    n, k = reduced.n_groups, reduced.n_clusters
    if n < least_groups:
        return None
    sums, masses = reduced.cluster_sums(labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        centers = sums / masses[:, None]  # NaN: empty
        reach = REACH * np.sqrt(room / masses)
    state = np.empty(n, dtype=np.uint8)
    count = settle(pricer.instance(multipliers), labels, centers, reach, MARGIN, state)
    settled = state == SETTLED
    if n - count > MOST_LEFT * n:
        return None
    n_kept = n - count
    number = np.where(settled, n_kept + labels, np.cumsum(~settled) - 1)
    used, number = _without_gaps(number, n_kept + k)
    return _joined(reduced, labels, multipliers, settled, number, used)


def rehearse_core(reduced: ReducedProblem) -> None:
    """Call what only large problems need on a tiny one, so that it is compiled."""
    labels = np.arange(reduced.n_groups) % reduced.n_clusters
    core_of(Pricer(reduced), labels, np.ones(reduced.n_groups), 0.0, least_groups=0)


def _without_gaps(number: Labels, n: int) -> tuple[int, Labels]:
    """How many numbers are in use, and the same numbering with those alone."""
    held = np.bincount(number, minlength=n) > 0
    return int(held.sum()), (np.cumsum(held) - 1)[number]


def _joined(
    reduced: ReducedProblem,
    labels: Labels,
    multipliers: Vector,
    settled: NDArray[np.bool_],
    number: Labels,
    n_core: int,
) -> Core:
    weights = np.bincount(number, reduced.weights, n_core).astype(np.float64)
    means = np.empty((n_core, reduced.n_axes))
    inside = np.zeros(n_core)
    for j, column in enumerate(reduced.points.T):
        pull = reduced.weights * column
        means[:, j] = np.bincount(number, pull, n_core) / weights
        inside += np.bincount(number, pull * column, n_core) - weights * means[:, j] ** 2
    alone = np.bincount(number, minlength=n_core) == 1
    inside[alone] = 0.0
    means[number[~settled]] = reduced.points[~settled]
    pairs = reduced.graph.edges()
    graph, order = build_apart_graph(n_core, number[pairs[~settled[pairs].any(axis=1)]])
    place = np.empty(n_core, dtype=np.int64)
    place[order] = np.arange(n_core)
    group_of = place[number]
    of_core = np.empty(n_core, dtype=np.int64)
    of_core[group_of] = labels
    total = float(inside.sum())
    core = ReducedProblem(
        means[order],
        weights[order],
        CannotLinks(graph),
        reduced.n_clusters,
        reduced.offset + total,
    )
    joined = np.bincount(number, multipliers, n_core) - inside
    share = np.where(settled, reduced.weights / core.weights[group_of], 1.0)
    return Core(core, of_core, joined[order], group_of, total, multipliers, share)
