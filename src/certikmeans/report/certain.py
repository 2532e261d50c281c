"""Certainty in words and in pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count, percent_in_full, rounded_down, rounded_up
from certikmeans.certainty import Certainty
from certikmeans.report.projection import Projection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LISTED = 8
MOST_DOUBTS = 5  # they are to fit into a line
BOX_DIGITS = 6
DOUBT_COLOUR = "#b00020"
# Beyond so many clusters, or where they cover everything, boxes hide more than they show.
MOST_BOXES = 40


def certainty_lines(sure: Certainty, base: int = 0) -> list[str]:
    """What is proven of every labelling that is good enough, a fact per line.

    Points are counted from ``base``, clusters from 0.

    >>> import numpy as np
    >>> nothing = Certainty(
    ...     0.001, np.zeros(2, bool), np.ones((2, 2), bool), np.zeros((2, 1, 2)), 0.0, 2,
    ...     ((0, 1, 2),), ((0, 1),), np.zeros((2, 2)), "none", "time was up",
    ... )
    >>> print(*certainty_lines(nothing), sep="\\n")
    of every labelling within 0.1 % of the cost: nothing is proven
      why: time was up
    """
    head = f"of every labelling within {percent_in_full(sure.slack)} of the cost"
    n_points = len(sure.certain)
    if sure.agreement == 0.0 and not sure.certain.any():
        return [f"{head}: nothing is proven", f"  why: {sure.reason}"]
    lines = [
        f"{head}:",
        f"  grouped as here      at least {n_points - sure.most_elsewhere} of "
        f"{count(n_points, 'point')}",
    ]
    if not sure.tells_points:
        return [*lines, f"  why no more: {sure.reason}"]
    lines.append(f"  certain, each alone  {count(int(sure.certain.sum()), 'point')}")
    if sure.certain.any() and not sure.certain.all():
        lines.append(f"  in doubt             {_doubts(sure, base)}")
    for first, second, shared in sure.confusable[:MOST_LISTED]:
        pair = f"clusters {first} and {second}"
        lines.append(f"  {pair:<19}  {count(shared, 'point')} can be in either")
    if len(sure.confusable) > MOST_LISTED:
        lines.append(f"  and {count(len(sure.confusable) - MOST_LISTED, 'more pair')} of clusters")
    lines.append(f"  why no more: {sure.reason}")
    return lines


def _doubts(sure: Certainty, base: int) -> str:
    """The points that are not certain, and where they can be."""
    rows = np.flatnonzero(~sure.certain)
    told: list[str] = []
    for i in rows[:MOST_DOUBTS].tolist():
        where = " or ".join(map(str, np.flatnonzero(sure.possible[i])))
        told.append(f"{i + base} ({where})" if told else f"point {i + base} (cluster {where})")
    more = f" and {len(rows) - MOST_DOUBTS:,} more" if len(rows) > len(told) else ""
    return f"{', '.join(told)}{more}"


def box_lines(sure: Certainty, names: tuple[str, ...] | None = None) -> list[str]:
    """Where the centres are, a line for each feature and cluster; rounded outward.

    None where all that is known is that they are among the points.

    >>> boxes = np.array([[[0.0, 1 / 3]], [[5.0, 6.0]]])
    >>> sure = Certainty(
    ...     0.001, np.ones(2, bool), np.eye(2, dtype=bool), boxes, 1.0, 0, (),
    ...     ((0,), (1,)), np.zeros((2, 2)), "regions of centres", "all there is to know",
    ... )
    >>> print(*box_lines(sure, ("length",)), sep="\\n")
    centres lie in:
      cluster 0  length  0 .. 0.333334
      cluster 1  length  5 .. 6
    """
    if not sure.tells_centers:
        return []
    d = sure.center_boxes.shape[1]
    names = tuple(f"feature {j}" for j in range(d)) if names is None else names
    wide = max(len(name) for name in names)
    lines = ["centres lie in:"]
    for k, box in enumerate(sure.center_boxes.tolist()):
        for j, (low, high) in enumerate(box[:MOST_LISTED]):
            head = f"cluster {k}" if j == 0 else " " * len(f"cluster {k}")
            sides = f"{rounded_down(low, BOX_DIGITS)} .. {rounded_up(high, BOX_DIGITS)}"
            lines.append(f"  {head}  {names[j]:<{wide}}  {sides}")
        if d > MOST_LISTED:
            lines.append(f"  {' ' * len(f'cluster {k}')}  and {d - MOST_LISTED} more: see --json")
    return lines


def drawn_boxes(view: Projection, sure: Certainty) -> NDArray[np.float64]:
    """Rectangles of the centres, (k, 2, 2): those of clusters that are told apart."""
    told = [family[0] for family in sure.families if len(family) == 1]
    if not told or len(told) > MOST_BOXES or view.directions.shape[0] != sure.center_boxes.shape[1]:
        return np.empty((0, 2, 2))
    return view.of_boxes(sure.center_boxes)[sorted(told)]


def doubtful(sure: Certainty, shown: NDArray[np.int64]) -> NDArray[np.int64]:
    """Points to be marked, of those shown; none where all are in doubt: it would say nothing."""
    marked = shown[~sure.certain[shown]]
    return marked if len(marked) < len(shown) else marked[:0]


def mark_certainty(
    axes: Axes,
    view: Projection,
    place: NDArray[np.float64],
    shown: NDArray[np.int64],
    sure: Certainty,
) -> str:
    """Ring the points in doubt and frame the centres; returns a note for the caption."""
    from matplotlib.patches import Rectangle

    rows = doubtful(sure, shown)
    size = float(np.clip(9000 / len(shown), 14, 60))
    axes.scatter(
        place[rows, 0], place[rows, 1], s=size, facecolors="none", edgecolors=DOUBT_COLOUR,
        linewidths=1.0, zorder=5,
    )  # fmt: skip
    for (left, right), (bottom, top) in drawn_boxes(view, sure):
        frame = Rectangle(
            (left, bottom), right - left, top - bottom, fill=False, edgecolor="black",
            linewidth=1.0, zorder=4,
        )  # fmt: skip
        axes.add_patch(frame)
    return picture_note(sure)


def picture_note(sure: Certainty) -> str:
    """What rings and frames mean."""
    head = f"within {percent_in_full(sure.slack)} of the cost"
    if sure.agreement == 0.0 and not sure.certain.any():
        return f"{head} nothing is proven of single points"
    marked = "ringed points may be elsewhere, centres stay in their frames, "
    return (
        f"{head}: {marked if sure.tells_points else ''}"
        f"at least {len(sure.certain) - sure.most_elsewhere} of "
        f"{count(len(sure.certain), 'point')} are grouped as here"
    )


def certainty_html(sure: Certainty) -> str:
    """The same as a section of a page, without its heading."""
    from html import escape

    lines = certainty_lines(sure)
    # What stands in columns on a terminal, after two spaces, is a colon here.
    facts = (line.strip().replace("  ", ": ", 1).replace(":  ", ": ") for line in lines[1:])
    items = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    return f"<p>Proven {escape(lines[0])}</p><ul>{items}</ul>"
