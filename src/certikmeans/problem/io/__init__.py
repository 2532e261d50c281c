"""Readers of points, pairs, labels and weights. Errors name file, line, value and remedy."""

from certikmeans.problem.io.pairs import LinkFile, read_links
from certikmeans.problem.io.points import (
    PointTable,
    read_cannot_link_groups,
    read_partial_labels,
    read_points,
    read_weights,
)

__all__ = [
    "LinkFile",
    "PointTable",
    "read_cannot_link_groups",
    "read_links",
    "read_partial_labels",
    "read_points",
    "read_weights",
]
