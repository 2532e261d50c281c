"""Figures as SVG text for the self-contained HTML report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count, percent, rounded_down, rounded_up
from certikmeans.certainty import Certainty
from certikmeans.problem import Problem
from certikmeans.report.certainty import (
    UNCERTAIN_COLOR,
    certainty_caption,
    uncertain_points,
    visible_boxes,
)
from certikmeans.report.plot_data import (
    BOUND_COLOR,
    CANNOT_LINK_COLOR,
    COST_COLOR,
    MARKERS,
    MUST_LINK_COLOR,
    Projection,
    cluster_color,
    cluster_marker,
    project,
    subsample_pairs,
    subsample_points,
)
from certikmeans.report.trace import Trace, TracePoint
from certikmeans.result import Result
from certikmeans.tolerances import relative_gap

MAX_POINTS = 4000
_MAX_TITLES = 1500  # points that say their number under the mouse
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 16, 14, 48

# Markers of radius 1 about the origin; y points down.
_SHAPES = {
    "o": "M-1 0A1 1 0 1 0 1 0A1 1 0 1 0 -1 0Z",
    "s": "M-.9-.9H.9V.9H-.9Z",
    "^": "M0-1.1L1.05.8H-1.05Z",
    "D": "M0-1.2L1.2 0L0 1.2L-1.2 0Z",
    "v": "M0 1.1L1.05-.8H-1.05Z",
    "P": "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
    "X": "M-1-.5L-.5-1L0-.5L.5-1L1-.5L.5 0L1 .5L.5 1L0 .5L-.5 1L-1 .5L-.5 0Z",
    "<": "M-1.1 0L.8-1.05V1.05Z",
    ">": "M1.1 0L-.8-1.05V1.05Z",
    "p": "M0-1.1L1.05-.34L.65.89H-.65L-1.05-.34Z",
}


@final
@dataclass(frozen=True, slots=True)
class AxisScale:
    """Values to pixels."""

    low: float
    high: float
    start: float  # pixel of ``low``
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high, value = (
            (math.log10(v) for v in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start + (self.end - self.start) * (value - low) / ((high - low) or 1.0)

    def ticks(self, about: int = 6) -> list[float]:
        """Return round values in the range.

        >>> AxisScale(0.0, 10.0, 0, 1).ticks()
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        >>> [f"{tick:g}" for tick in AxisScale(0.01, 200.0, 0, 1, log=True).ticks()]
        ['0.01', '0.1', '1', '10', '100']
        """
        if self.log:
            least, most = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            stride = max(1, (most - least) // about + 1)
            return [10.0**power for power in range(least, most + 1, stride)]
        rough = (self.high - self.low) / max(1, about - 1)
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= 0.999 * rough)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def frame(x: AxisScale, y: AxisScale, names: tuple[str, str], x_ticks: bool = True) -> str:
    """Axes with ticks, grid and names."""
    parts = []
    for value in x.ticks() if x_ticks else []:
        at = x(value)
        parts.append(f'<path class="grid" d="M{at:.1f} {y.start:.1f}V{y.end:.1f}"/>')
        parts.append(f'<text x="{at:.1f}" y="{y.start + 16:.1f}" text-anchor="middle">')
        parts.append(f"{value:.6g}</text>")
    for value in y.ticks():
        at = y(value)
        parts.append(f'<path class="grid" d="M{x.start:.1f} {at:.1f}H{x.end:.1f}"/>')
        parts.append(f'<text x="{x.start - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">')
        parts.append(f"{value:.6g}</text>")
    middle_x, middle_y = (x.start + x.end) / 2, (y.start + y.end) / 2
    parts.append(f'<path class="axis" d="M{x.start:.1f} {y.end:.1f}V{y.start:.1f}H{x.end:.1f}"/>')
    parts.append(
        f'<text class="name" x="{middle_x:.1f}" y="{y.start + 38:.1f}" text-anchor="middle">'
        f"{escape(names[0])}</text>"
        f'<text class="name" transform="translate(14 {middle_y:.1f}) rotate(-90)" '
        f'text-anchor="middle">{escape(names[1])}</text>'
    )
    return "".join(parts)


def canvas(content: str, width: int, height: int, label: str) -> str:
    """Wrap content in an ``svg`` element that shrinks with the page."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" '
        f'style="max-width:{width}px">{content}</svg>'
    )


def scales(
    xs: tuple[float, float], ys: tuple[float, float], size: tuple[int, int], *, log: bool = False
) -> tuple[AxisScale, AxisScale]:
    """Return the two axes of a picture of ``size``."""
    width, height = size
    return (
        AxisScale(*_nonempty_range(xs), _LEFT, width - _RIGHT),
        AxisScale(*(ys if log else _nonempty_range(ys)), height - _BOTTOM, _TOP, log),
    )


