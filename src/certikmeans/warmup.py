"""Compilation of all kernels ahead of the first run, by solving tiny problems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans._jit.background_compiler import BackgroundCompiler
from certikmeans.assignment import make_assigner
from certikmeans.assignment.soft import SoftAssignment, SoftAssignmentParams
from certikmeans.bounds.base import BoundContext, BoundInput, LowerBound
from certikmeans.bounds.registry import make_bound
from certikmeans.certificate import check_certificate
from certikmeans.certificate.write import certificate_bytes
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.errors import InputError
from certikmeans.generate import random_pairs
from certikmeans.incumbent import NullIncumbent
from certikmeans.options import BOUNDS, BRANCHINGS, check_choice
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.solver.run import solve
from certikmeans.stop import StopSignal


def warm_up(bounds: Iterable[str] | None = None) -> None:
    """Compile the kernels, or load those that were compiled before.

    Solves tiny problems through every compiled path: with and without pairs of each kind, few
    and many clusters, every bound at a root and in a tree with each branching, contradictory
    pairs, certainty, certificates, and kernels that only large data need. Baselines are left out.
    Time limits do not count compilation, but a first run takes longer: call it when an image is
    built, at the start of a server, or in a worker before its first task. It takes a minute or two
    without compiled kernels in the cache, and a few seconds with them. On the command line:
    ``certikmeans warm-up``.

    Parameters
    ----------
    bounds : iterable of str, optional
        Compile only these bounds, named as in `solve`; by default, all of them.

    Examples
    --------
    >>> import certikmeans
    >>> certikmeans.warm_up(bounds=["cluster"])
    """
    chosen = BOUNDS if bounds is None else tuple(bounds)
    for bound in chosen:
        check_choice("bound", bound, BOUNDS)
    named = tuple(bound for bound in chosen if bound != "auto")  # which is one of the others
    easy = easy_problems()
    for problem in easy:
        solve(problem)
    background = _compile_rare_in_background(named)
    try:
        _certify(easy[-1])
        for bound in named:
            _branch(bound)
        background.wait(lambda: None)
    finally:
        background.end()
    compile_rare_paths(named)


def compile_prices() -> None:
    """Compile pricing with prices, which the cluster bound uses with soft pairs, for example."""
    make_bound("cluster").rehearse(make_bound_input(presolve_feasible(soft_problem())))


def compile_bound(name: str, linked: bool) -> None:
    """Compile the kernels of one bound at the root of an ordinary problem.

    Parameters
    ----------
    name : str
        As in `solve`.
    linked : bool
        With cannot-links.
    """
    compute_root_bound(make_bound(name), easy_problems()[1 if linked else 0])


def _compile_rare_in_background(bounds: tuple[str, ...]) -> BackgroundCompiler:
    """Start `compile_rare_paths` in a second process, unless its kernels are cached."""
    from certikmeans.kernels.dense_assignment.solve import search_core
    from certikmeans.kernels.lloyd.kempe_moves import improve_by_neighborhood_moves

    statement = f"from certikmeans import warmup; warmup.compile_rare_paths({bounds!r})"
    return BackgroundCompiler(statement, (improve_by_neighborhood_moves, search_core))


def _certify(problem: Problem) -> None:
    """Write and check a certificate."""
    result = solve(problem, keep_proof=True)
    check_certificate(
        problem.points,
        certificate_bytes(problem, result),
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
    )


def _branch(bound: str) -> None:
    """Run a bound in the nodes of every kind of tree that it supports."""
    for branching in BRANCHINGS:
        if branching == "auto":
            continue  # one of the others
        try:
            solve(hard_problem(), bound=bound, branching=branching, gap=1e-6, node_limit=3)
        except InputError:  # this bound does not support the branching
            continue


# Kernels that only large, entangled or contradictory data need. Runs on such data would take
# seconds, so their parts are called directly, on tiny data with the same types.


def compile_rare_paths(bounds: Iterable[str]) -> None:
    """Compile the kernels that few runs need, of these bounds and of everything else."""
    from certikmeans.certainty.dual_ascent import compile_aggregation  # slow import
    from certikmeans.presolve.coloring import TabuColoring, subgraph_from_edges

    for problem in (*many_clusters(), *contradictions(), *combined_constraints()):
        solve(problem, node_limit=1, gap=0.5)
    solve(easy_problems()[0]).certainty()
    compile_aggregation(presolve_feasible(easy_problems()[0]).reduced)
    for problem in many_clusters():
        _interrupted_lloyd(presolve_feasible(problem))
    _dense_component(presolve_feasible(hard_problem()))
    _limited_sizes()
    _soft_pairs()
    TabuColoring(subgraph_from_edges(4, complete_graph(4)), 3).advance(1)
    inputs = make_bound_input(presolve_feasible(many_clusters()[0]))
    for name in bounds:
        make_bound(name).rehearse(inputs)


def _interrupted_lloyd(presolved: PresolvedProblem) -> None:
    """Single Lloyd steps, as for large data and for components that are searched."""
    problem, feasible_labels = presolved.reduced, presolved.feasible_labels
    assert feasible_labels is not None
    assigner = make_assigner(problem, feasible_labels)
    centers = problem.points[: problem.n_clusters]
    assigner.assign(centers)
    assigner.lloyd(centers, feasible_labels.copy(), 1)


def _limited_sizes() -> None:
    """Lloyd runs with limits on cluster sizes."""
    points = np.arange(24.0).reshape(12, 2) % 5.0
    for demand in (None, np.arange(1.0, 13.0)):
        presolved = presolve_feasible(
            Problem.from_data(points, 2, size_min=3, size_max=60, demand=demand)
        )
        _interrupted_lloyd(presolved)


def _dense_component(presolved: PresolvedProblem) -> None:
    """Methods for a component of cannot-links that a short search does not solve."""
    from certikmeans.assignment.dense_components import DenseComponent
    from certikmeans.assignment.layout import build_layout

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


def _soft_pairs() -> None:
    """Components of soft pairs of every kind."""
    pairs = np.concatenate([complete_graph(5), 5 + complete_graph(3), [[8, 9]]])
    soft = SoftPairs.of(10, pairs, np.ones(len(pairs)), float(len(pairs)), 0.0)
    assert soft is not None
    prepared = SoftAssignment(10, 2, soft, params=SoftAssignmentParams(max_removed=1))
    prepared.assign(np.ones((10, 2)), np.zeros(10, dtype=np.int64))
    solve(soft_problem(), node_limit=1, gap=0.5)


# The problems.

_TRIANGLE_WITH_TAIL = [(0, 5), (5, 10), (10, 0), (10, 3)]  # cycles and trees have own methods


def easy_problems() -> tuple[Problem, ...]:
    """A small grid without pairs, with must-links, with cannot-links, with both."""
    points = [[float(i % 4), float(i // 4)] for i in range(12)]
    return tuple(
        Problem.from_data(points, 3, must_link=must, cannot_link=cannot)
        for must in (None, [(1, 2)])
        for cannot in (None, _TRIANGLE_WITH_TAIL)
    )


def soft_problem() -> Problem:
    """Three soft must-links in a cycle."""
    points = [[float(i % 4), float(i // 4)] for i in range(12)]
    priced = [(0, 5, 1.0), (5, 10, 1.0), (10, 0, 1.0)]
    return Problem.from_data(points, 3, soft_must_link=priced)


def hard_problem() -> Problem:
    """Random cannot-links, such that no bound closes the gap at the root."""
    rng = np.random.default_rng(2)
    points, classes = rng.uniform(size=(20, 2)), rng.integers(4, size=20)
    _, cannot_link = random_pairs(classes, 0, 30, seed=2)
    return Problem.from_data(points, 4, cannot_link=cannot_link)


def many_clusters() -> tuple[Problem, ...]:
    """Enough clusters for the swap search, without pairs, with some and with dense cannot-links."""
    rng = np.random.default_rng(0)
    points, classes = rng.uniform(size=(60, 2)), rng.integers(12, size=60)
    return tuple(
        Problem.from_data(points, 12, cannot_link=random_pairs(classes, 0, n_pairs, seed=1)[1])
        for n_pairs in (0, 65, 90)
    )


def contradictions() -> tuple[Problem, ...]:
    """Infeasible cannot-links: an odd cycle, a clique, and a graph without a large clique."""
    points = np.arange(12.0)[:, None]
    hull = [(i, (i + 1) % 5) for i in range(5)]
    spokes = [(5 + i, (i + step) % 5) for i in range(5) for step in (1, 4)]
    groetzsch = hull + spokes + [(5 + i, 10) for i in range(5)]
    return (
        Problem.from_data(points, 2, cannot_link=hull),
        Problem.from_data(points, 3, cannot_link=complete_graph(4)),
        Problem.from_data(points, 3, cannot_link=groetzsch),
    )


def combined_constraints() -> tuple[Problem, ...]:
    """Disjoint cannot-link sets, and a mixture of all kinds."""
    points, sets = [[float(i % 4), float(i // 4)] for i in range(12)], np.arange(12) // 3
    mixture = Problem.from_data(
        points,
        4,
        cannot_link=[(0, 5), (2, 7)],
        cannot_link_groups=sets,
        size_max=4,
        soft_must_link=[(0, 1, 1.0), (2, 3, 1.0)],
    )
    return Problem.from_data(points, 4, cannot_link_groups=sets), mixture


def complete_graph(size: int) -> NDArray[np.int64]:
    """All pairs of ``size`` points."""
    return np.stack(np.triu_indices(size, 1), axis=1)


# A bound at the root of a problem, without the rest of a run.


def presolve_feasible(problem: Problem) -> PresolvedProblem:
    """Presolve a feasible problem."""
    presolved = presolve(problem, StopSignal())
    assert isinstance(presolved, PresolvedProblem)
    assert presolved.feasible_labels is not None
    return presolved


def make_bound_input(presolved: PresolvedProblem) -> BoundInput:
    """Input of ``LowerBound.setup``."""
    assert presolved.feasible_labels is not None
    return BoundInput(
        presolved.reduced, make_assigner(presolved.reduced, presolved.feasible_labels)
    )


def compute_root_bound(bound: LowerBound[Any], problem: Problem) -> None:
    """Compute a bound at the root, with any feasible labels as incumbent."""
    presolved = presolve_feasible(problem)
    assert presolved.feasible_labels is not None
    whole = Domain.root(presolved.reduced)
    ctx = BoundContext(at_root=True, incumbent=NullIncumbent(presolved.feasible_labels))
    bound.compute(bound.setup(make_bound_input(presolved)), whole, np.inf, ctx)
