"""The stage: the default heuristic within its share of the time, then a patient polish."""

from __future__ import annotations

from certikmeans.assignment import AbstractAssigner
from certikmeans.heuristics.base import Centers, Workshop
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.heuristics.local_search import LocalSearch

# Of a time limit, heuristics get at most this much, so that there is time for a proof.
HEURISTICS_SHARE = 0.2
POLISH = "polish"


def find_labelling(
    workshop: Workshop, patient: AbstractAssigner, starts: tuple[Centers, ...]
) -> None:
    """Tell the workshop's news of the best labelling that can be found.

    ``patient`` takes its time for components that a short search does not finish: seconds would
    make the answer depend on the machine, and add up over many trials.
    """
    stop = workshop.stop.within(HEURISTICS_SHARE * workshop.stop.remaining)
    hurried = workshop.but(starts=starts, stop=stop)
    if workshop.was_in(POLISH):
        found = workshop.kept.known[0]
    else:
        found = DefaultSearch().search(hurried.within("search"))
        workshop.news.offer(found, "heuristics")
        hurried.within(POLISH, found).keep(None)
    if not hurried.finished():
        local = LocalSearch(workshop.problem, patient)
        polished = local.from_labels(found, hurried.but(assigner=patient))
        workshop.news.offer(polished.labels, "polish", polished.iterations)
