"""A smaller problem drawn from a large one, to find good centres cheaply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem import ReducedProblem


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Part of a reduced problem. ``rows[i]`` is the row of the whole that row ``i`` stands for."""

    problem: ReducedProblem
    rows: NDArray[np.int64]


def draw_sample(problem: ReducedProblem, size: int, rng: np.random.Generator) -> Sample:
    """Draw about ``size`` groups: whole units, that is components of cannot-links and free groups.

    So the sample has every rule of its groups. A unit larger than the sample is left out.
    """
    sizes = np.diff(problem.rules.unit_starts())
    kept = (rng.random(len(sizes)) < size / problem.n_groups) & (sizes <= size)
    rows = np.flatnonzero(np.repeat(kept, sizes))
    if len(rows) < problem.n_clusters:
        rows = np.arange(problem.n_groups)
    points, weights = np.ascontiguousarray(problem.points[rows]), problem.weights[rows]
    # Kernels are compiled once more for arrays that may be written to.
    points.flags.writeable = weights.flags.writeable = False
    sample = ReducedProblem(
        points=points,
        weights=weights,
        rules=problem.rules.among(rows),
        n_clusters=problem.n_clusters,
        offset=0.0,
    )
    return Sample(sample, rows)
