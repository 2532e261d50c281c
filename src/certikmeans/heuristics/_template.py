"""Copy this file, rename the class, fill in ``search``. CONTRIBUTING.md says what comes next."""

from __future__ import annotations

from typing import ClassVar, final

from certikmeans.heuristics.base import AbstractHeuristic, Labels, Workshop
from certikmeans.heuristics.local_search import LocalSearch
from certikmeans.streams import generator


@final
class Template(AbstractHeuristic):
    """One local search from random groups: the smallest heuristic that keeps the promise."""

    name: ClassVar[str] = "template"

    def search(self, workshop: Workshop) -> Labels:
        """Return the best labelling found."""
        if workshop.finished():
            return workshop.witness
        rng = generator(workshop.seed, "heuristics.template")
        rows = rng.integers(workshop.problem.n_groups, size=workshop.problem.n_clusters)
        search = LocalSearch(workshop.problem, workshop.assigner)
        found = search.from_centers(workshop.problem.points[rows], workshop)
        workshop.news.offer(found.labels, self.name, found.iterations)
        return found.labels
