"""Components too dense for a short search: everything else we have, within a time limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment.programs import LabelProgram
from certikmeans.kernels.assignment.component import gather_core, scatter_core
from certikmeans.kernels.assignment.elimination import eliminate
from certikmeans.kernels.assignment.layout import Layout, tables_of
from certikmeans.kernels.cores.core import Core, CoreAnswer, core_value
from certikmeans.kernels.cores.moves import permute_classes
from certikmeans.kernels.cores.solve import UNFINISHED, search_core
from certikmeans.stop import StopSignal

# Vertices that a search may look at: first some milliseconds, then about a second, then more.
_SHORT_WORK = 100_000
_LONG_WORK = 1_000_000
_MOST_WORK = 64_000_000
# Prices of a core with more cliques times labels take longer than a short search may.
_MOST_PRICES = 1_000_000

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class HardAnswer:
    """The best labels of a component, and what is proven about them."""

    labels: IntArray  # (n_vertices,), proper
    value: float  # inf: no labelling of finite cost is known
    lower: float  # at most the cost of every proper labelling, up to the rounding of sums
    exact: bool


@final
class HardCore:
    """The core of one component with its costs, and the best answer so far."""

    def __init__(
        self, layout: Layout, slot: int, costs: FloatArray, guess: IntArray, witness: IntArray
    ) -> None:
        cores = layout.cores
        first, last = int(cores.start[slot]), int(cores.start[slot + 1])
        cliques = slice(int(cores.clique_start[slot]), int(cores.clique_start[slot + 1]) + 1)
        vertices = cores.vertex[first:last]
        self.layout, self.slot = layout, slot
        self.core = Core(
            link_start=cores.link_start[first : last + 1],
            link=cores.link,
            member_start=cores.member_start[cliques],
            member=cores.member,
            costs=costs,
        )
        self.witness = witness[vertices]
        self.places = guess[vertices]
        self.prices: FloatArray = np.zeros((len(self.core.member_start) - 1, costs.shape[1]))
        self.allowed: NDArray[np.bool_] = np.isfinite(costs)
        self.margin = 0.0
        self.value, self.lower, self.exact = np.inf, 0.0, False

    @property
    def is_huge(self) -> bool:
        """Whether it is too large for prices, and so for every search."""
        return self.prices.size > _MOST_PRICES

    def take_what_is_known(self) -> None:
        """The better one of the labels at hand; moves of single groups do more, at less cost."""
        places, renamed = self.places.copy(), np.empty_like(self.places)
        value = core_value(self.core, places)
        if permute_classes(self.core.costs, self.witness, renamed):
            other = core_value(self.core, renamed)
            if other < value:
                places, value = renamed, other
        self.places, self.value = places, float(value)

    def search(self, work: int) -> None:
        """Branch and bound from the best labels so far."""
        places = self.places.copy()
        found: CoreAnswer = search_core(
            self.core, self.witness, work, self.margin, self.prices, places, self.allowed
        )
        self.margin = found.margin
        self.lower = max(self.lower, found.lower)
        self.exact = found.status != UNFINISHED
        if found.value < self.value:
            self.places, self.value = places, found.value

    def eliminate(self) -> None:
        """Bucket elimination, if its tables are small enough."""
        n_entries = int(self.layout.tables.size[self.slot])
        if n_entries == 0:
            return
        places = np.empty_like(self.places)
        tables = tables_of(self.layout.tables, self.layout.cores, self.slot)
        value = eliminate(tables, self.core.costs, np.empty(n_entries), places)
        self.lower, self.exact = value, True
        if value < np.inf:
            self.places, self.value = places, value

    def linear_program(self, seconds: float) -> None:
        """Better prices from a linear program. Whatever it returns, they are valid prices."""
        program = self._program()
        prices = program.clique_prices(seconds)
        if prices is not None:
            self.prices = prices

    def integer_program(self, seconds: float) -> None:
        """Better labels from an integer program; its bound is not used, as it is not rigorous."""
        program = self._program()
        places = program.labels(seconds)
        if places is not None:
            value = core_value(self.core, places)
            if value < self.value:
                self.places, self.value = places, value

    def _program(self) -> LabelProgram:
        core = self.core
        return LabelProgram(core.costs, self.allowed, core.member_start, core.member)


def solve_hard(
    layout: Layout,
    slot: int,
    unary: FloatArray,
    guess: IntArray,
    witness: IntArray,
    seconds: float,
    stop: StopSignal | None = None,
) -> HardAnswer:
    """Cheapest proper labels of the component with cycles ``slot``, or the best found in time.

    Of a huge component the better ones of guess and renamed witness. Else a short search;
    elimination with large tables; then longer searches, with better prices from
    a linear program, from better labels of an integer program, and with more and more work,
    until one of them proves its labels optimal or the time is over.

    Parameters
    ----------
    unary : ndarray of shape (n_vertices, n_labels)
        Costs >= 0, infinite = forbidden. Overwritten.
    guess : ndarray of shape (n_vertices,)
        Labels to start from; any numbers.
    witness : ndarray of shape (n_vertices,)
        Any proper labels.
    seconds : float
        0: one short search only.
    """
    n_core = int(layout.cores.start[slot + 1] - layout.cores.start[slot])
    costs = np.empty((n_core, unary.shape[1]))
    gather_core(layout.cores, slot, unary, costs)
    core = HardCore(layout, slot, costs, guess, witness)
    if core.is_huge:
        core.take_what_is_known()
    else:
        core.search(_SHORT_WORK)
    if not core.exact and not core.is_huge and seconds > 0:
        leash = StopSignal(seconds) if stop is None else stop.within(seconds)
        _work_harder(core, leash)
    if core.value == np.inf:
        lower = np.inf if core.exact else core.lower
        return HardAnswer(witness.copy(), np.inf, lower, core.exact)
    labels = np.empty(len(unary), dtype=np.int64)
    scatter_core(layout.cores, slot, unary, core.places, labels)
    return HardAnswer(labels, float(core.value), min(core.lower, core.value), core.exact)


def _work_harder(core: HardCore, leash: StopSignal) -> None:
    """Everything, in the order of what it takes, until the labels are proven or time is up."""
    core.eliminate()
    for prepare in (None, core.linear_program, core.integer_program):
        if core.exact or leash.cause() is not None:
            return
        if prepare is not None:
            prepare(0.5 * leash.remaining)
        core.search(_LONG_WORK)
    work = 2 * _LONG_WORK
    while not core.exact and leash.cause() is None and work <= _MOST_WORK:
        core.search(work)
        work *= 2
