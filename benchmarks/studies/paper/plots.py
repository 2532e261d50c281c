"""Gap against time, and time against n."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.datasets.paper import Instance
from benchmarks.pages import pyplot
from benchmarks.results import ResultRow, ResultTable, relative_gap
from benchmarks.studies.paper.printed import GROWTH, HEURISTIC_NAMES, TABLES
from benchmarks.studies.paper.sections import GROUPED, OURS

SHOWN = (
    Instance("Iris", "CL"),
    Instance("Seeds", "ML+CL"),
    Instance("Hemi", "CL"),
    Instance("Skin_8", "ML+CL"),
)
COLORS = {OURS: "#0072B2", GROUPED: "#E69F00", "scip": "#CC79A7", "sdp": "#009E73"}
DISPLAY_NAMES = {
    OURS: "certikmeans",
    GROUPED: "the paper's bound, in our tree",
    "scip": "SCIP on the cone program",
    "sdp": "semidefinite relaxation",
    "cop-kmeans": "COP-k-means",
    "blpkm-cc": "BLPKM-CC",
}
WIDTHS = {OURS: 3.0}
MIN_PLOTTED_GAP = 1e-7  # a proven gap of zero still needs a place on a logarithmic axis


def gap_against_time(found: ResultTable, path: Path) -> bool:
    """Draw one panel per instance that has rows, one legend for all; False if none has."""
    shown = [one for one in SHOWN if (one.name, OURS) in found]
    if not shown:
        return False
    plt = pyplot()
    rows = (len(shown) + 1) // 2
    columns = min(2, len(shown))
    figure, panels = plt.subplots(
        rows,
        columns,
        figsize=(5.0 * columns, 3.0 * rows + 0.8),
        layout="constrained",
        squeeze=False,
    )
    for axes, instance in zip(panels.flat, shown, strict=False):
        _panel(axes, instance, found)
    for axes in list(panels.flat)[len(shown) :]:
        axes.set_visible(False)
    drawn = {
        label: handle
        for axes in panels.flat
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return True


def _panel(axes: Any, instance: Instance, found: ResultTable) -> None:
    for solver, colour in COLORS.items():
        row = found.get((instance.name, solver))
        times, gaps = _curve(row)
        if times:
            style = {"color": colour, "lw": WIDTHS.get(solver, 1.6)}
            axes.plot(times, gaps, label=DISPLAY_NAMES[solver], drawstyle="steps-post", **style)
            axes.plot(times[-1], gaps[-1], color=colour, marker="o")
    bound = best_bound(instance, found)
    for i, name in enumerate(HEURISTIC_NAMES):
        row = found.get((instance.name, name))
        if row is not None and row.feasible and bound is not None:
            gap = max(MIN_PLOTTED_GAP, relative_gap(row.cost, bound) or 0.0)
            label = f"{DISPLAY_NAMES.get(name, name)} (proves nothing)"
            axes.axhline(gap, color="0.35", lw=1, ls=(0, (1 + i, 2)), label=label)
    axes.axhline(1e-3, color="0.85", lw=4, zorder=0, label="0.1 %, requested gap")
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="gap", title=instance.name)
    axes.xaxis.set_minor_formatter("")
    axes.xaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")
    axes.yaxis.set_major_formatter(lambda gap, _: f"{100 * gap:g} %")
    axes.grid(visible=True, alpha=0.3)


def _curve(row: ResultRow | None) -> tuple[list[float], list[float]]:
    """Times and gaps where both a cost and a bound were known; the gap never rises."""
    times, gaps, least = [], [], float("inf")
    for seconds, cost, bound in row.trace if row is not None else ():
        gap = relative_gap(cost, bound)
        if gap is not None:
            least = min(least, max(gap, MIN_PLOTTED_GAP))
            times.append(max(seconds, 1e-3))
            gaps.append(least)
    return times, gaps


def best_bound(instance: Instance, found: ResultTable) -> float | None:
    """The largest bound that any rigorous solver proved."""
    rows = [found.get((instance.name, solver)) for solver in (OURS, GROUPED, "sdp")]
    bounds = [row.lower_bound for row in rows if row is not None and row.lower_bound is not None]
    return max(bounds, default=None)


def time_against_n(found: ResultTable, path: Path) -> bool:
    """Draw seconds over n for must-links on synthetic data; False without two sizes."""
    names = [*GROWTH, *[name for name in TABLES["1"][1] if name.startswith("Syn-")]]
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    drawn = 0
    for solver, colour in ((OURS, COLORS[OURS]), (GROUPED, COLORS[GROUPED])):
        rows = [found.get((Instance(name, "ML").name, solver)) for name in names]
        timed = [row for row in rows if row is not None and row.seconds is not None]
        for closed in (True, False):
            part = [row for row in timed if (row.gap is not None and row.gap <= 1e-3) == closed]
            label = DISPLAY_NAMES[solver] + ("" if closed else ", limit reached")
            sizes = [row.sizes.n_points for row in part if row.sizes is not None]
            style = "o-" if closed else "v"
            if part:
                seconds = [row.seconds for row in part]
                axes.plot(sizes, seconds, style, color=colour, label=label)
                drawn += len(part)
    sizes = [int(name.removeprefix("Syn-")) for name in GROWTH]
    printed = [one.seconds for one in GROWTH.values()]
    axes.plot(sizes, printed, "ks--", label="paper, 100 cores, its own data (printed)")
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="seconds")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    if drawn >= 2:
        figure.savefig(path, dpi=120)
    plt.close(figure)
    return drawn >= 2
