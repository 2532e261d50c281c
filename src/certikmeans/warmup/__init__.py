"""Compilation of all kernels ahead of the first run."""

from __future__ import annotations

from collections.abc import Iterable

from certikmeans._jit.background_compiler import BackgroundCompiler
from certikmeans.bounds.registry import make_bound
from certikmeans.certificate import check_certificate
from certikmeans.certificate.write import certificate_bytes
from certikmeans.errors import InputError
from certikmeans.options import BOUNDS, BRANCHINGS, check_choice
from certikmeans.problem import Problem
from certikmeans.solver.run import solve
from certikmeans.warmup.problems import compute_root_bound, easy_problems, hard_problem


def warm_up(bounds: Iterable[str] | None = None) -> None:
    """Compile the kernels, or load those that were compiled before.

    Solves tiny problems through every compiled path: with and without pairs of each kind, few
    and many clusters, every bound at a root and in a tree with each branching, contradictory
    pairs, certainty, certificates, and what only large data need. Baselines are left out.
    Time limits do not count compilation, but a first run takes longer: call it when an image is
    built, at the start of a server, in a worker before its first task. It takes a minute or two
    where the kernels were never compiled, and a few seconds in a process where they were. On the
    command line: ``certikmeans warm-up``.

    Parameters
    ----------
    bounds : iterable of str, optional
        Compile these bounds alone, by the names that `solve` takes; by default, all of them.

    Examples
    --------
    >>> import certikmeans
    >>> certikmeans.warm_up(bounds=["cluster"])
    """
    wanted = BOUNDS if bounds is None else tuple(bounds)
    for bound in wanted:
        check_choice("bound", bound, BOUNDS)
    named = tuple(bound for bound in wanted if bound != "auto")  # which is one of the others
    easy = easy_problems()
    for problem in easy:
        solve(problem)
    rare_paths = _compile_rare_in_background(named)
    try:
        _certify(easy[-1])
        for bound in named:
            _branch(bound)
        rare_paths.wait(lambda: None)
    finally:
        rare_paths.end()
    from certikmeans.warmup.rare_paths import compile_rare_paths  # loads much

    compile_rare_paths(named)


def _compile_rare_in_background(bounds: tuple[str, ...]) -> BackgroundCompiler:
    """Have the kernels of unusual runs compiled in a second process, where they never were."""
    from certikmeans.kernels.dense_assignment.solve import search_core
    from certikmeans.kernels.lloyd.neighborhood_moves import improve_by_neighborhood_moves

    task = f"from certikmeans.warmup.rare_paths import compile_rare_paths; compile_rare_paths({bounds!r})"
    return BackgroundCompiler(task, (improve_by_neighborhood_moves, search_core))


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
    """Ask a bound in nodes of every kind of tree."""
    for branching in BRANCHINGS:
        if branching == "auto":
            continue  # one of the others
        try:
            solve(hard_problem(), bound=bound, branching=branching, gap=1e-6, node_limit=3)
        except InputError:  # a bound that cannot be branched like this
            continue


def compile_bound(name: str, linked: bool) -> None:
    """Compile what one bound calls at the root of an ordinary problem, and nothing else.

    Parameters
    ----------
    name : str
        As `solve` takes it.
    linked : bool
        With cannot-links.
    """
    compute_root_bound(make_bound(name), easy_problems()[1 if linked else 0])
