"""Study of the bound at the root node: instances, solvers and report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.datasets.base import BuiltInstance, Recipe, Sizes
from benchmarks.datasets.paper import KINDS, PUBLISHED
from benchmarks.datasets.published import published_instances
from benchmarks.datasets.recipes import real_with_pairs, synthetic_with_pairs
from benchmarks.pages import pyplot, show, write_page
from benchmarks.results import ResultRow, RunRequest, latest
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.solvers.heuristics import KMeansStarts
from benchmarks.study import Scope, Study, product

HEADER = [
    "instance", "pairs", "n", "d", "K", "ML", "CL", "cost", "lower bound", "gap %", "seconds",
    "presolve", "heuristics", "bounds", "rounds", "exact pricings", "boxes", "GB",
    "x KMeans(100)",
]  # fmt: skip
GROUPS = {
    "paper rows": "Iris and Seeds, the six rows of the paper",
    "real": "Real data, n/4 random pairs of each kind",
    "synthetic": "Synthetic, cannot-links",
    "growth n": "Growth with n (synthetic, must-links)",
    "growth K": "Growth with K (synthetic 21,000, cannot-links)",
    "growth d": "Growth with d (synthetic 21,000, cannot-links)",
}


class Measured:
    """A row of ours with the time of k-means beside it."""

    def __init__(self, row: ResultRow, kmeans: ResultRow | None) -> None:
        assert row.sizes is not None
        assert row.seconds is not None
        self.row, self.sizes, self.total = row, row.sizes, row.seconds
        self.group, self.name, self.kind = (row.facts[key] for key in ("group", "name", "kind"))
        self.kmeans_seconds = None if kmeans is None else kmeans.seconds

    @property
    def seconds(self) -> dict[str, float]:
        """By stage."""
        stages: dict[str, float] = self.row.details["stages"]
        return stages

    @property
    def ratio(self) -> float | None:
        """Total time over that of scikit-learn's KMeans with 100 starts; it proves nothing."""
        return None if self.kmeans_seconds is None else self.total / self.kmeans_seconds


