"""Figures, drawn by matplotlib: clusters with pairs, bounds and gap over time, elbow curve.

The same code draws picture files, axes of the caller and the figures of the HTML report.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certikmeans._numbers import cost_text, count, percent, rounded_down
from certikmeans._types import Floats, Ints
from certikmeans.errors import InputError, MissingExtraError
from certikmeans.problem import Problem
from certikmeans.report.certainty import draw_certainty
from certikmeans.report.plot_data import (
    BOUND_COLOR,
    CANNOT_LINK_COLOR,
    COST_COLOR,
    MUST_LINK_COLOR,
    VIOLATED_COLOR,
    Projection,
    cluster_color,
    cluster_marker,
    project,
    subsample_pairs,
    subsample_points,
    subsample_violated,
)
from certikmeans.report.trace import Trace
from certikmeans.result import Result
from certikmeans.tolerances import relative_gap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from certikmeans.certainty import Certainty


FORMATS = ("png", "pdf", "svg")
MAX_POINTS = 20_000
MAX_REPORT_POINTS = 4000  # every point is an element of the page
MAX_IN_LEGEND = 12
MAX_COST_RATIO = 1.5  # costs above this multiple of the last one are cut off
_MIN_PERCENT = 1e-7  # smaller gaps are dominated by rounding
_WIDE, _NARROW = (930, 520), (460, 330)  # sizes of the figures of a report, in pixels
_CHARACTERS_PER_INCH = 13.0  # of a title
_SEED = 0


def require_matplotlib() -> None:
    """Raise if matplotlib is missing; called before a long run, not after it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed",
            hint="pip install 'certikmeans[plot]'",
        ) from error


def figure_format(path: Path) -> str:
    """Return the figure format for the suffix of ``path``.

    >>> figure_format(Path("run.PNG"))
    'png'
    """
    ending = path.suffix[1:].lower()
    if ending not in FORMATS:
        raise InputError(
            f"{path}: figures cannot be written as {path.suffix or 'a file without suffix'!r}",
            hint=f"end the name in one of {', '.join('.' + known for known in FORMATS)}",
        )
    return ending


def render_figure(
    problem: Problem,
    result: Result,
    trace: Trace,
    file_format: str = "png",
    feature_names: tuple[str, ...] | None = None,
    certainty: Certainty | None = None,
) -> bytes:
    """Draw the run.

    Left: the points, coloured by cluster, with the pairs; more than two features are projected
    on the first two principal axes.
    Right: cost of the incumbent and lower bound over time, with the gap between them shaded.
    Large inputs are subsampled, and the caption states it.

    Parameters
    ----------
    problem : Problem
        The problem.
    result : Result
        Its result; without labels the points are drawn in grey.
    trace : Trace
        The listener that was passed to ``solve``.
    file_format : {"png", "pdf", "svg"}
        Format of the file.
    feature_names : tuple of str, optional
        Names for the axes if they are features.
    certainty : Certainty, optional
        Adds rings around uncertain points, and the boxes of the centres.

    Returns
    -------
    bytes
        The contents of the file.
    """
    require_matplotlib()
    # Not pyplot: it would choose a window system and keep every figure alive.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
    notes = _draw_clusters(left, problem, result, feature_names, certainty)
    _draw_trace(right, result, trace)
    if notes:
        _caption(figure, notes)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file_format)
    return buffer.getvalue()


def clusters_svg(
    problem: Problem,
    result: Result,
    feature_names: tuple[str, ...] | None = None,
    certainty: Certainty | None = None,
) -> tuple[str, list[str]]:
    """Return the figure of the clusters for a report, and notes for its caption."""
    notes: list[str] = []

    def draw(axes: Axes) -> None:
        notes.extend(
            _draw_clusters(axes, problem, result, feature_names, certainty, MAX_REPORT_POINTS)
        )

    return _svg(draw, _WIDE, "clusters"), notes


