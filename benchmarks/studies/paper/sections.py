"""The tables of the page, each beside the paper's."""

from __future__ import annotations

from benchmarks.datasets.paper import Instance
from benchmarks.pages import percent, show, without_repeats
from benchmarks.results import ResultRow, ResultTable
from benchmarks.studies.paper.printed import (
    CLOSED,
    DENSITY,
    FRACTIONS,
    GROWTH,
    HEURISTIC_NAMES,
    HEURISTICS,
    METHODS,
    METRIC_SETS,
    METRICS,
    NONE,
    TABLES,
    Entry,
    Printed,
)

OURS, GROUPED = "certikmeans/cluster", "certikmeans/grouped"
COUNTERPARTS = {OURS: "SDC-GBB", GROUPED: "SDC-GBB", "scip": "CPLEX", "sdp": "PC-SOS-SDP"}
TITLES = {
    "1": "Table 1: must-links",
    "2": "Table 2: cannot-links",
    "3": "Table 3: must-links and cannot-links",
}


def table(number: str, found: ResultTable) -> list[str]:
    """One of Tables 1 to 3: a line per data set and solver."""
    kind, printed = TABLES[number]
    header = [
        "data set", "n", "d", "pairs", "solver", "UB", "nodes", "gap %", "seconds", "ended",
        "paper: method", "paper: UB", "paper: nodes", "paper: gap %",
    ]  # fmt: skip
    lines = []
    for dataset, entry in printed.items():
        lines += _dataset_lines(Instance(dataset, kind), entry, found)
    return [f"## {TITLES[number]}\n", show(header, without_repeats(lines, 4)) + "\n"]


def _dataset_lines(instance: Instance, entry: Entry, found: ResultTable) -> list[list[object]]:
    rows = {solver: found.get((instance.name, solver)) for solver in COUNTERPARTS}
    best = best_heuristic(instance, found)
    known = next((row for row in rows.values() if row is not None and row.sizes), None)
    sizes: list[object] = ["", "", ""]
    if known is not None and known.sizes is not None:
        pairs = known.pairs.split(",")[0]
        sizes = [f"{known.sizes.n_points:,}", known.sizes.n_features, pairs]
    paper = dict(zip(METHODS, entry, strict=True))
    lines = []
    for solver, method in COUNTERPARTS.items():
        cells = _cells(rows[solver])
        lines.append([instance.dataset, *sizes, solver, *cells, method, *_paper(paper[method])])
    name = "best heuristic" + (f": {best.solver}" if best else "")
    cells = _cells(best)
    lines.append([instance.dataset, *sizes, name, *cells, "heuristic", *_paper(paper["heuristic"])])
    return lines


def best_heuristic(instance: Instance, found: ResultTable) -> ResultRow | None:
    """The cheapest feasible answer of the heuristics."""
    rows = [found.get((instance.name, name)) for name in HEURISTIC_NAMES]
    feasible = [row for row in rows if row is not None and row.feasible]
    return min(feasible, key=lambda row: row.cost or 0.0, default=None)


def _cells(row: ResultRow | None) -> list[object]:
    """UB, nodes, gap, seconds, ended."""
    if row is None:
        return ["", "", "", "", "not run"]
    if row.seconds is None:
        return ["", "", "", "", row.stop_reason]
    upper = number(row.cost) if row.feasible else "none"
    nodes = "" if row.nodes is None else f"{row.nodes:,}"
    return [upper, nodes, percent(row.gap), f"{row.seconds:.2f}", row.stop_reason]


def _paper(printed: Printed) -> list[object]:
    if printed == NONE:
        return ["none found", "", ""]
    nodes = "" if printed.nodes is None else f"{printed.nodes:,}"
    gap = "" if printed.gap is None else f"{printed.gap:g}"
    return [as_printed(printed.upper), nodes, "<= 0.1" if printed.gap == CLOSED else gap]


def number(value: float | None) -> str:
    """Enough digits to compare with what is printed.

    >>> number(83.62986), number(16012345.0), number(None)
    ('83.630', '1.60123e+07', '')
    """
    if value is None:
        return ""
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.5e}"


def as_printed(value: float | None) -> str:
    """No more digits than the paper has.

    >>> as_printed(83.63), as_printed(1.601e7), as_printed(None)
    ('83.63', '1.601e+07', '')
    """
    if value is None:
        return ""
    return f"{value:.2f}" if abs(value) < 1e4 else f"{value:.3e}"


