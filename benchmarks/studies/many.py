"""Many clusters: time to the target gap, beside the best published times."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.many import PRINTED_GAP, make_gaussian, recipes
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, latest
from benchmarks.solvers.base import AbstractSolver
from benchmarks.solvers.certikmeans_solver import CertikmeansSolver
from benchmarks.solvers.heuristics import Blpkm, CopKMeans, EncodePost, KMeansStarts
from benchmarks.studies import targets
from benchmarks.study import Scope, Study

OURS = "certikmeans"

INTRODUCTION = """# Many clusters

Written by `python -m benchmarks many` from `many.jsonl`. Every row has a target: a gap, (cost - \
lower bound) / cost, to be proven within its limit. `target after` is when it was, `proven by` the \
bound that the final value came from, `root gap` what was left before the first branching, and \
`relaxation` about what the best multipliers there are would leave, where the root came to know \
it: more than the target means that the root alone cannot reach it, however long \
([why](../concepts/cluster-bound.md#limits)). Costs of other seeds (`--seed`) are compared in the \
last table.
"""
PLANE = """Points of TSPLIB without pairs. `CG+DCA` and `SOS-SDP` are the times printed for them \
in INFORMS Journal on Computing 2024.0938, to a gap of 0.01 %, and for CG+DCA the gap at its root; \
they were not measured here, but on other machines. `times faster` compares them with ours where \
the same gap was asked for.
"""


BASELINES = """Ten runs of every baseline that takes the pairs, `--baselines`; the best of them \
against our labelling of the same seed. Where it is cheaper than ours the line says so.
"""
RUNS = 10


def rows(scope: Scope) -> Iterator[RunRequest]:
    """The defaults on every instance; on demand, what costs others find."""
    for one in _small() if scope.small else recipes():
        solver = CertikmeansSolver(OURS, one.facts["gap"])
        yield RunRequest(one, solver, one.facts["limit"])
        if scope.small or scope.options.baselines:
            for baseline in _baselines(one):
                yield RunRequest(one, baseline, one.facts["limit"])


def _baselines(one: Recipe) -> tuple[AbstractSolver, ...]:
    """Those whose labellings respect every pair of the instance."""
    if "pairs" in one.name or "CL" in one.name or "ML" in one.name:
        return CopKMeans(RUNS), EncodePost(RUNS), Blpkm(RUNS)
    return (KMeansStarts(RUNS),)


def add_options(command: argparse.ArgumentParser) -> None:
    """Whether baselines run, too."""
    command.add_argument("--baselines", action="store_true", help="also ten runs of each baseline")


def _small() -> Iterator[Recipe]:
    known = {"group": "gaussian", "limit": 60.0, "gap": 1e-2}
    make = partial(make_gaussian, 300, 2, 10, 1.0, 0, 0)
    yield Recipe("Gaussians 300 x 2 K=10", make, known)


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``many.md`` and ``many.png``."""
    found = latest(row for row in rows if row.seed == rows[-1].seed)
    shown = [row for row in found.values() if row.solver == OURS]
    parts = [INTRODUCTION, targets.measured_on(shown), targets.summary(shown)]
    if targets.curves(shown, directory / "many.png"):
        parts += [
            "![gap against time](many.png)\n",
            "*Gap against time; dotted, the target of the row with the same colour.*\n",
        ]
    plane = targets.of_group(found, "plane", OURS)
    if plane:
        parts += ["## In the plane\n", PLANE, show(PLANE_HEADER, list(map(_plane, plane))) + "\n"]
    for group, title in (
        ("pairs", "Published pairs (S-MDEClust)"),
        ("gaussian", "Gaussian clusters, centres in a box of side 20"),
    ):
        members = targets.of_group(found, group, OURS)
        if members:
            parts += [f"## {title}\n", show(HEADER, list(map(_cells, members))) + "\n"]
    parts += targets.against_baselines(found, OURS, "## Baselines, best of ten runs\n", BASELINES)
    parts += _seeds([row for row in rows if row.solver == OURS])
    return write_page(directory / "many.md", parts)


HEADER = [
    "instance", "n", "d", "K", "ML", "CL", "limit (s)", "target %", "gap %", "root gap %",
    "relaxation %", "target after (s)", "seconds", "nodes", "verdict", "proven by", "cost",
    "heuristics (s)",
]  # fmt: skip
PLANE_HEADER = [*HEADER, "CG+DCA (s)", "its root gap %", "SOS-SDP (s)", "times faster"]


def _cells(row: ResultRow) -> list[object]:
    sizes = row.sizes
    shape: list[object] = [""] * 5
    if sizes is not None:
        pairs = (f"{sizes.n_must_link:,}", f"{sizes.n_cannot_link:,}")
        shape = [f"{sizes.n_points:,}", sizes.n_features, sizes.n_clusters, *pairs]
    when = targets.seconds_to(row, row.facts["gap"])
    stages = row.details.get("stages", {})
    return [
        row.instance, *shape, targets.asked_limit(row), percent(row.facts["gap"]),
        percent(row.gap), percent(row.root_gap), percent(_relaxation(row)),
        "" if when is None else f"{when:.1f}",
        "" if row.seconds is None else f"{row.seconds:.1f}", row.nodes, targets.verdict(row),
        targets.proven_by(row), "" if row.cost is None else f"{row.cost:.8g}",
        f"{stages.get('heuristics', 0.0):.1f}" if stages else "",
    ]  # fmt: skip


def _relaxation(row: ResultRow) -> float | None:
    """Gap of the best multipliers, about, as far as the root came to know it."""
    known: float | None = row.details.get("statistics", {}).get("gap_at_best")
    return known


def _plane(row: ResultRow) -> list[object]:
    printed, left = row.facts["printed_seconds"], row.facts["sdp_left"]
    when = targets.seconds_to(row, row.facts["gap"])
    same = row.facts["gap"] <= PRINTED_GAP
    sdp = f"{row.facts['sdp_seconds']:,.0f}" + (f", {left}" if left else "")
    return [
        *_cells(row), f"{printed:,.0f}", percent(row.facts["printed_root_gap"]), sdp,
        "" if when is None or not same else f"{printed / max(when, 1e-3):,.0f}",
    ]  # fmt: skip


def _seeds(rows: Sequence[ResultRow]) -> list[str]:
    """How far the costs of different seeds lie apart, where several were run."""
    costs: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.feasible and row.cost is not None:
            costs.setdefault(row.instance, {})[row.seed] = row.cost
    lines = [
        [name, ", ".join(map(str, sorted(found))), f"{min(found.values()):.8g}",
         percent(max(found.values()) / min(found.values()) - 1.0)]
        for name, found in costs.items()
        if len(found) > 1
    ]  # fmt: skip
    if not lines:
        return []
    header = ["instance", "seeds", "least cost", "worst above it %"]
    return ["## Seeds\n", show(header, lines) + "\n"]


STUDY = Study(
    name="many",
    what="many clusters beside the published times, written to docs/benchmarks",
    rows=rows,
    write=write_report,
    add_options=add_options,
    small_limit=6.0,
)
