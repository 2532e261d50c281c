"""Feasible labels under all kinds of constraints."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.assignment.label_search import search_feasible_labels
from certikmeans.assignment.transportation import repair_labels, scale_sizes
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.model import ConstraintModel, LabelConstraints, forbidden_pairs
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.presolve.coloring import DEFAULT_PARAMS, ColoringResult, find_coloring
from certikmeans.presolve.size_proofs import allowed_totals, attainable, exact_packing
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal

Labels = Ints
SizedAnswer = tuple[Literal["yes", "no", "undecided"], Labels | None]

# Integer programs are tried up to this size, for so long.
MAX_VARIABLES = 20_000
PROGRAM_SECONDS = 10.0
# The exact search runs for so many groups.
MAX_EXACT_GROUPS = 2_000
# Of the remaining time, for a search that may fail.
SEARCH_FRACTION = 0.3


def find_sized_labels(
    constraints: LabelConstraints,
    n_clusters: int,
    colored: Labels | None,
    stop: StopSignal,
    points: Floats | None = None,
) -> SizedAnswer:
    """Find labels within the limits that satisfy all other hard constraints.

    Searches begin near ``points`` where those that begin at ``colored`` labels fail.

    "no" is proven by whole numbers: by totals, or by an exact search. An integer program that
    finds no labels is no proof, since its solver computes with rounding errors.
    """
    sizes = constraints.sizes
    assert sizes is not None
    if _totals_contradict(sizes):
        return "no", None
    free = constraints.sets is None and constraints.cannot_links.n_linked == 0
    if free:
        labels = _pack(sizes)
        if labels is not None:
            return "yes", labels
        labels = _packed_by_program(sizes, stop)
    else:
        limited = stop.with_time_limit(min(60.0, SEARCH_FRACTION * stop.remaining))
        labels = search_feasible_labels(constraints, n_clusters, colored, points, limited)
        if labels is None:
            labels = _labels_by_program(constraints, stop)
    if labels is not None and constraints.satisfied_by(labels):
        return "yes", constraints.aligned(labels)
    if len(sizes.demand) <= MAX_EXACT_GROUPS:
        pairs = [(int(a), int(b)) for a, b in forbidden_pairs(constraints)]
        packing = exact_packing(_with_room(sizes), np.arange(len(sizes.demand)), pairs)
        if attainable(packing) is False:
            return "no", None
    return "undecided", None


def _with_room(sizes: SizeLimits) -> SizeLimits:
    """Limits with room for the rounding of demands that were added up, if they are not whole."""
    if sizes.tolerance == 0.0:
        return sizes
    room = 1e-9 * float(sizes.demand.sum())
    return SizeLimits(sizes.demand, np.maximum(sizes.lower - room, 0.0), sizes.upper + room)


def _totals_contradict(sizes: SizeLimits) -> bool:
    """Whether the total demand, or that of one group, is outside what the limits allow."""
    wide = _with_room(sizes)
    lower, upper = allowed_totals(wide)
    total = float(sizes.demand.sum())
    return bool(
        (lower > upper).any()
        or lower.sum() > total
        or upper.sum() < total
        or sizes.demand.max(initial=0.0) > upper.max()
    )


def _pack(sizes: SizeLimits) -> Labels | None:
    """Large groups first, each to the cluster that lacks most; then repair."""
    n, n_clusters = len(sizes.demand), len(sizes.lower)
    scaled = scale_sizes(sizes)
    if scaled is None:
        return None
    if scaled.limits.whole.size:
        lower, upper = scaled.limits.whole
        labels = np.zeros(n, dtype=np.int64)
        labels[scaled.limits.active] = _fill(lower, upper, len(scaled.limits.active))
        return labels
    lower, upper = sizes.lower, np.minimum(sizes.upper, sizes.demand.sum())
    total, width = float(sizes.demand.sum()), float((upper - lower).sum())
    share = (total - float(lower.sum())) / width if width > 0.0 else 0.0
    lacking = [(-float(lower[k] + share * (upper[k] - lower[k])), k) for k in range(n_clusters)]
    heapq.heapify(lacking)
    labels = np.empty(n, dtype=np.int64)
    for s in np.argsort(-sizes.demand, kind="stable").tolist():
        missing, k = lacking[0]
        labels[s] = k
        heapq.heapreplace(lacking, (missing + float(sizes.demand[s]), k))
    return repair_labels(np.zeros((n, n_clusters)), sizes, labels)


def _fill(lower: Labels, upper: Labels, n: int) -> Labels:
    """Labels of n units."""
    count, rest = lower.copy(), n - int(lower.sum())
    for k in range(len(count)):
        extra = min(int(upper[k] - count[k]), rest)
        count[k] += extra
        rest -= extra
    return np.repeat(np.arange(len(count)), count)


def _packed_by_program(sizes: SizeLimits, stop: StopSignal) -> Labels | None:
    """Numbers of groups of every demand in every cluster, by an integer program."""
    values, kind, counts = np.unique(sizes.demand, return_inverse=True, return_counts=True)
    k = len(sizes.lower)
    if len(values) * k > MAX_VARIABLES:
        return None
    of_kind = np.kron(np.eye(len(values)), np.ones(k))
    of_cluster = np.kron(values, np.eye(k))
    solution = _solve(
        [(of_kind, counts, counts), (of_cluster, sizes.lower, sizes.upper)],
        np.repeat(counts, k).astype(np.float64),
        stop,
    )
    if solution is None:
        return None
    labels = np.empty(len(kind), dtype=np.int64)
    for i, row in enumerate(np.rint(solution).astype(np.int64).reshape(len(values), k)):
        if row.sum() != counts[i]:
            return None
        labels[kind == i] = np.repeat(np.arange(k), row)
    return labels


def _labels_by_program(constraints: LabelConstraints, stop: StopSignal) -> Labels | None:
    """Labels of groups with cannot-links and sets, by an integer program."""
    from scipy.sparse import coo_array, eye_array, kron

    sizes = constraints.sizes
    assert sizes is not None
    n, k = len(sizes.demand), len(sizes.lower)
    if n * k > MAX_VARIABLES:
        return None
    one_label = kron(eye_array(n), np.ones((1, k)), format="csr")
    totals = kron(sizes.demand[None, :], eye_array(k), format="csr")
    rows = [(one_label, np.ones(n), np.ones(n)), (totals, sizes.lower, sizes.upper)]
    cliques = [*constraints.cannot_links.edges()]
    if constraints.sets is not None:
        family = constraints.sets
        cliques += np.split(family.members, family.indptr[1:-1])
    if cliques:
        number = np.repeat(np.arange(len(cliques)), [len(one) for one in cliques])
        member = np.concatenate(cliques)
        inside = coo_array((np.ones(len(member)), (number, member)), shape=(len(cliques), n))
        most = np.ones(len(cliques) * k)
        rows.append((kron(inside, eye_array(k), format="csr"), np.zeros_like(most), most))
    solution = _solve(rows, np.ones(n * k), stop)
    return None if solution is None else np.argmax(solution.reshape(n, k), axis=1).astype(np.int64)


def _solve(rows: list[tuple[Any, Any, Any]], upper: Floats, stop: StopSignal) -> Floats | None:
    """Any solution of an integer program without objective, or None if none is found in time."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    seconds = min(PROGRAM_SECONDS, SEARCH_FRACTION * stop.remaining)
    if seconds <= 0.0:
        return None
    found = milp(
        np.zeros(len(upper)),
        integrality=np.ones(len(upper)),
        bounds=Bounds(0.0, upper),
        constraints=[LinearConstraint(*row) for row in rows],
        options={"time_limit": seconds},
    )
    return None if found.x is None else np.asarray(found.x)


