"""Pictures as SVG text, for a page that needs nothing else to be looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty import Certainty
from certikmeans.problem import Problem
from certikmeans.report.certain import DOUBT_COLOUR, doubtful, drawn_boxes, picture_note
from certikmeans.report.numbers import count
from certikmeans.report.palette import (
    CANNOT_COLOUR,
    MARKERS,
    MUST_COLOUR,
    colour_of,
    marker_of,
)
from certikmeans.report.projection import Projection, project
from certikmeans.report.thinning import thinned_pairs, thinned_points
from certikmeans.result import Result

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
class Scale:
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

        >>> Scale(0.0, 10.0, 0, 1).ticks()
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        >>> [f"{tick:g}" for tick in Scale(0.01, 200.0, 0, 1, log=True).ticks()]
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


def frame(x: Scale, y: Scale, names: tuple[str, str], x_ticks: bool = True) -> str:
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
) -> tuple[Scale, Scale]:
    """Return the two axes of a picture of ``size``."""
    width, height = size
    return (
        Scale(*_apart(xs), _LEFT, width - _RIGHT),
        Scale(*(ys if log else _apart(ys)), height - _BOTTOM, _TOP, log),
    )


def _apart(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if high > low and math.isfinite(high - low):
        return low, high
    room = max(1.0, abs(low))
    return low - room, high + room


def steps(x: Scale, y: Scale, points: Sequence[tuple[float, float]]) -> str:
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
    at = MARKERS.index(marker_of(cluster))
    inner = f"<title>{escape(title)}</title>" if title else ""
    place = f"translate({x:.1f} {y:.1f}) scale({radius:.2g})"
    return f'<use href="#m{at}" transform="{place}">{inner}</use>'


def clusters(
    problem: Problem,
    result: Result,
    names: tuple[str, ...] | None,
    size: tuple[int, int],
    sure: Certainty | None = None,
) -> tuple[str, list[str]]:
    """Draw points, pairs and centres; also say what was left out."""
    rng = np.random.default_rng(0)
    must, cannot = thinned_pairs(problem, rng)
    shown = thinned_points(problem.n_points, np.concatenate([must, cannot]), rng, MAX_POINTS)
    view = project(problem.points, shown, result.labels, names)
    # Scaled so that pixels stay finite, whatever the data.
    low, high = view.places.min(axis=0), view.places.max(axis=0)
    room = 0.04 * np.where(high > low, high - low, 1.0)
    x, y = scales(
        (float(low[0] - room[0]), float(high[0] + room[0])),
        (float(low[1] - room[1]), float(high[1] + room[1])),
        size,
    )
    place = np.full((problem.n_points, 2), np.nan)
    place[shown] = _pixels(x, y, view.places)
    drawn = frame(x, y, view.axis_names)
    for pairs, colour, dash in ((must, MUST_COLOUR, ""), (cannot, CANNOT_COLOUR, "5 4")):
        drawn += _lines(place[pairs], colour, dash)
    drawn += _points(place, shown, result)
    if result.centers is not None and result.labels is not None:
        used = np.flatnonzero(np.bincount(result.labels, minlength=result.n_clusters))
        for at in _pixels(x, y, view.of_centres(result.centers[used], used)):
            drawn += (
                f'<use href="#m6" class="centre" '
                f'transform="translate({at[0]:.1f} {at[1]:.1f}) scale(7)"/>'
            )
    notes = list(view.notes)
    if sure is not None:
        drawn += _certainty(x, y, view, place, doubtful(sure, shown), sure)
        notes.append(picture_note(sure))
    if len(shown) < problem.n_points:
        notes.append(f"{len(shown):,} of {count(problem.n_points, 'point')} drawn")
    n_pairs = len(problem.must_link) + len(problem.cannot_link)
    if len(must) + len(cannot) < n_pairs:
        notes.append(f"{len(must) + len(cannot):,} of {count(n_pairs, 'pair')} drawn")
    return canvas(drawn, *size, "the clusters"), notes


def _certainty(
    x: Scale,
    y: Scale,
    view: Projection,
    place: NDArray[np.float64],
    rows: NDArray[np.int64],
    sure: Certainty,
) -> str:
    """Rings about the points in doubt, frames about where centres can be."""
    drawn = f'<g fill="none" stroke="{DOUBT_COLOUR}">'
    for at in place[rows]:
        drawn += f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="6"/>'
    drawn += '</g><g fill="none" stroke="currentColor">'
    for box in drawn_boxes(view, sure):
        (left, top), (right, bottom) = _pixels(x, y, box.T)
        drawn += (
            f'<rect x="{min(left, right):.1f}" y="{min(top, bottom):.1f}" '
            f'width="{abs(right - left):.1f}" height="{abs(bottom - top):.1f}"/>'
        )
    return f"{drawn}</g>"


def _pixels(x: Scale, y: Scale, places: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack(
        [
            scale.start + (scale.end - scale.start) * ((column - scale.low) / span)
            for scale, column, span in (
                (x, places[:, 0], x.high - x.low),
                (y, places[:, 1], y.high - y.low),
            )
        ]
    )


def _lines(ends: NDArray[np.float64], colour: str, dash: str) -> str:
    if not len(ends):
        return ""
    data = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in ends.tolist())
    return (
        f'<path d="{data}" fill="none" stroke="{colour}" stroke-opacity=".5" '
        f'stroke-width="1"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}/>'
    )


def _points(place: NDArray[np.float64], shown: NDArray[np.int64], result: Result) -> str:
    radius = float(np.clip(60.0 / math.sqrt(len(shown)), 1.6, 4.5))
    titled = len(shown) <= _MAX_TITLES
    labels = np.zeros(len(place), dtype=np.int64) if result.labels is None else result.labels
    drawn = ""
    for cluster in np.unique(labels[shown]).tolist():
        colour = "#999999" if result.labels is None else colour_of(cluster)
        drawn += f'<g fill="{colour}">'
        for row in shown[labels[shown] == cluster].tolist():
            title = f"point {row}, cluster {cluster}" if titled else ""
            drawn += marker(cluster, float(place[row, 0]), float(place[row, 1]), radius, title)
        drawn += "</g>"
    return drawn
