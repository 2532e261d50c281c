"""Data of figures: colors and markers of clusters, projection and subsample of the points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.problem import Problem
from certikmeans.problem.arrays import distinct
from certikmeans.result import Result

# Okabe and Ito's palette, distinguishable with any kind of colour vision, without its yellow, too
# faint on white, and its vermilion, used for the cannot-links; then darker tones.
COLORS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#7F7F7F"),
    *("#8C5A2B", "#490092", "#A8B400", "#004949", "#920000"),
)
# Colours and markers have coprime counts, so their combination repeats only after 110 clusters.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_SYMBOLS = "\u25cf\u25a0\u25b2\u25c6\u25bc\u271a\u2716\u25c0\u25b6\u2b1f"  # the markers as text

MUST_LINK_COLOR = "#222222"
CANNOT_LINK_COLOR = "#D55E00"
VIOLATED_COLOR = "#C2007A"
COST_COLOR = "#0072B2"
BOUND_COLOR = "#D55E00"


def cluster_color(cluster: int) -> str:
    """Return the colour of a cluster."""
    return COLORS[cluster % len(COLORS)]


def cluster_marker(cluster: int) -> str:
    """Return the marker of a cluster, in matplotlib's letters."""
    return MARKERS[cluster % len(MARKERS)]


def cluster_symbol(cluster: int) -> str:
    """Return the marker of a cluster as a character."""
    return _SYMBOLS[cluster % len(_SYMBOLS)]


# A full eigendecomposition of more features takes longer than the rest of the figure.
_MAX_FEATURES_EXACT = 300
# Directions with less than this fraction of the largest spread are due to rounding.
_NEGLIGIBLE = 1e-9
_JITTER = 0.3


@final
@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Coordinates of the points shown, and the projection of centres."""

    coordinates: Floats  # (n_shown, 2)
    origin: Floats  # (n_features,)
    directions: Floats  # (n_features, 1 or 2)
    axis_names: tuple[str, str]
    notes: tuple[str, ...]

    @property
    def is_one_dimensional(self) -> bool:
        """Whether the data vary along one direction only, or not at all."""
        return int(self.directions.shape[1]) == 1

    def project_centers(self, centers: Floats, clusters: Ints) -> Floats:
        """Return the coordinates of the centres of the numbered ``clusters``."""
        projected = (centers - self.origin) @ self.directions
        return np.column_stack([projected, clusters]) if self.is_one_dimensional else projected

    def project_boxes(self, boxes: Floats) -> Floats:
        """Return rectangles, (k, 2, 2), that contain the projected boxes (k, n_features, 2)."""
        sides = np.stack([boxes[:, :, 0] - self.origin, boxes[:, :, 1] - self.origin])
        ends = sides[:, :, :, None] * self.directions
        low, high = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
        if self.is_one_dimensional:
            rows = np.arange(len(boxes), dtype=np.float64)
            low = np.column_stack([low[:, 0], rows - _JITTER])
            high = np.column_stack([high[:, 0], rows + _JITTER])
        return np.stack([low, high], axis=2)


def project(
    points: Floats,
    shown: Ints,
    labels: Ints | None,
    names: tuple[str, ...] | None = None,
) -> Projection:
    """Project the rows ``shown`` on their principal axes, unless there are two features.

    With a single direction of variation, clusters are drawn in rows above each other, and
    points are jittered around their row.

    Examples
    --------
    >>> view = project(np.array([[0., 0., 1.], [3., 4., 1.]]), np.arange(2), None)
    >>> view.is_one_dimensional, view.axis_names[0]
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
    directions, variances, total = _principal_axes(centred / scale)
    if directions.shape[1] == 1:
        rng = np.random.default_rng(0)
        rows = np.zeros(len(shown)) if labels is None else labels[shown].astype(np.float64)
        rows += rng.uniform(-_JITTER, _JITTER, size=len(shown))
        coordinates = np.column_stack([centred @ directions[:, 0], rows])
        name = f"{'the only feature' if names is None else names[0]}, centred"
        if points.shape[1] > 1:
            name = f"first principal axis{_variance_text(variances[0], total)}"
        note = "the vertical axis only separates the clusters"
        return Projection(coordinates, origin, directions, (name, "cluster"), (note,))
    axes = (
        f"first principal axis{_variance_text(variances[0], total)}",
        f"second principal axis{_variance_text(variances[1], total)}",
    )
    return Projection(centred @ directions, origin, directions, axes, ())


def _principal_axes(
    centred: Floats,
) -> tuple[Floats, Floats, float]:
    """Return one or two directions as columns, their spreads, and the total spread."""
    n_features = centred.shape[1]
    total = float(np.einsum("ij,ij->", centred, centred))
    if n_features == 1:
        return np.ones((1, 1)), np.array([total]), total
    if n_features <= _MAX_FEATURES_EXACT:
        variances, vectors = np.linalg.eigh(centred.T @ centred)
        variances, vectors = variances[::-1][:2], vectors[:, ::-1][:, :2]
    else:
        from sklearn.utils.extmath import randomized_svd

        n_dims = min(2, len(centred))
        _, singular, rows = randomized_svd(centred, n_components=n_dims, random_state=0)
        variances, vectors = singular**2, rows.T
    # The sign of an eigenvector is arbitrary: its largest entry is made positive.
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    if len(variances) < 2 or variances[1] <= _NEGLIGIBLE**2 * variances[0]:
        return vectors[:, :1], variances[:1], total
    return vectors, variances, total


def _variance_text(variance: float, total: float) -> str:
    return f" ({variance / total:.0%} of the variance)".replace("%", " %") if total > 0 else ""


MAX_PAIRS = 300


def subsample_pairs(
    problem: Problem, rng: np.random.Generator, most: int = MAX_PAIRS
) -> tuple[Ints, Ints]:
    """Sample pairs to draw: half of each kind, more if there are fewer of the other kind."""
    must, cannot = problem.must_link, problem.cannot_link
    half = most // 2
    n_must = min(len(must), max(half, most - len(cannot)))
    n_cannot = min(len(cannot), most - n_must)
    chosen = [
        pairs[np.sort(rng.choice(len(pairs), size=size, replace=False))] if size else pairs[:0]
        for pairs, size in ((must, n_must), (cannot, n_cannot))
    ]
    return chosen[0], chosen[1]


def subsample_violated(
    result: Result, rng: np.random.Generator, most: int = MAX_PAIRS
) -> tuple[Ints, Ints]:
    """Sample violated soft pairs to draw: must-links and cannot-links."""
    violated = result.violated_soft_pairs
    rows = np.arange(len(violated))
    if len(violated) > most:
        rows = np.sort(rng.choice(len(violated), size=most, replace=False))
    chosen = [violated[row] for row in rows.tolist()]
    both = [
        np.array([(one.first, one.second) for one in chosen if one.kind == kind], dtype=np.int64)
        for kind in ("must_link", "cannot_link")
    ]
    return both[0].reshape(-1, 2), both[1].reshape(-1, 2)


def subsample_points(n_points: int, pairs: Ints, rng: np.random.Generator, most: int) -> Ints:
    """Return the rows to draw, among them the ends of every pair drawn."""
    if n_points <= most:
        return np.arange(n_points)
    ends = distinct(pairs)
    others = rng.choice(n_points, size=most, replace=False)
    others = np.setdiff1d(others, ends, assume_unique=True)[: most - len(ends)]
    return np.sort(np.concatenate([ends, others]))
