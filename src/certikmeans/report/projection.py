"""Points on paper: two features as they are, else principal axes; also when there is only one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

# Beyond this many features a full eigendecomposition takes longer than the picture is worth.
_MAX_FEATURES_EXACT = 300
# Directions with less than this share of the largest spread are rounding, not data.
_NEGLIGIBLE = 1e-9
_JITTER = 0.3


@final
@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Places on paper for the points shown, and the map for centres."""

    places: NDArray[np.float64]  # (n_shown, 2)
    origin: NDArray[np.float64]  # (n_features,)
    directions: NDArray[np.float64]  # (n_features, 1 or 2)
    axis_names: tuple[str, str]
    notes: tuple[str, ...]

    @property
    def one_axis(self) -> bool:
        """Whether the data vary along one direction only, or not at all."""
        return int(self.directions.shape[1]) == 1

    def of_centres(
        self, centres: NDArray[np.float64], clusters: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return where the centres of the numbered ``clusters`` go."""
        across = (centres - self.origin) @ self.directions
        return np.column_stack([across, clusters]) if self.one_axis else across

    def of_boxes(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rectangles, (k, 2, 2), that hold what is drawn of the boxes (k, n_features, 2)."""
        sides = np.stack([boxes[:, :, 0] - self.origin, boxes[:, :, 1] - self.origin])
        ends = sides[:, :, :, None] * self.directions
        low, high = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
        if self.one_axis:
            rows = np.arange(len(boxes), dtype=np.float64)
            low = np.column_stack([low[:, 0], rows - _JITTER])
            high = np.column_stack([high[:, 0], rows + _JITTER])
        return np.stack([low, high], axis=2)


def project(
    points: NDArray[np.float64],
    shown: NDArray[np.int64],
    labels: NDArray[np.int64] | None,
    names: tuple[str, ...] | None = None,
) -> Projection:
    """Turn the rows ``shown`` to their principal axes, unless there are two features.

    With a single direction of variation, clusters are drawn in rows above each other and
    points are scattered a little around their row, so that they can be told apart.

    Examples
    --------
    >>> view = project(np.array([[0., 0., 1.], [3., 4., 1.]]), np.arange(2), None)
    >>> view.one_axis, view.axis_names[0]
    (True, 'first principal axis (100 % of the variance)')
    >>> project(np.array([[0., 0.], [3., 4.]]), np.arange(2), None, ("x", "y")).axis_names
    ('x', 'y')
    """
    sample = points[shown]
    if points.shape[1] == 2:
        axes = ("first feature", "second feature") if names is None else (names[0], names[1])
        return Projection(sample, np.zeros(2), np.eye(2), axes, ())
    origin = sample.mean(axis=0)
    centred = sample - origin
    # Scaled so that squares neither overflow nor vanish.
    scale = float(np.abs(centred).max()) or 1.0
    directions, spreads, total = _principal_axes(centred / scale)
    if directions.shape[1] == 1:
        rng = np.random.default_rng(0)
        rows = np.zeros(len(shown)) if labels is None else labels[shown].astype(np.float64)
        rows += rng.uniform(-_JITTER, _JITTER, size=len(shown))
        places = np.column_stack([centred @ directions[:, 0], rows])
        name = f"{'the only feature' if names is None else names[0]}, centred"
        if points.shape[1] > 1:
            name = f"first principal axis{_share(spreads[0], total)}"
        note = "the height only tells the clusters apart"
        return Projection(places, origin, directions, (name, "cluster"), (note,))
    axes = (
        f"first principal axis{_share(spreads[0], total)}",
        f"second principal axis{_share(spreads[1], total)}",
    )
    return Projection(centred @ directions, origin, directions, axes, ())


def _principal_axes(
    centred: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return one or two directions as columns, their spreads, and the total spread."""
    n_features = centred.shape[1]
    total = float(np.einsum("ij,ij->", centred, centred))
    if n_features == 1:
        return np.ones((1, 1)), np.array([total]), total
    if n_features <= _MAX_FEATURES_EXACT:
        spreads, vectors = np.linalg.eigh(centred.T @ centred)
        spreads, vectors = spreads[::-1][:2], vectors[:, ::-1][:, :2]
    else:
        from sklearn.utils.extmath import randomized_svd

        n_axes = min(2, len(centred))
        _, singular, rows = randomized_svd(centred, n_components=n_axes, random_state=0)
        spreads, vectors = singular**2, rows.T
    # An eigenvector has no sign of its own: its largest entry is made positive.
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    if len(spreads) < 2 or spreads[1] <= _NEGLIGIBLE**2 * spreads[0]:
        return vectors[:, :1], spreads[:1], total
    return vectors, spreads, total


def _share(spread: float, total: float) -> str:
    return f" ({spread / total:.0%} of the variance)".replace("%", " %") if total > 0 else ""
