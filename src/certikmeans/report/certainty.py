"""Certainty as text, as marks in a figure, and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from certikmeans._numbers import count, percent_in_full, rounded_down, rounded_up
from certikmeans._types import Floats, Ints
from certikmeans.certainty import Certainty
from certikmeans.report.plot_data import Projection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LISTED = 8
MAX_UNCERTAIN_LISTED = 5  # fit into a line
BOX_DIGITS = 6
UNCERTAIN_COLOR = "#b00020"
# More boxes would hide the points.
MAX_BOXES = 40


def certainty_lines(certainty: Certainty, base: int = 0) -> list[str]:
    """Return what is proven for every labelling within the slack, one fact per line.

    Points are counted from ``base``, clusters from 0.

    >>> import numpy as np
    >>> nothing = Certainty(
    ...     0.001, np.zeros(2, bool), np.ones((2, 2), bool), np.zeros((2, 1, 2)), 0.0, 2,
    ...     ((0, 1, 2),), ((0, 1),), np.zeros((2, 2)), "none", "time was up",
    ... )
    >>> print(*certainty_lines(nothing), sep="\\n")
    for every labelling within 0.1 % of the cost: nothing is proven
      reason: time was up
    """
    head = f"for every labelling within {percent_in_full(certainty.slack)} of the cost"
    n_points = len(certainty.certain)
    if certainty.agreement == 0.0 and not certainty.certain.any():
        return [f"{head}: nothing is proven", f"  reason: {certainty.reason}"]
    lines = [
        f"{head}:",
        f"  same cluster         at least {n_points - certainty.most_elsewhere} of "
        f"{count(n_points, 'point')}",
    ]
    if not certainty.locates_points:
        return [*lines, f"  reason: {certainty.reason}"]
    lines.append(f"  certain points       {count(int(certainty.certain.sum()), 'point')}")
    if certainty.certain.any() and not certainty.certain.all():
        lines.append(f"  uncertain points     {_uncertain_points_text(certainty, base)}")
    for first, second, shared in certainty.confusable[:MAX_LISTED]:
        pair = f"clusters {first} and {second}"
        lines.append(f"  {pair:<19}  {count(shared, 'point')} can be in either")
    if len(certainty.confusable) > MAX_LISTED:
        lines.append(
            f"  and {count(len(certainty.confusable) - MAX_LISTED, 'more pair')} of clusters"
        )
    lines.append(f"  reason: {certainty.reason}")
    return lines


def _uncertain_points_text(certainty: Certainty, base: int) -> str:
    """List uncertain points with their possible clusters."""
    rows = np.flatnonzero(~certainty.certain)
    parts: list[str] = []
    for i in rows[:MAX_UNCERTAIN_LISTED].tolist():
        where = " or ".join(map(str, np.flatnonzero(certainty.possible[i])))
        parts.append(f"{i + base} ({where})" if parts else f"point {i + base} (cluster {where})")
    more = f" and {len(rows) - MAX_UNCERTAIN_LISTED:,} more" if len(rows) > len(parts) else ""
    return f"{', '.join(parts)}{more}"


def box_lines(certainty: Certainty, names: tuple[str, ...] | None = None) -> list[str]:
    """Return boxes of the centres, one line per feature and cluster, rounded outward.

    Empty if no box is smaller than that of all points.

    >>> boxes = np.array([[[0.0, 1 / 3]], [[5.0, 6.0]]])
    >>> certainty = Certainty(
    ...     0.001, np.ones(2, bool), np.eye(2, dtype=bool), boxes, 1.0, 0, (),
    ...     ((0,), (1,)), np.zeros((2, 2)), "regions of centres", "complete",
    ... )
    >>> print(*box_lines(certainty, ("length",)), sep="\\n")
    centres lie in:
      cluster 0  length  0 .. 0.333334
      cluster 1  length  5 .. 6
    """
    if not certainty.locates_centers:
        return []
    d = certainty.center_boxes.shape[1]
    names = tuple(f"feature {j}" for j in range(d)) if names is None else names
    width = max(len(name) for name in names)
    lines = ["centres lie in:"]
    for k, box in enumerate(certainty.center_boxes.tolist()):
        for j, (low, high) in enumerate(box[:MAX_LISTED]):
            head = f"cluster {k}" if j == 0 else " " * len(f"cluster {k}")
            sides = f"{rounded_down(low, BOX_DIGITS)} .. {rounded_up(high, BOX_DIGITS)}"
            lines.append(f"  {head}  {names[j]:<{width}}  {sides}")
        if d > MAX_LISTED:
            lines.append(f"  {' ' * len(f'cluster {k}')}  and {d - MAX_LISTED} more: see --json")
    return lines


def visible_boxes(view: Projection, certainty: Certainty) -> Floats:
    """Return the rectangles of centres, (k, 2, 2), of clusters that are distinguished."""
    single = [family[0] for family in certainty.families if len(family) == 1]
    if (
        not single
        or len(single) > MAX_BOXES
        or view.directions.shape[0] != certainty.center_boxes.shape[1]
    ):
        return np.empty((0, 2, 2))
    return view.project_boxes(certainty.center_boxes)[sorted(single)]


def uncertain_points(certainty: Certainty, shown: Ints) -> Ints:
    """Return the points to mark among those shown; none if all of them are uncertain."""
    marked = shown[~certainty.certain[shown]]
    return marked if len(marked) < len(shown) else marked[:0]


def draw_certainty(
    axes: Axes,
    view: Projection,
    coordinates: Floats,
    shown: Ints,
    certainty: Certainty,
) -> str:
    """Draw rings around uncertain points and boxes of centres; return a note for the caption."""
    from matplotlib.patches import Rectangle

    rows = uncertain_points(certainty, shown)
    size = float(np.clip(9000 / len(shown), 14, 60))
    axes.scatter(
        coordinates[rows, 0], coordinates[rows, 1], s=size, facecolors="none",
        edgecolors=UNCERTAIN_COLOR, linewidths=1.0, zorder=5,
    )  # fmt: skip
    for (left, right), (bottom, top) in visible_boxes(view, certainty):
        frame = Rectangle(
            (left, bottom), right - left, top - bottom, fill=False, edgecolor="black",
            linewidth=1.0, zorder=4,
        )  # fmt: skip
        axes.add_patch(frame)
    return certainty_caption(certainty)


def certainty_caption(certainty: Certainty) -> str:
    """Explain rings and boxes."""
    head = f"within {percent_in_full(certainty.slack)} of the cost"
    if certainty.agreement == 0.0 and not certainty.certain.any():
        return f"{head}, nothing is proven about single points"
    marked = "ringed points may change cluster, centres stay in their boxes, "
    return (
        f"{head}: {marked if certainty.locates_points else ''}"
        f"at least {len(certainty.certain) - certainty.most_elsewhere} of "
        f"{count(len(certainty.certain), 'point')} keep their cluster"
    )


def certainty_html(certainty: Certainty) -> str:
    """Return the facts as a section of a page, without its heading."""
    from html import escape

    lines = certainty_lines(certainty)
    # Two spaces separate columns on a terminal; here a colon does.
    facts = (line.strip().replace("  ", ": ", 1).replace(":  ", ": ") for line in lines[1:])
    items = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    return f"<p>Proven {escape(lines[0])}</p><ul>{items}</ul>"
