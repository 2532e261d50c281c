"""Cost and lower bound as functions of the number of clusters."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans._alignment import SampleIndex
from certikmeans._estimator_utils import GivenConstraints, checked_weights, size_arguments
from certikmeans._numbers import cost_text, rounded_down
from certikmeans.api import solve
from certikmeans.errors import InputError
from certikmeans.problem import Problem
from certikmeans.problem.constraints import Constraints
from certikmeans.problem.data import size_limits
from certikmeans.result import Result
from certikmeans.status import StopReason

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Elbow:
    """Intervals that contain the optimal cost, in order of the number of clusters K.

    Attributes
    ----------
    k_values : ndarray of shape (n_values,)
        The numbers of clusters, ascending.
    lower_bound : ndarray of shape (n_values,)
        No feasible labelling with K clusters costs less; infinite if there is none. Without a
        least size the optimal cost does not increase with K, and a bound for a larger K also
        holds for smaller ones.
    inertia : ndarray of shape (n_values,)
        Cost of the best labelling found; infinite without one.
    results : tuple of Result
        The results.
    """

    k_values: NDArray[np.int64]
    lower_bound: NDArray[np.float64]
    inertia: NDArray[np.float64]
    results: tuple[Result, ...]

    @property
    def intervals(self) -> NDArray[np.float64]:
        """``[lower_bound, inertia]`` for every K, of shape (n_values, 2)."""
        return np.column_stack([self.lower_bound, self.inertia])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw cost and lower bound against K.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure of pyplot.

        Returns
        -------
        ax : matplotlib.axes.Axes
            The axes.
        """
        from certikmeans.report.plots import plot_elbow

        return plot_elbow(self.k_values, self.lower_bound, self.inertia, ax)

    def __repr__(self) -> str:
        shown = (
            f"K={k}: [{rounded_down(low, 6)}, {cost_text(high, 6)}]"
            for k, (low, high) in zip(self.k_values, self.intervals, strict=True)
        )
        return f"Elbow({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{k}</td><td>{rounded_down(low, 6)}</td><td>{cost_text(high, 6)}</td></tr>"
            for k, (low, high) in zip(self.k_values, self.intervals, strict=True)
        )
        return f"<table><tr><th>K</th><th>lower bound</th><th>cost</th></tr>{rows}</table>"


def elbow(
    X: ArrayLike,
    k_values: Iterable[int],
    *,
    must_link: Any = None,
    cannot_link: Any = None,
    sample_weight: ArrayLike | float | None = None,
    partial_labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    constraints: Constraints | None = None,
    cannot_link_groups: ArrayLike | None = None,
    size_min: int | None = None,
    size_max: int | None = None,
    balanced: bool = False,
    demand: ArrayLike | None = None,
    soft_must_link: Any = None,
    soft_cannot_link: Any = None,
    executor: Any = None,
    verbose: int = 0,
    **settings: Any,
) -> Elbow:
    """Solve for several numbers of clusters, to choose one.

    The usual elbow curve shows costs found by a heuristic: a kink may be due to a bad local
    optimum. Here each K has an interval that is proven to contain the optimal cost, so a kink
    larger than the intervals is a property of the data.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The samples, dense and finite.
    k_values : iterable of int
        Numbers of clusters; solved in ascending order, each from the previous labelling where
        that respects the limits on sizes. Interrupted, it ends after the K at hand.
    must_link, cannot_link, sample_weight, partial_labels, groups, constraints
        As in `ConstrainedKMeans.fit`.
    cannot_link_groups, demand, soft_must_link, soft_cannot_link
        As in `ConstrainedKMeans.fit`.
    size_min, size_max, balanced
        As in `ConstrainedKMeans`, the same numbers for every K and every cluster.
    executor, verbose
        As in `solve`.
    **settings
        As in `solve`; ``time_limit`` applies to every K.

    Returns
    -------
    Elbow
        Intervals, results, and ``plot``.

    Examples
    --------
    >>> from certikmeans import elbow
    >>> found = elbow([[0.0], [1.0], [9.0], [10.0]], range(1, 4))
    >>> found.inertia.round(6)
    array([82. ,  1. ,  0.5])
    >>> bool((found.lower_bound <= found.inertia).all())
    True
    """
    samples = Problem.from_data(X, 1).points
    n_samples, index = len(samples), SampleIndex(X)
    given = GivenConstraints(
        must_link=must_link,
        cannot_link=cannot_link,
        partial_labels=partial_labels,
        groups=groups,
        constraints=constraints,
        cannot_link_groups=cannot_link_groups,
        soft_must_link=soft_must_link,
        soft_cannot_link=soft_cannot_link,
    )
    every = given.aligned(index).combined(n_samples)
    weights = checked_weights(index.align("sample_weight", sample_weight), n_samples)
    demand = index.align("demand", demand)
    for name, limit in (("size_min", size_min), ("size_max", size_max)):
        if not (limit is None or isinstance(limit, numbers.Real)):
            raise InputError(
                f"{name}: expected one number for every K, got {type(limit).__name__}",
                hint="give one number for all clusters",
            )
    problems = [
        Problem.from_data(
            samples,
            k,
            weights=weights,
            **every,
            **size_arguments(n_samples, k, size_min, size_max, balanced, demand),
        )
        for k in _ascending(k_values)
    ]
    results: list[Result] = []
    for problem in problems:
        start = results[-1].labels if results else None
        if start is not None and not size_limits(problem).satisfied_by(start):
            start = None
        results.append(
            solve(problem, executor=executor, start_labels=start, verbose=verbose, **settings)
        )
        if results[-1].stop_reason is StopReason.INTERRUPTED:
            break
    lower = np.array([result.lower_bound for result in results])
    if not balanced and not size_min:
        # A labelling with K clusters is one with more, of which some are empty.
        lower = np.maximum.accumulate(lower[::-1])[::-1]
    return Elbow(
        np.array([result.n_clusters for result in results]),
        lower,
        np.array([result.cost for result in results]),
        tuple(results),
    )


def _ascending(k_values: Iterable[int]) -> list[int]:
    try:
        values = sorted(set(k_values))
    except TypeError as error:
        raise InputError(
            f"k_values: expected several whole numbers ({error})", hint="range(1, 11), for example"
        ) from error
    if not values:
        raise InputError("k_values: is empty", hint="range(1, 11), for example")
    return values
