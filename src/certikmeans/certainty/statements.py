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
from certikmeans.problem.graph import ApartGraph
from certikmeans.problem.tables import SMALL_BLOCK, row_blocks
from certikmeans.rounding import EPS

MOST_ROUNDS = 20
FIRST_ITEMS = 4096  # sorted before the others, as a rule instead of them


@final
@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """Of groups and families: who can be where, and what it costs to be elsewhere."""

    possible: NDArray[np.bool_]  # (n_groups, n_families)
    price: NDArray[np.float64]  # (n_groups, n_families): at least what it costs to be there


def family_worth(worth: Worth, families: tuple[Family, ...]) -> Worth:
    """Bounds over all the regions of a family."""
    shape = (len(worth.low), len(families))
    low, high = np.empty(shape, order="F"), np.empty(shape, order="F")
    for f, family in enumerate(families):
        low[:, f], high[:, f] = worth.over(family.regions)
    return Worth(low, high)


def who_can_be_where(
    reduced: ReducedProblem,
    worth: Worth,
    families: tuple[Family, ...],
    delta: float,
    rounds: int = MOST_ROUNDS,
) -> Statements:
    """Leave out what would cost more than ``delta``, again and again: with ``rounds`` 1, once."""
    counts = np.array([len(family.clusters) for family in families], dtype=np.float64)
    # Without cannot-links a group costs what it costs, whoever else can be where.
    price = np.empty(worth.high.shape)
    for rows in row_blocks(price, SMALL_BLOCK):
        leave = np.maximum(0.0, -worth.high[rows])
        price[rows] = _prices(leave, np.maximum(0.0, worth.low[rows]), counts)
    possible = price <= delta
    linked = reduced.graph.n_linked
    possible[:linked] = True
    todo = np.arange(linked)
    for _ in range(rounds):
        if len(todo) == 0:
            break
        found = possible[:linked].copy()
        gain = _gains(reduced.graph, worth, possible, todo)
        price[todo] = _prices(np.maximum(0.0, -worth.high[todo]), gain, counts)
        found[todo] &= price[todo] <= delta
        if rounds > 1:
            _keep_apart(found, counts == 1.0, reduced.graph)
        # Who has a neighbour that is left out of something may have to pay more now.
        changed = how_many(found != possible[:linked]) > 0
        possible[:linked] = found
        todo = np.unique(_neighbours(reduced.graph, np.flatnonzero(changed))[1])
    return Statements(possible, price)


def how_many(table: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many in every row are True; numpy adds up short rows slowly.

    >>> how_many(np.array([[True, False], [True, True]]))
    array([1, 2])
    """
    total = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        total += column
    return total


def _neighbours(
    graph: ApartGraph, groups: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All cannot-links of some groups: the place of the group, and the neighbour."""
    starts, degrees = graph.indptr[groups], graph.indptr[groups + 1] - graph.indptr[groups]
    place = np.repeat(np.arange(len(groups)), degrees)
    first = np.cumsum(degrees) - degrees
    entries = np.arange(len(place)) - first[place] + starts[place]
    return place, graph.neighbors[entries]


def _gains(
    graph: ApartGraph, worth: Worth, possible: NDArray[np.bool_], groups: NDArray[np.int64]
) -> NDArray[np.float64]:
    """At least what some groups add to each family, less what their neighbours are worth there."""
    place, neighbours = _neighbours(graph, groups)
    raised = 1.0 + 2.0 * (int(np.diff(graph.indptr).max(initial=0)) + 4) * EPS
    gain = np.empty((len(groups), worth.high.shape[1]))
    for f in range(gain.shape[1]):
        join = np.maximum(0.0, worth.high[neighbours, f]) * possible[neighbours, f]
        held = np.bincount(place, join, len(groups))
        low = worth.low[groups, f]
        margin = low - held * raised
        margin -= 4.0 * EPS * (np.abs(low) + held)
        gain[:, f] = np.maximum(0.0, margin)
    return gain


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


def _keep_apart(possible: NDArray[np.bool_], single: NDArray[np.bool_], graph: ApartGraph) -> None:
    """Where a group is certain, its neighbours cannot be."""
    alone = how_many(possible[:, single]) == 1
    settled = np.flatnonzero(alone & (how_many(possible) == 1))
    place, neighbours = _neighbours(graph, settled)
    home = possible[settled].argmax(axis=1)
    possible[neighbours, home[place]] = False


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
    price = np.empty(reduced.n_groups)
    for rows in row_blocks(statements.price, SMALL_BLOCK):
        away = np.where(statements.possible[rows], statements.price[rows], np.inf)
        away[np.arange(len(away)), family_of_group[rows]] = np.inf
        price[rows] = np.min([*away.T], axis=0)
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
    order = _cheapest(price / gain, price, budget)
    gain, price = gain[order], price[order]
    spent = np.cumsum(price) * (1.0 - 4.0 * (len(price) + 8) * EPS)
    whole = int(np.searchsorted(spent, budget, side="right"))
    total = math.fsum(gain[:whole].tolist())
    if whole < len(gain):
        left = budget - (spent[whole - 1] if whole else 0.0)
        total += float(gain[whole]) * min(1.0, max(0.0, left) / float(price[whole]))
    return total * (1.0 + 8.0 * EPS)


def _cheapest(
    ratio: NDArray[np.float64], price: NDArray[np.float64], budget: float
) -> NDArray[np.int64]:
    """Items in the order of price for gain, at least as many as the budget is enough for."""
    size = FIRST_ITEMS
    while size < len(ratio):
        chosen = np.argpartition(ratio, size)[:size]
        if price[chosen].sum() > 1.01 * budget:
            return chosen[np.argsort(ratio[chosen], kind="stable")]
        size *= 8
    return np.argsort(ratio, kind="stable")
