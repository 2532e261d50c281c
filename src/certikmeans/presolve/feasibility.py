"""Feasible labels under all kinds of constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment.label_search import search_feasible_labels
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.model import ConstraintModel, LabelConstraints, forbidden_pairs
from certikmeans.presolve.coloring import DEFAULT_PARAMS, ColoringResult, find_coloring
from certikmeans.presolve.size_feasibility import find_sized_labels
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]
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
    points: NDArray[np.float64] | None = None,
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
    points: NDArray[np.float64] | None,
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
