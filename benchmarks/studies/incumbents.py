"""Does the default budget find the best known labelling of the published instances?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.datasets.published import published_instances
from benchmarks.pages import show, write_page
from benchmarks.results import ResultRow, RunRequest
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.study import Scope, Study

TOLERANCE = 1e-6
LIMIT = 300.0


def rows(scope: Scope) -> Iterator[RunRequest]:
    """The defaults on every published instance."""
    if scope.directory is not None:
        for one in islice(published_instances(scope.directory), 4 if scope.small else None):
            yield RunRequest(one.recipe(), CertikmeansSolver(), LIMIT)


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """A line per instance, and how many reach the best known cost."""
    lines: list[list[object]] = []
    reached = 0
    for row in rows:
        if row.cost is None:
            lines.append([row.instance, row.stop_reason, "", "", ""])
            continue
        excess = row.cost / row.facts["best_known"] - 1.0
        reached += excess <= TOLERANCE and row.feasible
        found = (f"{row.cost:.10g}", f"{excess:+.1e}", row.pairs_broken, f"{row.seconds:.2f}")
        lines.append([row.instance, *found])
    header = ["instance", "cost", "above best known", "pairs broken", "seconds"]
    parts = [
        show(header, lines) + "\n" if lines else "",
        f"{reached} of {len(rows)} within {TOLERANCE:g} of the best known cost\n",
    ]
    return write_page(directory / "incumbents.md", parts)


STUDY = Study(
    name="incumbents",
    what="cost on the published instances against the best known",
    rows=rows,
    write=write_report,
    small_limit=60.0,
    isolated=False,
    kept=False,
)