def progress_svg(result: Result, trace: Trace, requested_gap: float | None) -> list[str]:
    """Return the figures of gap and values over time for a report; none without a labelling."""
    if result.labels is None or not any(math.isfinite(point.cost) for point in trace.points):
        return []
    return [
        _svg(lambda axes: _draw_gap(axes, result, trace, requested_gap), _NARROW, "gap over time"),
        _svg(lambda axes: _draw_trace(axes, result, trace), _NARROW, "cost and bound over time"),
    ]


def _svg(draw: Callable[[Axes], None], size: tuple[int, int], label: str) -> str:
    """Return an ``svg`` element of ``size`` pixels that scales with the page."""
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    # Text stays text, and equal figures get equal ids.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "certikmeans"}):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), layout="constrained")
        draw(figure.subplots())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # A style sheet inside would apply to the whole page.
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    style = f"max-width:{size[0]}px;stroke-linejoin:round"
    attributes = f'role="img" aria-label="{label}" style="{style}"'
    return re.sub(r' width="[^"]*" height="[^"]*"', f" {attributes}", text, count=1)


def plot_clusters(
    problem: Problem,
    result: Result,
    axes: Axes | None = None,
    feature_names: tuple[str, ...] | None = None,
    certainty: Certainty | None = None,
) -> Axes:
    """Draw the points and pairs on given axes: the left half of `render_figure`.

    Parameters
    ----------
    problem : Problem
        The problem.
    result : Result
        Its result; without labels the points are drawn in grey.
    axes : matplotlib.axes.Axes, optional
        By default those of a new figure of pyplot.
    feature_names : tuple of str, optional
        Names for the axes if they are features.
    certainty : Certainty, optional
        Adds rings around uncertain points, and the boxes of the centres.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    axes = require_axes(axes)
    notes = _draw_clusters(axes, problem, result, feature_names, certainty)
    if notes:
        width = _title_width(axes)
        lines = [axes.get_title(), *textwrap.wrap("; ".join(notes), width)]
        axes.set_title("\n".join(lines), fontsize="medium")
    return axes


def require_axes(axes: Axes | None) -> Axes:
    """Return ``axes``, or those of a new figure of pyplot, which notebooks show."""
    require_matplotlib()
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(layout="constrained")
    return axes


def _title_width(axes: Axes) -> int:
    """Number of characters of a title of medium size that fit above the axes."""
    figure = axes.get_figure()
    inches = 6.0 if figure is None else float(figure.get_figwidth())  # type: ignore[union-attr]
    return max(20, int(_CHARACTERS_PER_INCH * inches * axes.get_position().width))


def _caption(figure: Figure, notes: list[str]) -> None:
    figure.supxlabel("; ".join(notes) + ".", fontsize=9, color="#444444", x=0.01, ha="left")


def _draw_clusters(
    axes: Axes,
    problem: Problem,
    result: Result,
    names: tuple[str, ...] | None,
    certainty: Certainty | None = None,
    max_points: int = MAX_POINTS,
) -> list[str]:
    """Draw points, pairs and centres; return notes for the caption."""
    rng = np.random.default_rng(_SEED)
    must, cannot = subsample_pairs(problem, rng)
    cut, joined = subsample_violated(result, rng)  # violated soft must-links and cannot-links
    ends = np.concatenate([must, cannot, cut, joined])
    shown = subsample_points(problem.n_points, ends, rng, max_points)
    view = project(problem.points, shown, result.labels, names)
    place = np.full((problem.n_points, 2), np.nan)
    place[shown] = view.coordinates
    # Among many points, lines below them would be hidden.
    crowded = len(shown) > 2000
    _draw_pairs(axes, place[must], "-", MUST_LINK_COLOR, crowded)
    _draw_pairs(axes, place[cannot], (0, (4, 3)), CANNOT_LINK_COLOR, crowded)
    _draw_pairs(axes, place[cut], "-", VIOLATED_COLOR, crowded, width=1.4)
    _draw_pairs(axes, place[joined], (0, (4, 3)), VIOLATED_COLOR, crowded, width=1.4)
    _draw_points(axes, place, shown, result)
    if result.centers is not None:
        _draw_centers(axes, view, result)
    _legend(axes, problem, result)
    # A "$" in the name of a feature is not a formula.
    axes.set_xlabel(view.axis_names[0], parse_math=False)
    axes.set_ylabel(view.axis_names[1], parse_math=False)
    axes.margins(0.06)
    if view.is_one_dimensional:
        axes.set_yticks([])
        axes.set_ylim(-0.6, (0 if result.labels is None else result.n_clusters - 1) + 0.6)
    if result.labels is None:
        axes.set_title(f"{count(problem.n_points, 'point')}, {result.status}: no labelling")
    else:
        clusters = count(problem.n_clusters, "cluster")
        axes.set_title(f"{clusters}, cost {cost_text(result.cost, 7)} ({result.status})")
    notes = list(view.notes)
    if certainty is not None:
        notes.append(draw_certainty(axes, view, place, shown, certainty))
    if len(shown) < problem.n_points:
        notes.append(f"{len(shown):,} of {count(problem.n_points, 'point')} drawn")
    n_pairs = len(problem.must_link) + len(problem.cannot_link)
    if len(must) + len(cannot) < n_pairs:
        notes.append(f"{len(must) + len(cannot):,} of {count(n_pairs, 'pair')} drawn")
    n_drawn, n_violated = len(cut) + len(joined), len(result.violated_soft_pairs)
    if n_drawn < n_violated:
        notes.append(f"{n_drawn:,} of {count(n_violated, 'violated soft pair')} drawn")
    return notes


def _draw_pairs(
    axes: Axes,
    ends: Floats,
    style: Any,
    color: str,
    crowded: bool,
    width: float = 0.8,
) -> None:
    from matplotlib.collections import LineCollection

    if len(ends):
        lines = LineCollection(
            list(ends),
            colors=color,
            linestyles=[style],
            linewidths=width,
            alpha=0.55,
            zorder=3 if crowded else 1,
        )
        axes.add_collection(lines)


def _draw_points(axes: Axes, place: Floats, shown: Ints, result: Result) -> None:
    size = float(np.clip(6000 / len(shown), 5, 34))
    edge = 0.4 if size > 12 else 0.0
    style: dict[str, Any] = {"s": size, "linewidths": edge, "edgecolors": "white", "zorder": 2}
    if result.labels is None:
        axes.scatter(place[shown, 0], place[shown, 1], color="#999999", **style)
        return
    labels = result.labels[shown]
    for cluster in range(result.n_clusters):
        rows = shown[labels == cluster]
        axes.scatter(
            place[rows, 0],
            place[rows, 1],
            color=cluster_color(cluster),
            marker=cluster_marker(cluster),
            **style,
        )


def _draw_centers(axes: Axes, view: Projection, result: Result) -> None:
    assert result.centers is not None
    assert result.labels is not None
    used = np.flatnonzero(np.bincount(result.labels, minlength=result.n_clusters))
    coordinates = view.project_centers(result.centers[used], used)
    axes.scatter(
        coordinates[:, 0],
        coordinates[:, 1],
        marker="X",
        s=130,
        color="black",
        edgecolors="white",
        linewidths=1.5,
        zorder=4,
    )


def _legend(axes: Axes, problem: Problem, result: Result) -> None:
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    handles = []
    if result.labels is not None:
        sizes = np.bincount(result.labels, minlength=result.n_clusters)
        for cluster in range(min(result.n_clusters, MAX_IN_LEGEND)):
            handles.append(
                Line2D(
                    [],
                    [],
                    color=cluster_color(cluster),
                    marker=cluster_marker(cluster),
                    label=f"cluster {cluster} ({sizes[cluster]:,})",
                    **dot,
                )
            )
        if result.n_clusters > MAX_IN_LEGEND:
            more = f"and {result.n_clusters - MAX_IN_LEGEND:,} more clusters"
            handles.append(Line2D([], [], label=more, **dot))
        handles.append(Line2D([], [], color="black", marker="X", label="centre", **dot))
    if len(problem.must_link):
        text = f"must-link ({len(problem.must_link):,})"
        handles.append(Line2D([], [], color=MUST_LINK_COLOR, label=text))
    if len(problem.cannot_link):
        text = f"cannot-link ({len(problem.cannot_link):,})"
        handles.append(Line2D([], [], color=CANNOT_LINK_COLOR, linestyle="--", label=text))
    styles: tuple[tuple[str, Any], ...] = (("must_link", "-"), ("cannot_link", "--"))
    for kind, style in styles:
        violated = sum(one.kind == kind for one in result.violated_soft_pairs)
        if violated:
            text = f"violated soft {kind.replace('_', '-')} ({violated:,})"
            handles.append(Line2D([], [], color=VIOLATED_COLOR, linestyle=style, label=text))
    if handles:
        _legend_below(axes, handles, columns=4)


def _legend_below(axes: Axes, handles: list[Any], columns: int) -> None:
    """Put the legend below the axes, where it hides no data."""
    height = axes.bbox.height / axes.figure.dpi  # in inches; names of axes need about half an inch
    axes.legend(
        handles=handles,
        fontsize=8.5,
        frameon=False,
        ncols=min(columns, len(handles)),
        loc="upper center",
        bbox_to_anchor=(0.5, -max(0.1, 0.55 / height)),
    )


def _draw_trace(axes: Axes, result: Result, trace: Trace) -> None:
    points = trace.points
    axes.set_xlabel("seconds")
    priced = result.n_soft_must_link + result.n_soft_cannot_link > 0
    axes.set_ylabel("sum of squares and penalties" if priced else "sum of squares")
    if result.labels is None or not points:
        axes.set_title("incumbent and bound over time")
        missing = "no labelling was found" if result.labels is None else "nothing was recorded"
        axes.text(0.5, 0.5, missing, ha="center", transform=axes.transAxes)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    end = max(points[-1].seconds, 1e-3) * 1.03
    seconds = np.array([0.0] + [point.seconds for point in points] + [end])
    costs = np.array([math.nan] + [point.cost for point in points] + [result.cost])
    costs[np.isinf(costs)] = math.nan
    bounds = np.array([0.0] + [point.lower_bound for point in points] + [result.lower_bound])
    shade = axes.fill_between(
        seconds, bounds, costs, step="post", color="#BBBBBB", alpha=0.35, label="undecided"
    )
    upper = axes.step(seconds, costs, where="post", color=COST_COLOR, label="best labelling found")
    lower = axes.step(
        seconds, bounds, where="post", color=BOUND_COLOR, linestyle="--", label="lower bound"
    )
    axes.set_xlim(0.0, end)
    axes.set_ylim(*_trace_limits(costs, bounds))
    axes.set_title(f"incumbent and bound over time: gap {percent(result.gap)}")
    axes.grid(True, linewidth=0.4, alpha=0.5)
    _legend_below(axes, [*upper, *lower, shade], columns=3)
    _percent_axis(axes, result.cost)
    _label_ends(axes, costs[-1], bounds[-1])


def _draw_gap(axes: Axes, result: Result, trace: Trace, requested: float | None) -> None:
    """Draw the gap in per cent on a logarithmic axis, and the requested one."""
    known = [(p.seconds, 100.0 * relative_gap(p.cost, p.lower_bound)) for p in trace.points]
    known = [(seconds, gap) for seconds, gap in known if math.isfinite(gap)]
    end = max(trace.points[-1].seconds, 1e-3) * 1.03
    target = 100.0 * requested if requested else 0.0
    positive = [gap for _, gap in known if gap > _MIN_PERCENT] + [target] * (target > _MIN_PERCENT)
    low = 10.0 ** math.floor(math.log10(min(positive, default=0.1)) - 0.05)
    high = max(10.0 * low, 10.0 ** math.ceil(math.log10(max(positive, default=1.0))))
    seconds, gaps = zip(*known, (end, 100.0 * result.gap), strict=True)
    handles = axes.step(
        seconds,
        np.maximum(gaps, low),
        where="post",
        color=COST_COLOR,
        label=f"gap: {percent(result.gap)}",
    )
    if low <= target <= high:
        label = f"requested: {target:g} %"
        handles.append(axes.axhline(target, color="#888888", linestyle=":", label=label))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_ylim(low, high)
    axes.set_xlim(0.0, end)
    axes.set_xlabel("seconds")
    axes.set_ylabel("gap in %")
    axes.set_title("gap over time")
    axes.grid(True, linewidth=0.4, alpha=0.5)
    _legend_below(axes, handles, columns=2)


def _percent_axis(axes: Axes, cost: float) -> None:
    """Add an axis on the right: distance from the best cost in per cent, for the bound the gap."""
    if cost <= 0.0:
        return

    def below(value: Any) -> Any:
        return 100.0 * (1.0 - value / cost)

    def value(share: Any) -> Any:
        return cost * (1.0 - share / 100.0)

    right = axes.secondary_yaxis("right", functions=(below, value))
    right.yaxis.set_major_formatter(lambda share, _: f"{share:g}" if share > -1e-9 else "")
    right.set_ylabel("below the best cost, in % (the bound: the gap)")


def _trace_limits(costs: Floats, bounds: Floats) -> tuple[float, float]:
    """Return limits that leave out the time before the first bound and very high first costs."""
    proven = bounds[bounds > 0.0]
    low = float(proven.min()) if len(proven) else 0.0
    high = min(float(np.nanmax(costs)), MAX_COST_RATIO * float(costs[-1]))
    if high == 0.0:
        return -0.1, 1.0
    if low < 0.5 * high:
        return 0.0, 1.1 * high
    room = 0.12 * (high - low) if high > low else 0.05 * high
    return low - room, high + room


def _label_ends(axes: Axes, cost: float, bound: float) -> None:
    style: dict[str, Any] = {"fontsize": 8.5, "ha": "right", "textcoords": "offset points"}
    end = axes.get_xlim()[1]
    axes.annotate(cost_text(cost, 7), (end, cost), (-3, 5), va="bottom", **style)
    axes.annotate(rounded_down(bound, 7), (end, bound), (-3, -5), va="top", **style)


# Cost and lower bound against the number of clusters.


def plot_elbow(
    k_values: Ints,
    lower_bound: Floats,
    cost: Floats,
    axes: Axes | None = None,
) -> Axes:
    """Draw one interval per K; infeasible K are marked."""
    axes = require_axes(axes)
    lower = np.where(np.isfinite(lower_bound), lower_bound, np.nan)
    upper = np.where(np.isfinite(cost), cost, np.nan)
    axes.fill_between(k_values, lower, upper, color="#BBBBBB", alpha=0.35, label="undecided")
    axes.plot(k_values, upper, "o-", color=COST_COLOR, label="best labelling found")
    axes.plot(k_values, lower, "_--", color=BOUND_COLOR, markersize=12, label="lower bound")
    for k in k_values[np.isinf(lower_bound)]:
        axes.annotate(
            "infeasible", (k, 0.02), xycoords=("data", "axes fraction"), rotation=90, ha="center"
        )
    axes.set_xlabel("number of clusters")
    axes.set_ylabel("sum of squares")
    axes.set_xlim(k_values.min() - 0.4, k_values.max() + 0.4)
    axes.set_ylim(bottom=0.0)
    axes.set_xticks(k_values)
    axes.grid(True, linewidth=0.4, alpha=0.5)
    axes.legend(frameon=False)
    return axes
