"""Cost and lower bound against the number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certikmeans.report.palette import BOUND_COLOUR, COST_COLOUR
from certikmeans.report.plots import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_elbow(
    k_values: NDArray[np.int64],
    lower_bound: NDArray[np.float64],
    cost: NDArray[np.float64],
    axes: Axes | None = None,
) -> Axes:
    """Draw one interval per K; those without a labelling are said to have none."""
    axes = axes_or_new(axes)
    lower = np.where(np.isfinite(lower_bound), lower_bound, np.nan)
    upper = np.where(np.isfinite(cost), cost, np.nan)
    axes.fill_between(k_values, lower, upper, color="#BBBBBB", alpha=0.35, label="undecided")
    axes.plot(k_values, upper, "o-", color=COST_COLOUR, label="best labelling found")
    axes.plot(k_values, lower, "_--", color=BOUND_COLOUR, markersize=12, label="lower bound")
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
