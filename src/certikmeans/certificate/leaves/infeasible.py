"""Domain without a labelling: no coloring of its cannot-link graph, or sizes that do not add up."""

from __future__ import annotations

import math

import numpy as np

from certikmeans.certificate.check_arithmetic import Ints
from certikmeans.certificate.check_coloring import is_uncolorable
from certikmeans.certificate.check_constraints import GroupConstraints
from certikmeans.certificate.check_domains import LeafContext
from certikmeans.certificate.format import Reason, Rejection

NAME = "infeasible"
CODE = 5

MAX_SET_PAIRS = 1_000_000


def check(ctx: LeafContext) -> None:
    """Compare totals of sizes, then search for a coloring."""
    domain, constraints = ctx.domain, ctx.domain.constraints
    edges, n_clusters = domain.edges, ctx.original.n_clusters
    if constraints is not None:
        if any(len(one) > n_clusters for one in constraints.sets):
            return
        if _sizes_contradict(constraints):
            return
        edges = _with_set_pairs(edges, constraints)
    if not is_uncolorable(domain.n_groups, edges, n_clusters):
        raise Rejection(Reason.BOUND, "it is not proven that the domain is empty")


def _sizes_contradict(constraints: GroupConstraints) -> bool:
    """Whether the limits exclude the sum of all demands, or a group is too large for a cluster."""
    demand = constraints.demand
    if demand is None:
        return False
    if float(demand.max()) > float(constraints.upper.max()):
        return True
    # `math.fsum` is correctly rounded: its sign is that of the exact sum.
    total = demand.tolist()
    too_much = math.fsum([*total, *(-constraints.upper).tolist()]) > 0.0
    return too_much or math.fsum([*total, *(-constraints.lower).tolist()]) < 0.0


def _with_set_pairs(edges: Ints, constraints: GroupConstraints) -> Ints:
    """Add the pairs of all sets; leaving some out can only make colorings possible."""
    parts, left = [edges], MAX_SET_PAIRS
    for members in constraints.sets:
        left -= len(members) * (len(members) - 1) // 2
        if left < 0:
            break
        first, second = np.triu_indices(len(members), k=1)
        parts.append(np.column_stack([members[first], members[second]]))
    return np.unique(np.concatenate(parts), axis=0)