def density(found: ResultTable) -> list[str]:
    """Nodes and seconds against the number of pairs."""
    header = [
        "data set", "pairs", "share", "cluster: nodes", "gap %", "seconds", "grouped: nodes",
        "gap %", "seconds", "s/node", "paper: nodes", "seconds", "s/node",
    ]  # fmt: skip
    lines: list[list[object]] = []
    for (dataset, kind), printed in DENSITY.items():
        for i, fraction in enumerate(FRACTIONS):
            name = Instance(dataset, kind, fraction).name
            paper_seconds, paper_nodes = printed.seconds[i], printed.nodes[i]
            lines.append(
                [
                    dataset,
                    kind,
                    f"n/{fraction}",
                    *_work(found.get((name, OURS)))[:3],
                    *_work(found.get((name, GROUPED))),
                    paper_nodes,
                    f"{paper_seconds:g}",
                    f"{paper_seconds / paper_nodes:.2f}",
                ]
            )
    return ["## Density of pairs\n", show(header, lines) + "\n"]


def _work(row: ResultRow | None) -> list[object]:
    """Nodes, gap, seconds, seconds per node."""
    if row is None or row.seconds is None:
        return ["" if row is None else row.stop_reason, "", "", ""]
    each = "" if not row.nodes else f"{row.seconds / row.nodes:.3g}"
    return [f"{row.nodes:,}", percent(row.gap), f"{row.seconds:.2f}", each]


def growth(found: ResultTable) -> list[str]:
    """Seconds against n with n/4 must-links."""
    header = [
        "data set", "cluster: nodes", "gap %", "seconds", "grouped: nodes", "gap %", "seconds",
        "s/node", "paper: nodes", "seconds", "s/node",
    ]  # fmt: skip
    lines: list[list[object]] = []
    for dataset, printed in GROWTH.items():
        name = Instance(dataset, "ML").name
        lines.append(
            [
                dataset,
                *_work(found.get((name, OURS)))[:3],
                *_work(found.get((name, GROUPED))),
                printed.nodes,
                f"{printed.seconds:,.0f}",
                f"{printed.seconds_per_node:g}",
            ]
        )
    return ["## Growth with n (n/4 must-links)\n", show(header, lines) + "\n"]


def metrics(found: ResultTable) -> list[str]:
    """ARI, NMI and purity; ours, and the paper's in brackets."""
    header = ["metric", "pairs", *[f"{name}, K = {k}" for name, k in METRIC_SETS.items()]]
    lines: list[list[object]] = []
    for metric, kinds in METRICS.items():
        for kind, values in kinds.items():
            cells: list[object] = []
            for (dataset, k), printed in zip(METRIC_SETS.items(), values, strict=True):
                row = found.get((Instance(dataset, kind, n_clusters=k).name, OURS))
                ours = "-" if row is None or not row.scores else f"{row.scores[metric]:.4f}"
                cells.append(f"{ours} ({printed:.4f})")
            lines.append([metric, kind, *cells])
    return [
        "## Agreement with the classes\n",
        "K is the number of classes. Ours (`certikmeans/cluster`), in brackets the paper's. These "
        "measure the k-means objective as a model of the classes, not the solver: every row "
        "here is within its proven gap of the best cost there is.\n",
        show(header, lines) + "\n",
    ]


def heuristics(found: ResultTable) -> list[str]:
    """Costs of every heuristic, with our proven bound beside them."""
    parts = [
        "## Heuristics\n",
        "100 restarts or as many as the limit allows (the number after the slash). `excess` is "
        "how far the best of them is above our proven lower bound, so at most that far from the "
        "optimum. COP-k-means shuffles its order in each restart; encode-kmeans-post updates its "
        "centres. The paper's costs in brackets.\n",
    ]
    for kind, printed in HEURISTICS.items():
        names = HEURISTIC_NAMES[: len(next(iter(printed.values())))]
        lines: list[list[object]] = []
        for dataset, costs in printed.items():
            instance = Instance(dataset, kind)
            cells: list[object] = [
                _heuristic(found.get((instance.name, name)), cost)
                for name, cost in zip(names, costs, strict=True)
            ]
            lines.append([dataset, *cells, *_against_ours(instance, found)])
        header = ["data set", *names, "certikmeans", "excess of the best %"]
        parts += [f"### {kind}\n", show(header, lines) + "\n"]
    return parts


def _heuristic(row: ResultRow | None, printed: float | None) -> str:
    paper = "N/A" if printed is None else as_printed(printed)
    if row is None or row.seconds is None:
        return f"{'-' if row is None else row.stop_reason} ({paper})"
    runs = row.details.get("runs", "?")
    return f"{number(row.cost) if row.feasible else 'failed'} /{runs} ({paper})"


def _against_ours(instance: Instance, found: ResultTable) -> list[object]:
    ours, best = found.get((instance.name, OURS)), best_heuristic(instance, found)
    if ours is None or not ours.feasible:
        return ["", ""]
    if best is None or best.cost is None or ours.lower_bound is None:
        return [number(ours.cost), ""]
    return [number(ours.cost), percent(max(0.0, best.cost / ours.lower_bound - 1.0))]
