"""The page and the plots of the root benchmark, from its results file alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.pages import wrapped
from benchmarks.rows import Row
from benchmarks.tables import show

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


def write_report(rows: Sequence[Row], directory: Path) -> Path:
    """Write ``root.md`` and the plots into ``directory``; returns the page."""
    parts = [
        "# The root bound\n",
        "Written by `python -m benchmarks root` from `root.jsonl`; every cost and every pair was "
        "checked by the benchmark itself. Gap asked for: 0.1 % unless the table says otherwise. "
        "`x KMeans(100)` is the total time divided by that of scikit-learn's "
        "`KMeans(n_clusters=K, n_init=100)` on the same points in the same process, which knows "
        "no pairs and proves nothing. Compilation is not on the clock.\n",
    ]
    if rows:
        about = rows[-1].about
        parts.append(
            f"Measured on {about['cores']} cores, commit {about['commit']}, seed {about['seed']}, "
            f"Python {about['python']}, numpy {about['numpy']}, numba {about['numba']}, "
            f"scikit-learn {about['scikit-learn']}.\n"
        )
    for group, title in GROUPS.items():
        members = [row for row in rows if row.group == group]
        if members:
            parts += [f"## {title}\n", show(HEADER, [_cells(row) for row in members]) + "\n"]
    parts += _published(rows)
    parts += _against_kmeans(rows)
    parts += _growth(rows, directory)
    page = directory / "root.md"
    page.write_text(wrapped("\n".join(parts)))
    return page


def _cells(row: Row) -> list[object]:
    seconds, work = row.seconds, row.statistics
    asked = "" if row.requested_gap == 1e-3 else f" (asked {row.requested_gap:g})"
    return [
        row.name, row.kind, f"{row.n:,}", row.d, row.K, f"{row.n_must_link:,}",
        f"{row.n_cannot_link:,}", f"{row.cost:.8g}", f"{row.lower_bound:.8g}",
        f"{100 * row.gap:.3g}{asked}", f"{seconds['total']:.2f}", f"{seconds['presolve']:.2f}",
        f"{seconds['heuristics']:.2f}", f"{seconds['bounds']:.2f}", int(work.get("rounds", 0)),
        int(work.get("exact_pricings", 0)), f"{int(work.get('boxes', 0)):,}",
        f"{row.peak_gigabytes:.2f}", "" if row.ratio is None else f"{row.ratio:.2f}",
    ]  # fmt: skip


def _published(rows: Sequence[Row]) -> list[str]:
    members = [row for row in rows if row.group == "published"]
    if not members:
        return []
    total = sum(row.seconds["total"] for row in members)
    known = [row for row in members if row.best_known is not None]
    reached = sum(row.cost <= row.best_known * (1 + 1e-6) for row in known if row.best_known)
    above = sum(row.lower_bound > row.best_known * (1 + 1e-9) for row in known if row.best_known)
    closed = sum(row.gap <= row.requested_gap for row in members)
    slowest = max(members, key=lambda row: row.seconds["total"])
    return [
        "## The published instances\n",
        f"{len(members)} instances together: {total:.1f} s; {closed} proven within 0.1 %; "
        f"{reached} reach the best known cost (1e-6); {above} bounds above a best known cost. "
        f"Slowest: {slowest.name}, {slowest.seconds['total']:.2f} s.\n",
    ]


def _against_kmeans(rows: Sequence[Row]) -> list[str]:
    """Which rows take longer than 100 starts of k-means, and in which stage."""
    compared = [(row.ratio, row) for row in rows if row.ratio is not None]
    if not compared:
        return []
    slower = sorted((pair for pair in compared if pair[0] > 1.0), key=lambda pair: -pair[0])
    cells = []
    for ratio, row in slower:
        stage = max(("presolve", "heuristics", "bounds"), key=lambda name: row.seconds[name])
        share = row.seconds[stage] / row.seconds["total"]
        cells.append([row.name, row.kind, f"{ratio:.2f}", f"{stage}, {100 * share:.0f} %"])
    return [
        "## Against KMeans(n_init=100)\n",
        f"{len(compared) - len(slower)} of {len(compared)} rows take no longer than 100 starts of "
        "k-means without pairs. The others:\n",
        show(["instance", "pairs", "x KMeans(100)", "most of the time"], cells) + "\n",
    ]


def _growth(rows: Sequence[Row], directory: Path) -> list[str]:
    parts = []
    sizes = [row for row in rows if row.group == "growth n"]
    if len(sizes) >= 3:
        exponent = _exponent([row.n for row in sizes], [row.seconds["total"] for row in sizes])
        parts.append(
            f"## Growth\n\nTime grows as n^{exponent:.2f} from {min(row.n for row in sizes):,} to "
            f"{max(row.n for row in sizes):,} points (least squares on logarithms): below 1 "
            "because up to a few hundred thousand points the search for centres on a sample of "
            "20,000, which does not grow, is a large part.\n"
        )
    axes: dict[str, Callable[[Row], float]] = {
        "n": lambda row: row.n,
        "K": lambda row: row.K,
        "d": lambda row: row.d,
    }
    for axis, value in axes.items():
        members = sorted((r for r in rows if r.group == f"growth {axis}"), key=value)
        if len(members) >= 2:
            _plot(axis, [value(r) for r in members], members, directory / f"root-{axis}.png")
            parts.append(f"![time against {axis}](root-{axis}.png)\n")
    return parts


def _exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _plot(axis: str, values: Sequence[float], rows: Sequence[Row], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    axes.loglog(values, [r.seconds["total"] for r in rows], "o-", label="certikmeans, total")
    for stage, marker in (("heuristics", "^"), ("bounds", "s")):
        axes.loglog(values, [r.seconds[stage] for r in rows], marker + "--", label=stage, lw=1)
    axes.loglog(
        values, [r.kmeans_seconds or np.nan for r in rows], "kx:", label="KMeans(n_init=100)"
    )
    axes.set_xlabel(axis)
    axes.set_ylabel("seconds")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
