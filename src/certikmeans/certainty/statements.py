"""Which clusters a group can be in, and how many points can be elsewhere at once.

Fix a labelling that is good enough. For a cluster ``C`` with centre ``mu``, any other set ``I``
without a cannot-link has ``value(I, mu) <= sigma``, so the deficit of ``C`` is at least
``value(I, mu) - value(C, mu)``. Sets that differ from ``C`` in one group tell what that group
costs:

* leave ``s`` out of its own cluster: at least ``-a_s`` there;
* add ``s`` to another cluster, without its neighbours in the cannot-link graph: at least ``a_s``
  there, less what the neighbours are worth that can be in that cluster.

The clusters are different ones, so these add up; with all deficits at most ``delta``, a group
cannot be where they come to more. Neighbours that cannot be somewhere do not count there, so this
is repeated while something changes; and where a group is certain, its neighbours are not.

**Many groups at once.** Groups without cannot-links add up: ``I`` may differ from ``C`` in any
number of them. So those that are not where they are with us cost ``delta`` at most together, a
knapsack. Of one component of cannot-links any one of its groups can be spoken of, so the dearest:
to have some of them elsewhere costs what it costs for that one. The most points for a price is a
step function for each component, and the knapsack takes the least concave function above it.

Clusters that cannot be told apart are a family of ``q``. Of the points that stay in it, some way of
numbering its clusters agrees on the q-th part: the average over all ways does.

**Rounding.** Sums of ``m`` numbers that are not negative err by less than ``m EPS`` of themselves;
costs are lowered, and what neighbours are worth is raised, by twice that. A step of the knapsack is
such a sum, of differences that are rounded once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty.counting import Family
from certikmeans.certainty.ranges import Worth
from certikmeans.kernels.cheapest import hull_steps
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS

MOST_ROUNDS = 20


@final
@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """Of groups and families: who can be where, and what it costs to be elsewhere."""

    possible: NDArray[np.bool_]  # (n_groups, n_families)
    price: NDArray[np.float64]  # (n_groups, n_families): at least what it costs to be there


def family_worth(worth: Worth, families: tuple[Family, ...]) -> Worth:
    """Bounds over all the regions of a family; where a cluster can be empty, from below none."""
    n_groups = len(worth.low)
    low = np.full((n_groups, len(families)), -np.inf)
    high = np.full((n_groups, len(families)), -np.inf)
    for f, family in enumerate(families):
        columns = list(family.regions)
        if columns:
            high[:, f] = worth.high[:, columns].max(axis=1)
            if family.filled:
                low[:, f] = worth.low[:, columns].min(axis=1)
    return Worth(low, high)


def who_can_be_where(
    reduced: ReducedProblem,
    worth: Worth,
    families: tuple[Family, ...],
    delta: float,
    rounds: int = MOST_ROUNDS,
) -> Statements:
    """Leave out what would cost more than ``delta``, again and again: with ``rounds`` 1, once."""
    n_families = worth.high.shape[1]
    counts = np.array([len(family.clusters) for family in families], dtype=np.float64)
    single = counts == 1.0
    leave = np.maximum(0.0, -worth.high)
    join = np.maximum(0.0, worth.high)
    graph = reduced.graph
    linked = graph.n_linked
    tails = np.repeat(np.arange(linked), np.diff(graph.indptr[: linked + 1]))
    heads = graph.neighbors[: len(tails)]
    widest = int(np.diff(graph.indptr).max(initial=0))
    raised = 1.0 + 2.0 * (widest + 4) * EPS
    # Without cannot-links a group costs what it costs, whoever else can be where.
    price = _prices(leave, np.maximum(0.0, worth.low), counts)
    possible = price <= delta
    possible[:linked] = True
    for _ in range(rounds if linked else 0):
        gain = np.empty((linked, n_families))
        for f in range(n_families):
            held = np.bincount(tails, join[heads, f] * possible[heads, f], linked)
            low = worth.low[:linked, f]
            margin = low - held * raised
            margin -= 4.0 * EPS * (np.abs(np.where(np.isfinite(low), low, 0.0)) + held)
            gain[:, f] = np.maximum(0.0, margin)
        price[:linked] = _prices(leave[:linked], gain, counts)
        found = possible[:linked] & (price[:linked] <= delta)
        if rounds > 1:
            _keep_apart(found, single, tails, heads)
        if np.array_equal(found, possible[:linked]):
            break
        possible[:linked] = found
    return Statements(possible, price)


def _prices(
    leave: NDArray[np.float64], gain: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """At least what it costs to be in each family: to leave it in, and out of all the others."""
    n_families = len(counts)
    lowered = 1.0 - 2.0 * (n_families + 8) * EPS
    everywhere = gain @ counts
    # All clusters but the one it is in. Differences of sums may cancel: the error is that of the
    # sum.
    others = everywhere[:, None] - gain
    others -= 2.0 * (n_families + 8) * EPS * everywhere[:, None]
    price: NDArray[np.float64] = (
        np.maximum(0.0, leave * lowered + np.maximum(0.0, others)) * lowered
    )
    return price


def _keep_apart(
    possible: NDArray[np.bool_],
    single: NDArray[np.bool_],
    tails: NDArray[np.int64],
    heads: NDArray[np.int64],
) -> None:
    """Where a group is certain, its neighbours cannot be."""
    if len(tails) == 0:
        return
    settled = (possible.sum(axis=1) == 1) & possible[:, single].any(axis=1)
    for f in np.flatnonzero(single):
        taken = settled[heads] & possible[heads, f]
        possible[tails[taken], f] = False


def most_elsewhere(
    reduced: ReducedProblem,
    statements: Statements,
    families: tuple[Family, ...],
    family_of_group: NDArray[np.int64],
    sizes: NDArray[np.int64],
    delta: float,
) -> float:
    """Bound the points that can be grouped otherwise than with us, in one labelling.

    ``family_of_group`` is where groups are with us, ``sizes`` the points of each.
    """
    n_groups = reduced.n_groups
    rows = np.arange(n_groups)
    away = statements.possible.copy()
    away[rows, family_of_group] = False
    price = np.where(away, statements.price, np.inf).min(axis=1, initial=np.inf)
    can = np.isfinite(price)
    share = 1.0 / np.array([len(family.clusters) for family in families], dtype=np.float64)
    stay = (1.0 - share)[family_of_group] * sizes
    gain = share[family_of_group] * sizes
    graph = reduced.graph
    component = np.repeat(np.arange(graph.n_components), np.diff(graph.starts))
    linked, free = can[: graph.n_linked], can.copy()
    free[: graph.n_linked] = False
    steps = steps_of(
        component[linked], gain[: graph.n_linked][linked], price[: graph.n_linked][linked]
    )
    most = most_gain(np.append(steps[0], gain[free]), np.append(steps[1], price[free]), delta)
    return math.fsum(stay.tolist()) * (1.0 + 4.0 * EPS) + most


def steps_of(
    component: NDArray[np.int64], gain: NDArray[np.float64], price: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gains and prices to choose from, where every component costs what its dearest one does."""
    order = np.lexsort((price, component))
    component, gain, price = component[order], gain[order], price[order]
    starts = np.append(np.flatnonzero(np.diff(component, prepend=-1)), len(component))
    step_gain, step_price = np.empty_like(gain), np.empty_like(price)
    count = hull_steps(starts, gain, price, step_gain, step_price)
    return step_gain[:count], step_price[:count]


def most_gain(gain: NDArray[np.float64], price: NDArray[np.float64], budget: float) -> float:
    """At least the most gain within a budget: the last item may be cut."""
    order = np.argsort(price / gain, kind="stable")
    gain, price = gain[order], price[order]
    spent = np.cumsum(price) * (1.0 - 4.0 * (len(price) + 8) * EPS)
    whole = int(np.searchsorted(spent, budget, side="right"))
    total = math.fsum(gain[:whole].tolist())
    if whole < len(gain):
        left = budget - (spent[whole - 1] if whole else 0.0)
        total += float(gain[whole]) * min(1.0, max(0.0, left) / float(price[whole]))
    return total * (1.0 + 8.0 * EPS)
