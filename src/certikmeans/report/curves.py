"""The two sides of a run closing in over time, drawn as SVG."""

from __future__ import annotations

import math
from html import escape

from certikmeans.report.numbers import percent, rounded_down, rounded_up
from certikmeans.report.palette import BOUND_COLOUR, COST_COLOUR
from certikmeans.report.svg import canvas, frame, scales, steps
from certikmeans.report.trace import Trace, TracePoint
from certikmeans.result import Result
from certikmeans.tolerances import relative_gap

MOST_SHOWN = 1.5  # times the last cost
_SMALLEST = 1e-7  # per cent; below it rounding decides


def values_over_time(result: Result, trace: Trace, size: tuple[int, int]) -> str | None:
    """Cost of the best labelling and lower bound; None where there is nothing to draw."""
    points = [p for p in trace.points if math.isfinite(p.cost)]
    if result.labels is None or not points:
        return None
    end = _end(points)
    costs = [(p.seconds, p.cost) for p in points] + [(end, result.cost)]
    bounds = [(p.seconds, p.lower_bound) for p in trace.points if math.isfinite(p.lower_bound)]
    bounds = [(0.0, 0.0), *bounds, (end, result.lower_bound)]
    x, y = scales((0.0, end), _limits(costs, bounds), size)
    lowest = max(y.low, 0.0) if y.low < 0.0 else y.low
    bounds = [(seconds, min(max(value, lowest), y.high)) for seconds, value in bounds]
    costs = [(seconds, min(value, y.high)) for seconds, value in costs]
    drawn = frame(x, y, ("seconds", "sum of squares"))
    drawn += f'<path d="{steps(x, y, costs)}" class="line" stroke="{COST_COLOUR}"/>'
    drawn += (
        f'<path d="{steps(x, y, bounds)}" class="line" stroke="{BOUND_COLOUR}" '
        'stroke-dasharray="6 4"/>'
    )
    caption = _key(COST_COLOUR, "&#9472;", f"best labelling {rounded_up(result.cost, 7)}")
    caption += _key(BOUND_COLOUR, "&#9476;", f"lower bound {rounded_down(result.lower_bound, 7)}")
    return _figure(canvas(drawn, *size, "best cost and lower bound over time"), caption)


def gap_over_time(
    result: Result, trace: Trace, wanted: float | None, size: tuple[int, int]
) -> str | None:
    """The gap in per cent, on a logarithmic axis, and the one that was asked for."""
    known = [(p.seconds, 100.0 * relative_gap(p.cost, p.lower_bound)) for p in trace.points]
    known = [(seconds, gap) for seconds, gap in known if math.isfinite(gap)]
    if result.labels is None or not known:
        return None
    end = _end(trace.points)
    goal = 100.0 * wanted if wanted else 0.0
    positive = [gap for _, gap in known if gap > _SMALLEST] + [goal] * (goal > _SMALLEST)
    low = 10.0 ** math.floor(math.log10(min(positive, default=0.1)) - 0.05)
    high = 10.0 ** math.ceil(math.log10(max(positive, default=1.0)))
    if high <= low:
        high = 10.0 * low
    x, y = scales((0.0, end), (low, high), size, log=True)
    line = [(seconds, max(gap, low)) for seconds, gap in known]
    line.append((end, max(100.0 * result.gap, low)))
    drawn = frame(x, y, ("seconds", "gap in %"))
    caption = _key(COST_COLOUR, "&#9472;", f"gap {percent(result.gap)}")
    if low <= goal <= high:
        drawn += f'<path class="goal" d="M{x.start:.1f} {y(goal):.1f}H{x.end:.1f}"/>'
        caption += _key("#555555", "&#9480;", f"asked for: {goal:g} %")
    drawn += f'<path d="{steps(x, y, line)}" class="line" stroke="{COST_COLOUR}"/>'
    return _figure(canvas(drawn, *size, "the gap over time, in per cent"), caption)


def _end(points: list[TracePoint]) -> float:
    return max(points[-1].seconds, 1e-3) * 1.03


def _key(colour: str, line: str, text: str) -> str:
    return f'<span style="color:{colour}">{line} {escape(text)}</span>'


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
    high = min(max(value for _, value in costs), MOST_SHOWN * costs[-1][1])
    if low < 0.5 * high:
        return 0.0, 1.08 * high
    room = 0.15 * (high - low) if high > low else 0.05 * abs(high)
    return low - room, high + room