Answer = Literal["yes", "no", "undecided"]

MAX_GUESSES = 3  # searches near cheap labels before those without regard to costs


@final
@dataclass(frozen=True, slots=True, eq=False)
class Feasibility:
    """Whether there is a labelling, and one if it was found.

    ``coloring`` is the failed coloring of ``graph``, whose vertex ``v`` is group ``order[v]``; it
    is None after "no" if the limits on sizes cannot be satisfied.
    """

    answer: Answer
    labels: Labels | None = None
    coloring: ColoringResult | None = None
    graph: CannotLinkGraph | None = None
    order: Labels | None = None


def find_labels(
    constraints: LabelConstraints,
    n_clusters: int,
    stop: StopSignal,
    points: Floats | None = None,
) -> Feasibility:
    """Find labels that satisfy every hard constraint, or prove that there are none.

    ``points`` of the groups guide the searches: labels near cheap ones are easier to find where
    the constraints come from classes of nearby points.
    """
    colored = _color(constraints, n_clusters, stop, points)
    sizes = constraints.sizes
    if colored.answer == "no" or sizes is None:
        return colored
    answer, labels = find_sized_labels(constraints, n_clusters, colored.labels, stop, points)
    return Feasibility(answer, labels)


def _color(
    constraints: LabelConstraints,
    n_clusters: int,
    stop: StopSignal,
    points: Floats | None,
) -> Feasibility:
    """Color pairs and sets."""
    graph, sets = constraints.cannot_links, constraints.sets
    n = graph.n_vertices
    order = np.arange(n)
    if sets is not None:
        if graph.n_linked == 0 and sets.disjoint and int(sets.sizes.max()) <= n_clusters:
            labels = np.zeros(n, dtype=np.int64)
            labels[sets.members] = np.arange(len(sets.members)) - np.repeat(
                sets.indptr[:-1], sets.sizes
            )
            return Feasibility("yes", labels)
        graph, order = build_cannot_link_graph(n, forbidden_pairs(constraints))
    pairs_and_sets = ConstraintModel.of(constraints.cannot_links, sets)

    def guess() -> Labels | None:
        found = search_feasible_labels(pairs_and_sets, n_clusters, None, points, stop, MAX_GUESSES)
        return None if found is None else found[order]

    coloring = find_coloring(graph, n_clusters, stop, DEFAULT_PARAMS, guess)
    if coloring.labels is None:
        return Feasibility(coloring.answer, None, coloring, graph, order)
    labels = np.empty(n, dtype=np.int64)
    labels[order] = coloring.labels
    return Feasibility(coloring.answer, labels, coloring, graph, order)
