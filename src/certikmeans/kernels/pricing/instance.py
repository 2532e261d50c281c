"""What the pricing kernels pass on: the instance, and forests of cannot-links among some groups."""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit


class Instance(NamedTuple):
    """The groups, their multipliers and the cannot-links between them. Read only."""

    points: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    lam: np.ndarray  # (n,) multipliers
    base: np.ndarray  # (n,) lam - w |x|^2
    parents: np.ndarray  # (n_linked,) int64: breadth-first tree of the whole graph, -1 at a root
    cyclic: np.ndarray  # (n_linked,) uint8: 1 in components with a cycle
    indptr: np.ndarray  # (n + 1,) int64
    neighbors: np.ndarray  # int64


class ForestSpace(NamedTuple):
    """Room for a forest over up to ``m`` groups."""

    ids: np.ndarray  # (m,) int32: the groups, ascending
    parent: np.ndarray  # (m,) int32
    order: np.ndarray  # (m,) int32
    tangled: np.ndarray  # (m,) uint8
    position: np.ndarray  # (n_linked,) int32: place of a group in ``ids``; all -1 between calls


class Forest(NamedTuple):
    """A spanning forest of the cannot-links among some groups. A *place* is one in ``ids``."""

    ids: np.ndarray  # (m,) int32: the groups, ascending
    parent: np.ndarray  # (>= m,) int32: place of the parent, -1 at a root
    order: np.ndarray  # (>= m,) int32: places, parents before children
    tangled: np.ndarray  # (>= m,) uint8: 1 where cannot-links beyond the forest exist
    linked: int  # places below this have cannot-links: they are in the forest
    n_tangled: int


@njit(cache=True, nogil=True)
def forest_space(
    most,  # IN  groups at most
    position,  # IN  (n_linked,) int32, all -1
):
    """Room for forests over up to ``most`` groups."""
    return ForestSpace(
        ids=np.empty(most, dtype=np.int32),
        parent=np.empty(most, dtype=np.int32),
        order=np.empty(most, dtype=np.int32),
        tangled=np.empty(most, dtype=np.uint8),
        position=position,
    )


@njit(cache=True, nogil=True)
def add_group(
    points,  # IN   (n, d); of the instance, which is too much to pass for every group
    weights,  # IN   (n,)
    base,  # IN   (n,)
    s,  # IN   group
    share,  # IN   between 0 and 1
    sums,  # IN/OUT (d + 2,): c, A, b of ``c + 2 b.y - A |y|^2``
):
    """Add ``share * a_s`` to a quadratic."""
    mass = share * weights[s]
    sums[0] += share * base[s]
    sums[1] += mass
    for j in range(points.shape[1]):
        sums[2 + j] += mass * points[s, j]