def _nonempty_range(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if high > low and math.isfinite(high - low):
        return low, high
    room = max(1.0, abs(low))
    return low - room, high + room


def step_path(x: AxisScale, y: AxisScale, points: Sequence[tuple[float, float]]) -> str:
    """Path data of a line that keeps each value until the next."""
    data = f"M{x(points[0][0]):.1f} {y(points[0][1]):.1f}"
    for seconds, value in points[1:]:
        data += f"H{x(seconds):.1f}V{y(value):.1f}"
    return data


def symbols() -> str:
    """Definitions of the markers, once for a page."""
    shapes = "".join(
        f'<path id="m{at}" d="{_SHAPES[marker]}"/>' for at, marker in enumerate(MARKERS)
    )
    return f'<svg width="0" height="0" class="none" aria-hidden="true"><defs>{shapes}</defs></svg>'


def marker(cluster: int, x: float, y: float, radius: float, title: str = "") -> str:
    """One point in the shape of its cluster; the colour comes from the group around it."""
    at = MARKERS.index(cluster_marker(cluster))
    inner = f"<title>{escape(title)}</title>" if title else ""
    place = f"translate({x:.1f} {y:.1f}) scale({radius:.2g})"
    return f'<use href="#m{at}" transform="{place}">{inner}</use>'


def clusters(
    problem: Problem,
    result: Result,
    names: tuple[str, ...] | None,
    size: tuple[int, int],
    certainty: Certainty | None = None,
) -> tuple[str, list[str]]:
    """Draw points, pairs and centres; also say what was left out."""
    rng = np.random.default_rng(0)
    must, cannot = subsample_pairs(problem, rng)
    shown = subsample_points(problem.n_points, np.concatenate([must, cannot]), rng, MAX_POINTS)
    view = project(problem.points, shown, result.labels, names)
    # Scaled so that pixels stay finite, whatever the data.
    low, high = view.coordinates.min(axis=0), view.coordinates.max(axis=0)
    room = 0.04 * np.where(high > low, high - low, 1.0)
    x, y = scales(
        (float(low[0] - room[0]), float(high[0] + room[0])),
        (float(low[1] - room[1]), float(high[1] + room[1])),
        size,
    )
    place = np.full((problem.n_points, 2), np.nan)
    place[shown] = _pixels(x, y, view.coordinates)
    drawn = frame(x, y, view.axis_names)
    for pairs, color, dash in ((must, MUST_LINK_COLOR, ""), (cannot, CANNOT_LINK_COLOR, "5 4")):
        drawn += _lines(place[pairs], color, dash)
    drawn += _points(place, shown, result)
    if result.centers is not None and result.labels is not None:
        used = np.flatnonzero(np.bincount(result.labels, minlength=result.n_clusters))
        for at in _pixels(x, y, view.project_centers(result.centers[used], used)):
            drawn += (
                f'<use href="#m6" class="centre" '
                f'transform="translate({at[0]:.1f} {at[1]:.1f}) scale(7)"/>'
            )
    notes = list(view.notes)
    if certainty is not None:
        drawn += _certainty(x, y, view, place, uncertain_points(certainty, shown), certainty)
        notes.append(certainty_caption(certainty))
    if len(shown) < problem.n_points:
        notes.append(f"{len(shown):,} of {count(problem.n_points, 'point')} drawn")
    n_pairs = len(problem.must_link) + len(problem.cannot_link)
    if len(must) + len(cannot) < n_pairs:
        notes.append(f"{len(must) + len(cannot):,} of {count(n_pairs, 'pair')} drawn")
    return canvas(drawn, *size, "the clusters"), notes


def _certainty(
    x: AxisScale,
    y: AxisScale,
    view: Projection,
    place: NDArray[np.float64],
    rows: NDArray[np.int64],
    certainty: Certainty,
) -> str:
    """Rings about the points in doubt, frames about where centres can be."""
    drawn = f'<g fill="none" stroke="{UNCERTAIN_COLOR}">'
    for at in place[rows]:
        drawn += f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="6"/>'
    drawn += '</g><g fill="none" stroke="currentColor">'
    for box in visible_boxes(view, certainty):
        (left, top), (right, bottom) = _pixels(x, y, box.T)
        drawn += (
            f'<rect x="{min(left, right):.1f}" y="{min(top, bottom):.1f}" '
            f'width="{abs(right - left):.1f}" height="{abs(bottom - top):.1f}"/>'
        )
    return f"{drawn}</g>"


def _pixels(x: AxisScale, y: AxisScale, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack(
        [
            scale.start + (scale.end - scale.start) * ((column - scale.low) / span)
            for scale, column, span in (
                (x, coordinates[:, 0], x.high - x.low),
                (y, coordinates[:, 1], y.high - y.low),
            )
        ]
    )


def _lines(ends: NDArray[np.float64], color: str, dash: str) -> str:
    if not len(ends):
        return ""
    data = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in ends.tolist())
    return (
        f'<path d="{data}" fill="none" stroke="{color}" stroke-opacity=".5" '
        f'stroke-width="1"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}/>'
    )


def _points(place: NDArray[np.float64], shown: NDArray[np.int64], result: Result) -> str:
    radius = float(np.clip(60.0 / math.sqrt(len(shown)), 1.6, 4.5))
    titled = len(shown) <= _MAX_TITLES
    labels = np.zeros(len(place), dtype=np.int64) if result.labels is None else result.labels
    drawn = ""
    for cluster in np.unique(labels[shown]).tolist():
        color = "#999999" if result.labels is None else cluster_color(cluster)
        drawn += f'<g fill="{color}">'
        for row in shown[labels[shown] == cluster].tolist():
            title = f"point {row}, cluster {cluster}" if titled else ""
            drawn += marker(cluster, float(place[row, 0]), float(place[row, 1]), radius, title)
        drawn += "</g>"
    return drawn


# The two sides of a run closing in over time, drawn as SVG.

MAX_COST_RATIO = 1.5  # times the last cost
_SMALLEST = 1e-7  # per cent; below it rounding decides


def values_over_time(result: Result, trace: Trace, size: tuple[int, int]) -> str | None:
    """Cost of the best labelling and lower bound; None where there is nothing to draw."""
    points = [p for p in trace.points if math.isfinite(p.cost)]
    if result.labels is None or not points:
        return None
    end = _time_limit(points)
    costs = [(p.seconds, p.cost) for p in points] + [(end, result.cost)]
    bounds = [(p.seconds, p.lower_bound) for p in trace.points if math.isfinite(p.lower_bound)]
    bounds = [(0.0, 0.0), *bounds, (end, result.lower_bound)]
    x, y = scales((0.0, end), _limits(costs, bounds), size)
    lowest = max(y.low, 0.0) if y.low < 0.0 else y.low
    bounds = [(seconds, min(max(value, lowest), y.high)) for seconds, value in bounds]
    costs = [(seconds, min(value, y.high)) for seconds, value in costs]
    drawn = frame(x, y, ("seconds", "sum of squares"))
    drawn += f'<path d="{step_path(x, y, costs)}" class="line" stroke="{COST_COLOR}"/>'
    drawn += (
        f'<path d="{step_path(x, y, bounds)}" class="line" stroke="{BOUND_COLOR}" '
        'stroke-dasharray="6 4"/>'
    )
    caption = _legend_entry(COST_COLOR, "&#9472;", f"best labelling {rounded_up(result.cost, 7)}")
    caption += _legend_entry(
        BOUND_COLOR, "&#9476;", f"lower bound {rounded_down(result.lower_bound, 7)}"
    )
    return _figure(canvas(drawn, *size, "best cost and lower bound over time"), caption)


def gap_over_time(
    result: Result, trace: Trace, requested: float | None, size: tuple[int, int]
) -> str | None:
    """The gap in per cent, on a logarithmic axis, and the one that was asked for."""
    known = [(p.seconds, 100.0 * relative_gap(p.cost, p.lower_bound)) for p in trace.points]
    known = [(seconds, gap) for seconds, gap in known if math.isfinite(gap)]
    if result.labels is None or not known:
        return None
    end = _time_limit(trace.points)
    target = 100.0 * requested if requested else 0.0
    positive = [gap for _, gap in known if gap > _SMALLEST] + [target] * (target > _SMALLEST)
    low = 10.0 ** math.floor(math.log10(min(positive, default=0.1)) - 0.05)
    high = 10.0 ** math.ceil(math.log10(max(positive, default=1.0)))
    if high <= low:
        high = 10.0 * low
    x, y = scales((0.0, end), (low, high), size, log=True)
    line = [(seconds, max(gap, low)) for seconds, gap in known]
    line.append((end, max(100.0 * result.gap, low)))
    drawn = frame(x, y, ("seconds", "gap in %"))
    caption = _legend_entry(COST_COLOR, "&#9472;", f"gap {percent(result.gap)}")
    if low <= target <= high:
        drawn += f'<path class="goal" d="M{x.start:.1f} {y(target):.1f}H{x.end:.1f}"/>'
        caption += _legend_entry("#555555", "&#9480;", f"asked for: {target:g} %")
    drawn += f'<path d="{step_path(x, y, line)}" class="line" stroke="{COST_COLOR}"/>'
    return _figure(canvas(drawn, *size, "the gap over time, in per cent"), caption)


def _time_limit(points: list[TracePoint]) -> float:
    return max(points[-1].seconds, 1e-3) * 1.03


def _legend_entry(color: str, line: str, text: str) -> str:
    return f'<span style="color:{color}">{line} {escape(text)}</span>'


def _figure(drawn: str, caption: str) -> str:
    return f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>"


def _limits(
    costs: list[tuple[float, float]], bounds: list[tuple[float, float]]
) -> tuple[float, float]:
    """Leave out the time before the first real bound: its line runs along the bottom.

    And first labellings that cost many times the last: theirs runs along the top.
    """
    proven = [value for _, value in bounds if value > 0.0]
    low = min(proven, default=0.0)
    high = min(max(value for _, value in costs), MAX_COST_RATIO * costs[-1][1])
    if low < 0.5 * high:
        return 0.0, 1.08 * high
    room = 0.15 * (high - low) if high > low else 0.05 * abs(high)
    return low - room, high + room
