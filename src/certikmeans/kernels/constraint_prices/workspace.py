"""Workspace of the prices, and the pairs among some groups."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit

MAX_SCANS_PER_ARC = 64  # of the flow in one call; a flow cut short gives valid prices


class PairWorkspace(NamedTuple):
    """Pairs among up to ``m`` members, as compressed rows of directed arcs, and their prices."""

    start: np.ndarray  # (m + 1,) int64: arcs of member i are start[i] .. start[i + 1]
    cursor: np.ndarray  # (m + 1,) int64
    head: np.ndarray  # (a,) int32: member at the other end
    reverse: np.ndarray  # (a,) int32: the same pair at the other end
    bonus: np.ndarray  # (a,) float64
    charge: np.ndarray  # (a,) float64: part of the price of the tail due to this pair
    reduced: np.ndarray  # (m,) float64: values minus prices so far
    degree: np.ndarray  # (m,) int32: number of open pairs
    queue: np.ndarray  # (m,) int32
    state: np.ndarray  # (m,) uint8: see `reduction`
    queued: np.ndarray  # (m,) uint8
    bonuses: np.ndarray  # (m,) float64: sum of the bonuses of the open must-links
    order: np.ndarray  # (m,) int32: leaves in the order of their elimination
    anchor: np.ndarray  # (m,) int64: arc of an eliminated leaf


class FlowWorkspace(NamedTuple):
    """Network of the pairs that no reduction solves; node ``i`` and its copy ``m + i``."""

    residual: np.ndarray  # (2 a,) float64: capacity left of an arc from a member, from its copy
    terminal: np.ndarray  # (2 m,) float64: capacity left from the source, or minus that to the sink
    level: np.ndarray  # (2 m,) int32: distance from the sources, -1 if not reached
    current: np.ndarray  # (2 m,) int64: next arc to try
    queue: np.ndarray  # (2 m,) int32
    path: np.ndarray  # (2 m,) int64: arcs of the current path


class CycleWorkspace(NamedTuple):
    """Workspace of the prices of odd cycles."""

    pi: np.ndarray  # (a,) float64: prices of pairs, negative where not usable
    cover: np.ndarray  # (m,) float64: sum of the prices of the cycles of a member
    uses: np.ndarray  # (m,) int64: number of priced cycles of a member
    y: np.ndarray  # (m,) float64
    row: np.ndarray  # (m,) float64
    mark: np.ndarray  # (m,) int64
    strength: np.ndarray  # (m,) float64
    first: np.ndarray  # (m,) int64
    second: np.ndarray  # (m,) int64
    reached: np.ndarray  # (m,) int32
    arcs: np.ndarray  # (5,) int64
    constant: np.ndarray  # (2,) float64: compensated sum


class PriceWorkspace(NamedTuple):
    """Workspace of `update_prices` and `select_set`.

    ``target`` is the bound that the caller needs. Odd cycles are priced only if the linear program
    of the pairs misses it by little, so not at all as long as it is -inf.
    """

    effort: np.ndarray  # (2,) int64: most arcs scanned by a call; total scanned so far
    target: np.ndarray  # (1,) float64
    position: np.ndarray  # (n,) int32: index of a group among the members, -1 between calls
    pairs: PairWorkspace
    flow: FlowWorkspace
    cycles: CycleWorkspace
    pair_price: np.ndarray  # (m,) float64
    set_price: np.ndarray  # (m,) float64
    values: np.ndarray  # (m,) float64
    best: np.ndarray  # (m,) float64
    left: np.ndarray  # (m,) float64
    total: np.ndarray  # (m,) float64
    zeros: np.ndarray  # (m,) float64
    order: np.ndarray  # (m,) int32
    touched: np.ndarray  # (n_sets,) int32
    set_mark: np.ndarray  # (n_sets,) int32: 0 between calls
    set_q: np.ndarray  # (n_sets,) float64
    counts: np.ndarray  # (m,) int32
    demand: np.ndarray  # (m,) float64: of the members
    size: np.ndarray  # (1,) float64
    x: np.ndarray  # (m,) float64: solution of the linear program of the pairs, in halves


@njit(cache=True, nogil=True)
def price_workspace(
    constraints,  # IN  ConstraintArrays
    capacity,  # IN  largest number of members
):
    """Allocate the workspace of prices over up to ``capacity`` groups."""
    n_arcs = constraints.pair_neighbors.size
    n_sets = constraints.set_indptr.size - 1
    effort = np.zeros(2, dtype=np.int64)
    effort[0] = MAX_SCANS_PER_ARC * n_arcs + 100_000
    pairs = PairWorkspace(
        start=np.empty(capacity + 1, dtype=np.int64),
        cursor=np.empty(capacity + 1, dtype=np.int64),
        head=np.empty(n_arcs, dtype=np.int32),
        reverse=np.empty(n_arcs, dtype=np.int32),
        bonus=np.empty(n_arcs),
        charge=np.empty(n_arcs),
        reduced=np.empty(capacity),
        degree=np.empty(capacity, dtype=np.int32),
        queue=np.empty(capacity, dtype=np.int32),
        state=np.empty(capacity, dtype=np.uint8),
        queued=np.empty(capacity, dtype=np.uint8),
        bonuses=np.empty(capacity),
        order=np.empty(capacity, dtype=np.int32),
        anchor=np.empty(capacity, dtype=np.int64),
    )
    flow = FlowWorkspace(
        residual=np.empty(2 * n_arcs),
        terminal=np.empty(2 * capacity),
        level=np.empty(2 * capacity, dtype=np.int32),
        current=np.empty(2 * capacity, dtype=np.int64),
        queue=np.empty(2 * capacity, dtype=np.int32),
        path=np.empty(2 * capacity, dtype=np.int64),
    )
    cycles = CycleWorkspace(
        pi=np.empty(n_arcs),
        cover=np.zeros(capacity),
        uses=np.zeros(capacity, dtype=np.int64),
        y=np.empty(capacity),
        row=np.empty(capacity),
        mark=np.empty(capacity, dtype=np.int64),
        strength=np.empty(capacity),
        first=np.empty(capacity, dtype=np.int64),
        second=np.empty(capacity, dtype=np.int64),
        reached=np.empty(capacity, dtype=np.int32),
        arcs=np.empty(5, dtype=np.int64),
        constant=np.zeros(2),
    )
    return PriceWorkspace(
        effort=effort,
        target=np.array([-np.inf]),
        position=np.full(constraints.pair_indptr.size - 1, -1, dtype=np.int32),
        pairs=pairs,
        flow=flow,
        cycles=cycles,
        pair_price=np.empty(capacity),
        set_price=np.empty(capacity),
        values=np.empty(capacity),
        best=np.empty(capacity),
        left=np.empty(capacity),
        total=np.empty(capacity),
        zeros=np.zeros(capacity),
        order=np.empty(capacity, dtype=np.int32),
        touched=np.empty(n_sets, dtype=np.int32),
        set_mark=np.zeros(n_sets, dtype=np.int32),
        set_q=np.empty(n_sets),
        counts=np.empty(capacity, dtype=np.int32),
        demand=np.empty(capacity),
        size=np.zeros(1),
        x=np.empty(capacity),
    )


@njit(cache=True, nogil=True)
def mark_members(
    ids,  # IN   (m,) int32
    position,  # OUT  (n,) int32
):
    """Number the members."""
    for i in range(ids.size):
        position[ids[i]] = i


@njit(cache=True, nogil=True)
def unmark_members(
    ids,  # IN   (m,) int32
    position,  # OUT  (n,) int32
):
    """Undo `mark_members`."""
    for i in range(ids.size):
        position[ids[i]] = -1


@njit(cache=True, nogil=True)
def add_compensated(
    total,  # IN/OUT (2,) float64: sum and the rounding errors of its additions
    term,  # IN
):
    """Add a term to a compensated sum."""
    new = total[0] + term
    if abs(total[0]) >= abs(term):
        total[1] += (total[0] - new) + term
    else:
        total[1] += (term - new) + total[0]
    total[0] = new
