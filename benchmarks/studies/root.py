"""How far the root bound gets, and how fast, on everything the paper tried and more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Built, Recipe
from benchmarks.datasets.instances import PUBLISHED
from benchmarks.datasets.paper import KINDS
from benchmarks.datasets.published import published_instances
from benchmarks.datasets.recipes import real_with_pairs, synthetic_with_pairs
from benchmarks.rows import Request
from benchmarks.solvers.kmeans import KMeansStarts
from benchmarks.solvers.ours import Certikmeans
from benchmarks.studies.root_page import write_report
from benchmarks.study import Scope, Study, product

LIMIT = 300.0
OURS, TIGHT, KMEANS = Certikmeans(), Certikmeans("certikmeans, gap 1e-06", 1e-6), KMeansStarts()


def _recipe(group: str, name: str, kind: str, make: partial[Built]) -> Recipe:
    return Recipe(f"{group}: {name} {kind}", make, {"group": group, "name": name, "kind": kind})


def _published(directory: Path) -> Iterator[Request]:
    for one in published_instances(directory):
        facts = {"name": one.name, "kind": "published"}
        if one.name in PUBLISHED.values():
            title = f"paper rows: {one.name} published"
            instance = one.recipe(title, group="paper rows", **facts)
            yield from product([instance], (OURS, TIGHT, KMEANS), LIMIT)
        title = f"published: {one.name} published"
        yield Request(one.recipe(title, group="published", **facts), OURS, LIMIT)


def _real() -> Iterator[Recipe]:
    for name in ("hemi", "pr2392", "rds_cnt", "htru2", "skin_8"):
        for kind in KINDS:
            yield _recipe("real", name, kind, partial(real_with_pairs, name, kind))
    yield _recipe("real", "urbanGB", "ML", partial(real_with_pairs, "urbanGB", "ML"))


def _synthetic(small: bool) -> Iterator[Recipe]:
    for n in (1_200,) if small else (12_000, 21_000, 42_000, 210_000):
        for kind in ("CL", "ML+CL"):
            make = partial(synthetic_with_pairs, n, kind, 2, 3)
            yield _recipe("synthetic", f"synthetic-{n}", kind, make)
    for n in (2_100,) if small else (21_000, 42_000, 210_000, 420_000, 1_050_000, 1_500_000):
        make = partial(synthetic_with_pairs, n, "ML", 2, 3)
        yield _recipe("growth n", f"synthetic-{n}", "ML", make)
    base = 1_200 if small else 21_000
    for k in (2, 3) if small else (2, 3, 5, 8, 12):
        make = partial(synthetic_with_pairs, base, "CL", 2, k)
        yield _recipe("growth K", f"synthetic-{base}-K{k}", "CL", make)
    for d in (2, 3) if small else (2, 3, 4, 6, 8, 10):
        make = partial(synthetic_with_pairs, base, "CL", d, 3)
        yield _recipe("growth d", f"synthetic-{base}-d{d}", "CL", make)


def rows(scope: Scope) -> Iterator[Request]:
    """Every row of the benchmark; without the real data, the synthetic ones."""
    if scope.directory is not None and not scope.small:
        yield from _published(scope.directory)
        yield from product(_real(), (OURS, KMEANS), LIMIT)
    yield from product(_synthetic(scope.small), (OURS, KMEANS), LIMIT)


STUDY = Study(
    "root", "gap and time of the root bound, written to docs/benchmarks", rows, write_report
)
