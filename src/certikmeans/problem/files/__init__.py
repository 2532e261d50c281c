"""Readers of points, pairs, labels and weights. Errors name file, line, value and remedy."""

from certikmeans.problem.files.labels import read_partial_labels
from certikmeans.problem.files.pairs import LinkFile, read_links
from certikmeans.problem.files.points import PointTable, read_points
from certikmeans.problem.files.weights import read_weights

__all__ = [
    "LinkFile",
    "PointTable",
    "read_links",
    "read_partial_labels",
    "read_points",
    "read_weights",
]
