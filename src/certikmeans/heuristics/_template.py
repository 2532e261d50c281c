"""Template of a heuristic. Copy, rename and fill in ``search``; see CONTRIBUTING.md."""

from __future__ import annotations

from typing import ClassVar, final

from certikmeans.heuristics.base import AbstractHeuristic, HeuristicContext, Labels
from certikmeans.heuristics.local_search import LocalSearch
from certikmeans.random_streams import generator


@final
class Template(AbstractHeuristic):
    """One local search from random groups: the smallest heuristic that meets the contract."""

    name: ClassVar[str] = "template"

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found."""
        if ctx.finished():
            return ctx.feasible_labels
        rng = generator(ctx.seed, "heuristics.template")
        rows = rng.integers(ctx.problem.n_groups, size=ctx.problem.n_clusters)
        search = LocalSearch(ctx.problem, ctx.assigner)
        found = search.from_centers(ctx.problem.points[rows], ctx)
        ctx.incumbent.update_incumbent(found.labels, self.name, found.iterations)
        return found.labels