def _measured(rows: Sequence[ResultRow]) -> list[Measured]:
    """Our rows that have an answer; of rows measured twice, the last, in the first one's place."""
    found, theirs = latest(rows), KMeansStarts().name
    return [
        Measured(row, found.get((instance, theirs)))
        for (instance, solver), row in found.items()
        if solver != theirs and row.cost is not None and row.gap is not None
    ]


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``root.md`` and the plots into ``directory``; returns the page."""
    parts = [
        "# The root bound\n",
        "Written by `python -m benchmarks root` from `root.jsonl`; every cost and every pair was "
        "checked by the benchmark itself. Requested gap: 0.1 % unless the table says otherwise. "
        "`x KMeans(100)` is the total time divided by that of scikit-learn's "
        "`KMeans(n_clusters=K, n_init=100)` on the same points right after it, which knows "
        "no pairs and proves nothing. Compilation is not on the clock.\n",
    ]
    if rows:
        about = rows[-1].about
        parts.append(
            f"Measured on {about['cores']} cores, commit {about['commit']}, seed {about['seed']}, "
            f"Python {about['python']}, numpy {about['numpy']}, numba {about['numba']}, "
            f"scikit-learn {about['scikit-learn']}.\n"
        )
    measured = _measured(rows)
    for group, title in GROUPS.items():
        members = [one for one in measured if one.group == group]
        if members:
            parts += [f"## {title}\n", show(HEADER, [_cells(one) for one in members]) + "\n"]
    parts += _published_section(measured)
    parts += _against_kmeans(measured)
    parts += _growth_section(measured, directory)
    return write_page(directory / "root.md", parts)


def _cells(one: Measured) -> list[object]:
    row, sizes, seconds, work = one.row, one.sizes, one.seconds, one.row.details["statistics"]
    gap = row.options["gap"]
    asked = "" if gap == 1e-3 else f" (asked {gap:g})"
    return [
        one.name, one.kind, f"{sizes.n_points:,}", sizes.n_features, sizes.n_clusters,
        f"{sizes.n_must_link:,}", f"{sizes.n_cannot_link:,}", f"{row.cost:.8g}",
        f"{row.lower_bound:.8g}", f"{100 * (row.gap or 0.0):.3g}{asked}", f"{one.total:.2f}",
        f"{seconds['presolve']:.2f}", f"{seconds['heuristics']:.2f}",
        f"{seconds.get('bounds', 0.0):.2f}", int(work.get("rounds", 0)),
        int(work.get("exact_pricings", 0)), f"{int(work.get('boxes', 0)):,}",
        f"{row.peak_gigabytes:.2f}", "" if one.ratio is None else f"{one.ratio:.2f}",
    ]  # fmt: skip


def _published_section(measured: Sequence[Measured]) -> list[str]:
    members = [one for one in measured if one.group == "published"]
    if not members:
        return []
    total = sum(one.total for one in members)
    rows = [one.row for one in members]
    known = [(row, row.facts["best_known"]) for row in rows if row.facts.get("best_known")]
    reached = sum((row.cost or 0.0) <= best * (1 + 1e-6) for row, best in known)
    above = sum((row.lower_bound or 0.0) > best * (1 + 1e-9) for row, best in known)
    closed = sum((row.gap or 0.0) <= row.options["gap"] for row in rows)
    slowest = max(members, key=lambda one: one.total)
    return [
        "## The published instances\n",
        f"{len(members)} instances together: {total:.1f} s; {closed} proven within 0.1 %; "
        f"{reached} reach the best known cost (1e-6); {above} bounds above a best known cost. "
        f"Slowest: {slowest.name}, {slowest.total:.2f} s.\n",
    ]


def _against_kmeans(measured: Sequence[Measured]) -> list[str]:
    """Which rows take longer than 100 starts of k-means, and in which stage."""
    compared = [(one.ratio, one) for one in measured if one.ratio is not None]
    if not compared:
        return []
    slower = sorted((pair for pair in compared if pair[0] > 1.0), key=lambda pair: -pair[0])
    cells = []
    for ratio, one in slower:
        stages = one.seconds
        stage = max(("presolve", "heuristics", "bounds"), key=lambda name: stages.get(name, 0.0))
        share = stages[stage] / one.total
        cells.append([one.name, one.kind, f"{ratio:.2f}", f"{stage}, {100 * share:.0f} %"])
    return [
        "## Against KMeans(n_init=100)\n",
        f"{len(compared) - len(slower)} of {len(compared)} rows take no longer than 100 starts of "
        "k-means without pairs. The others:\n",
        show(["instance", "pairs", "x KMeans(100)", "most of the time"], cells) + "\n",
    ]


def _growth_section(measured: Sequence[Measured], directory: Path) -> list[str]:
    parts = []
    grown = [one for one in measured if one.group == "growth n"]
    if len(grown) >= 3:
        sizes = [one.sizes.n_points for one in grown]
        exponent = _exponent(sizes, [one.total for one in grown])
        parts.append(
            f"## Growth\n\nTime grows as n^{exponent:.2f} from {min(sizes):,} to "
            f"{max(sizes):,} points (least squares on logarithms): below 1 "
            "because up to a few hundred thousand points the search for centres on a sample of "
            "20,000, which does not grow, is a large part.\n"
        )
    axes: dict[str, Callable[[Sizes], float]] = {
        "n": lambda sizes: sizes.n_points,
        "K": lambda sizes: sizes.n_clusters,
        "d": lambda sizes: sizes.n_features,
    }
    for axis, value in axes.items():
        members = [one for one in measured if one.group == f"growth {axis}"]
        members.sort(key=lambda one: value(one.sizes))
        if len(members) >= 2:
            places = [value(one.sizes) for one in members]
            _plot(axis, places, members, directory / f"root-{axis}.png")
            parts.append(f"![time against {axis}](root-{axis}.png)\n")
    return parts


def _exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _plot(axis: str, values: Sequence[float], rows: Sequence[Measured], path: Path) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    axes.loglog(values, [r.total for r in rows], "o-", label="certikmeans, total")
    for stage, marker in (("heuristics", "^"), ("bounds", "s")):
        axes.loglog(
            values, [r.seconds.get(stage, np.nan) for r in rows], marker + "--", label=stage, lw=1
        )
    axes.loglog(
        values, [r.kmeans_seconds or np.nan for r in rows], "kx:", label="KMeans(n_init=100)"
    )
    axes.set_xlabel(axis)
    axes.set_ylabel("seconds")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


# How far the root bound gets, and how fast, on everything the paper tried and more.

LIMIT = 300.0
OURS, TIGHT, KMEANS = (
    CertikmeansSolver(),
    CertikmeansSolver("certikmeans, gap 1e-06", 1e-6),
    KMeansStarts(),
)


def _recipe(group: str, name: str, kind: str, make: partial[BuiltInstance]) -> Recipe:
    return Recipe(f"{group}: {name} {kind}", make, {"group": group, "name": name, "kind": kind})


def _published(directory: Path) -> Iterator[RunRequest]:
    for one in published_instances(directory):
        facts = {"name": one.name, "kind": "published"}
        if one.name in PUBLISHED.values():
            title = f"paper rows: {one.name} published"
            instance = one.recipe(title, group="paper rows", **facts)
            yield from product([instance], (OURS, TIGHT, KMEANS), LIMIT)
        title = f"published: {one.name} published"
        yield RunRequest(one.recipe(title, group="published", **facts), OURS, LIMIT)


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


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every row of the benchmark; without the real data, the synthetic ones."""
    if scope.directory is not None and not scope.small:
        yield from _published(scope.directory)
        yield from product(_real(), (OURS, KMEANS), LIMIT)
    yield from product(_synthetic(scope.small), (OURS, KMEANS), LIMIT)


STUDY = Study(
    "root", "gap and time of the root bound, written to docs/benchmarks", rows, write_report
)
