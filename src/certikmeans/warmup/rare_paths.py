"""What only large, entangled or contradictory data need, on tiny data.

Runs on such data would take seconds; here their parts are called as a run calls them, with arrays
of the same kind. That no kernel is left out is tested.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from certikmeans.assignment import make_assigner
from certikmeans.assignment.dense_components import DenseComponent
from certikmeans.assignment.layout import build_layout
from certikmeans.bounds.registry import make_bound
from certikmeans.certainty.dual_ascent import compile_aggregation
from certikmeans.presolve.coloring import TabuColoring, subgraph_from_edges
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.solver.run import solve
from certikmeans.warmup.problems import (
    complete_graph,
    contradictions,
    easy_problems,
    hard_problem,
    make_bound_input,
    many_clusters,
    presolve_feasible,
)


def compile_rare_paths(bounds: Iterable[str]) -> None:
    """Compile what few runs need, of these bounds and of everything else."""
    for problem in (*many_clusters(), *contradictions()):
        solve(problem, node_limit=1, gap=0.5)
    solve(easy_problems()[0]).certainty()
    compile_aggregation(presolve_feasible(easy_problems()[0]).reduced)
    for problem in many_clusters():
        _interrupted_lloyd(presolve_feasible(problem))
    _entangled_component(presolve_feasible(hard_problem()))
    TabuColoring(subgraph_from_edges(4, complete_graph(4)), 3).advance(1)
    inputs = make_bound_input(presolve_feasible(many_clusters()[0]))
    for name in bounds:
        make_bound(name).rehearse(inputs)


def _interrupted_lloyd(presolved: PresolvedProblem) -> None:
    """Steps one by one, as for large data and for components that are searched."""
    problem, feasible_labels = presolved.reduced, presolved.feasible_labels
    assert feasible_labels is not None
    assigner = make_assigner(problem, feasible_labels)
    centers = problem.points[: problem.n_clusters]
    assigner.assign(centers)
    assigner.lloyd(centers, feasible_labels.copy(), 1)


def _entangled_component(presolved: PresolvedProblem) -> None:
    """What is done with a component of cannot-links that a short search does not settle."""
    problem, feasible_labels = presolved.reduced, presolved.feasible_labels
    assert feasible_labels is not None
    layout = build_layout(problem.graph, problem.n_clusters, feasible_labels)
    cyclic_component = int(np.flatnonzero(layout.tables.size)[0])
    n_core = int(layout.cores.start[cyclic_component + 1] - layout.cores.start[cyclic_component])
    labels = layout.graph.feasible_labels
    core = DenseComponent(
        layout, cyclic_component, np.ones((n_core, problem.n_clusters)), labels.copy(), labels
    )
    core.use_initial_labels()
    core.eliminate()
