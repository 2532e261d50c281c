"""What only large, entangled or contradictory data need, on tiny data.

Runs on such data would take seconds; here their parts are called as a run calls them, with arrays
of the same kind. That no kernel is left out is tested.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from certikmeans.assignment import assigner_for
from certikmeans.assignment.hard import HardCore
from certikmeans.assignment.plan import build_layout
from certikmeans.bounds.registry import make_bound
from certikmeans.certainty.core import rehearse_core
from certikmeans.presolve.colour_search import TabuSearch, subgraph_from_edges
from certikmeans.presolve.pipeline import Presolved
from certikmeans.solver import solve
from certikmeans.warming.instances import (
    complete_graph,
    contradictions,
    easy_problems,
    hard_problem,
    many_clusters,
)
from certikmeans.warming.roots import reduced_of, setting_of


def compile_rare(bounds: Iterable[str]) -> None:
    """Compile what few runs need, of these bounds and of everything else."""
    for problem in (*many_clusters(), *contradictions()):
        solve(problem, node_limit=1, gap=0.5)
    solve(easy_problems()[0]).certainty()
    rehearse_core(reduced_of(easy_problems()[0]).reduced)
    for problem in many_clusters():
        _interrupted_lloyd(reduced_of(problem))
    _entangled_component(reduced_of(hard_problem()))
    TabuSearch(subgraph_from_edges(4, complete_graph(4)), 3).advance(1)
    setting = setting_of(reduced_of(many_clusters()[0]))
    for name in bounds:
        make_bound(name).rehearse(setting)


def _interrupted_lloyd(done: Presolved) -> None:
    """Steps one by one, as for large data and for components that are searched."""
    problem, witness = done.reduced, done.witness
    assert witness is not None
    assigner = assigner_for(problem, witness)
    centers = problem.points[: problem.n_clusters]
    assigner.assign(centers)
    assigner.lloyd(centers, witness.copy(), 1)


def _entangled_component(done: Presolved) -> None:
    """What is done with a component of cannot-links that a short search does not settle."""
    problem, witness = done.reduced, done.witness
    assert witness is not None
    layout = build_layout(problem.graph, problem.n_clusters, witness)
    slot = int(np.flatnonzero(layout.tables.size)[0])
    n_core = int(layout.cores.start[slot + 1] - layout.cores.start[slot])
    labels = layout.graph.witness
    core = HardCore(layout, slot, np.ones((n_core, problem.n_clusters)), labels.copy(), labels)
    core.take_what_is_known()
    core.eliminate()
